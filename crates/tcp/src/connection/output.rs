//! Outgoing segments.

use super::{Connection, Negotiated, OutOfBand, Reset, State, shift_for};
use crate::mechanism::Hooks;
use crate::sender::Transmission;
use base::Time;
use wire::{CopyId, Ecn, Flags, Packet, Payload, SackBlocks, Segment, SeqNumber, Timestamps};

/// A unit written by [`Connection::poll_transmit`]: one segment, or several that the network card
/// or the kernel splits (segmentation offload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Bytes of payload in each segment of the unit but the last, which may be shorter.
    pub segment_size: u32,
    /// Segments in the unit. The flag CWR belongs to the first, PSH and FIN to the last; copies
    /// count up from the packet's.
    pub count: u16,
    /// The ECN codepoint of the IP header (RFC 3168 §6.1).
    pub ecn: Ecn,
    /// Another unit may be ready to send.
    pub more: bool,
}

impl Connection {
    /// Writes the next unit of at most `segments` segments and the identity of its payload into
    /// `packet`, if there is one. Call it after every other call, as long as it returns `more`. The
    /// host writes the packet's IP header.
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
        let Some(accurate) = &self.accurate_ecn else {
            return self.poll_any(now, segments, packet);
        };
        let segments = if accurate.forbids_units() { 1 } else { segments };
        let transmit = self.poll_any(now, segments, packet)?;
        self.write_accurate_ecn(&transmit, packet);
        Some(transmit)
    }

    /// The same without the feedback of accurate ECN.
    #[inline(always)]
    fn poll_any(&mut self, now: Time, segments: u16, packet: &mut Packet) -> Option<Transmit> {
        let now = self.clock.local(now);
        if self.state == State::Closed || self.out_of_band.is_some() {
            return self.poll_out_of_band(now, packet);
        }
        if !self.mechanisms.has_hook(Hooks::OUTGOING) {
            return self.poll_general(now, segments, packet);
        }
        let due = self.receiver.ack_due();
        let mut transmit = self.poll_general(now, segments, packet)?;
        let view = self.sender.view(now);
        self.mechanisms.outgoing(&view, packet);
        // An option that found no room beside data goes in an acknowledgment of its own.
        if due && !self.receiver.ack_due() && self.mechanisms.have_pending_options() {
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
        if let Some(accurate) = &self.accurate_ecn
            && accurate.acknowledges_first()
            && let Some(transmit) = self.poll_ack(now, packet)
        {
            return Some(Transmit { more: true, ..transmit });
        }
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
            let seq = self.iss + self.sender.pure_ack_seq() as u32;
            self.write_segment(now, seq, Flags::ACK, CopyId(0), SackBlocks::MAX, packet);
            return Some(self.without_data(self.receiver.ack_due(), packet));
        }
        None
    }

    /// Writes a reset or a keep-alive probe.
    #[cold]
    fn poll_out_of_band(&mut self, now: Time, packet: &mut Packet) -> Option<Transmit> {
        match self.out_of_band.take()? {
            OutOfBand::Reset(Reset { seq, acks }) => {
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
            OutOfBand::KeepAlive => {
                let seq = self.iss + (self.sender.nxt() as u32).wrapping_sub(1);
                self.write_segment(now, seq, Flags::ACK, CopyId(0), 0, packet);
            }
        }
        Some(self.without_data(self.state != State::Closed, packet))
    }

    /// A segment without data.
    #[inline]
    pub(super) fn without_data(&self, more: bool, packet: &mut Packet) -> Transmit {
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
        let syn = start == 0;
        let len = if syn { len + self.send_data_with_syn(now) } else { len };
        let end = start + u64::from(len);
        let fin = self.sender.stream.has_fin_before(end);
        packet.payload = match len - u32::from(fin) - u32::from(syn) {
            0 => Payload::default(),
            bytes => self.sender.stream.payload(start.max(1), bytes),
        };
        let mut flags = Flags::empty();
        flags.set(Flags::SYN, syn);
        flags.set(Flags::FIN, fin);
        // A receiver that merges segments (GRO) delivers a unit when a segment has PSH.
        let pushed = self.sender.stream.needs_psh(end) || count > 1;
        flags.set(Flags::PSH, packet.payload.len > 0 && pushed);
        if let Some(accurate) = &mut self.accurate_ecn {
            accurate.set_new_data(fresh);
        }
        let mut ecn = Ecn::NotCapable;
        if self.sends_ect() && fresh && packet.payload.len > 0 {
            ecn = Ecn::Capable;
            // With accurate ECN the flag is part of the ACE field (RFC 9768 §3.1.5).
            flags.set(Flags::CWR, self.sender.take_cwr() && self.accurate_ecn.is_none());
        }
        let mut blocks = 0;
        if self.state != State::SynSent {
            flags |= Flags::ACK;
            blocks = self.room_for_blocks(packet.payload.len);
            // SACK blocks that do not fit go in an acknowledgment of their own.
            if blocks > 0 || !self.receiver.has_sack_blocks() || !self.receiver.ack_due() {
                self.receiver.on_ack_sent(false);
            }
        }
        self.write_segment(now, self.iss + start as u32, flags, copy, blocks, packet);
        let more = more || self.receiver.ack_due();
        // A probe of the path MTU is larger than the others.
        let segment_size = self.sender.mss().max(if count == 1 { packet.payload.len } else { 0 });
        Transmit { segment_size, count, ecn, more }
    }

    /// The number of SACK blocks that fit beside `bytes` of data (RFC 6691 §3).
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
        let closed = self.receiver.announces_zero_window();
        let segment = self.write_header(seq, flags, copy, packet);
        if closed {
            segment.window = 0;
        }
        if self.echoes_congestion {
            segment.flags |= Flags::ECE;
        }
        let mut most = SackBlocks::MAX;
        // Options are negotiated once the peer's SYN has arrived (RFC 7323 §3.2).
        if self.negotiated.contains(Negotiated::TIMESTAMPS) && self.receiver.nxt() > 0 {
            segment.options.timestamps = Some(self.timestamps_option(now));
            most -= 1;
        }
        if self.negotiated.contains(Negotiated::SACK)
            && blocks > 0
            && self.receiver.has_sack_blocks()
        {
            let irs = self.irs;
            let blocks = blocks.min(most);
            let wire = |seq| irs + seq as u32;
            self.receiver.write_sack_blocks(blocks, wire, &mut segment.options.sack);
        }
    }

    /// Writes the header fields of every segment, the window included.
    #[inline]
    pub(super) fn write_header<'a>(
        &mut self,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        packet: &'a mut Packet,
    ) -> &'a mut Segment {
        let window = self.receiver.advertise_window();
        let segment = self.write_without_window(seq, flags, copy, packet);
        segment.window = self.window_field(window);
        segment
    }

    /// The window field for a window of this many bytes.
    #[inline(always)]
    pub(super) fn window_field(&self, window: u64) -> u16 {
        (window >> self.receive_shift).min(u64::from(u16::MAX)) as u16
    }

    #[inline]
    fn write_without_window<'a>(
        &self,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        packet: &'a mut Packet,
    ) -> &'a mut Segment {
        let segment = packet.make_tcp();
        self.fill_header(seq, flags, copy, segment);
        segment
    }

    /// Fills in all fields but options and window.
    #[inline(always)]
    pub(super) fn fill_header(
        &self,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        segment: &mut Segment,
    ) {
        segment.source_port = self.local_port;
        segment.destination_port = self.remote_port;
        segment.seq = seq;
        segment.ack = self.irs + self.receiver.nxt() as u32;
        segment.flags = flags;
        segment.copy = copy;
    }

    /// Writes a SYN: the options that we offer, or, in a SYN-ACK, accept.
    fn write_syn(
        &mut self,
        now: Time,
        seq: SeqNumber,
        flags: Flags,
        copy: CopyId,
        packet: &mut Packet,
    ) {
        let segment = self.write_without_window(seq, flags, copy, packet);
        let answers = flags.contains(Flags::ACK);
        segment.window = self.receiver.advertise_syn_window();
        segment.options.mss = Some(self.mss);
        let scale = shift_for(self.receiver.capacity());
        segment.options.window_scale = self.negotiated.contains(Negotiated::SCALE).then_some(scale);
        segment.options.sack_permitted = self.negotiated.contains(Negotiated::SACK);
        if self.negotiated.contains(Negotiated::TIMESTAMPS) {
            segment.options.timestamps = Some(self.timestamps_option(now));
        }
        segment.flags |= self.ecn_setup(answers);
        self.add_fast_open(packet);
    }

    /// The timestamps option: our clock, and TS.Recent as the echo (RFC 7323 §3.2).
    #[inline]
    pub(super) fn timestamps_option(&mut self, now: Time) -> Timestamps {
        self.timestamps.acknowledged = self.receiver.nxt();
        Timestamps { value: self.timestamps.value(now), echo: self.timestamps.recent }
    }
}
