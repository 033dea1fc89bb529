//! A hop that is shared: the congestion window of RFC 5681.

use super::{Copy, rate_of, rate_over};
use crate::rtt::Rtt;
use base::Rate;
use serde::{Deserialize, Serialize};

/// Additive increase and multiplicative decrease, at most one decrease in a round trip.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shared {
    window: u64,
    threshold: u64,
    segment: u64,
    /// Losses of copies sent before this belong to the last decrease.
    recovery: u64,
}

impl Shared {
    /// RFC 6928.
    const INITIAL: u64 = 10;

    pub(super) fn new(segment: u64) -> Shared {
        Shared { window: Shared::INITIAL * segment, threshold: u64::MAX, segment, recovery: 0 }
    }

    pub(super) fn set_segment(&mut self, bytes: u64) {
        self.segment = bytes;
    }

    pub(super) fn limit(&self) -> u64 {
        self.window
    }

    /// A window in a round trip, with a margin, so that pacing does not bound it.
    pub(super) fn pace(&self, rtt: &Rtt) -> Option<Rate> {
        let gain = if self.window < self.threshold { 8 } else { 5 };
        let smoothed = rtt.smoothed()?;
        Some(rate_of(rate_over(self.window.saturating_mul(gain) / 4, smoothed)))
    }

    /// RFC 5681 §3.1, with bytes counted.
    pub(super) fn on_arrived(&mut self, copy: Copy) {
        if self.window < self.threshold {
            self.window += copy.size;
        } else {
            self.window += (self.segment * copy.size / self.window).max(1);
        }
    }

    pub(super) fn on_lost(&mut self, copy: Copy, sent: u64) {
        if copy.order >= self.recovery {
            self.threshold = (self.window / 2).max(2 * self.segment);
            (self.window, self.recovery) = (self.threshold, sent);
        }
    }

    pub(super) fn on_outage(&mut self) {
        self.window = self.segment;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::Tag;

    #[test]
    fn it_doubles_then_adds_a_segment_in_a_round_trip_and_halves_once() {
        let mut shared = Shared::new(100);
        let copy = |order| Copy { size: 100, order, tag: Tag::default() };
        for _ in 0..10 {
            shared.on_arrived(copy(0));
        }
        assert_eq!(shared.limit(), 2000);
        for order in 5..20 {
            shared.on_lost(copy(order), 20);
        }
        assert_eq!(shared.limit(), 1000);
        for _ in 0..10 {
            shared.on_arrived(copy(20));
        }
        assert!((1090..=1100).contains(&shared.limit()), "{}", shared.limit());
        shared.on_lost(copy(20), 30);
        assert!((540..=550).contains(&shared.limit()));
    }
}
