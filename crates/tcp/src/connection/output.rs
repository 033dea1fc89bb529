//! Segments out.

use super::{Agreed, Aside, Connection, Reset, State, shift_for};
use crate::mechanism::Hooks;
use crate::sender::Transmission;
use base::Time;
use wire::{CopyId, Ecn, Flags, Packet, Payload, SackBlocks, Segment, SeqNumber, Timestamps};

/// What [`Connection::poll_transmit`] has written: one segment, or a unit of several that a network
/// card or the kernel cuts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Bytes of payload in each segment of the unit but the last, which may be shorter.
    pub segment_size: u32,
    /// Segments in the unit. The flag CWR belongs to the first, PSH and FIN to the last; copies
    /// count up from the packet's.
    pub count: u16,
    /// What the IP header is to say (RFC 3168 §6.1).
    pub ecn: Ecn,
    /// There may be another unit to send.
    pub more: bool,
}

/// Bytes of a timestamps option, padded.
pub(super) const TIMESTAMPS: u32 = 12;

impl Connection {
    /// Writes the next unit of at most `segments` segments and the identity of its payload into
    /// `packet`, if there is one. To be called after every other call, as long as there may be
    /// more. The packet's IP header is the host's to write.
    ///
    /// It writes in place because a segment that is returned is copied twice, and those copies
    /// would cost more than making it.
    #[inline(always)]
    pub fn poll_transmit(
        &mut self,
        now: Time,
        segments: u16,
        packet: &mut Packet,
    ) -> Option<Transmit> {
        let now = self.clock.local(now);
        if self.state == State::Closed || self.aside.is_some() {
            return self.poll_aside(now, packet);
        }
        if !self.mechanisms.answer(Hooks::OUTGOING) {
            return self.poll_general(now, segments, packet);
        }
        let due = self.receiver.ack_due();
        let mut transmit = self.poll_general(now, segments, packet)?;
        let view = self.sender.view(now);
        self.mechanisms.outgoing(&view, packet);
        // What has found no room beside data goes in an acknowledgment of its own.
        if due && !self.receiver.ack_due() && self.mechanisms.are_waiting() {
            self.receiver.acknowledge_now();
            transmit.more = true;
        }
        Some(transmit)
    }

    #[inline]
    pub(super) fn poll_general(
        &mut self,
        now: Time,
        segments: u16,
        packet: &mut Packet,
    ) -> Option<Transmit> {
        if let Some(transmission) = self.sender.poll(now, segments) {
            return Some(self.write_data(now, &transmission, packet));
        }
        self.poll_ack(now, packet)
    }

    /// An acknowledgment without data, if one is due.
    #[inline]
    pub(super) fn poll_ack(&mut self, now: Time, packet: &mut Packet) -> Option<Transmit> {
        if self.receiver.ack_due() && self.state != State::SynSent {
            self.receiver.on_ack_sent(true);
            let seq = self.iss + self.sender.seq_of_ack() as u32;
            self.write_segment(now, seq, Flags::ACK, CopyId(0), SackBlocks::MAX, packet);
            return Some(self.alone(self.receiver.ack_due(), packet));
        }
        None
    }

    /// What goes out beside the stream and its acknowledgments.
    #[cold]
    fn poll_aside(&mut self, now: Time, packet: &mut Packet) -> Option<Transmit> {
        match self.aside.take()? {
            Aside::Reset(Reset { seq, acks }) => {
                let flags = if acks { Flags::RST | Flags::ACK } else { Flags::RST };
                self.write_segment(now, seq, flags, CopyId(0), 0, packet);
                if let Some(segment) = packet.tcp_mut() {
                    segment.window = 0;
                    if !acks {
                        segment.ack = SeqNumber(0);
                    }
                }
            }
            // RFC 9293 §3.8.4: an octet before the window, which calls for an acknowledgment.
            Aside::KeepAlive => {
                let seq = self.iss + (self.sender.nxt() as u32).wrapping_sub(1);
                self.write_segment(now, seq, Flags::ACK, CopyId(0), 0, packet);
            }
        }
        Some(self.alone(self.state != State::Closed, packet))
    }

    /// A segment without data.
    #[inline]
    pub(super) fn alone(&self, more: bool, packet: &mut Packet) -> Transmit {
        packet.payload = Payload::default();
        Transmit { segment_size: 0, count: 1, ecn: Ecn::NotCapable, more }
    }

