//! Congestion control: how large the window is, and nothing else.
//!
//! It is told of acknowledgments and of congestion; which losses are congestion, and how they are
//! repaired, is decided elsewhere.

mod aimd;
mod increase;

pub use increase::{Increase, IncreaseFunction};

pub(crate) use aimd::Aimd;

use base::{Duration, Rate};

/// What an acknowledgment of new data says about the path.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Octets newly acknowledged cumulatively.
    pub acked: u64,
    /// Octets newly known to be delivered.
    pub delivered: u64,
    /// Octets delivered over a recent interval.
    pub rate: RateSample,
    /// The round trip of the segment that caused it, unless ambiguous (Karn).
    pub rtt: Option<Duration>,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// Whether the congestion window was what kept the sender from sending more. A window that is
    /// not used must not grow (RFC 9293 §3.8.2, RFC 7661).
    pub window_limited: bool,
    /// Segment size, bytes.
    pub mss: u32,
}

/// Octets delivered over an interval (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Octets.
    pub delivered: u64,
    /// How long their delivery took: the longer of sending and acknowledging them.
    pub interval: Duration,
}

impl RateSample {
    /// The delivery rate; `None` if no time passed.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let nanos = u128::from(self.interval.as_nanos());
        let bits = u128::from(self.delivered) * 8_000_000_000;
        Rate::from_bps(u64::try_from(bits.checked_div(nanos)?).unwrap_or(u64::MAX))
    }
}

/// Congestion, noticed.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// Octets in flight when it was noticed, those of limited transmit not counted (RFC 5681 §3.2)
    /// and never more than the window allowed.
    pub flight: u64,
    /// Segment size, bytes.
    pub mss: u32,
    /// What remains of the window: 0.5 is the standard (RFC 5681 §3.1).
    pub factor: f64,
    /// Leave the slow-start threshold as it is.
    pub keep_ssthresh: bool,
}

/// A congestion controller. Windows are in bytes.
pub trait CongestionControl {
    /// New data was acknowledged outside of recovery.
    fn on_ack(&mut self, sample: &AckSample);
    /// Congestion was noticed, once per episode; recovery keeps the flow going.
    fn on_congestion(&mut self, episode: &Episode);
    /// Start again from one segment: a timeout, or an algorithm without fast recovery.
    fn on_rto(&mut self, episode: &Episode);
    /// Nothing was sent for a while: at most `window` bytes from now on (RFC 5681 §4.1).
    fn on_idle(&mut self, window: u64);
    /// The congestion window, bytes.
    fn window(&self) -> u64;
    /// The slow-start threshold, bytes; `u64::MAX` while arbitrarily high.
    fn ssthresh(&self) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_sample_divides_octets_by_time() {
        let sample = RateSample { delivered: 1250, interval: Duration::from_millis(1) };
        assert_eq!(sample.rate(), Rate::from_bps(10_000_000));
        assert_eq!(RateSample::default().rate(), None);
    }
}
