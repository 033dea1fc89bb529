//! Accurate ECN (AccECN, RFC 9768): the feedback of both half-connections once it is negotiated.

mod continuous;
mod receiver;
mod sender;

pub(crate) use sender::NewlyDelivered;

use super::output::Transmit;
use super::{Connection, Negotiated, Side};
use crate::config::EcnMode;
use crate::congestion::CeMarks;
use continuous::Continuous;
use receiver::Received;
use sender::{Feedback, Place, Reported};
use serde::{Deserialize, Serialize};
use wire::{Ecn, EcnCounters, EcnFields, Flags, Options, Packet, Segment};

/// The flags that are the ACE field once accurate ECN is negotiated (RFC 9768 §3.2.2).
const ACE: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);

/// The three flags as the number that they make, AE first.
pub(super) fn ace_of(flags: Flags) -> u8 {
    let bit = |flag| u8::from(flags.contains(flag));
    bit(Flags::AE) << 2 | bit(Flags::CWR) << 1 | bit(Flags::ECE)
}

fn flags_of(ace: u8) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::AE, ace & 4 > 0);
    flags.set(Flags::CWR, ace & 2 > 0);
    flags.set(Flags::ECE, ace & 1 > 0);
    flags
}

/// The handshake encoding of the codepoint that a SYN or SYN-ACK arrived with (RFC 9768, tables 2 and
/// 3).
fn encode(codepoint: Ecn) -> u8 {
    match codepoint {
        Ecn::NotCapable => 0b010,
        Ecn::Capable1 => 0b011,
        Ecn::Capable => 0b100,
        Ecn::Congested => 0b110,
    }
}

/// The codepoint that is encoded; `None` for the unused values (RFC 9768, table 4).
fn decode(ace: u8) -> Option<Ecn> {
    [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable, Ecn::Congested]
        .into_iter()
        .find(|&codepoint| encode(codepoint) == ace)
}

/// The state of accurate ECN in a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AccurateEcn {
    received: Received,
    reported: Reported,
    /// New data is ECN-capable, as far as is known of the path.
    sends_ect: bool,
    /// Reported marks count as congestion.
    responds: bool,
    /// Whether everything is marked.
    continuous: Continuous,
    /// Our SYN, or SYN-ACK, was reported as marked.
    syn_marked: bool,
    /// The codepoint of the latest SYN, or SYN-ACK, that arrived (RFC 9768 §3.1.5).
    handshake: Ecn,
    /// The next pure acknowledgment is that of the SYN-ACK.
    acks_syn_ack: bool,
    /// SYN-ACKs that we have sent.
    syn_acks: u8,
    /// A mark on a SYN-ACK was counted.
    counted_syn_ack: bool,
    /// The option, and the bytes of payload, of the segment that is being processed.
    arrived: (Option<EcnCounters>, u32),
}

impl AccurateEcn {
    fn new(handshake: Ecn) -> AccurateEcn {
        AccurateEcn {
            received: Received::new(handshake),
            reported: Reported::default(),
            sends_ect: true,
            responds: true,
            continuous: Continuous::default(),
            syn_marked: false,
            handshake,
            acks_syn_ack: false,
            syn_acks: 0,
            counted_syn_ack: false,
            arrived: (None, 0),
        }
    }

    /// Notes the option, and the bytes of payload, of the segment that is processed next.
    pub(super) fn set_arrived(&mut self, counters: Option<EcnCounters>, len: u32) {
        self.arrived = (counters, len);
    }

    pub(super) fn sends_ect(&self) -> bool {
        self.sends_ect
    }

    /// Whether our SYN, or SYN-ACK, was reported as marked.
    pub(super) fn is_syn_marked(&self) -> bool {
        self.syn_marked
    }

    /// Marks that we have received, and those that the peer has reported.
    pub(super) fn marks(&self) -> (CeMarks, CeMarks) {
        (self.received.marks(), self.reported.marks())
    }

    /// Whether a unit of several segments would carry another ACE field in each: cards and kernels
    /// that cut units clear CWR behind the first (RFC 9768 §3.3.4).
    pub(super) fn forbids_units(&self) -> bool {
        self.received.ace() & 2 > 0
    }

    /// Whether an acknowledgment has to precede data: that of the SYN-ACK, with its own encoding (RFC
    /// 9768 §3.2.2.1), or one whose option reports marks, for which full-sized data has no room.
    pub(super) fn acknowledges_first(&self) -> bool {
        self.acks_syn_ack || self.received.has_unreported_marks()
    }

    /// The flags of the next SYN-ACK: the encoding of the latest SYN's codepoint; from the third on
    /// none, for a middlebox may have dropped the others (RFC 9768 §3.2.3.2.2). Then ECT is not set any
    /// more (§3.1.5).
    pub(super) fn syn_ack_flags(&mut self) -> Flags {
        self.syn_acks = self.syn_acks.saturating_add(1);
        if self.syn_acks > 2 {
            self.sends_ect = false;
            return Flags::empty();
        }
        flags_of(encode(self.handshake))
    }

