//! Accurate ECN (AccECN, RFC 9768): the feedback of both half-connections once it is negotiated.

mod continuous;
mod receiver;
mod sender;

pub(crate) use sender::NewlyDelivered;

use super::ecn::EcnOffer;
use super::output::Transmit;
use super::{Connection, Negotiated, Side};
use crate::config::EcnMode;
use crate::congestion::CeMarks;
use continuous::Continuous;
use receiver::Received;
pub(super) use sender::Feedback;
use sender::{Place, Reported};
use serde::{Deserialize, Serialize};
use wire::{Ecn, EcnCounters, EcnFields, Flags, Options, Packet, SackBlocks, Segment};

/// The flags that are the ACE field once accurate ECN is negotiated (RFC 9768 §3.2.2).
pub(super) const ACE: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);

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

/// The latest SYN-ACK that we have sent (RFC 9768 §3.2.3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SynAck {
    Unsent,
    WithOption,
    /// The first such was sent after so many timeouts.
    WithoutOption {
        timeouts: u32,
    },
    WithoutEcn,
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
    /// The next pure acknowledgment is for marks on acknowledgments only.
    acks_acknowledgments: bool,
    syn_ack: SynAck,
    /// No data was sent yet, as the end that opened: the first is to have an option.
    tests_option: bool,
    /// The segment that is being written has data that was not sent before.
    is_new_data: bool,
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
            acks_acknowledgments: false,
            syn_ack: SynAck::Unsent,
            tests_option: false,
            is_new_data: false,
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

    /// Whether options are not sent any more, as the path drops their segments.
    #[cfg(test)]
    pub(super) fn withholds_options(&self) -> bool {
        self.received.withholds_options()
    }

    /// Whether a unit of several segments would carry another ACE field in each: cards and kernels
    /// that cut units clear CWR behind the first (RFC 9768 §3.3.4).
    pub(super) fn forbids_units(&self) -> bool {
        self.received.ace() & 2 > 0
    }

    /// Whether an acknowledgment has to precede data: that of the SYN-ACK, with its own encoding (RFC
    /// 9768 §3.2.2.1), or one whose option is due, for which full-sized data has no room.
    pub(super) fn acknowledges_first(&self) -> bool {
        self.acks_syn_ack || self.received.must_report()
    }

    /// Notes whether the segment that is written next has data that was not sent before.
    pub(super) fn set_new_data(&mut self, is_new_data: bool) {
        self.is_new_data = is_new_data;
    }

    /// The flags of the next SYN-ACK, sent after so many timeouts: the encoding of the latest SYN's
    /// codepoint. If one without the option has timed out, none, for a middlebox may have dropped it
    /// (RFC 9768 §3.2.3.2.2); then ECT is not set any more (§3.1.5).
    pub(super) fn syn_ack_flags(&mut self, timeouts: u32) -> Flags {
        self.syn_ack = match self.syn_ack {
            SynAck::Unsent => SynAck::WithOption,
            SynAck::WithOption => SynAck::WithoutOption { timeouts },
            SynAck::WithoutOption { timeouts: before } if timeouts > before => SynAck::WithoutEcn,
            same => same,
        };
        if self.syn_ack == SynAck::WithoutEcn {
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
        self.count_syn_ack(codepoint);
    }

    /// Counts the mark of a SYN-ACK.
    fn count_syn_ack(&mut self, codepoint: Ecn) {
        // RFC 9768 §3.2.2.2: no more than once, however many are marked.
        if codepoint == Ecn::Congested && !core::mem::replace(&mut self.counted_syn_ack, true) {
            self.received.count_syn_ack();
        }
    }

    /// Whether segments that neither are marked nor report marks may take the fast path.
    pub(super) fn is_on_fast_path(&self) -> bool {
        !self.acks_syn_ack && !self.acks_acknowledgments && !self.reported.is_first()
    }

    /// The feedback in a segment from `start` on that acknowledges up to `ack`, with its option and
    /// bytes of payload, and what it delivers.
    #[inline]
    pub(super) fn feedback(
        &self,
        segment: &Segment,
        (start, ack): (u64, u64),
        (counters, len): (Option<EcnCounters>, u32),
        delivered: NewlyDelivered,
        mss: u32,
    ) -> Feedback {
        let stamp = segment.options.timestamps.map(|stamp| stamp.value);
        let place = Place { start: start + u64::from(len), ack, stamp };
        let ace = ace_of(segment.flags);
        Feedback { place, ace, counters, delivered, mss, capable: self.sends_ect }
    }

    /// Whether feedback reports no mark, and its `len` bytes of payload call for no acknowledgment of
    /// their own.
    #[inline]
    pub(super) fn is_plain(&self, feedback: &Feedback, len: u32) -> bool {
        self.reported.is_plain(feedback) && self.received.has_room(len)
    }

    /// Processes a segment on the fast path, for which [`AccurateEcn::is_plain`] holds; SND.NXT was
    /// `nxt`.
    pub(super) fn on_plain_segment(
        &mut self,
        feedback: &Feedback,
        nxt: u64,
        codepoint: Ecn,
        len: u32,
        mss: u32,
    ) {
        let report = self.reported.on_feedback(feedback);
        debug_assert!(report.is_none_or(|report| report.is_plain()));
        if report.is_some() {
            let segments = feedback.delivered.segments;
            self.continuous.on_feedback(feedback.place.ack, nxt, segments, 0);
        }
        let due = self.received.on_packet(codepoint, len, mss, true);
        debug_assert!(!due, "is_plain");
    }

    /// The ACE field of a full-sized segment of new data that is sent on the fast path.
    pub(super) fn write_full_segment(&mut self) -> Flags {
        self.tests_option = false;
        self.received.on_ack_sent();
        flags_of(self.received.ace())
    }

    /// Writes the feedback into a pure acknowledgment on the fast path.
    pub(super) fn write_acknowledgment(&mut self, packet: &mut Packet) {
        let Some(segment) = packet.tcp_mut() else { return };
        segment.flags |= flags_of(self.received.ace());
        self.received.on_ack_sent();
        // Beside timestamps there is room for it.
        if let Some(option) = self.received.due_counters(false)
            && packet.unparsed.add_ecn_counters(&option)
        {
            self.received.on_counters_sent();
        }
    }

    /// Processes the acknowledgment of our SYN-ACK (RFC 9768, table 4). Returns the marks that it
    /// reports.
    fn on_ack_of_syn_ack(&mut self, ace: u8) -> CeMarks {
        if ace == 0 {
            // Note 1: the client is in another mode, or the field was cleared.
            self.sends_ect = false;
            self.responds = false;
        }
        let codepoint = decode(ace);
        self.on_handshake_feedback(codepoint);
        let marked = codepoint == Some(Ecn::Congested);
        self.reported.begin(marked);
        CeMarks { packets: u64::from(marked), bytes: 0 }
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
            accurate.tests_option = true;
        } else {
            // In a simultaneous open both ends are servers (RFC 9768 §3.1.2, §3.1.5).
            accurate.sends_ect = self.ecn_offer != EcnOffer::Withdrawn;
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

    /// Processes the answer to our SYN in a simultaneous open. RFC 9293 §3.5 acknowledges it with the
    /// next segment, so there is no acknowledgment with the handshake encoding.
    pub(super) fn on_simultaneous_syn_ack(&mut self, segment: &Segment, codepoint: Ecn) {
        let Some(accurate) = &mut self.accurate_ecn else { return };
        accurate.count_syn_ack(codepoint);
        let ace = ace_of(segment.flags);
        accurate.sends_ect &= ace != 0b000;
        accurate.on_handshake_feedback(decode(ace));
        accurate.reported.on_first_counters(accurate.arrived.0.as_ref());
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
        accurate.acks_acknowledgments &= len == 0 && !segment.flags.contains(Flags::FIN);
        let unacknowledged = self.receiver.has_unacknowledged() || len > 0;
        accurate.received.on_packet(codepoint, len, self.receiver.mss(), unacknowledged)
    }

    /// Acknowledges marks at once, `on_data` or on acknowledgments only.
    #[cold]
    pub(super) fn acknowledge_marks(&mut self, on_data: bool) {
        self.receiver.acknowledge_now();
        if let Some(accurate) = &mut self.accurate_ecn {
            accurate.acks_acknowledgments = !on_data;
        }
    }

    /// Data from `start` on arrived that had arrived before: what acknowledged it, with its option, may
    /// be lost.
    pub(super) fn repeat_ecn_counters(&mut self, start: u64) {
        if let Some(accurate) = &mut self.accurate_ecn {
            accurate.received.repeat(start);
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
        let control = len == 0 && !segment.flags.contains(Flags::FIN);
        let plain = control && segment.options.sack.is_empty();
        if in_handshake {
            accurate.reported.on_first_counters(counters.as_ref());
            if plain {
                return accurate.on_ack_of_syn_ack(ace);
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
        if plain && ack == 1 {
            // The peer has not received any data. The field may have the handshake encoding once more
            // (RFC 9768 §3.2.2.2).
            return CeMarks::default();
        }
        let feedback = accurate.feedback(segment, (start, ack), (counters, len), delivered, mss);
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
        let marks = if accurate.responds { report.marks } else { CeMarks::default() };
        // The acknowledgment of our SYN-ACK was lost.
        accurate.syn_marked |= in_handshake && marks.packets > 0;
        marks
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
        let pure = len == 0 && !segment.flags.intersects(Flags::FIN | Flags::RST | Flags::SYN);
        let acks_acknowledgments = core::mem::take(&mut accurate.acks_acknowledgments);
        if pure && (accurate.acks_syn_ack || acks_acknowledgments) {
            // RFC 9768 §3.2.2.1, §3.2.2.5.1
            segment.options.sack = SackBlocks::default();
        }
        let left = Options::ROOM.saturating_sub(segment.options.len() + known);
        if segment.flags.contains(Flags::SYN) {
            // RFC 9768 §3.2.3.2.2: a retransmission has none, for a middlebox may have dropped the
            // first for it.
            let option = accurate.received.all_counters();
            if accurate.syn_ack == SynAck::WithOption && option.size() <= left {
                packet.unparsed.add_ecn_counters(&option);
            }
            return;
        }
        let of_syn_ack = pure && core::mem::take(&mut accurate.acks_syn_ack);
        segment.flags -= ACE;
        segment.flags |=
            flags_of(if of_syn_ack { encode(accurate.handshake) } else { accurate.received.ace() });
        accurate.received.on_ack_sent();
        // A retransmission has none (§3.2.3.2.2), nor has a unit, whose segments are full-sized.
        let new_data = len > 0 && core::mem::take(&mut accurate.is_new_data);
        let tests = of_syn_ack || new_data && core::mem::take(&mut accurate.tests_option);
        let may_have_option = pure || new_data && transmit.count == 1;
        if segment.flags.contains(Flags::RST) || !may_have_option {
            return;
        }
        let Some(option) = accurate.received.due_counters(tests) else { return };
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
