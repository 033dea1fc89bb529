//! One connection: the states of RFC 9293 §3.3.2 around a sender and a receiver.

use crate::config::Config;
use crate::indication::Indication;
use crate::mechanism::{Action, Hooks, Mechanisms, View};
use crate::receiver::Receiver;
use crate::recovery::Recovery;
use crate::sender::{Ack, Sender, Statistics, Transmission};
use base::{Duration, Time};
use bitflags::bitflags;
use wire::{CopyId, Flags, Packet, Payload, SackBlocks, Segment, SeqNumber};

/// The state of a connection (RFC 9293 §3.3.2). There is no LISTEN: that is a host's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are the standard's.
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It sends the first SYN.
    Active,
    /// It has been sent one.
    Passive,
}

bitflags! {
    /// What has happened since the last look.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Events: u8 {
        /// The handshake is complete.
        const CONNECTED = 1;
        /// There is something to read.
        const READABLE = 1 << 1;
        /// The peer has sent everything, and it has arrived.
        const PEER_CLOSED = 1 << 2;
        /// The connection is over and forgotten.
        const CLOSED = 1 << 3;
        /// The peer has reset it.
        const RESET = 1 << 4;
        /// The peer has not been heard of for too long.
        const TIMED_OUT = 1 << 5;
    }
}

/// What a time series of a connection shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// Congestion window, bytes.
    pub window: u64,
    /// Octets that duplicate acknowledgments stand for. `window + dupacked` is the window as
    /// RFC 5681 inflates it.
    pub dupacked: u64,
    /// Slow-start threshold, bytes; `u64::MAX` while arbitrarily high.
    pub ssthresh: u64,
    /// Octets sent and not acknowledged.
    pub flight: u64,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, back-off included.
    pub rto: Duration,
}

/// What [`Connection::poll_transmit`] has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Nothing: there is no segment to send.
    Nothing,
    /// A segment, and there may be another.
    One,
    /// A segment, and no other for now.
    Last,
}

/// One TCP connection.
#[derive(Clone, Debug)]
pub struct Connection {
    state: State,
    local_port: u16,
    remote_port: u16,
    /// Our initial sequence number.
    iss: SeqNumber,
    /// The peer's.
    irs: SeqNumber,
    /// Shifts of the window fields (RFC 7323 §2.3).
    send_shift: u8,
    receive_shift: u8,
    mss: u16,
    offers_sack: bool,
    /// We ask for scaled windows, or the peer has.
    offers_scale: bool,
    time_wait: Duration,
    /// When TIME-WAIT ends.
    time_wait_until: Time,
    sender: Sender,
    receiver: Receiver,
    mechanisms: Mechanisms,
    events: Events,
}

/// The smallest shift that lets the window field express `window` (RFC 7323 §2.2: at most 14).
fn shift_for(window: u32) -> u8 {
    (0..14).find(|&shift| window >> shift <= u32::from(u16::MAX)).unwrap_or(14)
}

impl Connection {
    /// A new connection; `iss` is its initial sequence number. A passive one is then given the
    /// SYN by [`Connection::handle_segment`].
    #[must_use]
    pub fn new(
        config: &Config,
        side: Side,
        local_port: u16,
        remote_port: u16,
        iss: SeqNumber,
    ) -> Connection {
        Connection {
            state: match side {
                Side::Active => State::SynSent,
                Side::Passive => State::SynReceived,
            },
            local_port,
            remote_port,
            iss,
            irs: SeqNumber::default(),
            send_shift: 0,
            receive_shift: shift_for(config.receive_window),
            mss: config.mss,
            offers_sack: config.recovery == Recovery::Sack,
            offers_scale: true,
            time_wait: config.time_wait,
            time_wait_until: Time::NEVER,
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            mechanisms: Mechanisms::new(config.mechanisms.clone()),
            events: Events::empty(),
        }
    }

    // --- the application's side ---

    /// Appends `len` bytes of `stream`, from `offset` on, to what is to be sent. Ignored after
    /// [`Connection::close`].
    pub fn write(&mut self, stream: u32, offset: u64, len: u64) {
        self.sender.stream.write(stream, offset, len);
    }

    /// The next run of bytes that has arrived in order.
    #[inline]
    pub fn read(&mut self) -> Option<Payload> {
        self.receiver.read()
    }

    /// Nothing more will be written: a FIN follows the data.
    pub fn close(&mut self) {
        self.sender.stream.close();
        match self.state {
            State::Established | State::SynReceived => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::SynSent => self.enter_closed(Events::CLOSED),
            _ => {}
        }
    }

