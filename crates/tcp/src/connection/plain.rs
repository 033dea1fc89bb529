//! The plain road: what nearly every segment of a transfer is, recognised by its header (Jacobson's
//! header prediction).
//!
//! Nothing here is decided anew. Each function does what the general case would do, for less, or
//! says that it is not its case; whatever is agreed, asked or missing beyond data and
//! acknowledgments is not.

use super::output::Transmit;
use super::{Connection, Events};
use crate::congestion::RateSample;
use crate::sender::{Transmission, Window};
use base::Time;
use wire::{Body, CopyId, Ecn, Flags, Packet, Payload, Segment, SeqNumber};

/// What [`Connection::exchange`] has made of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchanged {
    /// Nothing: it is as it was, and a case for [`Connection::handle_segment`].
    Refused,
    /// It is taken in.
    Taken {
        /// There may be a unit to send.
        more: bool,
    },
    /// It is taken in, and its place is the answer's, which has no options.
    Answered {
        /// Bytes of payload in the answer.
        len: u32,
        /// There may be another unit to send.
        more: bool,
    },
}

impl Connection {
    /// Takes in a segment of the plain road and writes what follows from it over it: an
    /// acknowledgment for data, new data for an acknowledgment. That is what
    /// [`Connection::handle_segment`], the reading of all data and [`Connection::poll_transmit`] do,
    /// for less.
    ///
    /// `take` is given the data, as if it had been read; if it does not want it, nothing happens.
    /// The packet's IP header is the host's to write.
    //
    // A function of its own, for everything in it to stay in registers.
    #[inline(never)]
    pub fn exchange(
        &mut self,
        now: Time,
        packet: &mut Packet,
        take: impl FnOnce(Payload) -> bool,
    ) -> Exchanged {
        let now = self.clock.local(now);
        let bare = packet.rare.is_empty();
        let Body::Tcp(segment) = &mut packet.body else { return Exchanged::Refused };
        let una = self.sender.una();
        let acked = u64::from(segment.ack - (self.iss + una as u32));
        let usual = self.is_next(segment)
            && self.is_unadorned()
            && self.events.is_empty()
            && self.low_water.is_none()
            && segment.options.is_empty()
            && bare;
        if !usual || acked > self.sender.outstanding() {
            return Exchanged::Refused;
        }
        let window = self.window(segment, self.receiver.nxt(), una + acked);
        if packet.payload.len > 0 {
            return self.exchange_data(now, &window, segment, &mut packet.payload, take);
        }
        if acked == 0 {
            return Exchanged::Refused;
        }
        let Some((sent_at, rate)) = self.sender.on_plain_ack(now, &window) else {
            return Exchanged::Refused;
        };
        if self.sender.looks() {
            self.sender.grow_plainly(now, acked, sent_at, rate);
        }
        let Some((payload, transmission)) = self.sender.poll_full(now) else {
            return Exchanged::Taken { more: true };
        };
        let Transmission { start, len, copy, more, .. } = transmission;
        let mut flags = Flags::ACK;
        flags.set(Flags::PSH, self.sender.stream.is_pushed_before(start + u64::from(len)));
        self.receiver.on_ack_sent(false);
        packet.payload = payload;
        self.answer(self.iss + start as u32, flags, copy, segment);
        Exchanged::Answered { len, more }
    }

    #[inline(always)]
    fn exchange_data(
        &mut self,
        now: Time,
        window: &Window,
        segment: &mut Segment,
        payload: &mut Payload,
        take: impl FnOnce(Payload) -> bool,
    ) -> Exchanged {
        let idle = self.sender.has_nothing() && !self.sender.is_probing();
        if !idle || !self.receiver.expects(payload.len) || !take(*payload) {
            return Exchanged::Refused;
        }
        self.sender.update_window(window);
        self.receiver.on_read_data(now, payload.len);
        if !self.receiver.ack_due() {
            return Exchanged::Taken { more: false };
        }
        self.receiver.on_ack_sent(true);
        *payload = Payload::default();
        self.answer(self.iss + self.sender.nxt() as u32, Flags::ACK, CopyId(0), segment);
        Exchanged::Answered { len: 0, more: self.receiver.ack_due() }
    }

    /// Makes an arrived segment without options one of ours.
    #[inline(always)]
    fn answer(&mut self, seq: SeqNumber, flags: Flags, copy: CopyId, segment: &mut Segment) {
        let window = self.receiver.announce();
        self.fill(seq, flags, copy, segment);
        segment.window = self.field(window);
    }

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
