//! CANIT, congestion avoidance with normalized interval of time: windows of all connections grow
//! alike, whatever their round trip (`obanaik2003` §2.3.1).

use super::{AckSample, Cap, IncreaseFunction, RoundTrip};
use base::Duration;
use base::settings::Span;
use serde::{Deserialize, Serialize};

base::settings! {
    /// One segment per interval: `r/NIT` segments per window.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Canit {
        /// The interval in which a window grows by a segment (NIT); the thesis calls 30 ms the fairest.
        pub nit: Span,
        /// The round-trip time of the formula: the smoothed RTT, the propagation delay of the path
        /// there and back at the start of the run, or a given value.
        pub rtt: RoundTrip,
        /// The largest increase per ACK, segments.
        pub cap: Cap,
    }
}

impl IncreaseFunction for Canit {
    const DEFAULT: Canit =
        Canit { nit: Span(Duration::from_millis(30)), rtt: RoundTrip::Smoothed, cap: Cap(None) };

    #[inline]
    fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64 {
        let segments = self.rtt.seconds(ack.srtt).map_or(1.0, |r| r / self.nit.0.as_secs_f64());
        self.cap.limit(segments / window)
    }

    fn round_trip(&mut self) -> Option<&mut RoundTrip> {
        Some(&mut self.rtt)
    }
}
