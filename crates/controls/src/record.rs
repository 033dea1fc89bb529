//! Recorded calls: `struct call` of bpf/settings.h.

use crate::settings::float;
use base::{Duration, Time};

/// A call of a control for an acknowledgment, with its inputs and results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// When it arrived, by the kernel's monotonic clock.
    pub now: Time,
    /// Segments newly acknowledged, cumulatively or selectively. Westwood+: 0.
    pub acked_segments: u64,
    /// Octets newly acknowledged cumulatively. Recorded by `auto` and Westwood+.
    pub acked_octets: u64,
    /// The smoothed round-trip time; Westwood+: the last sample.
    pub rtt: Option<Duration>,
    /// Segment size, bytes.
    pub mss: u32,
    /// In recovery from a timeout. Recorded by `auto`.
    pub after_timeout: bool,
    /// The congestion window before, segments. Westwood+: 0.
    pub before: f64,
    /// What an acknowledgment adds to the window, segments. Westwood+: 0.
    pub increase: f64,
    /// The congestion window after, segments. Westwood+: the octets that the path holds, 0 if unknown.
    pub after: f64,
}

impl Call {
    /// A record of the ring buffer; `None` if its size is not that of a call.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Call> {
        let (numbers, []) = bytes.as_chunks() else { return None };
        let [now, segments, octets, rtt, mss, after_timeout, before, increase, after] =
            *numbers.iter().map(|number| u64::from_ne_bytes(*number)).collect::<Vec<_>>()
        else {
            return None;
        };
        Some(Call {
            now: Time::ZERO + Duration::from_micros(now),
            acked_segments: segments,
            acked_octets: octets,
            rtt: (rtt > 0).then(|| Duration::from_micros(rtt)),
            mss: u32::try_from(mss).ok()?,
            after_timeout: after_timeout != 0,
            before: float(before),
            increase: float(increase),
            after: if before == 0 { after as f64 } else { float(after) },
        })
    }
}