    /// What has happened since the last call.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Counts of what the sender did.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.sender.statistics
    }

    /// What a time series shows.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        Vitals {
            window: self.sender.window(),
            dupacked: self.sender.dupacked(),
            ssthresh: self.sender.ssthresh(),
            flight: self.sender.outstanding(),
            srtt: self.sender.srtt(),
            rto: self.sender.rto(),
        }
    }

    // --- the world's side ---

    /// Takes in a segment of this connection.
    #[inline]
    pub fn handle_segment(&mut self, now: Time, segment: &Segment, payload: Payload) {
        match self.state {
            State::Closed => {}
            State::SynSent => self.in_syn_sent(now, segment),
            State::SynReceived if segment.flags.contains(Flags::SYN) => self.on_peer_syn(segment),
            _ => self.in_synchronized(now, segment, payload),
        }
    }

    /// Takes in what a layer below, a router or the peer tells.
    pub fn indicate(&mut self, now: Time, indication: &Indication) {
        if self.state == State::Closed || !self.mechanisms.answer(Hooks::INDICATION) {
            return;
        }
        let view =
            View { now, una: self.sender.una(), nxt: self.sender.nxt(), srtt: self.sender.srtt() };
        if let Some(action) = self.mechanisms.indication(&view, indication) {
            let (Action::Lost { seq, .. } | Action::RetransmitNow { seq, .. }) = action;
            if let Some(start) = self.sent(seq) {
                self.sender.act(now, start, action, &mut self.mechanisms);
            }
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.sender.on_deadline(now, &mut self.mechanisms);
        if self.sender.gives_up() {
            return self.enter_closed(Events::TIMED_OUT | Events::CLOSED);
        }
        self.receiver.on_deadline(now);
        if self.time_wait_until <= now {
            self.enter_closed(Events::CLOSED);
        }
    }

    /// When [`Connection::handle_timeout`] is next worth calling.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.sender.deadline().min(self.receiver.deadline()).min(self.time_wait_until)
    }

    /// Writes the next segment to send and the identity of its payload into `packet`, if there is
    /// one. To be called after every other call, as long as there may be more.
    ///
    /// It writes in place because a segment that is returned is copied twice, and those copies
    /// would cost more than making it.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time, packet: &mut Packet) -> Written {
        if matches!(self.state, State::Closed) {
            return Written::Nothing;
        }
        if let Some(transmission) = self.sender.poll(now) {
            self.write_data(&transmission, packet);
            return if transmission.more { Written::One } else { Written::Last };
        }
        if self.receiver.ack_due() && self.state != State::SynSent {
            self.receiver.on_ack_sent(true);
            let seq = self.iss + self.sender.nxt() as u32;
            self.write_segment(seq, Flags::ACK, CopyId(0), packet);
            packet.payload = Payload::default();
            return if self.receiver.ack_due() { Written::One } else { Written::Last };
        }
        Written::Nothing
    }

    // --- segments out ---

    #[inline]
    fn write_data(&mut self, transmission: &Transmission, packet: &mut Packet) {
        let Transmission { start, len, copy, .. } = *transmission;
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
        if self.state != State::SynSent {
            flags |= Flags::ACK;
            self.receiver.on_ack_sent(false);
        }
        self.write_segment(self.iss + start as u32, flags, copy, packet);
    }

    #[inline]
    fn write_segment(&self, seq: SeqNumber, flags: Flags, copy: CopyId, packet: &mut Packet) {
        let segment = packet.make_tcp();
        let mut shift = self.receive_shift;
        if flags.contains(Flags::SYN) {
            shift = 0; // RFC 7323 §2.2: the window of a SYN is never scaled.
            segment.options.mss = Some(self.mss);
            let scale = shift_for(self.receiver.capacity());
            segment.options.window_scale = self.offers_scale.then_some(scale);
            segment.options.sack_permitted = self.offers_sack;
        } else if self.offers_sack && self.receiver.has_gap() {
            segment.options.sack = self.receiver.sack_blocks(|seq| self.irs + seq as u32);
        }
        segment.source_port = self.local_port;
        segment.destination_port = self.remote_port;
        segment.seq = seq;
        segment.ack = self.irs + self.receiver.nxt() as u32;
        segment.flags = flags;
        segment.window = (self.receiver.window() >> shift).min(u64::from(u16::MAX)) as u16;
        segment.copy = copy;
    }

    // --- segments in ---

    /// Our own sequence number `seq`, absolute; `None` if before the SYN.
    #[inline]
    fn sent(&self, seq: SeqNumber) -> Option<u64> {
        absolute(seq, self.iss, self.sender.una())
    }

    fn in_syn_sent(&mut self, now: Time, segment: &Segment) {
        let acceptable = segment.flags.contains(Flags::ACK) && segment.ack == self.iss + 1;
        if segment.flags.contains(Flags::RST) {
            if acceptable {
                self.enter_closed(Events::RESET | Events::CLOSED);
            }
            return;
        }
        if acceptable && segment.flags.contains(Flags::SYN) {
            self.on_peer_syn(segment);
            self.on_ack(now, segment, 1, true);
        }
    }

    /// The peer's SYN: its sequence numbers and what it offers.
    fn on_peer_syn(&mut self, segment: &Segment) {
        self.irs = segment.seq;
        self.receiver.on_syn();
        // RFC 9293 §3.7.1: 536 unless the peer says more.
        let peer_mss = segment.options.mss.unwrap_or(536).max(1);
        self.offers_sack &= segment.options.sack_permitted;
        match segment.options.window_scale {
            Some(shift) => self.send_shift = shift.min(14),
            None => {
                self.receive_shift = 0;
                self.offers_scale = false;
            }
        }
        self.sender.negotiated(u32::from(self.mss.min(peer_mss)), self.offers_sack);
    }

    #[inline]
    fn in_synchronized(&mut self, now: Time, segment: &Segment, payload: Payload) {
        let nxt = self.receiver.nxt();
        let occupied = payload.len > 0 || segment.flags.contains(Flags::FIN);
        let Some(start) = absolute(segment.seq, self.irs, nxt) else {
            return self.receiver.acknowledge_now();
        };
        // RFC 9293 §3.10.7.4, first and fourth: outside the window, or a SYN inside it.
        let window = self.receiver.window();
        let inside = start >= nxt && start < nxt + window.max(1);
        // The peer has used the window up: its bare acknowledgments stand one past.
        let at_edge = start == nxt + window;
        if segment.flags.contains(Flags::RST) {
            if inside {
                self.enter_closed(Events::RESET | Events::CLOSED);
            }
            return;
        }
        if !(inside || at_edge || occupied) || segment.flags.contains(Flags::SYN) {
            return self.receiver.acknowledge_now();
        }
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        let Some(ack) = self.sent(segment.ack) else {
            return;
        };
        if ack > self.sender.nxt() {
            // Before the connection is open that calls for a reset (RFC 9293 §3.10.7.4, fifth),
            // which is not implemented; an acknowledgment would be answered, and so on for ever.
            if self.state != State::SynReceived {
                self.receiver.acknowledge_now();
            }
            return;
        }
        if ack > self.sender.una() || self.sender.outstanding() > 0 {
            self.on_ack(now, segment, ack, !occupied);
        } else if ack == self.sender.una() {
            self.sender.on_window(self.right_edge(segment, ack));
        }
        if occupied && self.state != State::Closed {
            let fin = segment.flags.contains(Flags::FIN);
            self.receiver.on_data(now, start, payload, fin, &mut self.mechanisms);
            if self.receiver.readable() {
                self.events |= Events::READABLE;
            }
            if self.receiver.finished() {
                self.on_peer_finished(now);
            }
        }
    }

    /// The octet after the last that the peer's window allows.
    #[inline]
    fn right_edge(&self, segment: &Segment, ack: u64) -> u64 {
        // RFC 7323 §2.2: the window of a SYN is never scaled.
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.send_shift };
        ack + (u64::from(segment.window) << shift)
    }

    #[inline]
    fn on_ack(&mut self, now: Time, segment: &Segment, ack: u64, bare: bool) {
        if ack < self.sender.una() {
            return;
        }
        let right_edge = self.right_edge(segment, ack);
        let una = self.sender.una();
        let blocks = &segment.options.sack;
        if blocks.is_empty() {
            let ack = Ack { ack, right_edge, blocks: &[], bare };
            self.sender.on_ack(now, &ack, &mut self.mechanisms);
        } else {
            let (blocks, count) = self.sacked(blocks);
            let ack = Ack { ack, right_edge, blocks: &blocks[..count], bare };
            self.sender.on_ack(now, &ack, &mut self.mechanisms);
        }
        if ack > una {
            self.on_sent_arrived(now, una == 0);
        }
    }

    /// The peer's SACK blocks, absolute, and how many there are.
    fn sacked(&self, blocks: &SackBlocks) -> ([(u64, u64); SackBlocks::MAX], usize) {
        let mut result = [(0, 0); SackBlocks::MAX];
        let mut count = 0;
        for block in blocks.as_slice() {
            if let (Some(start), Some(end)) = (self.sent(block.start), self.sent(block.end)) {
                result[count] = (start, end);
                count += 1;
            }
        }
        (result, count)
    }

    /// The peer has acknowledged something new: our SYN (so that the connection `opens`) or our FIN,
    /// perhaps.
    fn on_sent_arrived(&mut self, now: Time, opens: bool) {
        if opens {
            self.sender.start();
            self.events |= Events::CONNECTED;
            if matches!(self.state, State::SynSent | State::SynReceived) {
                self.state = State::Established;
            }
        }
        if self.sender.una() == self.sender.stream.end() {
            match self.state {
                State::FinWait1 => self.state = State::FinWait2,
                State::Closing => self.enter_time_wait(now),
                State::LastAck => self.enter_closed(Events::CLOSED),
                _ => {}
            }
        }
    }

    fn on_peer_finished(&mut self, now: Time) {
        match self.state {
            State::SynReceived | State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            State::TimeWait => return self.enter_time_wait(now),
            _ => return,
        }
        self.events |= Events::PEER_CLOSED;
    }

    fn enter_time_wait(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.time_wait_until = now + self.time_wait;
    }

    fn enter_closed(&mut self, events: Events) {
        self.state = State::Closed;
        self.time_wait_until = Time::NEVER;
        self.sender.stop();
        self.receiver.stop();
        self.events |= events;
    }
}

/// The absolute number of `seq`, given the initial number and an absolute one nearby.
#[inline]
fn absolute(seq: SeqNumber, initial: SeqNumber, near: u64) -> Option<u64> {
    near.checked_add_signed(i64::from(seq.beyond(initial + near as u32)))
}

#[cfg(test)]
mod tests;
