//! How a connection stands.

use base::Duration;
use serde::{Deserialize, Serialize, Serializer};

/// The state of a connection (RFC 9293 §3.3.2). There is no LISTEN: that is a host's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The names are the standard's.
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// What a time series of a connection shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Vitals {
    /// Congestion window, bytes.
    pub window: u64,
    /// Octets that duplicate acknowledgments stand for. `window + dupacked` is the window as
    /// RFC 5681 inflates it.
    pub dupacked: u64,
    /// Slow-start threshold, bytes; `u64::MAX` (in JSON, null) while arbitrarily high.
    #[serde(serialize_with = "finite")]
    pub ssthresh: u64,
    /// Octets sent and not acknowledged.
    pub flight: u64,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, back-off included.
    pub rto: Duration,
}

fn finite<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*bytes).filter(|&bytes| bytes != u64::MAX).serialize(serializer)
}
