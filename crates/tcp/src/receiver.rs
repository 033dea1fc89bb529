//! The receiving half: reassembly, the receive window, and when to acknowledge.

mod acks;
#[cfg(test)]
mod tests;
mod tuning;
mod window;

use crate::config::Config;
use crate::mechanism::{Arrival, Mechanisms};
use crate::reassembly::Reassembly;
use crate::receive_queue::ReceiveQueue;
use acks::PendingAcks;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};
use tuning::Tuning;
use wire::{Payload, SackBlock, SackBlocks, SeqNumber};

/// The receiving half of a connection, in absolute sequence numbers: 0 is the peer's SYN.
//
// What a segment on the fast path reads comes first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    nxt: u64,
    /// The right edge of the window as last announced; it never moves left (RFC 9293 §3.8.6).
    announced_edge: u64,
    /// Size of the receive buffer, bytes; less than `full_buffer_size` under memory pressure.
    buffer_size: u64,
    /// The least advance of the edge: silly-window avoidance (RFC 9293 §3.8.6.2.2).
    min_window_step: u32,
    /// A window update is sent at once if the peer has no more window than this, bytes: half of the
    /// buffer, ...
    update_below: u32,
    /// ... and the edge advances by this.
    min_window_update: u32,
    /// When data that arrives is to lead to [`Receiver::tune`]; [`Time::NEVER`] if the buffer no longer
    /// grows.
    tune_at: Time,
    pending_acks: PendingAcks,
    /// Bytes of a full-sized segment.
    mss: u32,
    /// Full-sized segments since the last acknowledgment.
    unacknowledged: u32,
    /// Consecutive duplicate acknowledgments.
    duplicates: u32,
    /// The reassembly queue had no room for the last out-of-order segment.
    queue_overflowed: bool,
    /// Out-of-order data is dropped, because of memory pressure.
    drops_out_of_order: bool,
    dsack_enabled: bool,
    /// A window of zero is announced, whatever the free space.
    zero_window: bool,
    delayed_ack: Option<Duration>,
    /// The sequence number of the peer's FIN, once it has arrived.
    fin: Option<u64>,
    /// The peer's FIN is not acknowledged.
    holds_fin: bool,
    /// The next DSACK block: octets that arrived again (RFC 2883), if both ends use SACK.
    dsack: Option<(u64, u64)>,
    /// In-order data not yet read.
    unread: ReceiveQueue,
    /// The reassembly queue: out-of-order segments.
    reassembly: Reassembly,
    /// Size of the receive buffer without memory pressure, bytes.
    full_buffer_size: u64,
    tuning: Tuning,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Receiver {
        let window = config.receive_window;
        let buffer = u64::from(if window.is_tuned() { window.initial } else { window.maximum });
        Receiver {
            nxt: 0,
            fin: None,
            holds_fin: false,
            reassembly: Reassembly::new(buffer),
            queue_overflowed: false,
            unread: ReceiveQueue::default(),
            buffer_size: buffer,
            full_buffer_size: buffer,
            tune_at: if window.is_tuned() { Time::ZERO } else { Time::NEVER },
            tuning: Tuning::new(window.maximum.into()),
            drops_out_of_order: false,
            announced_edge: 0,
            min_window_step: 1,
            update_below: (buffer / 2) as u32,
            min_window_update: 1,
            dsack: None,
            dsack_enabled: config.dsack,
            delayed_ack: config.delayed_ack,
            mss: u32::from(config.mss),
            unacknowledged: 0,
            duplicates: 0,
            zero_window: false,
            pending_acks: PendingAcks::NONE,
        }
    }

    /// RCV.NXT: the next octet expected.
    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes of a full-sized segment.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Memory of unread and out-of-order data, bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.unread.bytes() + self.reassembly.memory()
    }

    /// Whether everything up to the peer's FIN has arrived.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// Bytes that can be read.
    #[inline]
    pub(crate) fn readable(&self) -> u64 {
        self.unread.bytes()
    }

    /// Bytes received in order, read or not.
    pub(crate) fn received(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.is_finished()))
    }

    /// The runs of unread data.
    pub(crate) fn peek(&self) -> impl Iterator<Item = Payload> {
        self.unread.iter()
    }

    /// All payload in the buffer, in order or not; some may be listed twice.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = Payload> {
        self.unread.iter().chain(self.reassembly.payloads())
    }

    /// Processes the peer's SYN: full-sized segments have `mss` bytes, and `sack` is whether it
    /// permits selective acknowledgments.
    pub(crate) fn on_syn(&mut self, mss: u32, sack: bool) {
        self.nxt = 1;
        self.mss = mss;
        self.set_window_steps();
        self.announced_edge = self.buffer_edge().max(self.nxt + self.syn_window());
        self.dsack_enabled &= sack;
        self.acknowledge_now();
    }

    /// Handles a segment whose octets were all received before.
    pub(crate) fn on_duplicate_data(&mut self, start: u64, end: u64) {
        self.dsack = None;
        self.record_dsack(start, end);
        self.acknowledge_now();
    }

    /// Records a DSACK block. Of several in one segment, the first is reported (RFC 2883 §4.2.1).
    fn record_dsack(&mut self, start: u64, end: u64) {
        if self.dsack_enabled && start < end {
            self.dsack.get_or_insert((start, end));
        }
    }

    /// Processes a segment with some octets inside the window: `payload` at `start`, followed by a
    /// FIN if `fin`. Octets beyond the window are cut off (RFC 9293 §3.10.7.4). Returns the
    /// accepted part.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        start: u64,
        mut payload: Payload,
        mut fin: bool,
        mechanisms: &mut Mechanisms,
    ) -> Payload {
        // No data follows a FIN, and no FIN precedes data that has been received.
        let limit = self.fin.unwrap_or(self.announced_edge);
        let end = start + u64::from(payload.len);
        if end > limit {
            payload = payload.take(limit.saturating_sub(start) as u32);
            fin = false;
        }
        if fin && self.fin.is_none() {
            let highest = self.reassembly.highest().unwrap_or(self.nxt);
            fin = end >= highest;
            self.fin = fin.then_some(end);
        }
        let before = self.nxt;
        let had_gap = !self.reassembly.is_empty();
        self.dsack = None;
        if start <= self.nxt {
            if start < self.nxt {
                self.record_dsack(start, self.nxt.min(start + u64::from(payload.len)));
                payload = payload.skip((self.nxt - start) as u32);
            }
            self.deliver(payload);
            if had_gap {
                self.drain_reassembly();
            }
            if !self.holds_fin {
                self.take_fin();
            }
        } else {
            payload = self.queue_out_of_order(start, payload);
        }
        let duplicate_ack = self.nxt == before;
        if duplicate_ack || had_gap || fin || self.dsack.is_some() {
            // RFC 5681 §4.2: acknowledge out-of-order segments, duplicates and filled gaps at once.
            self.duplicates = if duplicate_ack { self.duplicates + 1 } else { 0 };
            self.unacknowledged = 0;
            let end = start.max(before) + u64::from(payload.len);
            let duplicates = self.duplicates;
            let arrival = Arrival { now, start, end, nxt: before, duplicate_ack, duplicates };
            self.pending_acks = self.ack_timing(&arrival, mechanisms);
        } else {
            self.duplicates = 0;
            self.delay_ack(now, payload.len);
        }
        payload
    }

    /// Passes the peer's FIN, if it is what follows.
    #[inline]
    fn take_fin(&mut self) {
        if self.fin == Some(self.nxt) {
            self.nxt += 1;
            // The FIN needs no buffer.
            self.announced_edge = self.announced_edge.max(self.nxt);
        }
    }

    /// Does not acknowledge the peer's FIN from now on.
    pub(crate) fn hold_fin(&mut self) {
        self.holds_fin = true;
    }

    /// Whether everything up to the peer's FIN has arrived, and the FIN is held.
    #[inline]
    pub(crate) fn holds_fin_now(&self) -> bool {
        self.fin == Some(self.nxt)
    }

    /// Acknowledges the peer's FIN from now on; returns whether it has been held.
    pub(crate) fn release_fin(&mut self) -> bool {
        self.holds_fin = false;
        let held = self.holds_fin_now();
        if held {
            self.take_fin();
            self.acknowledge_now();
        }
        held
    }

    /// Whether there is no gap, no FIN and no unread data.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.reassembly.is_empty() && self.fin.is_none() && self.unread.bytes() == 0
    }

    /// Like [`Receiver::on_data`] and [`Receiver::read`], for in-order data that fits into the
    /// window.
    #[inline]
    pub(crate) fn on_in_order_read(&mut self, now: Time, len: u32) {
        self.nxt += u64::from(len);
        self.duplicates = 0;
        self.delay_ack(now, len);
        self.schedule_window_update();
    }

    /// Reads the next run of in-order data, at most `most` bytes.
    #[inline]
    pub(crate) fn read(&mut self, most: u32) -> Option<Payload> {
        let payload = self.unread.pop(most);
        self.schedule_window_update();
        payload
    }

    /// Writes at most `count` SACK blocks into the empty `blocks`: a DSACK block (RFC 2883 §4),
    /// then the runs of the reassembly queue, the last one to grow first (RFC 2018 §4).
    pub(crate) fn write_sack_blocks(
        &mut self,
        count: usize,
        wire: impl Fn(u64) -> SeqNumber,
        blocks: &mut SackBlocks,
    ) {
        if count > 0
            && let Some((start, end)) = self.dsack.take()
        {
            blocks.push(SackBlock { start: wire(start), end: wire(end) });
        }
        let room = count.min(SackBlocks::MAX).saturating_sub(blocks.as_slice().len());
        for &(start, end) in self.reassembly.newest().iter().take(room) {
            // The FIN occupies one sequence number.
            let end = end + u64::from(self.fin == Some(end));
            blocks.push(SackBlock { start: wire(start), end: wire(end) });
        }
    }

    /// Whether some of these octets lie in the window and are missing.
    pub(crate) fn is_missing(&self, start: u64, end: u64) -> bool {
        // The FIN needs no window, but one sequence number.
        let end = end.min(self.announced_edge + 1);
        let first = start.max(self.nxt);
        let missing = self.reassembly.end_of_run(first).unwrap_or(first);
        missing < end && !self.is_finished()
    }

    /// Whether the last out-of-order segment was dropped in whole or in part because the reassembly
    /// queue is full; resets the flag.
    pub(crate) fn take_queue_overflow(&mut self) -> bool {
        core::mem::take(&mut self.queue_overflowed)
    }

    /// Whether there are SACK or DSACK blocks to send.
    #[inline]
    pub(crate) fn has_sack_blocks(&self) -> bool {
        !self.reassembly.is_empty() || self.dsack.is_some()
    }

    #[inline]
    fn deliver(&mut self, payload: Payload) {
        if payload.len == 0 {
            return;
        }
        self.nxt += u64::from(payload.len);
        self.unread.push(payload);
    }

    /// Takes segments that have become in-order off the reassembly queue.
    fn drain_reassembly(&mut self) {
        while let Some((start, end)) = self.reassembly.take_run(self.nxt) {
            self.record_dsack(start, end.min(self.nxt));
            while let Some((start, piece)) = self.reassembly.take_piece(end) {
                self.deliver(piece.skip((self.nxt - start) as u32));
            }
        }
    }

    /// Queues the new octets of an out-of-order segment; returns the part of it that is in the
    /// queue now.
    fn queue_out_of_order(&mut self, start: u64, payload: Payload) -> Payload {
        if self.drops_out_of_order {
            self.queue_overflowed = payload.len > 0;
            return payload.take(0);
        }
        let kept = self.reassembly.keep(start, payload);
        if let Some((start, end)) = kept.duplicate {
            self.record_dsack(start, end);
        }
        self.queue_overflowed = kept.len < payload.len;
        payload.take(kept.len)
    }
}
