//! The plain road: what nearly every segment of a transfer is, recognised by its header (Jacobson's
//! header prediction).
//!
//! Nothing here is decided anew. Each function does what the general case would do, for less, or
//! says that it is not its case; whatever is agreed, asked or told beyond data and acknowledgments is
//! not.

use super::output::Transmit;
use super::{Connection, Events, absolute};
use crate::mechanism::Incoming;
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
    /// It is taken in, and its place is the answer's, which has so many bytes of options and payload.
    Answered(u32),
}

/// Where data goes that would have been read.
pub trait Reader {
    /// Takes data in order; if it does not want it, false, and nothing happens.
    fn take(&mut self, payload: Payload) -> bool;
}

/// A connection whose road is plain: nothing is agreed, asked or told beyond data and
/// acknowledgments, and as long as this lives, nothing happens but what [`PlainRoad::exchange`] takes
/// in. So all that is looked for once for many segments.
#[derive(Debug)]
pub struct PlainRoad<'a> {
    connection: &'a mut Connection,
    /// Nothing of ours is outstanding or to be sent: data may come.
    listens: bool,
    /// In addition, nothing of the peer's is unread or missing.
    reads: bool,
    /// Nothing is missing either way, so that what is acknowledged may let out more.
    sends: bool,
    /// The connection's time before which no timeout may come.
    wake: Time,
    /// It leads no further: see [`PlainRoad::is_over`].
    over: bool,
}

impl Connection {
    /// The plain road, if it is open. Nothing may be due on the connection: it has no events, and
    /// [`Connection::poll_transmit`] has said that there is no more to send. Until `wake` it will not
    /// be asked for its timeout.
    #[inline]
    pub fn plain_road(&mut self, wake: Time) -> Option<PlainRoad<'_>> {
        let usual = self.plain && self.aside.is_none() && self.events.is_empty();
        if !usual || self.low_water.is_some() {
            return None;
        }
        let listens = self.sender.has_nothing() && !self.sender.is_probing();
        let whole = !self.receiver.has_blocks();
        let reads = listens && whole && self.receiver.is_orderly();
        let sends = whole && self.sender.is_usual();
        let wake = if wake < Time::NEVER { self.clock.local(wake) } else { wake };
        Some(PlainRoad { connection: self, listens, reads, sends, wake, over: false })
    }
}

