//! The plain road: what nearly every segment of a transfer is, recognised by its header (Jacobson's
//! header prediction).
//!
//! Nothing here is decided anew. Each function does what the general case would do, for less, or
//! says that it is not its case; whatever is agreed, asked or missing beyond data and
//! acknowledgments is not.

use super::output::Transmit;
use super::{Connection, Events};
use crate::scoreboard::Sent;
use crate::sender::Transmission;
use base::Time;
use wire::{Body, CopyId, Ecn, Flags, Packet, Payload, Segment, SeqNumber};

/// What [`PlainRoad::exchange`] has made of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchanged {
    /// Nothing: it is as it was, and a case for [`Connection::handle_segment`].
    Refused,
    /// It is taken in.
    Taken,
    /// It is taken in, and its place is the answer's, which has no options and so many bytes of
    /// payload.
    Answered(u32),
}

/// A connection whose road is plain: nothing is missing, asked or told on either side, and as long
/// as this lives, nothing happens but what [`PlainRoad::exchange`] takes in. So all that is looked for
/// once for many segments.
#[derive(Debug)]
pub struct PlainRoad<'a> {
    connection: &'a mut Connection,
    /// Data may come: nothing of ours is outstanding, nothing of the peer's is unread or missing.
    reads: bool,
    /// What is acknowledged may let out more.
    sends: bool,
    /// The connection's time before which no timeout may come.
    wake: Time,
    over: bool,
}

impl Connection {
    /// The plain road, if it is open. Nothing may be due on the connection: it has no events, and
    /// [`Connection::poll_transmit`] has said that there is no more to send. Until `wake` it will not
    /// be asked for its timeout.
    #[inline]
    pub fn plain_road(&mut self, wake: Time) -> Option<PlainRoad<'_>> {
        if !self.is_unadorned() || !self.events.is_empty() || self.low_water.is_some() {
            return None;
        }
        let reads = self.sender.has_nothing()
            && !self.sender.is_probing()
            && self.receiver.is_orderly();
        let sends = self.sender.is_usual();
        let wake = if wake < Time::NEVER { self.clock.local(wake) } else { wake };
        Some(PlainRoad { connection: self, reads, sends, wake, over: false })
    }
}

impl PlainRoad<'_> {
    /// Takes in a segment and writes what follows from it over it: an acknowledgment for data, new
    /// data for an acknowledgment. That is what [`Connection::handle_segment`], the reading of all
    /// data and [`Connection::poll_transmit`] do, for less.
    ///
    /// `take` is given the data, as if it had been read; if it does not want it, nothing happens.
    /// The packet's IP header is the host's to write.
    #[inline(always)]
    pub fn exchange(
        &mut self,
        now: Time,
        packet: &mut Packet,
        take: impl FnOnce(Payload) -> bool,
    ) -> Exchanged {
        let bare = packet.rare.is_empty();
        let Body::Tcp(segment) = &mut packet.body else { return Exchanged::Refused };
        if !self.connection.comes_next(segment) || !segment.options.is_empty() || !bare {
            return Exchanged::Refused;
        }
        let now = self.connection.clock.local(now);
        if packet.payload.len > 0 {
            self.take_data(now, segment, &mut packet.payload, take)
        } else {
            self.let_out(now, segment, &mut packet.payload)
        }
    }

    /// Whether this leads no further: there may be a unit to send, or the connection's timeout is
    /// before its wake.
    #[must_use]
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Data is taken in, and acknowledged.
    #[inline(always)]
    fn take_data(
        &mut self,
        now: Time,
        segment: &mut Segment,
        payload: &mut Payload,
        take: impl FnOnce(Payload) -> bool,
    ) -> Exchanged {
        let Connection { sender, receiver, iss, .. } = &*self.connection;
        let una = sender.una();
        let news = segment.ack != *iss + una as u32;
        if !self.reads || news || !receiver.has_room_for(payload.len) || !take(*payload) {
            return Exchanged::Refused;
        }
        let window = self.connection.scaled(segment, una);
        let Connection { sender, receiver, iss, .. } = &mut *self.connection;
        sender.update_window(&window);
        receiver.on_read_data(now, payload.len);
        if !receiver.ack_due() {
            self.over = receiver.deadline() < self.wake;
            return Exchanged::Taken;
        }
        receiver.on_ack_sent(true);
        self.over = receiver.ack_due();
        *payload = Payload::default();
        let seq = *iss + sender.nxt() as u32;
        self.connection.answer(seq, Flags::ACK, CopyId(0), segment);
        Exchanged::Answered(0)
    }

    /// An acknowledgment of one record is taken in, and a full-sized segment goes out.
    #[inline(always)]
    fn let_out(&mut self, now: Time, segment: &mut Segment, payload: &mut Payload) -> Exchanged {
        if !self.sends {
            return Exchanged::Refused;
        }
        let Connection { sender, iss, .. } = &*self.connection;
        let una = sender.una();
        let acked = u64::from(segment.ack - (*iss + una as u32));
        let window = self.connection.scaled(segment, una + acked);
        let sender = &mut self.connection.sender;
        let Some(sent) = sender.on_usual_ack(now, &window) else {
            return Exchanged::Refused;
        };
        if sender.looks() {
            sender.grow_plainly(now, acked, &sent);
        }
        let Some((new, transmission)) = sender.poll_full(now) else {
            self.over = true;
            return Exchanged::Taken;
        };
        let Transmission { start, len, copy, more, .. } = transmission;
        self.over = more || sender.deadline() < self.wake;
        let mut flags = Flags::ACK;
        flags.set(Flags::PSH, sender.stream.is_pushed_before(start + u64::from(len)));
        self.connection.receiver.on_ack_sent(false);
        *payload = new;
        self.connection.answer(self.connection.iss + start as u32, flags, copy, segment);
        Exchanged::Answered(len)
    }
}

impl Connection {
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
        self.plain && self.comes_next(segment) && segment.options.sack.is_empty()
    }

    #[inline(always)]
    fn comes_next(&self, segment: &Segment) -> bool {
        segment.flags - Flags::PSH == Flags::ACK
            && segment.seq == self.irs + self.receiver.nxt() as u32
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
        let Some(sent) = self.sender.on_plain_ack(now, &window) else {
            return false;
        };
        if self.sender.looks() || self.low_water.is_some() {
            self.on_plain_advance(now, acked, &sent);
        }
        true
    }

    /// What is behind a call, so that the rest of [`Connection::on_next`] makes none and keeps
    /// everything in registers.
    #[inline(never)]
    fn on_plain_advance(&mut self, now: Time, acked: u64, sent: &Sent) {
        self.sender.grow_plainly(now, acked, sent);
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
