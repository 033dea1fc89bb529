//! A limit on acknowledgments that a peer can provoke by unacceptable segments.

use crate::config::Config;
use base::Time;
use serde::{Deserialize, Serialize};

/// Acknowledgments of one kind, counted in periods of [`Config::CHALLENGE_PERIOD`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct AckBudget {
    /// Sent in the present period.
    spent: u32,
    since: Time,
}

impl AckBudget {
    /// Counts one acknowledgment; false if `allowed` were counted in this period already.
    pub(super) fn take(&mut self, now: Time, allowed: u32) -> bool {
        if now.since(self.since) >= Config::CHALLENGE_PERIOD {
            *self = AckBudget { spent: 0, since: now };
        }
        let left = self.spent < allowed;
        self.spent += u32::from(left);
        left
    }
}
