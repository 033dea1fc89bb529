//! The numbers of ESP packets at their receiver: replays are refused, and extended numbers, of which a
//! packet has only the lower half, are completed.

/// The numbers of the packets that a receiver has accepted (RFC 4303 §3.4.3): each is accepted once, and
/// none that is [`ReplayWindow::SIZE`] or more below the highest.
///
/// ```text
/// complete the number, if they are extended -> check -> verify the packet -> update
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayWindow {
    /// The highest number accepted; 0 if there is none.
    top: u64,
    /// Bit `n` is set if `top - n` was accepted.
    accepted: u64,
}

impl ReplayWindow {
    /// The numbers of which the receiver remembers whether it has accepted them.
    pub const SIZE: u32 = u64::BITS;

    /// The highest number accepted; 0 if there is none.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.top
    }

    /// Completes an extended sequence number of which the packet has the lower half (RFC 4303 §2.2.1,
    /// appendix A2.2). It is the only number with this half from the bottom of the window on to 2^32 above
    /// it, and is verified with the packet.
    #[must_use]
    pub fn extended(&self, low: u32) -> u64 {
        extended(self.top, ReplayWindow::SIZE, low)
    }

    /// Whether a packet with this number may be accepted, once it is verified.
    #[must_use]
    pub fn check(&self, number: u64) -> bool {
        // RFC 4303 §3.3.3: the first packet has the number 1.
        number > 0
            && match self.top.checked_sub(number) {
                None => true,
                Some(below) => {
                    below < u64::from(ReplayWindow::SIZE) && self.accepted >> below & 1 == 0
                }
            }
    }

    /// Notes that a packet with this number, which was checked, is verified.
    pub fn update(&mut self, number: u64) {
        if let Some(below) = self.top.checked_sub(number) {
            self.accepted |= 1_u64.checked_shl(below.min(u64::from(u32::MAX)) as u32).unwrap_or(0);
            return;
        }
        let above = (number - self.top).min(u64::from(u32::MAX)) as u32;
        self.accepted = self.accepted.checked_shl(above).unwrap_or(0) | 1;
        self.top = number;
    }
}

/// The lowest number with this lower half from the bottom of the window on, which has `size` numbers and
/// ends with `top`.
fn extended(top: u64, size: u32, low: u32) -> u64 {
    let bottom = top.saturating_sub(u64::from(size) - 1);
    let number = bottom & !u64::from(u32::MAX) | u64::from(low);
    // The last 2^32 numbers have no successors: such a packet cannot be verified.
    if number < bottom { number.wrapping_add(1 << 32) } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of RFC 4303 appendix A2.2: the upper half from the parts of the window's end, with the
    /// names that are used there.
    fn of_the_standard(th: u32, tl: u32, w: u32, seql: u32) -> Option<u32> {
        let bottom = tl.wrapping_sub(w - 1);
        if tl >= w - 1 {
            // Case A: the window is within one subspace.
            if seql >= bottom { Some(th) } else { th.checked_add(1) }
        } else if seql >= bottom {
            // Case B: it spans two.
            th.checked_sub(1)
        } else {
            Some(th)
        }
    }

    #[test]
    fn extended_numbers_are_those_of_the_standard() {
        let edges = [0, 1, 2, 62, 63, 64, 65, 1 << 31, u32::MAX - 64, u32::MAX - 63, u32::MAX];
        for th in [0, 1, 7, u32::MAX - 1, u32::MAX] {
            for tl in edges {
                for w in [1, 2, 32, 64, 1024] {
                    for low in edges.into_iter().chain([tl.wrapping_sub(w), tl.wrapping_sub(w - 1)])
                    {
                        let top = u64::from(th) << 32 | u64::from(tl);
                        if top == u64::MAX {
                            continue;
                        }
                        // Where the standard's would be below 0 or above the last, it has none.
                        let Some(high) = of_the_standard(th, tl, w, low) else { continue };
                        let expected = u64::from(high) << 32 | u64::from(low);
                        assert_eq!(extended(top, w, low), expected, "{top:#x} {w} {low:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_new_association_starts_in_the_first_subspace() {
        let window = ReplayWindow::default();
        assert_eq!([1, 64, u32::MAX].map(|low| window.extended(low)), [1, 64, 0xffff_ffff]);
        // RFC 4303 appendix A2.2 would look for a number below 0 here.
        let mut window = ReplayWindow::default();
        window.update(3);
        assert_eq!(window.extended(u32::MAX), 0xffff_ffff);
    }

    #[test]
    fn numbers_are_followed_across_the_end_of_a_subspace() {
        let mut window = ReplayWindow::default();
        window.update(0xffff_fffe);
        assert_eq!(window.extended(0xffff_ffff), 0xffff_ffff);
        // The next but one, and one that is late: the halves say which.
        assert_eq!(window.extended(0), 1 << 32);
        window.update(window.extended(5));
        assert_eq!((window.top(), window.extended(0xffff_ffff)), ((1 << 32) + 5, 0xffff_ffff));
        assert!(window.check(0xffff_ffff) && !window.check(0xffff_fffe));
        // Below the window, it is one of the next subspace.
        assert_eq!(window.extended(0xffff_ff00), 0x1_ffff_ff00);
    }

    #[test]
    fn nothing_overflows_at_the_end() {
        let mut window = ReplayWindow::default();
        window.update(u64::MAX - 1);
        assert_eq!(window.extended(u32::MAX), u64::MAX);
        let _ = window.extended(0);
        window.update(u64::MAX);
        let _ = (window.extended(0), window.extended(u32::MAX));
        window.update(1);
        assert!(!window.check(u64::MAX) && !window.check(0) && !window.check(1));
    }

    #[test]
    fn each_number_is_accepted_once_and_none_that_is_64_behind() {
        let mut window = ReplayWindow::default();
        assert!(!window.check(0));
        for number in [1, 3, 2] {
            assert!(window.check(number));
            // A packet that is not verified changes nothing.
            assert!(window.check(number));
            window.update(number);
            assert!(!window.check(number));
        }
        window.update(100);
        assert_eq!(
            [36, 37, 99, 100, 101].map(|number| window.check(number)),
            [false, true, true, false, true]
        );
        // Far above, nothing is left of those before.
        window.update(100 + 64);
        assert_eq!(
            [100, 101, 163, 164].map(|number| window.check(number)),
            [false, true, true, false]
        );
    }

    #[test]
    fn it_is_a_set_of_the_last_numbers() {
        let (mut random, mut window) = (1_u64, ReplayWindow::default());
        let mut accepted = std::collections::BTreeSet::new();
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (window.top() + (random >> 57)).saturating_sub(90);
            let fresh = number > 0 && number + 64 > window.top() && !accepted.contains(&number);
            assert_eq!(window.check(number), fresh, "{number} of {window:?}");
            if fresh {
                window.update(number);
                accepted.insert(number);
            }
        }
        assert!(accepted.len() > 1000, "{}", accepted.len());
    }
}
