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

/// What the likes of Linux's `TCP_INFO` tell beside the [`Vitals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Bytes of data in a full-sized segment of ours.
    pub mss: u32,
    /// The segment size that we offer to receive, bytes.
    pub offered_mss: u16,
    /// Where the sender stands.
    pub standing: Standing,
    /// Selective acknowledgments are agreed on.
    pub sack: bool,
    /// Timestamps are agreed on.
    pub timestamps: bool,
    /// Explicit congestion notification is agreed on.
    pub ecn: bool,
    /// Window scaling is agreed on: the shifts of the peer's window and of ours.
    pub window_shifts: Option<(u8, u8)>,
    /// The window that the peer offers, from the first unacknowledged octet on, bytes.
    pub peer_window: u64,
    /// The window that we offered last, bytes.
    pub own_window: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes written and sent.
    pub sent: u64,
    /// Bytes received in order.
    pub received: u64,
}

/// What a connection does without because its host is short of memory, the mildest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pressure {
    /// Nothing.
    #[default]
    None,
    /// Data beyond a gap is dropped. What is there stays: it may have been selectively acknowledged.
    OutOfOrder,
    /// In addition, no more than a few segments are asked for beyond what was announced already.
    Window,
}

/// Where a sender stands with respect to congestion: RFC 5681's episodes, in Linux's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is amiss.
    Open,
    /// Something may be missing: there were duplicate or selective acknowledgments.
    Disorder,
    /// The window was reduced, and nothing is missing.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

fn finite<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*bytes).filter(|&bytes| bytes != u64::MAX).serialize(serializer)
}
