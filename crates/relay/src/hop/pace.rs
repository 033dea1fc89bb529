//! When the next segment may be sent over the hop.

use base::{Duration, Rate, Time};

/// A token bucket, as the time at which its debt is paid.
#[derive(Debug)]
pub(super) struct Pace {
    /// Without a limit if `None`.
    rate: Option<Rate>,
    /// When the hop will have sent all that was sent, if it sends at this rate.
    free_at: Time,
}

impl Pace {
    /// Time without transmission that is made up for afterwards: a wake comes [`Pace::WAKE`] after
    /// the hop was free.
    const BURST: Duration = Duration::from_millis(2);
    /// The same while a segment waited: a busy machine wakes a process as late as this.
    const LATE: Duration = Duration::from_millis(10);
    /// The shortest time between wakes: so long a burst of segments is sent at once.
    const WAKE: Duration = Duration::from_millis(1);

    pub(super) fn new(rate: Option<Rate>) -> Pace {
        Pace { rate, free_at: Time::ZERO }
    }

    pub(super) fn set(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    /// Whether a segment may be sent now.
    pub(super) fn allows(&self, now: Time) -> bool {
        self.rate.is_none() || self.free_at <= now
    }

    /// When one may be sent, if none may be sent now.
    pub(super) fn next(&self, now: Time) -> Time {
        self.free_at.max(now + Pace::WAKE)
    }

    /// So many bytes are sent, for which a segment `waited` or which just came. Returns whether the
    /// hop was idle before, which is not made up for.
    pub(super) fn charge(&mut self, now: Time, bytes: u32, waited: bool) -> bool {
        let Some(rate) = self.rate else { return false };
        let earliest = now - if waited { Pace::LATE } else { Pace::BURST };
        let was_idle = self.free_at < earliest;
        self.free_at = self.free_at.max(earliest) + rate.time_for(bytes.into());
        was_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Bytes sent in packets of 1000 from `from` on, at most until `end`; each wake comes so `late`.
    fn sent(pace: &mut Pace, from: Time, end: Time, late: Duration) -> u32 {
        let (mut now, mut bytes, mut waited) = (from, 0, false);
        while now < end {
            while pace.allows(now) {
                pace.charge(now, 1000, waited);
                bytes += 1000;
            }
            (now, waited) = (pace.next(now) + late, true);
        }
        bytes
    }

    #[test]
    fn it_sends_at_its_rate_in_short_bursts() {
        // 1000 bytes take 8 ms, 800 us and 8 us.
        for (mbps, burst) in [(1, 2000), (10, 4000), (1000, 252_000)] {
            let mut pace = Pace::new(Rate::from_bps(mbps * 1_000_000));
            let (start, end) = (millis(10_000), millis(11_000));
            let bytes = u64::from(sent(&mut pace, start, end, Duration::ZERO));
            let rate = mbps * 125_000;
            assert!((rate..=rate + burst).contains(&bytes), "{mbps} Mbit/s: {bytes}");
        }
    }

    #[test]
    fn late_wakes_do_not_lower_the_rate() {
        for late in [3, 9] {
            let mut pace = Pace::new(Rate::from_bps(100_000_000));
            let late = Duration::from_millis(late);
            let bytes = sent(&mut pace, millis(10_000), millis(11_000), late);
            assert!((12_300_000..=12_600_000).contains(&bytes), "{late}: {bytes}");
        }
    }

    #[test]
    fn later_wakes_give_no_longer_bursts() {
        let mut pace = Pace::new(Rate::from_bps(100_000_000));
        let bytes = sent(&mut pace, millis(10_000), millis(11_000), Duration::from_millis(49));
        // In 20 wakes, 10 ms each but the first.
        assert!((2_350_000..=2_500_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn idle_time_gives_no_more_than_a_burst() {
        let mut pace = Pace::new(Rate::from_bps(8_000_000));
        assert_eq!(sent(&mut pace, millis(1), millis(2), Duration::ZERO), 2000);
        assert!(pace.charge(millis(5000), 1000, false));
        let mut more = 0;
        while pace.allows(millis(5000)) {
            assert!(!pace.charge(millis(5000), 1000, false));
            more += 1;
        }
        assert_eq!(more, 2);
    }
}
