//! The time that all threads of a run share.

use base::Time;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC` since an origin, as [`Time`]. Copies have the same origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock whose epoch is now.
    #[must_use]
    pub fn start() -> Clock {
        Clock { origin: monotonic() }
    }

    /// A clock whose epoch is that of the machine's `CLOCK_MONOTONIC`: the same for all programs until it boots.
    #[must_use]
    pub fn of_machine() -> Clock {
        Clock { origin: 0 }
    }

    /// The time since the epoch.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.origin))
    }
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both are never negative: the clock counts from boot.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_show_the_same_time_and_it_goes_on() {
        let clock = Clock::start();
        let copy = clock;
        let times = [clock.now(), copy.now(), clock.now(), copy.now()];
        assert!(times.is_sorted());
    }
}
