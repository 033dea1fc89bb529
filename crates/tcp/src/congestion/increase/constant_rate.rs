//! Constant rate: the sending rate grows alike on all connections, whatever their round trip
//! (`obanaik2003` §2.3.1).
//!
//! Standard growth adds `1/r²` segments a second to the rate in every second. This adds `c`: a window
//! of r times the rate then grows by `c r²` segments in a round trip.

use super::{AckSample, Cap, IncreaseFunction, RoundTrip, positive};
use base::settings::Kind;
use serde::{Deserialize, Serialize};

base::settings! {
    /// `c r²` segments per window. With r = `1/√c`, 316 ms for the default, it is the standard's growth.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ConstantRate {
        /// Segments per second squared. The thesis knows of no right one; it says "less than 100".
        #[serde(deserialize_with = "positive")]
        pub c: f64 as Kind::Positive,
        /// The round-trip time of the formula: the smoothed RTT, the propagation delay of the path
        /// there and back at the start of the run, or a given value.
        pub rtt: RoundTrip,
        /// The largest increase per ACK, segments.
        pub cap: Cap,
    }
}

impl IncreaseFunction for ConstantRate {
    const DEFAULT: ConstantRate =
        ConstantRate { c: 10.0, rtt: RoundTrip::Smoothed, cap: Cap(None) };

    #[inline]
    fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64 {
        let segments = self.rtt.seconds(ack.srtt).map_or(1.0, |r| self.c * r * r);
        self.cap.limit(segments / window)
    }

    fn round_trip(&mut self) -> Option<&mut RoundTrip> {
        Some(&mut self.rtt)
    }
}
