//! The receiving half: reassembly, what to acknowledge and when.

use crate::config::Config;
use crate::mechanism::{AckTiming, Arrival, Hooks, Mechanisms};
use crate::ready::Ready;
use crate::reassembly::Reassembly;
use crate::state::Pressure;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};
use wire::{Payload, SackBlock, SackBlocks, SeqNumber};

/// The receiving half of a connection, in absolute sequence numbers: 0 is the peer's SYN.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    nxt: u64,
    /// The sequence number of the peer's FIN, once seen.
    fin: Option<u64>,
    /// Octets received beyond a gap.
    beyond: Reassembly,
    /// The last segment beyond a gap found no room there.
    is_full: bool,
    /// In order and not yet read.
    ready: Ready,
    /// Bytes that it may hold: all of its buffer, unless memory is short.
    buffer: u64,
    whole_buffer: u64,
    /// No out-of-order data is kept: memory is short.
    keeps_order: bool,
    /// The right edge of the window as last announced; it never moves left (RFC 9293 §3.8.6).
    edge: u64,
    /// By how much the edge moves at least (RFC 9293 §3.8.6.2.2).
    step: u64,
    /// How much room the peer hears of at once.
    worth: u64,
    /// Octets that arrived twice, to be reported once (RFC 2883), where both ends know how.
    twice: Option<(u64, u64)>,
    reports_twice: bool,
    delayed_ack: Option<Duration>,
    /// Bytes of a full-sized segment.
    mss: u32,
    /// Full-sized segments since the last acknowledgment.
    unacknowledged: u32,
    /// Acknowledgments in a row that repeat the last.
    duplicates: u32,
    /// The window is announced as zero, whatever it is.
    closed: bool,
    owed: Owed,
}

/// The acknowledgments that are owed to the peer: now, or later, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owed {
    now: u32,
    later: u32,
    /// When those become due at the latest; [`Time::NEVER`] if there are none.
    at: Time,
}

impl Owed {
    const NOTHING: Owed = Owed::now(0);

    const fn now(count: u32) -> Owed {
        Owed { now: count, later: 0, at: Time::NEVER }
    }
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Receiver {
        let buffer = u64::from(config.receive_window);
        Receiver {
            nxt: 0,
            fin: None,
            beyond: Reassembly::new(buffer),
            is_full: false,
            ready: Ready::default(),
            buffer,
            whole_buffer: buffer,
            keeps_order: false,
            edge: 0,
            step: 1,
            worth: 1,
            twice: None,
            reports_twice: config.dsack,
            delayed_ack: config.delayed_ack,
            mss: u32::from(config.mss),
            unacknowledged: 0,
            duplicates: 0,
            closed: false,
            owed: Owed::NOTHING,
        }
    }

