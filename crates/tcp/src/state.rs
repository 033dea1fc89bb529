//! The state of a connection, as its host can see it.

use crate::congestion::CeMarks;
use base::Duration;
use serde::{Deserialize, Serialize, Serializer};

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// It sends the first SYN.
    Active,
    /// It answers the peer's SYN.
    Passive,
}

/// The state of a connection (RFC 9293 §3.3.2). LISTEN is a state of the host.
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

/// The quantities that a time series of a connection records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Vitals {
    /// Congestion window, bytes.
    pub window: u64,
    /// Duplicate-ACK credit: octets that duplicate acknowledgments show to have left the network.
    /// `window + dupack_credit` is the window as RFC 5681 inflates it.
    #[serde(rename = "dupacked")]
    pub dupack_credit: u64,
    /// Slow-start threshold, bytes; `u64::MAX` (in JSON, null) while arbitrarily high.
    #[serde(serialize_with = "finite")]
    pub ssthresh: u64,
    /// Octets sent and not acknowledged.
    pub flight: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, back-off included.
    pub rto: Duration,
}

/// The rest of what Linux shows in `TCP_INFO`, beside the [`Vitals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Bytes of data in a full-sized segment of ours.
    pub mss: u32,
    /// The MSS that we announced, bytes.
    pub offered_mss: u16,
    /// The recovery state.
    pub recovery_state: RecoveryState,
    /// SACK is negotiated.
    pub sack: bool,
    /// Timestamps are negotiated.
    pub timestamps: bool,
    /// New data is ECN-capable.
    pub ecn: bool,
    /// Accurate ECN is negotiated (RFC 9768).
    pub accurate_ecn: bool,
    /// Our packets that the peer has reported as marked, with accurate ECN.
    pub delivered_marks: CeMarks,
    /// Packets that have arrived marked, with accurate ECN.
    pub received_marks: CeMarks,
    /// The negotiated window-scale shifts: the peer's and ours.
    pub window_shifts: Option<(u8, u8)>,
    /// SND.WND, bytes.
    pub peer_window: u64,
    /// RCV.WND as last announced, bytes.
    pub own_window: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes written and sent.
    pub sent: u64,
    /// Bytes received in order.
    pub received: u64,
    /// The shortest round trip of the last minutes, once there is a sample.
    pub min_rtt: Option<Duration>,
}

/// Segments that are sent and not acknowledged, as `TCP_INFO` counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutstandingSegments {
    /// All.
    pub all: u64,
    /// Those that are SACKed.
    pub sacked: u64,
    /// Those whose first copy counts as lost.
    pub lost: u64,
    /// Retransmissions in flight.
    pub retransmitted: u64,
}

/// The memory pressure of the host, mildest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pressure {
    /// No pressure.
    #[default]
    None,
    /// Out-of-order segments are dropped. Queued ones stay: they may have been SACKed.
    OutOfOrder,
    /// In addition, the window shrinks to a few segments, as data arrives.
    Window,
}

/// The recovery state of a sender, by Linux's names (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryState {
    /// No loss is suspected.
    Open,
    /// Duplicate or selective acknowledgments have arrived.
    Disorder,
    /// The window was reduced without a loss (CWR).
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

fn finite<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*bytes).filter(|&bytes| bytes != u64::MAX).serialize(serializer)
}
