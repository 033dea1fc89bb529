//! The fast path: what nearly every segment of a transfer is, recognised by its header (Jacobson's
//! header prediction).
//!
//! It decides nothing of its own. Each function does what the general path would do, for less, or
//! says that the segment is not its case.

use super::output::{TIMESTAMPS, Transmit};
use super::{Agreed, Connection, absolute};
use crate::mechanism::Incoming;
use crate::sender::Transmission;
use base::Time;
use wire::{Body, CopyId, Flags, Packet, Payload, Segment, SeqNumber, Timestamps};

/// What [`FastPath::exchange`] has made of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPathOutcome {
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

/// A connection on the fast path: established, with nothing negotiated but SACK and timestamps, and
/// no mechanism that looks at segments. As long as this lives, nothing happens to the connection but
/// what [`FastPath::exchange`] takes in, so that its state is examined once for many segments.
#[derive(Debug)]
pub struct FastPath<'a> {
    connection: &'a mut Connection,
    /// Nothing of ours is outstanding or to be sent: data may come.
    receives: bool,
    /// In addition, nothing of the peer's is unread or missing.
    receives_in_order: bool,
    /// Nothing is missing either way: an acknowledgment may release new data.
    sends: bool,
    /// Segments have timestamps.
    stamps: bool,
    /// The connection's time before which no timeout may come.
    wake: Time,
    /// See [`FastPath::is_over`].
    over: bool,
}

impl Connection {
    /// The fast path, if the connection is on it. Nothing may be due on the connection: it has no
    /// events, and [`Connection::poll_transmit`] has said that there is no more to send. Until `wake`
    /// it will not be asked for its timeout.
    #[inline]
    pub fn fast_path(&mut self, wake: Time) -> Option<FastPath<'_>> {
        let nothing_due = self.aside.is_none() && self.events.is_empty();
        if !self.fast || !nothing_due || self.low_water.is_some() {
            return None;
        }
        let receives = self.sender.has_nothing() && !self.sender.is_probing();
        let whole = !self.receiver.has_blocks();
        let receives_in_order = receives && whole && self.receiver.is_orderly();
        let sends = whole && self.sender.is_on_fast_path();
        let stamps = self.agreed.contains(Agreed::TIMESTAMPS);
        let wake = if wake < Time::NEVER { self.clock.local(wake) } else { wake };
        let over = false;
        Some(FastPath { connection: self, receives, receives_in_order, sends, stamps, wake, over })
    }
}

