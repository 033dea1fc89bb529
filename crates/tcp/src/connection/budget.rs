//! How many acknowledgments a peer may call for by segments that are no part of the stream.

use crate::config::Config;
use base::Time;
use serde::{Deserialize, Serialize};

/// Acknowledgments of one kind, counted in periods of [`Config::CHALLENGE_PERIOD`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Budget {
    /// Sent in the present period.
    spent: u32,
    since: Time,
}

impl Budget {
    /// Takes one out, if fewer than `allowed` were taken in this period.
    pub(super) fn take(&mut self, now: Time, allowed: u32) -> bool {
        if now.since(self.since) >= Config::CHALLENGE_PERIOD {
            *self = Budget { spent: 0, since: now };
        }
        let left = self.spent < allowed;
        self.spent += u32::from(left);
        left
    }
}
