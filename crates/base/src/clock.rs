//! The clock of a state machine that may be restored elsewhere.

use crate::Time;
use serde::{Deserialize, Serialize};

/// Nanoseconds that the caller's clock is ahead of a transport connection's, modulo 2^64.
///
/// A connection computes in its own time. If another host adopts it, or it is restored after a
/// pause, it continues as if no time had passed: only this offset changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock(u64);

impl Clock {
    /// The clock that shows `local` when the caller's shows `world`.
    #[must_use]
    pub fn showing(local: Time, world: Time) -> Clock {
        Clock(world.as_nanos().wrapping_sub(local.as_nanos()))
    }

    /// The connection's time at a time of the caller's clock.
    #[inline]
    #[must_use]
    pub fn local(self, world: Time) -> Time {
        Time::from_nanos(world.as_nanos().wrapping_sub(self.0))
    }

    /// The caller's time at a time of the connection.
    #[inline]
    #[must_use]
    pub fn world(self, local: Time) -> Time {
        if local >= Time::NEVER {
            return Time::NEVER;
        }
        Time::from_nanos(local.as_nanos().wrapping_add(self.0))
    }
}
