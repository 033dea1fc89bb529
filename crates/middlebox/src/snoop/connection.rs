//! One direction of a connection: data to the mobile host, and the acknowledgments from it.

use super::Counts;
use super::cache::{Cache, Cached, octets};
use base::{Duration, Time};
use host::Context;
use tcp::{Rto, Rtt};
use wire::{Body, Flags, Packet, Payload, SackBlock, Segment, SeqNumber};

/// The settings of the box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Segments.
    pub(super) cache: usize,
    pub(super) retransmissions: u32,
    pub(super) min_timeout: Duration,
}

/// What the box knows of a connection.
///
/// A segment is lost on the hop if one that took the hop after it has arrived: the hop keeps the order.
/// So the publication retransmits it at the first duplicate ACK. Its authors' code takes the second: a host
/// acknowledges a segment that it gets twice, too, and a needless retransmission would cause the next one.
/// SACK blocks (RFC 2018), which the publication does not know, are unambiguous: the same rule finds all gaps
/// at once, and retransmissions that are lost in turn.
#[derive(Debug)]
pub(super) struct Connection {
    limits: Limits,
    cache: Cache,
    /// The octet that the mobile host expects.
    una: SeqNumber,
    /// The octet after the highest that passed.
    next: SeqNumber,
    /// The window field of the last acknowledgment.
    window: u16,
    /// Places in the order of sending that were given away; none yet if it is 0.
    sent: u64,
    /// The last place in that order of which the mobile host has the segment.
    newest: u64,
    /// Duplicate ACKs that segments sent before the retransmission may still cause.
    expected: u32,
    /// There was a duplicate ACK that was not expected.
    is_alerted: bool,
    /// Segments that take the hop although the mobile host may have them: each causes a duplicate ACK.
    repeated: u32,
    /// The mobile host sends SACK blocks.
    has_sack: bool,
    rtt: Rtt,
    /// When the timer was started.
    started: Time,
}

impl Connection {
    pub(super) fn new(limits: Limits) -> Connection {
        // Before the first sample the timeout is a second, about that of ns-2's `srtt_` and `rttvar_`.
        let rto = Rto::default();
        let (initial, minimum) = (rto.initial.max(limits.min_timeout), limits.min_timeout);
        let rto = Rto { initial, minimum, ..rto };
        Connection {
            limits,
            cache: Cache::default(),
            una: SeqNumber(0),
            next: SeqNumber(0),
            window: 0,
            sent: 0,
            newest: 0,
            expected: 0,
            is_alerted: false,
            repeated: 0,
            has_sack: false,
            rtt: Rtt::new(rto),
            started: Time::ZERO,
        }
    }

    /// Forgets everything but the memory of the cache.
    pub(super) fn reset(&mut self) {
        let mut cache = core::mem::take(&mut self.cache);
        cache.clear();
        *self = Connection { cache, ..Connection::new(self.limits) };
    }

    pub(super) fn cached(&self) -> usize {
        self.cache.len()
    }

    /// The payloads of the segments in the cache.
    pub(super) fn payloads(&self) -> impl Iterator<Item = Payload> {
        self.cache.iter().map(|segment| segment.packet.payload)
    }

    /// When [`Connection::time_out`] is due: a segment that the mobile host waits for was sent a timeout
    /// ago, and its window is open.
    pub(super) fn deadline(&self) -> Time {
        match self.cache.first_with(self.una) {
            // Twice the round trip at least: a retransmission may find a longer queue.
            Some(_) if self.window > 0 => {
                self.started + self.rtt.rto().max(self.rtt.probe_timeout())
            }
            _ => Time::NEVER,
        }
    }

    /// The queue of the hop has accepted a segment with data or FIN.
    pub(super) fn forward(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &Segment,
        counts: &mut Counts,
    ) {
        let (seq, end) = (segment.seq, segment.seq + octets(packet, segment));
        if self.sent == 0 {
            // The connection is watched from here on. Its window is open, or this would not be sent.
            (self.una, self.next, self.window) = (seq, seq, u16::MAX);
        }
        if end.beyond(self.una) <= 0 {
            self.repeated += 1;
            return;
        }
        self.sent += 1;
        let (order, sent_at) = (self.sent, now);
        let place = self.cache.find(seq);
        if let Ok(place) = place
            && let Some(cached) = self.cache.get_mut(place)
        {
            (cached.order, cached.sent_at) = (order, sent_at);
            if core::mem::take(&mut cached.is_leaving) {
                return;
            }
            // The sender's retransmission: it now counts the duplicate ACKs.
            if end.beyond(cached.end) >= 0 {
                (cached.packet, cached.end) = (*packet, end);
            }
            (cached.copies, cached.is_senders, cached.is_sole_copy) = (0, true, false);
        } else if self.cache.len() >= self.limits.cache {
            counts.overflow += 1;
        } else if let Err(place) = place {
            let cached = Cached {
                packet: *packet,
                seq,
                end,
                order,
                sent_at,
                copies: 0,
                // It was lost before it came here, or overtaken.
                is_senders: seq.beyond(self.next) < 0,
                is_sacked: false,
                is_sole_copy: false,
                is_leaving: false,
            };
            self.cache.insert(place, cached);
        }
        if end.beyond(self.next) > 0 {
            self.next = end;
        }
        if seq.beyond(self.una) <= 0 {
            self.started = now;
        }
    }

