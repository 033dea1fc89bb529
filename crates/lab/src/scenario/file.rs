//! The shape of a scenario file: what may be written where. What it means is decided elsewhere.
//!
//! A new key is a line in its table here, with what it means, and whatever `links`, `flows` or
//! `settings` make of it. The schema has it by that; `python docs/reference.py` puts it into the
//! book.

use super::attachments::Settings;
use super::keep_alive::KeepAlive;
use super::links;
use super::mechanism::Entry;
use super::quantity::{
    Amount, ByteCounting, Count, DelayedAck, Initial, Probability, Ssthresh, UserTimeout, Whole,
    Written,
};
use super::{attacks, ceten, coding, stack, testbed, traffic, tunnels};
use crate::document::Node;
use crate::error::Problem;
use crate::grid;
use crate::profile::Profile;
use crate::shape::{AtLeastOne, Shape, integer, table, unexpected};
use base::Duration;
use serde_json::{Value, json};
use tcp::congestion::{Congestion, Increase};
use tcp::mechanism::{Fields, Strategy, Suppression};
use tcp::{Config, Estimator, Pipe, Recovery, Reduction, Restart, SsthreshOnBackoff, Validation};
use toml::Spanned;

table! {
    /// A scenario of lasthop.
    pub(super) struct File {
        /// What it shows, in one line.
        title: String, needed;
        /// How long a run lasts in simulated time, up to 1e6 seconds.
        duration: Spanned<Written<Duration>>, needed;
        /// The defaults of TCP that the file leaves open. `modern`: today's RFCs; `ns2-2001`,
        /// `ns2-2007`: what ns-2 did then.
        profile: Profile = Profile::default();
        /// A table of names. Every node routes, and may be an end of flows.
        nodes: Names, needed;
        /// Each joins two nodes in both directions.
        links: Vec<links::Written>;
        /// Each is a TCP connection, many of them, or datagrams of UDP.
        flows: Spanned<AtLeastOne<Spanned<Flow>>>, needed;
        /// Each hides what passes two nodes on the way between them.
        tunnels: Vec<Spanned<tunnels::Table>>;
        /// Each forges notices about a flow.
        attacks: Vec<Spanned<attacks::Table>>;
        /// What nodes measure and tell for flows with cumulative error notification.
        ceten: ceten::Table;
        /// How it is run on real packets.
        testbed: testbed::Table;
        /// What is varied, and how often each combination is run.
        sweep: Swept;
    }
}

/// A table whose keys are names, in the order in which they are written.
#[derive(Debug)]
pub(super) struct Names(pub(super) Vec<(String, Settings)>);

/// The sweep, which the grid reads.
#[derive(Debug)]
pub(super) struct Swept;

table! {
    /// Who sends to whom, and what.
    pub(super) struct Flow {
        /// Names it in rows and pictures; `flow 0`, `flow 1`, ... if absent.
        name: Spanned<String>;
        /// The node that sends data.
        from: Spanned<String>, needed;
        /// The node that receives it.
        to: Spanned<String>, needed;
        /// When it starts; at once if absent.
        start: Spanned<Written<Duration>>;
        /// The version of IP that carries it.
        ip: IpVersion = IpVersion::default();
        /// What it carries: `"bulk"`, without end; so much, as in `{ size = "3 MB" }`; or what else
        /// there is.
        traffic: traffic::Form;
        /// Another profile for this flow.
        profile: Profile;
        /// What differs from the profile, at both ends.
        tcp: Spanned<Tcp>;
        /// Erasure coding of its data from end to end, and codes within its packets; `"off"` if absent.
        coding: Spanned<coding::Form>;
        /// Whose TCP (or UDP) the ends use on the testbed: ours, or the kernel's. The lab always runs
        /// ours.
        stack: stack::Written;
    }
}

