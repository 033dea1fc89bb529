//! The receiving half of accurate ECN: counting codepoints, and when to report them.

use crate::congestion::CeMarks;
use serde::{Deserialize, Serialize};
use wire::{Ecn, EcnCounters, EcnOrder};

/// What a receiver has counted by the ECN field of IP headers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Received {
    /// r.cep: packets with CE.
    packets: u64,
    /// r.e1b, r.e0b and r.ceb: bytes of payload with ECT(1), ECT(0) and CE.
    bytes: [u64; 3],
    /// The codepoint of the last packet.
    last: Ecn,
    /// Marks since the last acknowledgment.
    unreported: u32,
    /// A counter of bytes has changed since an option was sent.
    changed: bool,
    /// That of marked bytes has.
    marked: bool,
}

/// RFC 9768 §3.2.1: what is not zero shows a path that clears the fields.
const FIRST_PACKET: u64 = 5;
const FIRST_BYTES: [u64; 3] = [1, 1, 0];

/// The place of a codepoint's counter.
pub(super) fn index(codepoint: Ecn) -> Option<usize> {
    (codepoint as usize).checked_sub(1)
}

impl Received {
    /// The peer's SYN or SYN-ACK arrived with this codepoint, and is not counted.
    pub(super) fn new(last: Ecn) -> Received {
        Received {
            packets: FIRST_PACKET,
            bytes: FIRST_BYTES,
            last,
            unreported: 0,
            changed: false,
            marked: false,
        }
    }

    /// Counts a marked SYN-ACK (RFC 9768 §3.2.2.2).
    pub(super) fn count_syn_ack(&mut self) {
        self.packets += 1;
    }

    /// The ACE field: the low bits of r.cep (RFC 9768 §3.2.2).
    pub(super) fn ace(&self) -> u8 {
        (self.packets % 8) as u8
    }

    /// Packets and bytes that arrived with CE.
    pub(super) fn marks(&self) -> CeMarks {
        CeMarks { packets: self.packets - FIRST_PACKET, bytes: self.bytes[2] }
    }

    /// Counts a packet with `len` bytes of payload; returns whether an acknowledgment is due: a mark
    /// after a packet without, or marks that the three bits could not count (RFC 9768 §3.2.2.5.1).
    pub(super) fn on_packet(
        &mut self,
        codepoint: Ecn,
        len: u32,
        mss: u32,
        unacknowledged: bool,
    ) -> bool {
        let congested = codepoint == Ecn::Congested;
        let changes = congested && self.last != Ecn::Congested && len > 0;
        self.last = codepoint;
        if congested {
            // A unit of merged segments (GRO) has as many marks.
            let packets = len.div_ceil(mss.max(1)).max(1);
            self.packets += u64::from(packets);
            self.unreported += packets;
        }
        if let Some(index) = index(codepoint).filter(|_| len > 0) {
            self.bytes[index] += u64::from(len);
            self.changed = true;
            self.marked |= congested;
        }
        changes || self.unreported >= if unacknowledged { 2 } else { 3 }
    }

    /// Whether marked bytes have arrived since an option was sent.
    pub(super) fn has_unreported_marks(&self) -> bool {
        self.marked
    }

    /// The next option is to repeat the last: its acknowledgment was lost.
    pub(super) fn repeat(&mut self) {
        self.changed = self.bytes != FIRST_BYTES;
    }

    pub(super) fn on_ack_sent(&mut self) {
        self.unreported = 0;
    }

    /// An option was sent.
    pub(super) fn on_counters_sent(&mut self) {
        self.changed = false;
        self.marked = false;
    }

    /// The option with all counters, which tests the path (RFC 9768 §3.2.3.2.1).
    pub(super) fn all_counters(&self) -> EcnCounters {
        self.counters(EcnOrder::Ect0First, 3)
    }

    /// The option that is due: if a counter has changed since the last, every counter that ever has
    /// (RFC 9768 §3.2.3.3, the recommended simple scheme); in the `first` acknowledgment all.
    pub(super) fn due_counters(&self, first: bool) -> Option<EcnCounters> {
        if first {
            return Some(self.all_counters());
        }
        let [ect1, ect0, ce] = core::array::from_fn(|n| self.bytes[n] != FIRST_BYTES[n]);
        self.changed.then(|| match (ect0, ce, ect1) {
            (true, _, true) => self.counters(EcnOrder::Ect0First, 3),
            (_, true, false) => self.counters(EcnOrder::Ect0First, 2),
            (_, false, false) => self.counters(EcnOrder::Ect0First, 1),
            (false, true, true) => self.counters(EcnOrder::Ect1First, 2),
            (false, false, true) => self.counters(EcnOrder::Ect1First, 1),
        })
    }

    fn counters(&self, order: EcnOrder, count: usize) -> EcnCounters {
        let counter = |codepoint| index(codepoint).map_or(0, |index| self.bytes[index]);
        // The option takes them modulo 2^24.
        let counters = order.codepoints().map(|codepoint| counter(codepoint) as u32);
        EcnCounters::new(order, &counters[..count])
    }
}