    /// RCV.NXT: the next octet expected.
    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// RCV.WND: the window as last announced, bytes.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.edge - self.nxt
    }

    /// The window that a SYN announces, which is never scaled (RFC 7323 §2.2), bytes.
    pub(crate) fn offer(&self) -> u64 {
        self.whole_buffer.min(u64::from(u16::MAX))
    }

    /// The window to announce now, bytes. Its right edge moves by large steps only, so that a
    /// reader of small pieces does not make the peer send small segments (RFC 9293 §3.8.6.2.2).
    #[inline]
    pub(crate) fn announce(&mut self) -> u64 {
        let edge = self.free_edge();
        if edge >= self.edge + self.step {
            self.edge = edge;
        }
        self.window()
    }

    /// Whether the peer is told of a window of zero, whatever there is.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The peer is told of a window of zero from now on. What it has sent already is taken.
    pub(crate) fn close_window(&mut self) {
        self.closed = true;
        self.acknowledge_now();
    }

    /// The peer is told of the window again, three times (Freeze-TCP): one may be lost.
    pub(crate) fn open_window(&mut self) {
        self.closed = false;
        for _ in 0..3 {
            self.acknowledge_now();
        }
    }

    /// Memory is short, or no longer. The window closes only as data arrives: its right edge stays where it
    /// was announced. It never shrinks below [`Self::SHORT_WINDOW`] segments, so that every transfer goes on
    /// and a reader's progress is announced.
    pub(crate) fn set_pressure(&mut self, pressure: Pressure) {
        self.keeps_order = pressure >= Pressure::OutOfOrder;
        self.buffer = match pressure {
            Pressure::Window => self.whole_buffer.min(Self::SHORT_WINDOW * u64::from(self.mss)),
            Pressure::None | Pressure::OutOfOrder => self.whole_buffer,
        };
    }

    /// Twice what [`Receiver::tell_of_room`] waits for.
    const SHORT_WINDOW: u64 = 4;

    /// Bytes of memory for what is unread or out of order.
    pub(crate) fn memory(&self) -> u64 {
        self.ready.bytes() + self.beyond.memory()
    }

    /// How far the buffer reaches.
    #[inline]
    fn free_edge(&self) -> u64 {
        self.nxt + self.buffer.saturating_sub(self.ready.bytes())
    }

    /// The largest window that may be advertised, bytes.
    pub(crate) fn capacity(&self) -> u32 {
        u32::try_from(self.whole_buffer).unwrap_or(u32::MAX)
    }

    /// Whether everything up to the peer's FIN has arrived.
    #[inline]
    pub(crate) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// Bytes that can be read.
    #[inline]
    pub(crate) fn readable(&self) -> u64 {
        self.ready.bytes()
    }

    /// Bytes received in order, read or not.
    pub(crate) fn received(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.finished()))
    }

    /// What can be read, run by run.
    pub(crate) fn peek(&self) -> impl Iterator<Item = Payload> {
        self.ready.iter()
    }

    /// The peer's SYN has arrived: full-sized segments have `mss` bytes, and `sack` is whether it
    /// permits selective acknowledgments.
    pub(crate) fn on_syn(&mut self, mss: u32, sack: bool) {
        self.nxt = 1;
        self.mss = mss;
        self.step = (self.whole_buffer / 2).min(u64::from(mss)).max(1);
        self.worth = (self.whole_buffer / 2).min(2 * self.step).max(1);
        self.edge = self.free_edge().max(self.nxt + self.offer());
        self.reports_twice &= sack;
        self.acknowledge_now();
    }

    /// Octets arrive that have all been received before.
    pub(crate) fn on_old(&mut self, start: u64, end: u64) {
        self.twice = None;
        self.report_twice(start, end);
        self.acknowledge_now();
    }

    /// Of a segment with several such runs, the first is reported (RFC 2883 §4.2.1).
    fn report_twice(&mut self, start: u64, end: u64) {
        if self.reports_twice && start < end {
            self.twice.get_or_insert((start, end));
        }
    }

    /// Octets arrive, some of them inside the window: `payload` at `start`, a FIN after them if
    /// `fin`. What lies beyond the window is cut off (RFC 9293 §3.10.7.4).
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        start: u64,
        mut payload: Payload,
        mut fin: bool,
        mechanisms: &mut Mechanisms,
    ) -> Payload {
        // Nothing follows a FIN, and no FIN precedes what has been received.
        let limit = self.fin.unwrap_or(self.edge);
        let end = start + u64::from(payload.len);
        if end > limit {
            payload = payload.take(limit.saturating_sub(start) as u32);
            fin = false;
        }
        if fin && self.fin.is_none() {
            let highest = self.beyond.highest().unwrap_or(self.nxt);
            fin = end >= highest;
            self.fin = fin.then_some(end);
        }
        let before = self.nxt;
        let had_gap = !self.beyond.is_empty();
        self.twice = None;
        if start <= self.nxt {
            if start < self.nxt {
                self.report_twice(start, self.nxt.min(start + u64::from(payload.len)));
                payload = payload.skip((self.nxt - start) as u32);
            }
            self.accept(payload);
            if had_gap {
                self.take_out_of_order();
            }
            if self.fin == Some(self.nxt) {
                self.nxt += 1;
                // The FIN needs no buffer.
                self.edge = self.edge.max(self.nxt);
            }
        } else {
            payload = self.keep(start, payload);
        }
        let duplicate_ack = self.nxt == before;
        if duplicate_ack || had_gap || fin || self.twice.is_some() {
            // RFC 5681 §4.2: out of order, again, or filling a gap: at once.
            self.duplicates = if duplicate_ack { self.duplicates + 1 } else { 0 };
            self.unacknowledged = 0;
            self.owed = self.timing(now, duplicate_ack, mechanisms);
        } else {
            self.duplicates = 0;
            self.delay(now, payload.len);
        }
        payload
    }

    /// Whether there is no gap, no FIN and nothing unread.
    #[inline]
    pub(crate) fn is_orderly(&self) -> bool {
        self.beyond.is_empty() && self.fin.is_none() && self.ready.bytes() == 0
    }

    /// Whether so many bytes in order fit into the window.
    #[inline]
    pub(crate) fn has_room_for(&self, len: u32) -> bool {
        self.nxt + u64::from(len) <= self.edge
    }

    /// What [`Receiver::on_data`] and [`Receiver::read`] do with data in order for which there is room.
    #[inline]
    pub(crate) fn on_read_data(&mut self, now: Time, len: u32) {
        self.nxt += u64::from(len);
        self.duplicates = 0;
        self.delay(now, len);
        self.tell_of_room();
    }

    fn timing(&self, now: Time, duplicate_ack: bool, mechanisms: &mut Mechanisms) -> Owed {
        if mechanisms.answer(Hooks::ARRIVAL) {
            let arrival = Arrival { duplicate_ack, duplicates: self.duplicates };
            if let Some(AckTiming::After(delay)) = mechanisms.arrival(&arrival)
                && self.owed.now == 0
            {
                let Owed { later, at, .. } = self.owed;
                return Owed { now: 0, later: later + 1, at: at.min(now + delay) };
            }
        }
        Owed::now(self.owed.now + 1)
    }

    /// `len` bytes of data in order: at once for every second segment, else within the delay
    /// (RFC 5681 §4.2). What comes as a unit of several segments counts as two.
    #[inline(always)]
    fn delay(&mut self, now: Time, len: u32) {
        self.unacknowledged += 1 + u32::from(len / 2 >= self.mss);
        if self.owed.now > 0 {
            return;
        }
        if let Some(delay) = self.delayed_ack
            && self.unacknowledged < 2
            && self.owed.later == 0
        {
            self.owed = Owed { now: 0, later: 1, at: now + delay };
        } else {
            self.owed = Owed::now(1);
        }
    }

    /// The peer must hear from us at once.
    pub(crate) fn acknowledge_now(&mut self) {
        self.owed = Owed::now(self.owed.now + 1);
    }

    /// Whether an acknowledgment is due now.
    #[inline]
    pub(crate) fn ack_due(&self) -> bool {
        self.owed.now > 0
    }

    /// When an acknowledgment will be due at the latest.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.owed.at
    }

    /// The delay is over.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        if self.owed.at <= now {
            self.owed = Owed::now(self.owed.later);
        }
    }

    /// The connection is over: nothing is owed any more.
    pub(crate) fn stop(&mut self) {
        self.owed = Owed::NOTHING;
    }

    /// An acknowledgment goes out: a pure one, or with data that covers all that is owed.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self, pure: bool) {
        self.unacknowledged = 0;
        // Duplicates are counted by the peer: each must be a segment of its own.
        self.owed = Owed::now(if pure { self.owed.now.saturating_sub(1) } else { 0 });
    }

    /// The next run of bytes in order.
    #[inline]
    pub(crate) fn read(&mut self, most: u32) -> Option<Payload> {
        let payload = self.ready.pop(most);
        self.tell_of_room();
        payload
    }

    /// Something was read: the peer may be waiting for room. It hears of as much as makes a
    /// difference to it.
    #[inline(always)]
    fn tell_of_room(&mut self) {
        if !self.ack_due()
            && self.window() <= self.buffer / 2
            && self.free_edge() >= self.edge + self.worth
            && !self.finished()
        {
            self.owed = Owed::now(1);
        }
    }

    /// Puts at most `count` SACK blocks into the empty `blocks`: what arrived twice (RFC 2883 §4), then
    /// the out-of-order runs, the one that grew last first (RFC 2018 §4).
    pub(crate) fn report_blocks(
        &mut self,
        count: usize,
        wire: impl Fn(u64) -> SeqNumber,
        blocks: &mut SackBlocks,
    ) {
        if count > 0
            && let Some((start, end)) = self.twice.take()
        {
            blocks.push(SackBlock { start: wire(start), end: wire(end) });
        }
        let room = count.min(SackBlocks::MAX).saturating_sub(blocks.as_slice().len());
        for &(start, end) in self.beyond.newest().iter().take(room) {
            // A FIN takes one number, too.
            let end = end + u64::from(self.fin == Some(end));
            blocks.push(SackBlock { start: wire(start), end: wire(end) });
        }
    }

    /// Whether some of these octets lie in the window and are missing.
    pub(crate) fn misses(&self, start: u64, end: u64) -> bool {
        // A FIN needs no window, but a place.
        let end = end.min(self.edge + 1);
        let first = start.max(self.nxt);
        let missing = self.beyond.end_of_run(first).unwrap_or(first);
        missing < end && !self.finished()
    }

    /// Whether the last segment beyond a gap was dropped in whole or in part, because the reassembly
    /// queue is full; says so once.
    pub(crate) fn take_refusal(&mut self) -> bool {
        core::mem::take(&mut self.is_full)
    }

    /// Whether there is something to tell beyond the acknowledgment number.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        !self.beyond.is_empty() || self.twice.is_some()
    }

    #[inline]
    fn accept(&mut self, payload: Payload) {
        if payload.len == 0 {
            return;
        }
        self.nxt += u64::from(payload.len);
        self.ready.push(payload);
    }

    /// A gap has been filled: what comes behind it is in order.
    fn take_out_of_order(&mut self) {
        while let Some((start, end)) = self.beyond.take_run(self.nxt) {
            self.report_twice(start, end.min(self.nxt));
            while let Some((start, piece)) = self.beyond.take_piece(end) {
                self.accept(piece.skip((self.nxt - start) as u32));
            }
        }
    }

    /// Keeps what is new of a run beyond a gap; returns what of it is there now.
    fn keep(&mut self, start: u64, payload: Payload) -> Payload {
        if self.keeps_order {
            self.is_full = payload.len > 0;
            return payload.take(0);
        }
        let kept = self.beyond.keep(start, payload);
        if let Some((start, end)) = kept.again {
            self.report_twice(start, end);
        }
        self.is_full = kept.len < payload.len;
        payload.take(kept.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn receiver() -> Receiver {
        let config = Config {
            delayed_ack: None,
            receive_window: 1 << 20,
            dsack: false,
            ..Config::default()
        };
        let mut receiver = Receiver::new(&config);
        receiver.on_syn(1000, true);
        receiver.on_ack_sent(true);
        receiver
    }

    fn piece(start: u64, end: u64) -> Payload {
        Payload { stream: 1, offset: start - 1, len: (end - start) as u32 }
    }

    fn blocks(receiver: &Receiver) -> Vec<(u32, u32)> {
        let mut blocks = SackBlocks::default();
        receiver.clone().report_blocks(4, |seq| SeqNumber(seq as u32), &mut blocks);
        blocks.as_slice().iter().map(|b| (b.start.0, b.end.0)).collect()
    }

    fn data(receiver: &mut Receiver, start: u64, end: u64) {
        let mut none = Mechanisms::default();
        receiver.on_data(Time::ZERO, start, piece(start, end), false, &mut none);
    }

    #[test]
    fn the_block_that_grew_last_comes_first() {
        let mut receiver = receiver();
        data(&mut receiver, 101, 201);
        data(&mut receiver, 301, 401);
        assert_eq!(blocks(&receiver), [(301, 401), (101, 201)]);
        data(&mut receiver, 201, 251);
        assert_eq!(blocks(&receiver), [(101, 251), (301, 401)]);
        data(&mut receiver, 251, 301);
        assert_eq!(blocks(&receiver), [(101, 401)]);
        data(&mut receiver, 1, 101);
        assert_eq!((receiver.nxt(), !receiver.beyond.is_empty()), (401, false));
        assert_eq!(receiver.read(u32::MAX), Some(piece(1, 401)));
    }

    #[test]
    fn adjacent_octets_of_two_streams_are_one_block() {
        let mut receiver = receiver();
        let mut arrive = |start, stream, offset, len| {
            let payload = Payload { stream, offset, len };
            receiver.on_data(Time::ZERO, start, payload, false, &mut Mechanisms::default());
            blocks(&receiver)
        };
        arrive(301, 7, 0, 100);
        arrive(201, 8, 0, 100);
        arrive(501, 9, 0, 100);
        assert_eq!(arrive(101, 9, 0, 100), [(101, 401), (501, 601)]);
        assert_eq!(arrive(401, 1, 0, 100), [(101, 601)]);
    }

    #[test]
    fn every_out_of_order_segment_gets_an_acknowledgment_of_its_own() {
        let mut receiver = receiver();
        data(&mut receiver, 101, 201);
        data(&mut receiver, 201, 301);
        for _ in 0..2 {
            assert!(receiver.ack_due());
            receiver.on_ack_sent(true);
        }
        assert!(!receiver.ack_due());
    }

    #[test]
    fn delayed_acknowledgments_wait_for_a_second_segment_or_the_timer() {
        let mut receiver = receiver();
        receiver.delayed_ack = Some(Duration::from_millis(200));
        data(&mut receiver, 1, 101);
        assert!(!receiver.ack_due());
        assert_eq!(receiver.deadline(), Time::ZERO + Duration::from_millis(200));
        data(&mut receiver, 101, 201);
        assert!(receiver.ack_due());
        receiver.on_ack_sent(true);
        data(&mut receiver, 201, 301);
        receiver.on_deadline(Time::ZERO + Duration::from_millis(200));
        assert!(receiver.ack_due());
    }

    #[test]
    fn a_unit_of_two_segments_is_acknowledged_at_once() {
        let mut receiver = receiver();
        receiver.delayed_ack = Some(Duration::from_millis(200));
        data(&mut receiver, 1, 2000);
        assert!(!receiver.ack_due());
        receiver.on_ack_sent(true);
        data(&mut receiver, 2000, 4000);
        assert!(receiver.ack_due());
    }

    #[test]
    fn what_lies_outside_the_window_is_acknowledged_and_dropped() {
        let mut receiver = receiver();
        let far = 1 + (1 << 20);
        data(&mut receiver, far, far + 1);
        assert!(receiver.ack_due() && receiver.beyond.is_empty());
    }

    proptest! {
        /// Whatever arrives in whatever order, overlapping or not: what is read is the stream.
        #[test]
        fn the_stream_is_read_whole_in_order_and_once(
            pieces in prop::collection::vec((0u64..300, 1u64..60), 1..200)
        ) {
            let mut receiver = receiver();
            let mut held = vec![false; 400];
            let mut read = 0;
            for (start, len) in pieces {
                data(&mut receiver, 1 + start, 1 + start + len);
                held[start as usize..(start + len) as usize].fill(true);
                while let Some(payload) = receiver.read(u32::MAX) {
                    prop_assert_eq!(payload.offset, read);
                    read = payload.end();
                }
                let prefix = held.iter().take_while(|&&h| h).count() as u64;
                prop_assert_eq!(read, prefix);
                // The blocks are the held runs beyond the gap.
                for (start, end) in blocks(&receiver) {
                    let run = &held[start as usize - 1..end as usize - 1];
                    prop_assert!(run.iter().all(|&h| h));
                    prop_assert!(!held[start as usize - 2] && !held[end as usize - 1]);
                }
            }
        }
    }
}
