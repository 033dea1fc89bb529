//! The sender's estimate of its total loss rate.

use crate::Statistics;
use serde::{Deserialize, Serialize};

/// The loss rate, averaged over segments sent as nodes average over packets.
///
/// A loss is a retransmission that was not spurious: those covered by DSACK are subtracted (LEAST:
/// Allman, Eddy, Ostermann 2003). Without DSACK, all retransmissions after a timeout count as
/// losses, so the estimate is too high and the window is reduced more than needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LossRate {
    share: f64,
    /// The counters at the last update.
    segments: u64,
    retransmissions: u64,
    dsacks: u64,
}

impl LossRate {
    /// Counts what the sender has done since the last call; `a` is the weight of a segment.
    pub(super) fn count(&mut self, a: f64, done: &Statistics) {
        for _ in self.segments..done.segments {
            self.share -= a * self.share;
        }
        let lost = done.retransmissions.saturating_sub(self.retransmissions) as f64;
        let needless = done.dsacks.saturating_sub(self.dsacks) as f64;
        self.share = (self.share + a * (lost - needless)).clamp(0.0, 1.0);
        self.segments = done.segments;
        (self.retransmissions, self.dsacks) = (done.retransmissions, done.dsacks);
    }

    /// The loss rate with one more loss, whose retransmission is about to be sent.
    pub(super) fn with_one_more(&self, a: f64) -> f64 {
        self.share + a * (1.0 - self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(segments: u64, retransmissions: u64, dsacks: u64) -> Statistics {
        Statistics { segments, retransmissions, dsacks, ..Statistics::default() }
    }

    #[test]
    fn it_settles_at_the_share_of_needed_retransmissions() {
        let (a, mut total) = (1.0 / 64.0, LossRate::default());
        // Of twenty segments two go again, one of them needlessly.
        for round in 1..200 {
            total.count(a, &statistics(20 * round, 2 * round, round));
        }
        assert!((0.03..0.07).contains(&total.share), "{}", total.share);
    }

    #[test]
    fn a_loss_weighs_what_it_weighs_at_a_node_and_fades_alike() {
        let (a, mut total) = (0.25, LossRate::default());
        assert_eq!(total.with_one_more(a), 0.25);
        total.count(a, &statistics(1, 1, 0));
        assert_eq!(total.share, 0.25);
        total.count(a, &statistics(3, 1, 0));
        assert_eq!(total.share, 0.25 * 0.75 * 0.75);
    }

    #[test]
    fn a_duplicate_was_no_loss_even_if_it_is_reported_late() {
        let (a, mut total) = (0.5, LossRate::default());
        total.count(a, &statistics(1, 1, 0));
        total.count(a, &statistics(1, 1, 1));
        assert_eq!(total.share, 0.0);
    }
}