table! {
    /// The settings of TCP at both ends of a flow; what is left out is as the profile says.
    pub(super) struct Tcp {
        /// Largest payload of a segment, bytes.
        mss: Spanned<Amount>;
        /// A peer that announces a smaller segment size is sent segments of this size all the same (or of
        /// `mss`, if that is less), bytes; 48 if absent, as Linux's `tcp_min_snd_mss`.
        minimum_mss: Spanned<Amount>;
        /// The receiver's buffer, in bytes or segments.
        receive_window: Spanned<Amount>;
        /// How losses are detected and repaired.
        recovery: Recovery = Config::default().recovery;
        /// What `sack` holds to be in the network while it repairs losses: what was not reported and
        /// is not lost by IsLost() of RFC 6675 §4, or all that was not reported, as in ns-2.
        pipe: Pipe = Config::default().pipe;
        /// What sizes the congestion window.
        congestion: Congestion = Config::default().congestion;
        /// Growth of `aimd` in congestion avoidance: the name of an increase function, or a table with its
        /// settings; `standard` if absent.
        increase: Spanned<Increase>;
        /// The window grows by the octets acknowledged, in slow start by so many segments at most
        /// per ACK; counts ACKs if absent or `"off"`.
        byte_counting: ByteCounting;
        /// Initial congestion window: segments, or by the rule of an RFC.
        initial_window: Initial;
        /// Initial slow-start threshold: bytes, segments, or a word.
        initial_ssthresh: Spanned<Ssthresh>;
        /// When the window counts as used, so that it may grow (RFC 7661): if all of it kept the
        /// sender from sending more, or in slow start also if half of it was outstanding (Linux).
        window_validation: Validation = Config::default().validation;
        /// Start again from the initial window after an idle RTO.
        restart_after_idle: bool = Config::default().restart_after_idle;
        /// New data on the first two duplicate ACKs.
        limited_transmit: bool;
        /// Longest delay of an acknowledgment, or `"off"`.
        delayed_ack: Spanned<DelayedAck>;
        /// The retransmission timer.
        rto: Spanned<Rto>;
        /// Timeouts in a row after which the connection is given up (R2 of RFC 9293 §3.8.3); 15 if
        /// absent.
        retries: Whole;
        /// The same for a SYN, if that is less than `retries`; 7 if absent, which last for the three
        /// minutes of RFC 9293 §3.8.3.
        syn_retries: Whole;
        /// The same for a SYN-ACK, if that is less than `retries`; 5 if absent, as in Linux.
        syn_ack_retries: Whole;
        /// What a timeout that follows another does to ssthresh.
        ssthresh_on_backoff: SsthreshOnBackoff;
        /// How the window comes down in fast recovery: at once, or in proportion to what is
        /// delivered (RFC 6937).
        reduction: Reduction = Config::default().reduction;
        /// Take back a reduction that DSACK shows to be needless.
        undo: bool;
        /// Report what arrives twice.
        dsack: bool;
        /// Offer timestamps, which take 12 bytes of each segment.
        timestamps: bool;
        /// Drop segments without a timestamp where timestamps are agreed on (RFC 7323 §3.2) instead of
        /// taking them as Linux does.
        require_timestamps: bool = Config::default().require_timestamps;
        /// Offer ECN.
        ecn: bool = Config::default().ecn;
        /// Hold small segments back.
        nagle: bool = Config::default().nagle;
        /// Ask a peer that has long been silent whether it is still there; `"off"` if absent.
        keep_alive: KeepAlive;
        /// Give up without progress for this long; never, if absent or `"off"`.
        user_timeout: Spanned<UserTimeout>;
        /// Challenge ACKs within five seconds at most (RFC 5961 §7); 10 if absent.
        challenges: Whole;
        /// Answers within five seconds at most to segments without data outside the window, such as
        /// keep-alives and window probes, and to such that PAWS refuses (RFC 7323 §5.3) until one is
        /// acceptable; 10 if absent.
        out_of_window_acks: Whole;
        /// How long a closed connection keeps its ports (2 MSL); 60 seconds if absent, and one where
        /// there are many.
        time_wait: Written<Duration>;
        /// Explicit transport error notification: who tells the sender of a corruption.
        eten: Spanned<Eten>;
        /// What tells corruption from congestion: a list of tables, each with `mechanism = NAME`
        /// and its settings.
        mechanisms: Vec<Entry>;
    }
}

table! {
    /// The settings of the retransmission timer.
    pub(super) struct Rto {
        /// Before the first measurement.
        initial: Written<Duration>;
        /// Never less.
        minimum: Written<Duration>;
        /// Never more.
        maximum: Written<Duration>;
        /// The clock's.
        granularity: Written<Duration>;
        /// Arithmetic of the round trips: RFC 6298, or whole ticks of the granularity.
        estimator: Estimator;
        /// What starts a running timer anew, besides an advance of SND.UNA: a retransmission of the
        /// segment at SND.UNA (RFC 6675 §6), or nothing (`"advance"`); `"retransmission"` if absent.
        restart: Restart;
    }
}

