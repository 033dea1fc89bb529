//! The arguments and results of the hooks.

use crate::Statistics;
use base::{Duration, Time};
use wire::{CopyId, SeqNumber};

/// The state of the connection that a hook can read.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// The time.
    pub now: Time,
    /// The first octet not acknowledged (absolute: 0 is the SYN, 1 the first byte).
    pub una: u64,
    /// The next octet to be sent for the first time.
    pub nxt: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, back-off included.
    pub rto: Duration,
    /// The retransmission after a timeout is not acknowledged yet.
    pub in_rto_recovery: bool,
    /// The congestion window, bytes.
    pub window: u64,
    /// The initial window, bytes.
    pub initial_window: u64,
    /// Bytes of payload in a full-sized segment.
    pub mss: u32,
    /// The sender's counters.
    pub statistics: Statistics,
}

/// How a loss was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// By duplicate acknowledgments, or an acknowledgment that stops at the next hole.
    Dupack,
    /// By SACKed octets above it (RFC 6675).
    Sack,
    /// By the delivery of a range that was sent later, or of a loss probe (RFC 8985).
    Rack,
    /// By the retransmission timer.
    Rto,
    /// By a notice.
    Notice,
    /// No loss: an ECN echo (RFC 3168).
    Ecn,
}

/// A lost range.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Its first octet.
    pub start: u64,
    /// The octet after its last.
    pub end: u64,
    /// The lost copy.
    pub copy: CopyId,
    /// When that copy was sent.
    pub sent_at: Time,
    /// How the loss was detected.
    pub signal: Signal,
}

/// The meaning of a loss.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Congestion: retransmit, and reduce the window once per episode.
    Congestion {
        /// Leave the slow-start threshold alone.
        keep_ssthresh: bool,
    },
    /// Congestion: reduce the window to this share of the flight.
    Decrease(f64),
    /// Corruption: retransmit, without a congestion response.
    Corruption,
}

impl Verdict {
    /// The verdict without any mechanism.
    pub const STANDARD: Verdict = Verdict::Congestion { keep_ssthresh: false };
}

/// An action that a mechanism requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The copy of this range is lost: give it a verdict and retransmit at once.
    Lost {
        /// The first octet.
        seq: SeqNumber,
        /// The lost copy; ignored unless it is the latest of its range.
        copy: CopyId,
    },
    /// Retransmit this range at once, without a verdict.
    RetransmitNow {
        /// The first octet.
        seq: SeqNumber,
        /// The copy to replace; ignored unless it is the latest of its range.
        copy: CopyId,
    },
    /// Send an acknowledgment at once.
    Acknowledge,
    /// Send a segment of new data at once, whatever the congestion window says; an acknowledgment
    /// if there is none or the peer has no room for it.
    ForceSend,
    /// Start anew on another path: discard the state of the old one, start with this window
    /// (`None`: the initial window), and send at once. Timestamps separate segments sent from now
    /// on from earlier ones.
    Reprobe {
        /// The window, segments.
        window: Option<u32>,
        /// Mark everything outstanding as lost and retransmit it.
        resend: bool,
    },
    /// Leave slow start: the capacity of the path is known.
    EndSlowStart,
    /// Announce a window of zero until [`Action::OpenWindow`].
    CloseWindow,
    /// Announce the window again, three times.
    OpenWindow,
}

/// The result of inspecting an arriving segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The action to carry out before the segment is processed.
    pub action: Option<Action>,
    /// Whether it may count as a duplicate acknowledgment, if it is one (RFC 5681 §2).
    pub may_be_dupack: bool,
    /// Whether it acknowledges a segment sent over the current path: the window may grow by it, and
    /// it may give a round-trip sample.
    pub on_current_path: bool,
    /// Each of the first two duplicates sends a segment of new data, however much is outstanding
    /// (`koutsianas2007` §3.5.3).
    pub force_limited_transmit: bool,
}

impl Incoming {
    /// No mechanism has an opinion.
    pub const NO_OPINION: Incoming = Incoming {
        action: None,
        may_be_dupack: true,
        on_current_path: true,
        force_limited_transmit: false,
    };

    /// Combines two results; their actions were carried out already.
    pub(crate) fn and(self, other: Incoming) -> Incoming {
        Incoming {
            action: None,
            may_be_dupack: self.may_be_dupack && other.may_be_dupack,
            on_current_path: self.on_current_path && other.on_current_path,
            force_limited_transmit: self.force_limited_transmit || other.force_limited_transmit,
        }
    }
}

/// A segment that the receiver is about to acknowledge: it is out of order, was received before, or fills a
/// gap.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The time.
    pub now: Time,
    /// Its first octet (absolute: 0 is the peer's SYN).
    pub start: u64,
    /// The octet after its last.
    pub end: u64,
    /// The first octet that was missing before it.
    pub nxt: u64,
    /// The acknowledgment would be a duplicate: the segment fills no gap.
    pub duplicate_ack: bool,
    /// The number of consecutive duplicates, this one included.
    pub duplicates: u32,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTiming {
    /// At once.
    Now,
    /// After this long, unless the next in-order segment makes it needless.
    After(Duration),
}

/// The outcome of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was accepted and led to a retransmission.
    Accepted,
    /// True: the retransmission and a later segment were acknowledged, in a plausible time.
    Confirmed,
    /// False: the range has arrived. A DSACK block reports it (RFC 2883), or it was acknowledged
    /// too soon for the retransmission.
    Refuted,
}