    /// Processes a repeated SYN of the handshake, or a repeated SYN-ACK.
    fn on_handshake_again(&mut self, codepoint: Ecn) {
        self.handshake = codepoint;
    }

    /// Processes a SYN-ACK that agrees to accurate ECN.
    fn on_syn_ack(&mut self, codepoint: Ecn) {
        self.on_handshake_again(codepoint);
        self.acks_syn_ack = true;
        // RFC 9768 §3.2.2.2: no more than once, however many are marked.
        if codepoint == Ecn::Congested && !core::mem::replace(&mut self.counted_syn_ack, true) {
            self.received.count_syn_ack();
        }
    }

    /// Processes the acknowledgment of our SYN-ACK (RFC 9768, table 4).
    fn on_ack_of_syn_ack(&mut self, ace: u8) {
        if ace == 0 {
            // Note 1: the client is in another mode, or the field was cleared.
            self.sends_ect = false;
            self.responds = false;
        }
        let codepoint = decode(ace);
        self.on_handshake_feedback(codepoint);
        self.reported.begin(codepoint == Some(Ecn::Congested));
    }

    /// Checks the codepoint with which our SYN, or SYN-ACK, is said to have arrived: it was sent as
    /// Not-ECT, so any other shows that the path mangles the field (RFC 9768 §3.2.2.3).
    fn on_handshake_feedback(&mut self, codepoint: Option<Ecn>) {
        if codepoint.is_some_and(|codepoint| codepoint != Ecn::NotCapable) {
            self.sends_ect = false;
        }
        self.syn_marked |= codepoint == Some(Ecn::Congested);
    }
}

impl Connection {
    /// Enters the mode of accurate feedback, by the peer's SYN or SYN-ACK.
    pub(super) fn begin_accurate_ecn(&mut self, segment: &Segment, fields: EcnFields) {
        let mut accurate = AccurateEcn::new(fields.codepoint);
        if segment.flags.contains(Flags::ACK) {
            accurate.on_syn_ack(fields.codepoint);
            accurate.on_handshake_feedback(decode(ace_of(segment.flags)));
            accurate.reported.on_first_counters(fields.counters.as_ref());
        }
        self.accurate_ecn = Some(Box::new(accurate));
    }

    /// Processes a SYN-ACK that arrives again: its acknowledgment was lost (RFC 9768 §3.2.2.1).
    pub(super) fn on_syn_ack_again(&mut self, segment: &Segment, codepoint: Ecn) {
        let again = segment.flags.contains(Flags::SYN | Flags::ACK) && segment.seq == self.irs;
        if let Some(accurate) = &mut self.accurate_ecn
            && again
            && self.side == Side::Active
            && !matches!(ace_of(segment.flags), 0b000 | 0b001 | 0b111)
        {
            accurate.on_syn_ack(codepoint);
        }
    }

    /// Processes a SYN that arrives again. False if one of the two asks for accurate feedback and the
    /// other for the classic form: the connection is reset (RFC 9768 §3.1.5).
    pub(super) fn keeps_ecn_mode(&mut self, segment: &Segment, codepoint: Ecn) -> bool {
        let ace = ace_of(segment.flags);
        let Some(accurate) = &mut self.accurate_ecn else {
            let classic = self.negotiated.contains(Negotiated::ECN);
            let accurate = self.ecn_mode == EcnMode::Accurate && !matches!(ace, 0b000 | 0b011);
            return !(classic && accurate);
        };
        accurate.on_handshake_again(codepoint);
        // The client may not know of the mode that it has offered.
        accurate.sends_ect &= ace != 0b000;
        ace != 0b011
    }

    /// Counts an acceptable packet; returns whether it is to be acknowledged at once (RFC 9768
    /// §3.2.2.5.1).
    #[cold]
    pub(super) fn count_codepoint(&mut self, segment: &Segment, codepoint: Ecn, len: u32) -> bool {
        // The codepoint of a SYN-ACK has its own feedback (simultaneous open).
        if segment.flags.contains(Flags::SYN) {
            return false;
        }
        let Some(accurate) = &mut self.accurate_ecn else { return false };
        let unacknowledged = self.receiver.has_unacknowledged() || len > 0;
        accurate.received.on_packet(codepoint, len, self.receiver.mss(), unacknowledged)
    }

    /// Data arrived that had arrived before: what acknowledged it, with its option, may be lost.
    pub(super) fn repeat_ecn_counters(&mut self) {
        if let Some(accurate) = &mut self.accurate_ecn {
            accurate.received.repeat();
        }
    }

