//! Sleep until a time or a packet, and the wake from it in time.

use base::{Duration, Time};
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

/// How much earlier than needed it asks to be woken: a processor that slept takes its time. What is
/// too early by then is spent asking for packets again and again.
#[derive(Default)]
pub(super) struct Lead {
    enough: Duration,
    /// How long it may ask again and again.
    credit: Duration,
}

impl Lead {
    /// One that is longer would keep a processor busy.
    const LONGEST: Duration = Duration::from_micros(150);

    /// Nothing is left to other threads by one of real-time priority that never sleeps, until the
    /// kernel stops it for 50 ms: at most half of the time without work is spent awake.
    const AWAKE_PER_SLEEP: u64 = 1;

    pub(super) fn now(&self) -> Duration {
        if self.credit == Duration::ZERO { Duration::ZERO } else { self.enough }
    }

    /// It slept until it was woken for what is due. Follows what is enough three times out of four.
    pub(super) fn woken(&mut self, punctual: bool) {
        self.enough = if punctual {
            self.enough - Duration::from_nanos(500)
        } else {
            (self.enough + Duration::from_nanos(1500)).min(Lead::LONGEST)
        };
    }

    pub(super) fn slept(&mut self, span: Duration) {
        self.credit = (self.credit + span * Lead::AWAKE_PER_SLEEP).min(Duration::from_millis(1));
    }

    pub(super) fn asked(&mut self, span: Duration) {
        self.credit = self.credit - span;
    }
}

/// Sleeps until a device can be read, or until some time. Says whether one can be read.
pub(super) fn wait(watched: &mut [PollFd<'_>], now: Time, until: Time) -> bool {
    let nanos = until.since(now).as_nanos();
    let timeout = Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    };
    let timeout = (until < Time::NEVER - Lead::LONGEST).then_some(&timeout);
    match poll(watched, timeout) {
        Ok(ready) => ready > 0,
        Err(Errno::INTR) => false,
        // The descriptors are open and the timeout is one; memory for a few of them was there the
        // last time.
        Err(error) => panic!("ppoll: {error}"),
    }
}
