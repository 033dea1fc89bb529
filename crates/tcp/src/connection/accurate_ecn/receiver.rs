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
    /// Bytes counted since then.
    since_option: u32,
    /// The last acknowledgment had an option.
    has_sent_option: bool,
    /// Where data began that arrived again although an option went with its acknowledgment.
    reappeared: Option<u64>,
    /// The path drops acknowledgments with options: no more are sent (RFC 9768 §3.2.3.2.2).
    withholds_options: bool,
}

/// An option is sent at the latest after so many bytes (RFC 9768 §3.2.3.3): a counter has 24 bits.
const MOST_UNREPORTED: u32 = 1 << 22;

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
            since_option: 0,
            has_sent_option: false,
            reappeared: None,
            withholds_options: false,
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
    /// after a packet without, marks that the three bits could not count (RFC 9768 §3.2.2.5.1), or bytes
    /// that an option could not.
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
            self.since_option = self.since_option.saturating_add(len);
        }
        changes
            || self.unreported >= if unacknowledged { 2 } else { 3 }
            || self.must_report() && self.since_option >= MOST_UNREPORTED
    }

    /// Whether `len` more bytes without a mark call for no acknowledgment of their own.
    #[inline]
    pub(super) fn has_room(&self, len: u32) -> bool {
        self.unreported < 2 && self.since_option.saturating_add(len) < MOST_UNREPORTED
    }

    /// Whether an option is due that must not wait for a segment with room: marked bytes have arrived
    /// since the last, or many others.
    pub(super) fn must_report(&self) -> bool {
        (self.marked || self.since_option >= MOST_UNREPORTED) && !self.withholds_options
    }

    #[cfg(test)]
    pub(super) fn withholds_options(&self) -> bool {
        self.withholds_options
    }

    /// Data from `start` on has arrived again. The next option repeats the last, whose acknowledgment
    /// may be lost. If that is so once more, the path may drop acknowledgments for their option.
    pub(super) fn repeat(&mut self, start: u64) {
        self.changed = self.bytes != FIRST_BYTES;
        if self.has_sent_option {
            self.withholds_options |= self.reappeared == Some(start);
            self.reappeared = Some(start);
        }
    }

    pub(super) fn on_ack_sent(&mut self) {
        self.unreported = 0;
        self.has_sent_option = false;
    }

    /// An option was sent.
    pub(super) fn on_counters_sent(&mut self) {
        self.changed = false;
        self.marked = false;
        self.since_option = 0;
        self.has_sent_option = true;
    }

    /// The option with all counters, which tests the path (RFC 9768 §3.2.3.2.1).
    pub(super) fn all_counters(&self) -> EcnCounters {
        self.counters(EcnOrder::Ect0First, 3)
    }

    /// The option that is due: if a counter has changed since the last, every counter that ever has
    /// (RFC 9768 §3.2.3.3, the recommended simple scheme); in a segment that `tests` the path all.
    pub(super) fn due_counters(&self, tests: bool) -> Option<EcnCounters> {
        if self.withholds_options {
            return None;
        }
        if tests {
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
