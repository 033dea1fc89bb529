//! The replay window: which numbers of packets have arrived (RFC 6479).

/// Bits of the bitmap.
const BITS: u64 = 8192;
const WORD: u64 = u64::BITS as u64;
const WORDS: usize = (BITS / WORD) as usize;

/// Numbers below the highest that are still told apart. One word of the bitmap is being refilled.
pub(crate) const WINDOW: u64 = BITS - WORD;

/// The numbers that have arrived. Those that are [`WINDOW`] below the highest count as arrived.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The number after the highest that has arrived.
    next: u64,
    /// A ring: number n is bit n modulo [`BITS`].
    words: [u64; WORDS],
}

impl Window {
    pub(crate) const fn new() -> Window {
        Window { next: 0, words: [0; WORDS] }
    }

    const fn place(number: u64) -> (usize, u64) {
        ((number / WORD) as usize % WORDS, 1 << (number % WORD))
    }

    /// True if the packet with this number may be new.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return number < u64::MAX;
        }
        let (word, bit) = Window::place(number);
        self.next - number <= WINDOW && self.words[word] & bit == 0
    }

    /// Records that the number, which [is new](Window::is_new), has arrived. Returns whether it is the highest.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        let is_highest = number >= self.next;
        if is_highest {
            let last = self.next.saturating_sub(1) / WORD;
            let cleared = (number / WORD - last).min(WORDS as u64);
            for step in 1..=cleared {
                self.words[(last + step) as usize % WORDS] = 0;
            }
            self.next = number + 1;
        }
        let (word, bit) = Window::place(number);
        self.words[word] |= bit;
        is_highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

        /// The window decides as a set of all numbers would.
        #[test]
        fn a_number_is_new_once_and_as_long_as_it_is_near_the_highest(
            steps in prop::collection::vec(
                prop_oneof![8 => -70i64..70, 2 => -9000i64..9000, 1 => -200_000i64..200_000], 1..400),
            start in prop_oneof![Just(0u64), Just(u64::MAX - 300_000)],
        ) {
            let (mut window, mut seen, mut highest) = (Window::new(), BTreeSet::new(), None);
            let mut at = start;
            for step in steps {
                at = at.saturating_add_signed(step);
                let is_near = highest.is_none_or(|highest: u64| highest.saturating_sub(at) < WINDOW);
                let is_new = is_near && at < u64::MAX && !seen.contains(&at);
                prop_assert_eq!(window.is_new(at), is_new, "{} after {:?}", at, highest);
                if is_new {
                    prop_assert_eq!(window.insert(at), highest.is_none_or(|highest| at > highest));
                    seen.insert(at);
                    highest = highest.max(Some(at));
                }
            }
        }
    }

    #[test]
    fn at_least_2048_packets_may_be_overtaken() {
        let mut window = Window::new();
        window.insert(WINDOW);
        assert!(WINDOW >= 2048 && window.is_new(1) && !window.is_new(0));
    }
}
