//! How many of a sender's segments are lost, for whatever reason, as the sender can tell.

use crate::Statistics;
use serde::{Deserialize, Serialize};

/// The share that is lost, averaged over segments sent as nodes average over packets.
///
/// A loss is a retransmission that was not needless: those that the peer reports to have received
/// twice (DSACK) are taken off again (LEAST: Allman, Eddy, Ostermann 2003). Without DSACK, what a
/// sender goes back over after a timeout counts as lost, so that the estimate is too high and the
/// window comes down further than it had to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Total {
    share: f64,
    /// What was counted.
    segments: u64,
    retransmissions: u64,
    twice: u64,
}

impl Total {
    /// Counts what the sender has done since the last call; `a` is the weight of a segment.
    pub(super) fn count(&mut self, a: f64, done: &Statistics) {
        for _ in self.segments..done.segments {
            self.share -= a * self.share;
        }
        let lost = done.retransmissions.saturating_sub(self.retransmissions) as f64;
        let needless = done.twice.saturating_sub(self.twice) as f64;
        self.share = (self.share + a * (lost - needless)).clamp(0.0, 1.0);
        self.segments = done.segments;
        (self.retransmissions, self.twice) = (done.retransmissions, done.twice);
    }

    /// The share if one more loss is counted, which is about to be repaired.
    pub(super) fn with_another(&self, a: f64) -> f64 {
        self.share + a * (1.0 - self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(segments: u64, retransmissions: u64, twice: u64) -> Statistics {
        Statistics { segments, retransmissions, twice, ..Statistics::default() }
    }

    #[test]
    fn it_settles_at_the_share_of_needed_retransmissions() {
        let (a, mut total) = (1.0 / 64.0, Total::default());
        // Of twenty segments two go again, one of them needlessly.
        for round in 1..200 {
            total.count(a, &statistics(20 * round, 2 * round, round));
        }
        assert!((0.03..0.07).contains(&total.share), "{}", total.share);
    }

    #[test]
    fn a_loss_weighs_what_it_weighs_at_a_node_and_fades_alike() {
        let (a, mut total) = (0.25, Total::default());
        assert_eq!(total.with_another(a), 0.25);
        total.count(a, &statistics(1, 1, 0));
        assert_eq!(total.share, 0.25);
        total.count(a, &statistics(3, 1, 0));
        assert_eq!(total.share, 0.25 * 0.75 * 0.75);
    }

    #[test]
    fn what_arrived_twice_was_no_loss_even_if_that_is_heard_late() {
        let (a, mut total) = (0.5, Total::default());
        total.count(a, &statistics(1, 1, 0));
        total.count(a, &statistics(1, 1, 1));
        assert_eq!(total.share, 0.0);
    }
}
