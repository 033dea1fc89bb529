//! A connection's own clock.

use base::Time;
use serde::{Deserialize, Serialize};

/// Nanoseconds that the world's clock is ahead of the connection's, modulo 2^64.
///
/// Inside, a connection knows only its own time. One that is taken over by another host, or
/// restored after a pause, goes on as if nothing had happened: only this number changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Clock(u64);

impl Clock {
    /// The clock that shows `local` when the world's shows `world`.
    pub(super) fn showing(local: Time, world: Time) -> Clock {
        Clock(world.as_nanos().wrapping_sub(local.as_nanos()))
    }

    /// The connection's time at a time of the world.
    #[inline]
    pub(super) fn local(self, world: Time) -> Time {
        Time::from_nanos(world.as_nanos().wrapping_sub(self.0))
    }

    /// The world's time at a time of the connection.
    #[inline]
    pub(super) fn world(self, local: Time) -> Time {
        if local >= Time::NEVER {
            return Time::NEVER;
        }
        Time::from_nanos(local.as_nanos().wrapping_add(self.0))
    }
}
