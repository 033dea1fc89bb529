//! What mechanisms are told, and what they answer.

use crate::Statistics;
use base::{Duration, Time};
use wire::{CopyId, SeqNumber};

/// What a mechanism may know of the connection when it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// The time.
    pub now: Time,
    /// The first octet not acknowledged (absolute: 0 is the SYN, 1 the first byte).
    pub una: u64,
    /// The next octet to be sent for the first time.
    pub nxt: u64,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, back-off included.
    pub rto: Duration,
    /// What was sent again after a timeout has not been acknowledged yet.
    pub stalled: bool,
    /// The congestion window, bytes.
    pub window: u64,
    /// What it is at the start of a connection.
    pub initial_window: u64,
    /// Bytes of payload in a full-sized segment.
    pub mss: u32,
    /// What the sender did so far.
    pub statistics: Statistics,
}

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// By duplicate acknowledgments, or an acknowledgment that stops at the next hole.
    Dupack,
    /// By what the receiver holds above it (RFC 6675).
    Sack,
    /// By the retransmission timer.
    Rto,
    /// By an indication that named it.
    Notice,
    /// Not lost: the peer says that it met congestion (RFC 3168).
    Ecn,
}

/// A range that is held to be lost.
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
    /// How it was noticed.
    pub signal: Signal,
}

/// What a loss means.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The network is congested: retransmit, and reduce the window once per episode.
    Congestion {
        /// Leave the slow-start threshold alone.
        keep_ssthresh: bool,
    },
    /// Reduce the window to this share of the flight instead of half.
    Decrease(f64),
    /// The network is not congested: retransmit, nothing else.
    Corruption,
}

impl Verdict {
    /// What TCP makes of a loss when nobody knows better.
    pub const STANDARD: Verdict = Verdict::Congestion { keep_ssthresh: false };
}

/// What a mechanism asks of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The copy of this range is lost: give it a verdict and retransmit at once.
    Lost {
        /// The first octet.
        seq: SeqNumber,
        /// The lost copy; ignored unless it is the latest of its range.
        copy: CopyId,
    },
    /// Send this range again at once and draw no other conclusion.
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
    SendNow,
    /// The path is another one: forget what was known of the old one, start with this many segments
    /// (`None`: the initial window), and send at once. Timestamps tell what is sent from now on
    /// from what was sent before.
    Reprobe {
        /// The window, segments.
        window: Option<u32>,
        /// Hold everything outstanding for lost and send it again.
        resend: bool,
    },
    /// What the path can take is known: leave slow start.
    EndSlowStart,
    /// Announce a window of zero until told otherwise.
    CloseWindow,
    /// Announce the window again, three times.
    OpenWindow,
}

/// What a mechanism makes of a segment that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// What is to be done before the segment is taken in.
    pub action: Option<Action>,
    /// Whether it may count as a duplicate acknowledgment, if it is one (RFC 5681 §2).
    pub may_count: bool,
    /// Whether it answers what was sent over the present path: the window may grow by it, and a
    /// round trip be measured.
    pub is_current: bool,
    /// If it is one of the first two duplicates, it lets out a segment of new data, however much is
    /// outstanding (`koutsianas2007` §3.5.3).
    pub lets_out: bool,
}

impl Incoming {
    /// Nobody has an opinion.
    pub const PLAIN: Incoming =
        Incoming { action: None, may_count: true, is_current: true, lets_out: false };

    /// Two opinions of one segment; what is to be done is done already.
    pub(crate) fn and(self, other: Incoming) -> Incoming {
        Incoming {
            action: None,
            may_count: self.may_count && other.may_count,
            is_current: self.is_current && other.is_current,
            lets_out: self.lets_out || other.lets_out,
        }
    }
}

/// A segment has arrived, and the receiver is about to acknowledge it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The acknowledgment would repeat the last one: the segment came after a gap, or again.
    pub duplicate_ack: bool,
    /// How many such acknowledgments in a row this would be.
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

/// What became of somebody's word that a copy was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It led to a retransmission.
    Believed,
    /// The retransmission was acknowledged, in a time that it may have taken, and something sent
    /// after it, too: nothing says that it was needless.
    Confirmed,
    /// What was said to be lost has arrived: the peer reports the range twice (RFC 2883), or has
    /// acknowledged it too soon for that to be the retransmission's doing.
    Refuted,
}