table! {
    /// Explicit transport error notification: who reports, and what the sender makes of it.
    pub(super) struct EtenTable {
        /// Who tells the sender: nobody, the world itself, by a packet the node that detects it, the
        /// receiver, whom that node tells, or all nodes by what they add to the headers of packets.
        report: Report, needed;
        /// Of which reported corruptions the duplicate ACKs reduce nothing: all, the first of a window,
        /// or none.
        suppress_dupacks: Suppression = Suppression::default();
        /// Size of a notice, bytes of the whole packet.
        notice_size: Spanned<Amount>;
        /// The probability that the oracle takes a packet for corrupted that a queue dropped; 0 if
        /// absent.
        mistakes: Spanned<Probability>;
        /// How word gets to the receiver; `"message"` if absent. Only of `report = "forward"`.
        transport: Spanned<Transport>;
        /// What the node that detects it can read: all of the headers, or what the checksums vouch for
        /// once one bit of the packet is flipped; `"readable"` if absent.
        headers: Spanned<Headers>;
        /// Of `cumulative`: how the sender decides what a loss means.
        strategy: Strategy = Strategy::default();
        /// Of `cumulative`: the largest share of the flight that a loss may leave, whatever the path is
        /// said to be like.
        bound: ceten::Bound;
        /// Of `cumulative`: whether what packets carry for it takes bytes.
        fields: Fields = Fields::default();
        /// The sender's defences against forged notices; none if absent.
        defences: Defences;
    }
}

table! {
    /// Defences against forged notices, each by itself.
    pub(super) struct Defences {
        /// Copies carry numbers that only who sees a packet can know, and what names none is not
        /// believed.
        nonce: bool = false;
        /// Notices that prove false cost trust; without it none is believed for a while.
        trust: bool = false;
        /// So many notices are believed in a round trip; any number if absent.
        limit: Count;
    }
}

/// A version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(into = "u8")]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> u8 {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

/// Who tells the sender of a corruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Nobody.
    #[default]
    None,
    /// The world, at the moment of detection and at no cost.
    Oracle,
    /// The node that detects it, by a packet.
    Backward,
    /// The receiver, in its acknowledgments, once the node that detects it has told the receiver.
    Forward,
    /// All nodes, by what they add to the headers of packets.
    Cumulative,
}

/// How a node that detects a corruption tells the receiver of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// By a packet of its own.
    #[default]
    Message,
    /// With the flow's next packet that is intact.
    Piggyback,
    /// It marks the corrupted packet and lets it go on.
    Marked,
}

/// What a node can read of a corrupted packet's headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Headers {
    /// Everything, whatever was hit.
    #[default]
    Readable,
    /// What the checksums vouch for once one bit of the packet is flipped.
    Checked,
}

/// A word that stands for a table, or the table.
#[derive(Debug)]
pub(super) struct Eten(pub(super) EtenTable);

impl Shape for Names {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Names> {
        let Some(table) = node.get_ref().as_table() else {
            let expected = "a table of nodes, such as { sender = {}, receiver = {} }";
            return unexpected(node, expected, problems);
        };
        let mut names = Vec::with_capacity(table.len());
        for (name, settings) in table {
            let settings = Settings::read(settings, problems).unwrap_or_default();
            if name.get_ref().is_empty() {
                problems.push(Problem::at(name.span(), "a node needs a name"));
            }
            names.push((name.get_ref().clone().into_owned(), settings));
        }
        Some(Names(names))
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": { "minLength": 1 },
            "additionalProperties": Settings::schema(),
        })
    }
}

impl Shape for Swept {
    fn read(_: &Node<'_>, _: &mut Vec<Problem>) -> Option<Swept> {
        Some(Swept)
    }

    fn schema() -> Value {
        grid::schema()
    }
}

impl Shape for IpVersion {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<IpVersion> {
        match integer(node) {
            Some(4) => Some(IpVersion::V4),
            Some(6) => Some(IpVersion::V6),
            _ => unexpected(node, "4 or 6", problems),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [4, 6] })
    }
}

impl Shape for Eten {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Eten> {
        if node.get_ref().is_table() {
            return EtenTable::read(node, problems).map(Eten);
        }
        let report = match node.get_ref().as_str() {
            Some("none") => Report::None,
            Some("oracle") => Report::Oracle,
            Some("backward") => Report::Backward,
            Some("forward") => Report::Forward,
            Some("cumulative") => Report::Cumulative,
            _ => {
                let expected = "\"none\", \"oracle\", \"backward\", \"forward\", \"cumulative\", or \
                                { report = one of them, ... }";
                return unexpected(node, expected, problems);
            }
        };
        Some(Eten(EtenTable { report: Some(report), ..EtenTable::default() }))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Report::schema(), EtenTable::schema()], "default": "none" })
    }
}