impl PlainRoad<'_> {
    /// Takes in a segment and writes what follows from it over it: an acknowledgment for data, data
    /// for an acknowledgment. That is what [`Connection::handle_segment`], the reading of all data and
    /// [`Connection::poll_transmit`] do, for less.
    ///
    /// `reader` is given data in order, as if it had read it. The packet's IP header is the host's to
    /// write.
    #[inline(always)]
    pub fn exchange(
        &mut self,
        now: Time,
        packet: &mut Packet,
        reader: &mut impl Reader,
    ) -> Exchanged {
        let bare = packet.rare.is_empty();
        let Body::Tcp(segment) = &mut packet.body else { return Exchanged::Refused };
        if !bare || segment.flags - Flags::PSH != Flags::ACK {
            return Exchanged::Refused;
        }
        let now = self.connection.clock.local(now);
        if self.connection.comes_next(segment) && segment.options.is_empty() {
            if packet.payload.len > 0 {
                if self.reads {
                    return self.take_data(now, segment, &mut packet.payload, reader);
                }
            } else if self.sends
                && let Some(exchanged) = self.let_out(now, segment, &mut packet.payload)
            {
                return exchanged;
            }
        }
        self.exchange_past_gap(now, packet)
    }

    /// The same where something is missing, or more than one record acknowledged.
    //
    // A function of its own, for the rest to stay in registers.
    #[inline(never)]
    fn exchange_past_gap(&mut self, now: Time, packet: &mut Packet) -> Exchanged {
        if packet.payload.len > 0 {
            self.keep_data(now, packet)
        } else {
            self.let_out_past_gap(now, packet)
        }
    }

    /// Whether this leads no further: there may be a unit to send, an event, or the connection's
    /// timeout is before its wake.
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
        reader: &mut impl Reader,
    ) -> Exchanged {
        let Connection { sender, receiver, iss, .. } = &*self.connection;
        let una = sender.una();
        let news = segment.ack != *iss + una as u32;
        if news || !receiver.has_room_for(payload.len) || !reader.take(*payload) {
            return Exchanged::Refused;
        }
        let window = self.connection.scaled(segment, receiver.nxt(), una);
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

    /// Data beyond a gap is kept, and acknowledged.
    #[inline]
    fn keep_data(&mut self, now: Time, packet: &mut Packet) -> Exchanged {
        let Body::Tcp(segment) = &packet.body else { return Exchanged::Refused };
        let Connection { sender, receiver, mechanisms, iss, irs, .. } = &mut *self.connection;
        let (nxt, una) = (receiver.nxt(), sender.una());
        let Some(start) = absolute(segment.seq, *irs, nxt) else { return Exchanged::Refused };
        let beyond = start > nxt && start <= nxt + receiver.window();
        if !self.listens || !beyond || segment.ack != *iss + una as u32 {
            return Exchanged::Refused;
        }
        self.reads = false;
        receiver.on_data(now, start, packet.payload, false, mechanisms);
        let window = self.connection.scaled(segment, start, una);
        self.connection.sender.update_window(&window);
        let transmit = self.connection.poll_ack(now, packet);
        self.exchanged(transmit, packet)
    }

    /// An acknowledgment of one record is taken in, and a full-sized segment goes out.
    #[inline(always)]
    fn let_out(
        &mut self,
        now: Time,
        segment: &mut Segment,
        payload: &mut Payload,
    ) -> Option<Exchanged> {
        let Connection { sender, receiver, iss, .. } = &*self.connection;
        let una = sender.una();
        let acked = u64::from(segment.ack - (*iss + una as u32));
        let window = self.connection.scaled(segment, receiver.nxt(), una + acked);
        let sender = &mut self.connection.sender;
        let sent = sender.on_usual_ack(now, &window)?;
        if sender.looks() {
            sender.grow_plainly(now, acked, &sent);
        }
        let Some((new, transmission)) = sender.poll_full(now) else {
            self.over = true;
            return Some(Exchanged::Taken);
        };
        let Transmission { start, len, copy, more, .. } = transmission;
        self.over = more || sender.deadline() < self.wake;
        let mut flags = Flags::ACK;
        flags.set(Flags::PSH, sender.stream.is_pushed_before(start + u64::from(len)));
        self.connection.receiver.on_ack_sent(false);
        *payload = new;
        self.connection.answer(self.connection.iss + start as u32, flags, copy, segment);
        Some(Exchanged::Answered(len))
    }

    /// Any acknowledgment is taken in, and what it lets out goes.
    #[inline]
    fn let_out_past_gap(&mut self, now: Time, packet: &mut Packet) -> Exchanged {
        let Body::Tcp(segment) = &packet.body else { return Exchanged::Refused };
        let connection = &mut *self.connection;
        let una = connection.sender.una();
        let Some(ack) = connection.sent(segment.ack) else { return Exchanged::Refused };
        if !connection.comes_next(segment)
            || ack < una
            || ack > connection.sender.nxt()
            || connection.sender.outstanding() == 0
        {
            return Exchanged::Refused;
        }
        connection.on_ack(now, segment, connection.receiver.nxt(), ack, &Incoming::PLAIN);
        self.sends = !connection.receiver.has_blocks() && connection.sender.is_usual();
        self.listens = false;
        self.reads = false;
        if !self.connection.events.is_empty() {
            self.over = true;
            return Exchanged::Taken;
        }
        let transmit = self.connection.poll_general(now, 1, packet);
        self.exchanged(transmit, packet)
    }

    /// What was to be sent is written over what was taken in.
    #[inline]
    fn exchanged(&mut self, transmit: Option<Transmit>, packet: &Packet) -> Exchanged {
        let Connection { sender, receiver, .. } = &*self.connection;
        let more = transmit.is_some_and(|transmit| transmit.more);
        self.over = more || sender.deadline().min(receiver.deadline()) < self.wake;
        match (transmit, &packet.body) {
            (Some(_), Body::Tcp(segment)) => {
                Exchanged::Answered(segment.options.len() as u32 + packet.payload.len)
            }
            _ => Exchanged::Taken,
        }
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
        self.plain
            && segment.flags - Flags::PSH == Flags::ACK
            && self.comes_next(segment)
            && segment.options.sack.is_empty()
    }

    #[inline(always)]
    fn comes_next(&self, segment: &Segment) -> bool {
        segment.seq == self.irs + self.receiver.nxt() as u32
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
        if acked == 0 || !self.sender.is_usual() {
            return false;
        }
        let Some(sent) = self.sender.on_usual_ack(now, &window) else {
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
