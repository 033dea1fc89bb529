//! What controllers are told: of acknowledgments, of losses, and of congestion.

use base::{Duration, Rate, Time};
use serde::{Deserialize, Serialize};

/// A sample of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Time,
    /// Octets newly acknowledged cumulatively.
    pub acked: u64,
    /// Those of them that limited transmit has replaced by new octets already: appropriate byte
    /// counting counts them once.
    pub limited_transmit: u64,
    /// Octets newly delivered, SACKed ones included.
    pub delivered: u64,
    /// The delivery rate.
    pub rate: RateSample,
    /// The flight, if the controller models the path.
    pub flight: FlightSample,
    /// The round-trip time of the segment that caused it, unless ambiguous (Karn), as the
    /// round-trip clock measures it.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Whether the congestion window limits the sender. A window that is not used must not grow
    /// (RFC 9293 §3.8.2, RFC 7661).
    pub window_limited: bool,
    /// The acknowledged octets were outstanding at a timeout, and may have arrived before their
    /// retransmission (RFC 3465 §2.3).
    pub after_timeout: bool,
    /// Segment size, bytes.
    pub mss: u32,
    /// The newly reported congestion marks, with accurate ECN.
    pub marks: CeMarks,
}

/// Packets that arrived at the receiver with a congestion mark (CE), as accurate ECN reports them (RFC
/// 9768).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CeMarks {
    /// Packets.
    pub packets: u64,
    /// Bytes of their payload; where the path removes the receiver's option, estimated from the
    /// packets.
    pub bytes: u64,
}

impl AckSample {
    /// The octets that appropriate byte counting counts.
    #[inline]
    pub(super) fn counted_octets(&self) -> u64 {
        self.acked.saturating_sub(self.limited_transmit)
    }
}

/// Octets delivered over an interval (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Octets.
    pub delivered: u64,
    /// The time of their delivery: the longer of sending and acknowledging them.
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

/// The flight at an acknowledgment, and when what it delivers was sent (draft-ietf-ccwg-bbr §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightSample {
    /// Octets delivered so far.
    pub delivered: u64,
    /// Octets in the network now.
    pub in_flight: u64,
    /// Octets in the network when the copy was sent that was delivered, itself included.
    pub sent_in_flight: u64,
    /// The application limited the flight when it was sent.
    pub app_limited: bool,
    /// Its round trip; `None` if another copy may have arrived.
    pub rtt: Option<Duration>,
}

/// A range that is lost by congestion.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When that was found.
    pub now: Time,
    /// Its first octet.
    pub start: u64,
    /// The octet after its last.
    pub end: u64,
    /// Octets delivered when it was sent.
    pub delivered: u64,
    /// Octets in the network when it was sent, itself included.
    pub in_flight: u64,
    /// The application limited the flight when it was sent.
    pub app_limited: bool,
}

/// A congestion episode.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// When it was detected.
    pub now: Time,
    /// Octets in flight when it was detected, without those of limited transmit (RFC 5681 §3.2),
    /// and never more than the window allowed.
    pub flight: u64,
    /// Segment size, bytes.
    pub mss: u32,
    /// The share of the flight that a mechanism leaves, 0 to 1; `None` leaves it to the controller.
    pub decrease: Option<f64>,
    /// Leave the slow-start threshold as it is.
    pub keep_ssthresh: bool,
    /// An ECN mark without a loss: the window may fall to one segment (RFC 3168 §6.1.2).
    pub marked: bool,
}

impl Episode {
    /// The new window and slow-start threshold, if the controller leaves `share` of the flight: at
    /// least two segments (RFC 5681 §3.1, equation 4; RFC 9438 §4.6).
    pub(super) fn reduced(&self, share: f64) -> (u64, u64) {
        let target = (self.flight as f64 * self.decrease.unwrap_or(share)) as u64;
        let mss = u64::from(self.mss);
        (target.max(if self.marked { mss } else { 2 * mss }), target.max(2 * mss))
    }
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