    /// The marks that a segment newly reports, as far as they count as congestion. There are none in one
    /// that another has superseded (RFC 9768 §3.2.2.2).
    #[cold]
    pub(super) fn accurate_feedback(&mut self, segment: &Segment, start: u64, ack: u64) -> CeMarks {
        let negotiated = self.negotiated.contains(Negotiated::SACK);
        let (blocks, count) = match &segment.options.sack {
            blocks if negotiated && !blocks.is_empty() => self.sacked(blocks),
            _ => Default::default(),
        };
        let delivered = self.sender.newly_delivered(ack, &blocks[..count]);
        // Our SYN-ACK is not acknowledged, whatever the state: the application may have closed.
        let in_handshake = self.sender.una() == 0;
        let (mss, nxt) = (self.sender.mss(), self.sender.nxt());
        let Some(accurate) = &mut self.accurate_ecn else { return CeMarks::default() };
        let (counters, len) = core::mem::take(&mut accurate.arrived);
        // The flags of a SYN, and of a repeated SYN-ACK, are no ACE field.
        if segment.flags.contains(Flags::SYN) || !segment.flags.contains(Flags::ACK) {
            return CeMarks::default();
        }
        let ace = ace_of(segment.flags);
        if in_handshake {
            accurate.reported.on_first_counters(counters.as_ref());
            if len == 0 && !segment.flags.contains(Flags::FIN) && segment.options.sack.is_empty() {
                accurate.on_ack_of_syn_ack(ace);
                return CeMarks::default();
            }
        }
        let marked = counters.and_then(|counters| counters.get(Ecn::Congested));
        let shows_marks = marked.is_some_and(|bytes| bytes > 0);
        if accurate.reported.is_first() && ace == 0 && !shows_marks {
            // RFC 9768 §3.2.2.4: the counter begins with 5, so the path has cleared the field, or the
            // peer is in another mode.
            accurate.sends_ect = false;
            accurate.responds = false;
        }
        let stamp = segment.options.timestamps.map(|stamp| stamp.value);
        let place = Place { start: start + u64::from(len), ack, stamp };
        let capable = accurate.sends_ect;
        let feedback = Feedback { place, ace, counters, delivered, mss, capable };
        let Some(report) = accurate.reported.on_feedback(&feedback) else {
            return CeMarks::default();
        };
        accurate.sends_ect &= !report.contradicts;
        let marked = report.marks.packets;
        if accurate.continuous.on_feedback(ack, nxt, delivered.segments, marked) {
            // The path mangles the field, so that a mark is no sign of congestion.
            accurate.sends_ect = false;
            accurate.responds = false;
        }
        if accurate.responds { report.marks } else { CeMarks::default() }
    }

    /// Writes the feedback into a segment that is about to be sent: the ACE field, and the option where
    /// it is due and has room.
    #[cold]
    pub(super) fn write_accurate_ecn(&mut self, transmit: &Transmit, packet: &mut Packet) {
        let mss = self.sender.mss();
        let Some(accurate) = &mut self.accurate_ecn else { return };
        let len = packet.payload.len;
        let known = packet.unparsed.tcp_options().len();
        let Some(segment) = packet.tcp_mut() else { return };
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        let left = Options::ROOM.saturating_sub(segment.options.len() + known);
        if segment.flags.contains(Flags::SYN) {
            // RFC 9768 §3.2.3.2.2: a retransmission has none, for a middlebox may have dropped the
            // first for it.
            let option = accurate.received.all_counters();
            if accurate.syn_acks == 1 && option.size() <= left {
                packet.unparsed.add_ecn_counters(&option);
            }
            return;
        }
        let pure = len == 0 && !segment.flags.intersects(Flags::FIN | Flags::RST);
        let first = pure && accurate.acks_syn_ack && segment.options.sack.is_empty();
        segment.flags -= ACE;
        segment.flags |= flags_of(if first {
            accurate.acks_syn_ack = false;
            encode(accurate.handshake)
        } else {
            accurate.received.ace()
        });
        accurate.received.on_ack_sent();
        // A retransmission has none (§3.2.3.2.2), nor has a unit, whose segments are full-sized.
        let fresh = pure || transmit.ecn == Ecn::Capable && transmit.count == 1;
        if segment.flags.contains(Flags::RST) || !fresh {
            return;
        }
        let Some(option) = accurate.received.due_counters(first) else { return };
        let size = option.size().next_multiple_of(4);
        let left = if pure {
            // RFC 9768 §3.2.3.3: two SACK blocks take precedence, a third does not.
            let mut left = left;
            while left < size && segment.options.sack.as_slice().len() > 2 {
                segment.options.sack.truncate(segment.options.sack.as_slice().len() - 1);
                left = Options::ROOM.saturating_sub(segment.options.len() + known);
            }
            left
        } else {
            let sack = segment.options.sack.as_slice().len() as u32;
            let sack = if sack > 0 { 4 + 8 * sack } else { 0 };
            left.min(mss.saturating_sub(len + sack) as usize)
        };
        if size <= left && packet.unparsed.add_ecn_counters(&option) {
            accurate.received.on_counters_sent();
        }
    }
}
