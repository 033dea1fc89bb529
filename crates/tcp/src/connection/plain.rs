//! The plain road: what nearly every segment of a transfer is, recognised by its header (Jacobson's
//! header prediction).
//!
//! Nothing here is decided anew. Each function does what the general case would do, for less, or
//! says that it is not its case; whatever is agreed, asked or missing beyond data and
//! acknowledgments is not.

use super::output::Transmit;
use super::{Connection, Events};
use crate::congestion::RateSample;
use crate::sender::Transmission;
use base::Time;
use wire::{CopyId, Ecn, Flags, Packet, Payload, Segment};

impl Connection {
    /// Header prediction, as in 4BSD: the segment begins at the next octet expected, and nothing
    /// is agreed, asked or told beyond an acknowledgment.
    #[inline]
    pub(super) fn is_next(&self, segment: &Segment) -> bool {
        self.plain
            && segment.flags - Flags::PSH == Flags::ACK
            && segment.seq == self.irs + self.receiver.nxt() as u32
            && segment.options.sack.is_empty()
    }

    /// What the general case does with such a segment, if it is a bare acknowledgment of one record
    /// or data in order while nothing of ours is outstanding. Says whether it is.
    #[inline]
    pub(super) fn on_next(&mut self, now: Time, segment: &Segment, payload: Payload) -> bool {
        let una = self.sender.una();
        let acked = u64::from(segment.ack - (self.iss + una as u32));
        if acked > self.sender.outstanding() {
            return false;
        }
        let window = self.window(segment, self.receiver.nxt(), una + acked);
        if payload.len > 0 {
            let alone = self.sender.outstanding() == 0 && !self.sender.is_probing();
            if !alone || !self.receiver.on_next_data(now, payload) {
                return false;
            }
            self.sender.update_window(&window);
            self.events |= Events::READABLE;
            return true;
        }
        if acked == 0 {
            return false;
        }
        let Some((sent_at, rate)) = self.sender.on_plain_ack(now, &window) else {
            return false;
        };
        if self.sender.looks() || self.low_water.is_some() {
            self.on_plain_advance(now, acked, sent_at, rate);
        }
        true
    }

    /// What is behind a call, so that the rest of [`Connection::on_next`] makes none and keeps
    /// everything in registers.
    #[inline(never)]
    fn on_plain_advance(&mut self, now: Time, acked: u64, sent_at: Time, rate: RateSample) {
        self.sender.grow_plainly(now, acked, sent_at, rate);
        if self.low_water.is_some() {
            self.on_sent_arrived(now, false);
        }
    }

    /// Whether a segment says nothing beyond what its header always does.
    #[inline]
    pub(super) fn is_unadorned(&self) -> bool {
        self.plain && self.aside.is_none() && !self.receiver.has_blocks()
    }

    /// What the general case does with one full-sized segment of new data while nothing is missing,
    /// and with a bare acknowledgment.
    #[inline]
    pub(super) fn poll_plain(&mut self, now: Time, packet: &mut Packet) -> Option<Transmit> {
        if self.sender.has_nothing() {
            if !self.receiver.ack_due() {
                return None;
            }
            self.receiver.on_ack_sent(true);
            let seq = self.iss + self.sender.nxt() as u32;
            self.write_header(seq, Flags::ACK, CopyId(0), packet);
            return Some(self.alone(self.receiver.ack_due(), packet));
        }
        let (payload, transmission) = self.sender.poll_plain(now)?;
        let Transmission { start, len, copy, count, more, .. } = transmission;
        let mut flags = Flags::ACK;
        flags.set(Flags::PSH, self.sender.stream.is_pushed_before(start + u64::from(len)));
        self.receiver.on_ack_sent(false);
        packet.payload = payload;
        self.write_header(self.iss + start as u32, flags, copy, packet);
        Some(Transmit { segment_size: len, count, ecn: Ecn::NotCapable, more })
    }
}