impl FastPath<'_> {
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
    ) -> FastPathOutcome {
        let bare = packet.rare.is_empty();
        let Body::Tcp(segment) = &mut packet.body else { return FastPathOutcome::Refused };
        if !bare || segment.flags - Flags::PSH != Flags::ACK {
            return FastPathOutcome::Refused;
        }
        let now = self.connection.clock.local(now);
        if !self.is_timely(now, segment.options.timestamps) {
            return FastPathOutcome::Refused;
        }
        if self.connection.comes_next(segment) && segment.options.has_only_timestamps() {
            if packet.payload.len > 0 {
                if self.receives_in_order {
                    return self.receive_in_order(now, segment, &mut packet.payload, reader);
                }
            } else if self.sends
                && let Some(outcome) = self.acknowledge_one(now, segment, &mut packet.payload)
            {
                return outcome;
            }
        }
        self.exchange_any(now, packet)
    }

    /// The same where something is missing, or more than one record acknowledged.
    //
    // A function of its own, for the rest to stay in registers.
    #[inline(never)]
    fn exchange_any(&mut self, now: Time, packet: &mut Packet) -> FastPathOutcome {
        if packet.payload.len > 0 {
            self.receive_out_of_order(now, packet)
        } else {
            self.acknowledge_any(now, packet)
        }
    }

    /// Whether this leads no further: there may be a unit to send, an event, or the connection's
    /// timeout is before its wake.
    #[must_use]
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether a segment has a timestamp if, and only if, that was negotiated, and it is not an old
    /// one (RFC 7323 §5.3, R1).
    #[inline(always)]
    fn is_timely(&self, now: Time, stamp: Option<Timestamps>) -> bool {
        match stamp {
            Some(stamp) => self.stamps && !self.connection.timestamps.is_old(now, stamp.value),
            None => !self.stamps,
        }
    }

    /// Bytes of options in a segment that reports no gap.
    #[inline(always)]
    fn options_len(&self) -> u32 {
        if self.stamps { TIMESTAMPS } else { 0 }
    }

    /// Data is taken in, and acknowledged.
    #[inline(always)]
    fn receive_in_order(
        &mut self,
        now: Time,
        segment: &mut Segment,
        payload: &mut Payload,
        reader: &mut impl Reader,
    ) -> FastPathOutcome {
        let Connection { sender, receiver, iss, .. } = &*self.connection;
        let una = sender.una();
        let advances = segment.ack != *iss + una as u32;
        if advances || !receiver.has_room_for(payload.len) || !reader.take(*payload) {
            return FastPathOutcome::Refused;
        }
        self.connection.on_timely(now, segment);
        let window = self.connection.scaled(segment, self.connection.receiver.nxt(), una);
        let Connection { sender, receiver, iss, .. } = &mut *self.connection;
        sender.update_window(&window);
        receiver.on_read_data(now, payload.len);
        if !receiver.ack_due() {
            self.over = receiver.deadline() < self.wake;
            return FastPathOutcome::Taken;
        }
        receiver.on_ack_sent(true);
        self.over = receiver.ack_due();
        *payload = Payload::default();
        let seq = *iss + sender.nxt() as u32;
        self.connection.answer(now, seq, Flags::ACK, CopyId(0), segment);
        FastPathOutcome::Answered(self.options_len())
    }

    /// Data beyond a gap is kept, and acknowledged.
    #[inline]
    fn receive_out_of_order(&mut self, now: Time, packet: &mut Packet) -> FastPathOutcome {
        let Body::Tcp(segment) = &packet.body else { return FastPathOutcome::Refused };
        let Connection { sender, receiver, mechanisms, iss, irs, .. } = &mut *self.connection;
        let (nxt, una) = (receiver.nxt(), sender.una());
        let Some(start) = absolute(segment.seq, *irs, nxt) else {
            return FastPathOutcome::Refused;
        };
        let is_out_of_order = start > nxt && start <= nxt + receiver.window();
        if !self.receives || !is_out_of_order || segment.ack != *iss + una as u32 {
            return FastPathOutcome::Refused;
        }
        self.receives_in_order = false;
        receiver.on_data(now, start, packet.payload, false, mechanisms);
        // It begins beyond Last.ACK.sent: its timestamp is not to be echoed (RFC 7323 §4.3).
        self.connection.stale_answers = 0;
        let window = self.connection.scaled(segment, start, una);
        self.connection.sender.update_window(&window);
        let transmit = self.connection.poll_ack(now, packet);
        self.answered(transmit, packet)
    }

    /// An acknowledgment of one record is taken in, and a full-sized segment is sent.
    #[inline(always)]
    fn acknowledge_one(
        &mut self,
        now: Time,
        segment: &mut Segment,
        payload: &mut Payload,
    ) -> Option<FastPathOutcome> {
        let Connection { sender, receiver, iss, .. } = &*self.connection;
        let (una, nxt, since) = (sender.una(), sender.nxt(), sender.progress_at());
        let acked = u64::from(segment.ack - (*iss + una as u32));
        let window = self.connection.scaled(segment, receiver.nxt(), una + acked);
        let sent = self.connection.sender.acknowledge_one(now, &window)?;
        if self.stamps {
            self.connection.on_timely(now, segment);
            let Connection { timestamps, sender, .. } = &mut *self.connection;
            timestamps.on_ack(now, una, nxt, since);
            if sender.outstanding() == 0 {
                timestamps.on_all_acknowledged();
            }
        }
        let sender = &mut self.connection.sender;
        if sender.needs_ack_sample() {
            sender.grow(now, acked, &sent);
        }
        let Some((new, transmission)) = sender.poll_full(now) else {
            self.over = true;
            return Some(FastPathOutcome::Taken);
        };
        let Transmission { start, len, copy, more, .. } = transmission;
        self.over = more || sender.deadline() < self.wake;
        let mut flags = Flags::ACK;
        flags.set(Flags::PSH, sender.stream.is_pushed_before(start + u64::from(len)));
        self.connection.receiver.on_ack_sent(false);
        *payload = new;
        self.connection.answer(now, self.connection.iss + start as u32, flags, copy, segment);
        Some(FastPathOutcome::Answered(self.options_len() + len))
    }

    /// Any acknowledgment is taken in, and one segment that it allows is sent.
    #[inline]
    fn acknowledge_any(&mut self, now: Time, packet: &mut Packet) -> FastPathOutcome {
        let Body::Tcp(segment) = &packet.body else { return FastPathOutcome::Refused };
        let connection = &mut *self.connection;
        let una = connection.sender.una();
        let Some(ack) = connection.sent(segment.ack) else { return FastPathOutcome::Refused };
        if !connection.comes_next(segment)
            || ack < una
            || ack > connection.sender.nxt()
            || connection.sender.outstanding() == 0
        {
            return FastPathOutcome::Refused;
        }
        connection.on_timely(now, segment);
        connection.on_ack(now, segment, connection.receiver.nxt(), ack, &Incoming::PLAIN);
        self.sends = !connection.receiver.has_blocks() && connection.sender.is_on_fast_path();
        self.receives = false;
        self.receives_in_order = false;
        if !self.connection.events.is_empty() {
            self.over = true;
            return FastPathOutcome::Taken;
        }
        let transmit = self.connection.poll_general(now, 1, packet);
        self.answered(transmit, packet)
    }

    /// What was to be sent is written over what was taken in.
    #[inline]
    fn answered(&mut self, transmit: Option<Transmit>, packet: &Packet) -> FastPathOutcome {
        let Connection { sender, receiver, .. } = &*self.connection;
        let more = transmit.is_some_and(|transmit| transmit.more);
        self.over = more || sender.deadline().min(receiver.deadline()) < self.wake;
        match (transmit, &packet.body) {
            (Some(_), Body::Tcp(segment)) => {
                FastPathOutcome::Answered(segment.options.len() as u32 + packet.payload.len)
            }
            _ => FastPathOutcome::Taken,
        }
    }
}

impl Connection {
    /// Makes an arrived segment, which has no options but timestamps, one of ours.
    #[inline(always)]
    fn answer(
        &mut self,
        now: Time,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        segment: &mut Segment,
    ) {
        let window = self.receiver.announce();
        self.fill(seq, flags, copy, segment);
        segment.window = self.field(window);
        if segment.options.timestamps.is_some() {
            segment.options.timestamps = Some(self.stamp(now));
        }
    }

    /// A segment that comes next is acceptable: its timestamp may be the one to echo.
    #[inline(always)]
    fn on_timely(&mut self, now: Time, segment: &Segment) {
        if let Some(stamp) = segment.options.timestamps {
            self.stale_answers = 0;
            self.timestamps.update(now, stamp.value, self.receiver.nxt());
        }
    }

    #[inline(always)]
    fn comes_next(&self, segment: &Segment) -> bool {
        segment.seq == self.irs + self.receiver.nxt() as u32
    }
}
