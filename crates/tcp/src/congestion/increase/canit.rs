//! CANIT, congestion avoidance with normalized interval of time: windows of all connections grow
//! alike, whatever their round trip (`obanaik2003` §2.3.1).

use super::{AckSample, Cap, IncreaseFunction, RoundTrip, span};
use base::Duration;
use serde::{Deserialize, Serialize};

/// One segment per interval: `r/NIT` segments per window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Canit {
    /// The interval, NIT; the thesis calls 30 ms the fairest.
    #[serde(with = "span")]
    pub nit: Duration,
    /// Which round trip r is.
    pub rtt: RoundTrip,
    /// The most that an acknowledgment adds.
    pub cap: Cap,
}

impl IncreaseFunction for Canit {
    const DEFAULT: Canit =
        Canit { nit: Duration::from_millis(30), rtt: RoundTrip::Smoothed, cap: Cap(None) };

    #[inline]
    fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64 {
        let segments = self.rtt.seconds(ack.srtt).map_or(1.0, |r| r / self.nit.as_secs_f64());
        self.cap.limit(segments / window)
    }

    fn round_trip(&mut self) -> Option<&mut RoundTrip> {
        Some(&mut self.rtt)
    }
}
