//! The fast path (Jacobson's header prediction): in-order data and acknowledgments of an
//! established connection, recognised by the header.
//!
//! It makes no decision of its own. Each function has the effect of the general path at lower cost,
//! or refuses the segment.

mod accurate_ecn;

use super::output::Transmit;
use super::{Connection, Negotiated, absolute};
use crate::mechanism::Incoming;
use crate::sender::Transmission;
use base::Time;
use bitflags::bitflags;
use core::ops::{Deref, DerefMut};
use wire::{Body, CopyId, Ecn, Flags, Options, Packet, Payload, Segment, SeqNumber, Timestamps};

/// The result of [`FastPath::exchange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPathOutcome {
    /// The packet is unchanged and has to go to [`Connection::handle_segment`].
    Refused,
    /// The packet was processed.
    Taken,
    /// The packet was processed and overwritten by the answer.
    Answered {
        /// Bytes of options and payload.
        len: u32,
        /// The ECN codepoint of the answer's IP header.
        ecn: Ecn,
    },
}

/// The reader of in-order data.
pub trait Reader {
    /// Reads in-order data; false, without effect, if it declines.
    fn take(&mut self, payload: Payload) -> bool;
}

bitflags! {
    /// What is known about a connection's fast path while nothing but that changes the connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Prediction: u8 {
        /// The connection is on the fast path. Without this flag, nothing is known.
        const ELIGIBLE = 1;
        /// No data of ours is outstanding or unsent: data may be received.
        const RECEIVES = 1 << 1;
        /// In addition, there is no gap and no unread data.
        const RECEIVES_IN_ORDER = 1 << 2;
        /// There is no gap in either direction: an acknowledgment may release new data.
        const SENDS = 1 << 3;
        /// Segments have timestamps.
        const STAMPS = 1 << 4;
        /// New data is ECN-capable.
        const ECT = 1 << 5;
        /// Segments have an ACE field, and perhaps the AccECN option.
        const ACCURATE_ECN = 1 << 6;
    }
}

/// A connection that remembers whether it is on the fast path (the prediction flags of Linux,
/// `pred_flags`). Whatever else changes it, by [`DerefMut`], makes it forget.
#[derive(Debug)]
#[repr(transparent)]
pub struct Predicted(Connection);

impl From<Connection> for Predicted {
    fn from(mut connection: Connection) -> Predicted {
        connection.prediction = Prediction::empty();
        Predicted(connection)
    }
}

impl Deref for Predicted {
    type Target = Connection;

    #[inline(always)]
    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Predicted {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Connection {
        self.0.prediction = Prediction::empty();
        &mut self.0
    }
}

impl Predicted {
    /// [`Connection::fast_path`], which is the connection's state as it was left by the last one unless
    /// it was changed since.
    #[inline(always)]
    pub fn fast_path(&mut self, wake: Time) -> Option<FastPath<'_>> {
        if self.0.prediction.is_empty() {
            self.0.predict();
        }
        self.0.predicted(wake)
    }
}

/// A connection on the fast path: established, only SACK, timestamps and ECN negotiated, no mechanism that inspects segments. While this exists, the connection changes only by
/// [`FastPath::exchange`], so its state is examined once for many segments.
#[derive(Debug)]
pub struct FastPath<'a> {
    connection: &'a mut Connection,
    /// The connection's time before which no timer may expire.
    wake: Time,
    /// See [`FastPath::is_over`].
    over: bool,
    /// The last acknowledgment may allow another segment: [`FastPath::poll_transmit`].
    more: bool,
}

impl Connection {
    /// The fast path, if the connection is on it. No events may be pending, and
    /// [`Connection::poll_transmit`] must have returned that there is no more to send. The caller
    /// asks for the timeout no later than `wake`.
    #[inline]
    pub fn fast_path(&mut self, wake: Time) -> Option<FastPath<'_>> {
        self.predict();
        self.predicted(wake)
    }

    /// The fast path, if the connection was found to be on it.
    #[inline(always)]
    fn predicted(&mut self, wake: Time) -> Option<FastPath<'_>> {
        if self.prediction.is_empty() {
            return None;
        }
        let wake = if wake < Time::NEVER { self.clock.local(wake) } else { wake };
        Some(FastPath { connection: self, wake, over: false, more: false })
    }

    /// Examines whether the connection is on the fast path, and what it may do there.
    #[inline(never)]
    pub(super) fn predict(&mut self) {
        self.prediction = Prediction::empty();
        let nothing_due = self.out_of_band.is_none() && self.events.is_empty();
        if !self.on_fast_path || !nothing_due || self.low_water.is_some() || self.echoes_congestion
        {
            return;
        }
        if !self.has_plain_ecn() {
            return;
        }
        let receives = self.sender.is_all_acked() && !self.sender.is_probing();
        let whole = !self.receiver.has_sack_blocks();
        let mut prediction = Prediction::ELIGIBLE;
        prediction.set(Prediction::RECEIVES, receives);
        let in_order = receives && whole && self.receiver.is_in_order();
        prediction.set(Prediction::RECEIVES_IN_ORDER, in_order);
        prediction.set(Prediction::SENDS, whole && self.sender.is_on_fast_path());
        prediction.set(Prediction::STAMPS, self.negotiated.contains(Negotiated::TIMESTAMPS));
        prediction.set(Prediction::ECT, self.sends_ect());
        prediction.set(Prediction::ACCURATE_ECN, self.accurate_ecn.is_some());
        self.prediction = prediction;
    }
}