    #[inline]
    fn write_data(
        &mut self,
        now: Time,
        transmission: &Transmission,
        packet: &mut Packet,
    ) -> Transmit {
        let Transmission { start, len, copy, count, fresh, more } = *transmission;
        let end = start + u64::from(len);
        let fin = self.sender.stream.has_fin_before(end);
        let syn = start == 0;
        packet.payload = match len - u32::from(fin) - u32::from(syn) {
            0 => Payload::default(),
            bytes => self.sender.stream.payload(start, bytes),
        };
        let mut flags = Flags::empty();
        flags.set(Flags::SYN, syn);
        flags.set(Flags::FIN, fin);
        // Whoever merges what arrives together passes a unit on when its last segment is there.
        let pushed = self.sender.stream.is_pushed_before(end) || count > 1;
        flags.set(Flags::PSH, packet.payload.len > 0 && pushed);
        let mut ecn = Ecn::NotCapable;
        if self.agreed.contains(Agreed::ECN) && fresh && packet.payload.len > 0 {
            ecn = Ecn::Capable;
            flags.set(Flags::CWR, self.sender.take_reduction());
        }
        let mut blocks = 0;
        if self.state != State::SynSent {
            flags |= Flags::ACK;
            blocks = self.room_for_blocks(packet.payload.len);
            // What does not fit goes in an acknowledgment of its own.
            if blocks > 0 || !self.receiver.has_blocks() || !self.receiver.ack_due() {
                self.receiver.on_ack_sent(false);
            }
        }
        self.write_segment(now, self.iss + start as u32, flags, copy, blocks, packet);
        let more = more || self.receiver.ack_due();
        Transmit { segment_size: self.sender.mss(), count, ecn, more }
    }

    /// How many SACK blocks fit beside so many bytes of data (RFC 6691 §3).
    fn room_for_blocks(&self, bytes: u32) -> usize {
        let room = self.sender.mss().saturating_sub(bytes);
        (room.saturating_sub(4) / 8) as usize
    }

    #[inline]
    fn write_segment(
        &mut self,
        now: Time,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        blocks: usize,
        packet: &mut Packet,
    ) {
        if flags.contains(Flags::SYN) {
            return self.write_syn(now, seq, flags, copy, packet);
        }
        let closed = self.receiver.is_closed();
        let segment = self.write_header(seq, flags, copy, packet);
        if closed {
            segment.window = 0;
        }
        if self.is_echoing {
            segment.flags |= Flags::ECE;
        }
        let mut most = SackBlocks::MAX;
        // Nothing is agreed on before the peer has spoken (RFC 7323 §3.2).
        if self.agreed.contains(Agreed::TIMESTAMPS) && self.receiver.nxt() > 0 {
            segment.options.timestamps = Some(self.stamp(now));
            most -= 1;
        }
        if self.agreed.contains(Agreed::SACK) && blocks > 0 && self.receiver.has_blocks() {
            let irs = self.irs;
            let blocks = blocks.min(most);
            let wire = |seq| irs + seq as u32;
            self.receiver.report_blocks(blocks, wire, &mut segment.options.sack);
        }
    }

    /// What every segment says, and our window.
    #[inline]
    pub(super) fn write_header<'a>(
        &mut self,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        packet: &'a mut Packet,
    ) -> &'a mut Segment {
        let window = self.receiver.announce();
        let segment = self.write_ends(seq, flags, copy, packet);
        segment.window = self.field(window);
        segment
    }

    /// What the window field says of so many bytes.
    #[inline(always)]
    pub(super) fn field(&self, window: u64) -> u16 {
        (window >> self.receive_shift).min(u64::from(u16::MAX)) as u16
    }

    #[inline]
    fn write_ends<'a>(
        &self,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        packet: &'a mut Packet,
    ) -> &'a mut Segment {
        let segment = packet.make_tcp();
        self.fill(seq, flags, copy, segment);
        segment
    }

    /// Fills in all but options and window.
    #[inline(always)]
    pub(super) fn fill(&self, seq: SeqNumber, flags: Flags, copy: CopyId, segment: &mut Segment) {
        segment.source_port = self.local_port;
        segment.destination_port = self.remote_port;
        segment.seq = seq;
        segment.ack = self.irs + self.receiver.nxt() as u32;
        segment.flags = flags;
        segment.copy = copy;
    }

    /// A SYN says what we would like to agree on, or what we agree to.
    fn write_syn(
        &mut self,
        now: Time,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        packet: &mut Packet,
    ) {
        let segment = self.write_ends(seq, flags, copy, packet);
        let answers = flags.contains(Flags::ACK);
        segment.window = self.receiver.offer() as u16;
        segment.options.mss = Some(self.mss);
        let scale = shift_for(self.receiver.capacity());
        segment.options.window_scale = self.agreed.contains(Agreed::SCALE).then_some(scale);
        segment.options.sack_permitted = self.agreed.contains(Agreed::SACK);
        if self.agreed.contains(Agreed::TIMESTAMPS) {
            segment.options.timestamps = Some(self.stamp(now));
        }
        if self.agreed.contains(Agreed::ECN) {
            // RFC 3168 §6.1.1
            segment.flags |= if answers { Flags::ECE } else { Flags::ECE | Flags::CWR };
        }
    }

    /// Our clock and the peer's (RFC 7323 §3.2).
    #[inline]
    pub(super) fn stamp(&mut self, now: Time) -> Timestamps {
        self.timestamps.acknowledged = self.receiver.nxt();
        Timestamps { value: self.timestamps.value(now), echo: self.timestamps.recent }
    }
}