    /// The queue of the hop has dropped a segment: its loss is congestion, which concerns the sender.
    pub(super) fn drop(&mut self, seq: SeqNumber) {
        if let Ok(place) = self.cache.find(seq) {
            self.cache.remove(place);
        }
    }

    /// Processes an acknowledgment of the mobile host; returns whether it passes.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        packet: &mut Packet,
        counts: &mut Counts,
        cx: &mut Context<'_>,
    ) -> bool {
        let Body::Tcp(segment) = &packet.body else { return true };
        let ahead = segment.ack.beyond(self.una);
        if ahead < 0 {
            // It was overtaken. The publication drops it, its authors' code passes it on.
            self.hide_gaps(packet, counts);
            return true;
        }
        let is_duplicate = ahead == 0
            && packet.payload.len == 0
            && !segment.flags.contains(Flags::FIN)
            && segment.window == self.window;
        if self.window == 0 {
            self.started = now;
        }
        self.window = segment.window;
        let sacks = shows_gap(segment);
        if ahead > 0 {
            self.advance(now, segment.ack);
        }
        for block in segment.options.sack.as_slice() {
            self.newest = self.newest.max(self.cache.mark(block.start, block.end).unwrap_or(0));
        }
        self.has_sack |= sacks;
        let passes = if self.window == 0 {
            // A host without a window would discard what it is sent.
            true
        } else if is_duplicate && !self.has_sack {
            self.on_duplicate(now, counts, cx)
        } else {
            self.retransmit_lost(now, counts, cx);
            !(is_duplicate && sacks && self.repairs_first())
        };
        match passes {
            true => self.hide_gaps(packet, counts),
            false => counts.suppressed += 1,
        }
        passes
    }

    /// Nothing was heard of a segment for the timeout.
    pub(super) fn time_out(&mut self, now: Time, counts: &mut Counts, cx: &mut Context<'_>) {
        counts.timeouts += 1;
        self.rtt.back_off();
        self.retransmit(now, 0, counts, cx);
        // The other copies may be late.
        if let Some(cached) = self.cache.get_mut(0) {
            cached.is_sole_copy = false;
        }
    }

    /// Removes what the mobile host has. It has acknowledged everything before this octet.
    fn advance(&mut self, now: Time, ack: SeqNumber) {
        let mut sample = None;
        let mut is_clean = true;
        self.repeated = 0;
        while let Some(cached) = self.cache.pop_before(ack) {
            is_clean &= cached.copies == 0 && !cached.is_senders && !cached.is_sacked;
            sample = Some(cached.sent_at);
            match cached.copies == 0 || cached.is_sole_copy {
                true => self.newest = self.newest.max(cached.order),
                false => self.repeated += cached.copies,
            }
        }
        // Behind a gap, an acknowledgment comes late; after a retransmission, it may be of any copy.
        if let Some(sent_at) = sample.filter(|_| is_clean) {
            self.rtt.sample(now, sent_at);
        }
        self.una = ack;
        if ack.beyond(self.next) > 0 {
            self.next = ack;
        }
        (self.expected, self.is_alerted, self.started) = (0, false, now);
        // RFC 2018 §8: the host has discarded what it had.
        if self.cache.first_with(ack).is_some_and(|first| first.is_sacked) {
            self.cache.iter_mut().for_each(|cached| cached.is_sacked = false);
        }
    }

    /// Whether the segment that the mobile host waits for is repaired here.
    fn repairs_first(&self) -> bool {
        self.cache.first_with(self.una).is_some_and(|first| !first.is_senders)
    }

    /// Processes a duplicate ACK without SACK; returns whether it passes.
    fn on_duplicate(&mut self, now: Time, counts: &mut Counts, cx: &mut Context<'_>) -> bool {
        if self.repeated > 0 {
            self.repeated -= 1;
            return true;
        }
        if !self.repairs_first() {
            return true;
        }
        if self.expected > 0 {
            self.expected -= 1;
            return false;
        }
        // A segment behind the missing one has caused it, or behind the retransmission.
        if !core::mem::replace(&mut self.is_alerted, true) {
            return self.cache.get(0).is_some_and(|first| first.copies == 0);
        }
        self.is_alerted = false;
        let is_repaired = self.retransmit_first(now, counts, cx);
        self.expected = self.expected.saturating_sub(2);
        !is_repaired
    }

    /// Retransmits the segments that are known to be lost on the hop.
    fn retransmit_lost(&mut self, now: Time, counts: &mut Counts, cx: &mut Context<'_>) {
        if !self.has_sack {
            // Which of the others have arrived is unknown.
            let newest = self.newest;
            let first = self.cache.first_with(self.una);
            if first.is_some_and(|first| first.order < newest && !first.is_senders) {
                self.retransmit_first(now, counts, cx);
            }
            return;
        }
        let mut index = 0;
        while let Some(cached) = self.cache.get(index) {
            let is_lost = cached.order < self.newest
                && !cached.is_sacked
                && !cached.is_senders
                && cached.end.beyond(self.una) > 0;
            if !is_lost || self.retransmit(now, index, counts, cx) {
                index += 1;
            }
        }
    }

    /// Retransmits the segment that the mobile host waits for, and expects the duplicate ACKs of those
    /// that were sent behind it; returns whether it may be.
    fn retransmit_first(&mut self, now: Time, counts: &mut Counts, cx: &mut Context<'_>) -> bool {
        let Some(first) = self.cache.get(0) else { return false };
        let before = self.newest.max(first.order);
        let is_behind = |cached: &&Cached| cached.order > before;
        self.expected = self.cache.iter().filter(is_behind).count() as u32;
        self.retransmit(now, 0, counts, cx)
    }

    /// Retransmits a segment over the hop. It is removed, and `false` returned, if that was done as often
    /// as allowed.
    fn retransmit(
        &mut self,
        now: Time,
        index: usize,
        counts: &mut Counts,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(cached) = self.cache.get_mut(index) else { return false };
        if cached.copies >= self.limits.retransmissions {
            counts.given_up += 1;
            self.cache.remove(index);
            return false;
        }
        self.sent += 1;
        cached.copies += 1;
        (cached.order, cached.sent_at) = (self.sent, now);
        (cached.is_sole_copy, cached.is_leaving) = (true, true);
        self.started = now;
        counts.retransmitted += 1;
        cx.send(cached.packet);
        true
    }

    /// Removes SACK blocks above the first gap that is repaired here, which would tell the sender of it.
    /// An acknowledgment without them is a valid one: they are advisory (RFC 2018 §8).
    fn hide_gaps(&self, packet: &mut Packet, counts: &mut Counts) {
        if is_authenticated(packet) {
            return;
        }
        let Body::Tcp(segment) = &mut packet.body else { return };
        let blocks = segment.options.sack.as_slice();
        let ends = blocks.iter().map(|block| block.end).filter(|end| end.beyond(self.una) > 0);
        let Some(highest) = ends.max_by_key(|end| end.beyond(self.una)) else { return };
        let is_gap = |cached: &&Cached| {
            !cached.is_sacked
                && !cached.is_senders
                && cached.end.beyond(self.una) > 0
                && cached.seq.beyond(highest) < 0
        };
        let Some(gap) = self.cache.iter().find(is_gap) else { return };
        let mut below = wire::SackBlocks::default();
        for &block in blocks.iter().filter(|block| block.end.beyond(gap.seq) <= 0) {
            below.push(block);
        }
        if below != segment.options.sack {
            segment.options.sack = below;
            counts.shortened += 1;
        }
    }
}

/// Whether an acknowledgment has a SACK block above what it acknowledges: one that is no DSACK of old
/// data (RFC 2883 §4).
fn shows_gap(segment: &Segment) -> bool {
    let is_above = |block: &SackBlock| block.start.beyond(segment.ack) > 0;
    segment.options.sack.as_slice().iter().any(is_above)
}

/// Whether a segment's options are protected by a digest (RFC 2385, RFC 5925).
fn is_authenticated(packet: &Packet) -> bool {
    const MD5: u8 = 19;
    const AO: u8 = 29;
    let mut options = packet.unparsed.tcp_options();
    while let [kind, len, ..] = options {
        if matches!(*kind, MD5 | AO) {
            return true;
        }
        options = options.get(usize::from(*len)..).unwrap_or_default();
    }
    false
}