impl FastPath<'_> {
    #[inline(always)]
    fn is(&self, flag: Prediction) -> bool {
        self.connection.prediction.contains(flag)
    }

    /// Processes a segment and overwrites it with the answer: an acknowledgment for data, data for
    /// an acknowledgment. The effect is that of [`Connection::handle_segment`], reading all data,
    /// and [`Connection::poll_transmit`], at lower cost.
    ///
    /// `reader` reads the in-order data. The host writes the packet's IP header.
    #[inline(always)]
    pub fn exchange(
        &mut self,
        now: Time,
        packet: &mut Packet,
        reader: &mut impl Reader,
    ) -> FastPathOutcome {
        if self.is(Prediction::ACCURATE_ECN) {
            return self.exchange_accurate(now, packet, reader);
        }
        // A mark is to be echoed, if ECN is negotiated.
        let bare = packet.unparsed.is_empty() && packet.ip.ecn != Ecn::Congested;
        let Body::Tcp(segment) = &mut packet.body else { return FastPathOutcome::Refused };
        if !bare || segment.flags - Flags::PSH != Flags::ACK {
            return FastPathOutcome::Refused;
        }
        let now = self.connection.clock.local(now);
        if !self.passes_paws(now, segment.options.timestamps) {
            return FastPathOutcome::Refused;
        }
        if self.connection.is_next_expected(segment) && segment.options.has_only_timestamps() {
            if packet.payload.len > 0 {
                if self.is(Prediction::RECEIVES_IN_ORDER) {
                    return self.receive_in_order(now, segment, &mut packet.payload, reader);
                }
            } else if self.is(Prediction::SENDS)
                && let Some(outcome) = self.acknowledge_whole(now, segment, &mut packet.payload)
            {
                return outcome;
            }
        }
        self.exchange_any(now, packet)
    }

    /// Like [`FastPath::exchange`], with gaps.
    //
    // A separate function, so that the rest stays in registers.
    #[inline(never)]
    fn exchange_any(&mut self, now: Time, packet: &mut Packet) -> FastPathOutcome {
        if packet.payload.len > 0 {
            self.receive_out_of_order(now, packet)
        } else {
            self.acknowledge_any(now, packet)
        }
    }

    /// Whether the caller has to leave the fast path: a unit may be ready to send that
    /// [`FastPath::poll_transmit`] does not write, an event is pending, or a timer expires before
    /// `wake`.
    #[must_use]
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether a segment has a timestamp if and only if that was negotiated, and it is not old (RFC
    /// 7323 §5.3, R1).
    #[inline(always)]
    pub(super) fn passes_paws(&self, now: Time, stamp: Option<Timestamps>) -> bool {
        match stamp {
            Some(stamp) => {
                self.is(Prediction::STAMPS) && !self.connection.timestamps.is_old(now, stamp.value)
            }
            None => !self.is(Prediction::STAMPS),
        }
    }

    /// Bytes of options in a segment that reports no gap.
    #[inline(always)]
    fn options_len(&self) -> u32 {
        if self.is(Prediction::STAMPS) { Options::TIMESTAMPS as u32 } else { 0 }
    }

    /// Receives in-order data and acknowledges it.
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
        if advances || !receiver.fits_window(payload.len) || !reader.take(*payload) {
            return FastPathOutcome::Refused;
        }
        self.connection.tune_receive_buffer(now, segment);
        self.connection.update_ts_recent(now, segment);
        let window = self.connection.scaled_window(segment, self.connection.receiver.nxt(), una);
        let Connection { sender, receiver, iss, .. } = &mut *self.connection;
        sender.update_window(&window);
        receiver.on_in_order_read(now, payload.len);
        if !receiver.ack_due() {
            self.over = receiver.deadline() < self.wake;
            return FastPathOutcome::Taken;
        }
        receiver.on_ack_sent(true);
        self.over = receiver.ack_due();
        *payload = Payload::default();
        let seq = *iss + sender.nxt() as u32;
        self.connection.answer(now, seq, Flags::ACK, CopyId(0), segment);
        FastPathOutcome::Answered { len: self.options_len(), ecn: Ecn::NotCapable }
    }

    /// Receives out-of-order data and acknowledges it.
    #[inline]
    fn receive_out_of_order(&mut self, now: Time, packet: &mut Packet) -> FastPathOutcome {
        let Body::Tcp(segment) = &packet.body else { return FastPathOutcome::Refused };
        let Connection { sender, receiver, iss, irs, .. } = &*self.connection;
        let (nxt, una) = (receiver.nxt(), sender.una());
        let Some(start) = absolute(segment.seq, *irs, nxt) else {
            return FastPathOutcome::Refused;
        };
        let is_out_of_order = start > nxt && start <= nxt + receiver.window();
        if !self.is(Prediction::RECEIVES) || !is_out_of_order || segment.ack != *iss + una as u32 {
            return FastPathOutcome::Refused;
        }
        // There is a gap now.
        self.connection.prediction.remove(Prediction::RECEIVES_IN_ORDER | Prediction::SENDS);
        self.connection.tune_receive_buffer(now, segment);
        let Connection { receiver, mechanisms, .. } = &mut *self.connection;
        receiver.on_data(now, start, packet.payload, false, mechanisms);
        // It begins beyond Last.ACK.sent: its timestamp is not to be echoed (RFC 7323 §4.3).
        self.connection.paws_acks = 0;
        let window = self.connection.scaled_window(segment, start, una);
        self.connection.sender.update_window(&window);
        let transmit = self.connection.poll_ack(now, packet);
        self.answered(transmit, packet)
    }

    /// Processes an acknowledgment of whole records and sends a full-sized segment.
    #[inline(always)]
    fn acknowledge_whole(
        &mut self,
        now: Time,
        segment: &mut Segment,
        payload: &mut Payload,
    ) -> Option<FastPathOutcome> {
        let Connection { sender, receiver, iss, .. } = &*self.connection;
        let (una, nxt, since) = (sender.una(), sender.nxt(), sender.progress_at());
        let acked = u64::from(segment.ack - (*iss + una as u32));
        let window = self.connection.scaled_window(segment, receiver.nxt(), una + acked);
        let whole = self.connection.sender.acknowledge_whole(now, &window)?;
        if self.is(Prediction::STAMPS) {
            self.connection.update_ts_recent(now, segment);
            let Connection { timestamps, sender, .. } = &mut *self.connection;
            timestamps.on_ack(now, una, nxt, since);
            if sender.outstanding() == 0 {
                timestamps.on_all_acknowledged();
            }
        }
        let sender = &mut self.connection.sender;
        if sender.needs_ack_sample() {
            sender.grow(now, &whole);
        }
        Some(match self.send_full(now, segment, payload) {
            Some(len) => FastPathOutcome::Answered { len, ecn: self.data_ecn() },
            None => FastPathOutcome::Taken,
        })
    }

    /// Whether the last acknowledgment may allow more segments than the one that was written over it:
    /// [`FastPath::poll_transmit`] writes them.
    #[must_use]
    #[inline(always)]
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// The ECN codepoint of the segments that [`FastPath::poll_transmit`] and [`FastPath::release`]
    /// write.
    #[must_use]
    #[inline(always)]
    pub fn data_ecn(&self) -> Ecn {
        if self.is(Prediction::ECT) { Ecn::Capable } else { Ecn::NotCapable }
    }

    /// Writes another full-sized segment while [`FastPath::has_more`], and returns its bytes of options
    /// and payload. `None` if no full-sized segment may be sent; [`Connection::poll_transmit`] may have
    /// a smaller one.
    #[inline(never)]
    pub fn poll_transmit(&mut self, now: Time, packet: &mut Packet) -> Option<u32> {
        let now = self.connection.clock.local(now);
        packet.make_tcp().options.timestamps =
            self.is(Prediction::STAMPS).then(Timestamps::default);
        let Packet { body: Body::Tcp(segment), payload, .. } = packet else { return None };
        self.send_full(now, segment, payload)
    }

    /// When the segment may leave that pacing holds back; [`Time::NEVER`] if there is none.
    #[must_use]
    #[inline(always)]
    pub fn held_until(&self) -> Time {
        self.connection.clock.world(self.connection.sender.held_until())
    }

    /// Whether that segment is the only reason why the fast path [`FastPath::is_over`]: the caller may
    /// as well go on, and call [`FastPath::release`] at that time or, at the latest then, leave.
    #[must_use]
    #[inline(never)]
    pub fn is_held(&self) -> bool {
        let Connection { sender, receiver, events, .. } = &*self.connection;
        let timer = sender.timer_deadline().min(receiver.deadline());
        sender.held_until() < Time::NEVER
            && self.is(Prediction::SENDS)
            && !self.more
            && !receiver.ack_due()
            && events.is_empty()
            && timer >= self.wake
    }

    /// Like [`FastPath::poll_transmit`], for the segment that was held back until now.
    #[inline]
    pub fn release(&mut self, now: Time, packet: &mut Packet) -> Option<u32> {
        self.connection.sender.end_hold();
        self.poll_transmit(now, packet)
    }

    /// Writes a full-sized segment, if one may be sent, over a segment that has no options but
    /// timestamps, and returns its bytes of options and payload.
    #[inline(always)]
    fn send_full(
        &mut self,
        now: Time,
        segment: &mut Segment,
        payload: &mut Payload,
    ) -> Option<u32> {
        let sender = &mut self.connection.sender;
        let Some((new, transmission)) = sender.poll_full(now) else {
            (self.over, self.more) = (true, false);
            return None;
        };
        let Transmission { start, len, copy, more, .. } = transmission;
        self.more = more;
        self.over = sender.deadline() < self.wake;
        let mut flags = Flags::ACK;
        flags.set(Flags::PSH, sender.stream.needs_psh(start + u64::from(len)));
        if self.is(Prediction::ECT) {
            // With accurate ECN the flag is part of the ACE field (RFC 9768 §3.1.5).
            let sender = &mut self.connection.sender;
            flags.set(Flags::CWR, sender.take_cwr() && !self.is(Prediction::ACCURATE_ECN));
        }
        if self.is(Prediction::ACCURATE_ECN) {
            flags |= self.connection.ace_of_full_segment();
        }
        self.connection.receiver.on_ack_sent(false);
        *payload = new;
        self.connection.answer(now, self.connection.iss + start as u32, flags, copy, segment);
        Some(self.options_len() + len)
    }

    /// Processes any acknowledgment and sends a segment that it allows.
    #[inline]
    fn acknowledge_any(&mut self, now: Time, packet: &mut Packet) -> FastPathOutcome {
        let Body::Tcp(segment) = &packet.body else { return FastPathOutcome::Refused };
        let connection = &mut *self.connection;
        let una = connection.sender.una();
        let Some(ack) = connection.sent_offset(segment.ack) else {
            return FastPathOutcome::Refused;
        };
        if !connection.is_next_expected(segment)
            || ack < una
            || ack > connection.sender.nxt()
            || connection.sender.outstanding() == 0
        {
            return FastPathOutcome::Refused;
        }
        connection.update_ts_recent(now, segment);
        connection.on_ack(now, segment, connection.receiver.nxt(), ack, &Incoming::NO_OPINION);
        let sends = !connection.receiver.has_sack_blocks() && connection.sender.is_on_fast_path();
        connection.prediction.remove(Prediction::RECEIVES | Prediction::RECEIVES_IN_ORDER);
        connection.prediction.set(Prediction::SENDS, sends);
        if !self.connection.events.is_empty() {
            self.over = true;
            return FastPathOutcome::Taken;
        }
        let transmit = self.connection.poll_general(now, 1, packet);
        self.answered(transmit, packet)
    }

    /// Notes the outcome: the answer has overwritten the packet.
    #[inline]
    fn answered(&mut self, transmit: Option<Transmit>, packet: &Packet) -> FastPathOutcome {
        let Connection { sender, receiver, .. } = &*self.connection;
        let more = transmit.is_some_and(|transmit| transmit.more);
        self.over = more || sender.deadline().min(receiver.deadline()) < self.wake;
        match (transmit, &packet.body) {
            (Some(transmit), Body::Tcp(segment)) => {
                let len = segment.options.len() as u32 + packet.payload.len;
                FastPathOutcome::Answered { len, ecn: transmit.ecn }
            }
            _ => FastPathOutcome::Taken,
        }
    }
}

impl Connection {
    /// Turns an arrived segment, with no options but timestamps, into an outgoing one.
    #[inline(always)]
    fn answer(
        &mut self,
        now: Time,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        segment: &mut Segment,
    ) {
        let window = self.receiver.advertise_window();
        self.fill_header(seq, flags, copy, segment);
        // The peer's, without URG.
        segment.urgent = 0;
        segment.window = self.window_field(window);
        if segment.options.timestamps.is_some() {
            segment.options.timestamps = Some(self.timestamps_option(now));
        }
    }

    /// Updates TS.Recent by the next expected segment, which is acceptable.
    #[inline(always)]
    fn update_ts_recent(&mut self, now: Time, segment: &Segment) {
        if let Some(stamp) = segment.options.timestamps {
            self.paws_acks = 0;
            self.timestamps.update(now, stamp.value, self.receiver.nxt());
        }
    }

    #[inline(always)]
    fn is_next_expected(&self, segment: &Segment) -> bool {
        segment.seq == self.irs + self.receiver.nxt() as u32
    }
}
