//! Segments in: RFC 9293 §3.10.7, with the checks of RFC 5961 and RFC 7323.

use super::output::TIMESTAMPS;
use super::{Agreed, Aside, Connection, Events, Reset, Side, State, absolute};
use crate::event::{Event, Refusal};
use crate::mechanism::{Hooks, Incoming};
use crate::sender::{Ack, Window};
use base::Time;
use wire::{Ecn, Flags, Packet, Payload, SackBlocks, Segment};

/// A segment that passed the checks of sequence number and control bits.
struct Arrived<'a> {
    segment: &'a Segment,
    payload: Payload,
    /// Its first octet, absolute.
    start: u64,
    fin: bool,
}

impl Connection {
    /// Takes in a segment of this connection; `ecn` is what its IP header says. Returns the part of
    /// the payload that the connection has taken, inside the window and not yet acknowledged: whoever
    /// carries bytes keeps those, and nothing else. Some of it may have been taken before.
    #[inline]
    pub fn handle_segment(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        ecn: Ecn,
    ) -> Payload {
        let now = self.clock.local(now);
        match self.state {
            State::Closed => {}
            State::SynSent => self.in_syn_sent(now, segment),
            _ if self.receiver.nxt() == 0 => self.on_peer_syn(now, segment),
            _ => return self.in_synchronized(now, segment, payload, ecn),
        }
        Payload::default()
    }

    /// A passive connection, which has been given nothing yet, is where it would be had it been given
    /// `syn` and sent its answer: what the answer said was kept elsewhere (SYN cookies, RFC 4987 §3.6).
    /// When that was is not known, so it times no round trip.
    pub fn assume_answered(&mut self, now: Time, syn: &Segment) {
        self.handle_segment(now, syn, Payload::default(), Ecn::NotCapable);
        let mut answer = Packet::BLANK;
        self.poll_transmit(now, 1, &mut answer);
        self.sender.time_nothing();
    }

    /// The place of a segment's first byte of data in the peer's stream. `None` if it precedes that;
    /// without meaning before the peer's SYN has arrived. No data of such segments is ever taken.
    #[must_use]
    #[inline]
    pub fn place(&self, segment: &Segment) -> Option<u64> {
        absolute(segment.seq, self.irs, self.receiver.nxt())?.checked_sub(1)
    }

    /// RFC 9293 §3.10.7.3
    fn in_syn_sent(&mut self, now: Time, segment: &Segment) {
        let acks = segment.flags.contains(Flags::ACK);
        // Our SYN, if it was sent.
        let acceptable = acks && segment.ack == self.iss + 1 && self.sender.nxt() > 0;
        if acks && !acceptable {
            self.refuse(Refusal::BadAck);
            if !segment.flags.contains(Flags::RST) {
                self.aside = Some(Aside::Reset(Reset { seq: segment.ack, acks: false }));
            }
        } else if segment.flags.contains(Flags::RST) {
            if acceptable {
                self.enter_closed(Events::RESET | Events::CLOSED);
            }
        } else if segment.flags.contains(Flags::SYN) {
            self.on_peer_syn(now, segment);
            if acceptable {
                self.on_ack(now, segment, 0, 1, &Incoming::PLAIN);
            } else {
                // Both have opened at once (RFC 9293 §3.5, figure 8): our SYN again, with an ACK.
                self.enter(State::SynReceived);
                self.sender.resend_first();
            }
        }
    }

    /// The peer's SYN: its sequence numbers and what it offers.
    fn on_peer_syn(&mut self, now: Time, segment: &Segment) {
        self.irs = segment.seq;
        let options = &segment.options;
        let mut offered = Agreed::empty();
        offered.set(Agreed::SACK, options.sack_permitted);
        offered.set(Agreed::SCALE, options.window_scale.is_some());
        offered.set(Agreed::TIMESTAMPS, options.timestamps.is_some());
        // RFC 3168 §6.1.1: an answer has ECE alone, so that a mere echo is not taken for one.
        let setup = segment.flags & (Flags::ECE | Flags::CWR);
        offered.set(
            Agreed::ECN,
            setup == Flags::ECE && segment.flags.contains(Flags::ACK)
                || setup == Flags::ECE | Flags::CWR && !segment.flags.contains(Flags::ACK),
        );
        self.agreed &= offered;
        match options.window_scale {
            Some(shift) if self.agreed.contains(Agreed::SCALE) => self.send_shift = shift.min(14),
            _ => self.receive_shift = 0,
        }
        // Options take from it (RFC 6691).
        let peer_mss = options.mss.unwrap_or(self.default_mss).max(self.minimum_mss).max(1);
        let mss = u32::from(self.mss.min(peer_mss));
        self.mechanisms.agree(segment, self.agreed.contains(Agreed::TIMESTAMPS));
        let mut mss = mss.saturating_sub(self.mechanisms.overhead()).max(1);
        if let Some(stamp) = options.timestamps
            && self.agreed.contains(Agreed::TIMESTAMPS)
        {
            self.timestamps.begin(now, stamp.value);
            mss = mss.saturating_sub(TIMESTAMPS).max(1);
        }
        let sack = self.agreed.contains(Agreed::SACK);
        self.receiver.on_syn(mss, sack);
        self.sender.negotiated(mss, sack);
        self.heard(now);
    }

    /// RFC 9293 §3.10.7.4
    #[inline]
    fn in_synchronized(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        ecn: Ecn,
    ) -> Payload {
        let nxt = self.receiver.nxt();
        let Some(start) = absolute(segment.seq, self.irs, nxt) else {
            // Before the peer's SYN: what it carries is no part of this connection.
            self.on_unacceptable(now, segment, Payload::default(), 0);
            return Payload::default();
        };
        if self.agreed.contains(Agreed::TIMESTAMPS) && !self.is_timely(now, segment, payload.len) {
            return Payload::default();
        }
        let control = segment.flags & (Flags::SYN | Flags::FIN | Flags::RST);
        let fin = control.contains(Flags::FIN);
        let end = start + u64::from(payload.len) + u64::from(fin);
        // First, the sequence number. A peer that has used its window up stands one past it.
        let acceptable = start <= nxt + self.receiver.window() && (start >= nxt || end > nxt);
        if !acceptable || control.intersects(Flags::SYN | Flags::RST) {
            self.on_suspicious(now, segment, payload, start, acceptable);
            return Payload::default();
        }
        if !segment.flags.contains(Flags::ACK) {
            self.refuse(Refusal::NoAck);
            return Payload::default();
        }
        let Some(ack) = self.sent(segment.ack).filter(|&ack| self.is_valid_ack(ack)) else {
            self.on_bad_ack(now, segment);
            return Payload::default();
        };
        if let Some(stamp) = segment.options.timestamps
            && self.agreed.contains(Agreed::TIMESTAMPS)
        {
            self.timestamps.update(now, stamp.value, start);
        }
        self.accept(now, &Arrived { segment, payload, start, fin }, ack, ecn)
    }

    /// A segment that is what it should be. Returns what of its payload is taken.
    #[inline]
    fn accept(&mut self, now: Time, arrived: &Arrived<'_>, ack: u64, ecn: Ecn) -> Payload {
        let Arrived { segment, payload, start, fin } = *arrived;
        self.stale_answers = 0;
        self.heard(now);
        if self.agreed.contains(Agreed::ECN) {
            // RFC 3168 §6.1.3
            self.is_echoing &= !segment.flags.contains(Flags::CWR);
            self.is_echoing |= ecn == Ecn::Congested;
        }
        let occupied = payload.len > 0 || fin;
        let mut asked = self.ask(now, segment);
        asked.may_count &= !occupied;
        if ack > self.sender.una() || self.sender.outstanding() > 0 {
            self.on_ack(now, segment, start, ack, &asked);
        } else if ack == self.sender.una() {
            self.sender.on_window(now, &self.window(segment, start, ack));
        }
        let mut taken = Payload::default();
        if occupied && !self.receiver.finished() && self.state != State::Closed {
            taken = self.receiver.on_data(now, start, payload, fin, &mut self.mechanisms);
            if self.receiver.take_refusal() {
                self.refuse(Refusal::QueueFull);
            }
            if self.receiver.readable() > 0 {
                if self.is_unread {
                    // RFC 9293 §3.6.1, SHLD-3
                    self.abort();
                    return taken;
                }
                self.events |= Events::READABLE;
            }
            if self.receiver.finished() {
                self.on_peer_finished(now);
            }
        } else if occupied {
            self.receiver.acknowledge_now();
        } else if self.state == State::TimeWait && start > self.receiver.nxt() {
            // Nothing can follow the peer's FIN: it has not understood us.
            self.challenge(now);
        }
        taken
    }

    /// Asks the mechanisms about a segment.
    #[inline]
    fn ask(&mut self, now: Time, segment: &Segment) -> Incoming {
        if !self.mechanisms.answer(Hooks::INCOMING) {
            return Incoming::PLAIN;
        }
        let mut all = Incoming::PLAIN;
        for index in 0..self.mechanisms.len() {
            let view = self.sender.view(now);
            let Some(incoming) = self.mechanisms.incoming_to(index, &view, segment) else {
                continue;
            };
            if let Some(action) = incoming.action {
                self.act(now, action);
            }
            all = all.and(incoming);
        }
        all
    }

    /// RFC 5961 §5: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT; to open, it must be our SYN's.
    #[inline]
    fn is_valid_ack(&self, ack: u64) -> bool {
        let una = self.sender.una();
        ack <= self.sender.nxt()
            && (ack >= una || una > 0 && ack + self.sender.max_window() >= una)
            && ack > 0
    }

    fn on_bad_ack(&mut self, now: Time, segment: &Segment) {
        self.refuse(Refusal::BadAck);
        if self.sender.una() == 0 {
            // RFC 9293 §3.10.7.4, fifth, in SYN-RECEIVED.
            self.aside = Some(Aside::Reset(Reset { seq: segment.ack, acks: false }));
        } else {
            self.challenge(now);
        }
    }

    /// A segment outside the window, a reset or a SYN.
    #[cold]
    fn on_suspicious(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        start: u64,
        acceptable: bool,
    ) {
        if segment.flags.contains(Flags::RST) {
            return self.on_reset(now, start, acceptable);
        }
        if !segment.flags.contains(Flags::SYN) {
            return self.on_unacceptable(now, segment, payload, start);
        }
        if self.sender.una() == 0 && start == 0 {
            return self.on_syn_again(now, segment, payload);
        }
        // RFC 5961 §4.2: wherever it lies.
        self.refuse(Refusal::BlindSyn);
        self.challenge(now);
    }

    /// The peer's SYN comes again: our answer was lost, or both have opened at once.
    fn on_syn_again(&mut self, now: Time, segment: &Segment, payload: Payload) {
        let ack = self.sent(segment.ack).filter(|&ack| self.is_valid_ack(ack));
        if segment.flags.contains(Flags::ACK)
            && let Some(ack) = ack
        {
            // The answer to our SYN (RFC 9293 §3.5, figure 8).
            let empty = Payload { len: 0, ..payload };
            let arrived = Arrived { segment, payload: empty, start: 0, fin: false };
            self.accept(now, &arrived, ack, Ecn::NotCapable);
        } else if segment.flags.contains(Flags::ACK) {
            self.on_bad_ack(now, segment);
        } else {
            self.sender.resend_first();
        }
    }

    /// RFC 5961 §3.2
    fn on_reset(&mut self, now: Time, start: u64, acceptable: bool) {
        let nxt = self.receiver.nxt();
        if self.state == State::TimeWait {
            // RFC 1337 §3: an old reset must not end TIME-WAIT.
            self.refuse(Refusal::TimeWaitReset);
        } else if start == nxt {
            let silent = self.state == State::SynReceived && self.side == Side::Passive;
            // A passive open that fails goes back to listening: nobody has heard of it yet.
            let events = if silent { Events::empty() } else { Events::RESET };
            self.enter_closed(events | Events::CLOSED);
        } else {
            self.refuse(Refusal::BlindReset);
            // Of a window that is scaled the peer does not know before it is established.
            let window = match self.state {
                State::SynReceived => self.receiver.offer(),
                _ => self.receiver.window(),
            };
            if acceptable && start < nxt + window {
                self.challenge(now);
            }
        }
    }

    /// A segment outside the window: the peer hears where we are (RFC 9293 §3.10.7.4, first).
    #[cold]
    fn on_unacceptable(&mut self, now: Time, segment: &Segment, payload: Payload, start: u64) {
        self.refuse(Refusal::OutsideWindow);
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let occupied = payload.len > 0 || segment.flags.contains(Flags::FIN);
        if occupied && self.state == State::TimeWait {
            // The peer's FIN again, or data before it: our acknowledgment of both was lost.
            self.enter_time_wait(now);
        }
        let end = start + u64::from(payload.len);
        let news = self.on_ack_before_window(now, segment);
        if payload.len > 0 && end <= self.receiver.nxt() {
            self.receiver.on_old(start, end);
        } else if occupied {
            self.receiver.acknowledge_now();
        } else if !news {
            // A keep-alive or a window probe (RFC 9293 §3.8.4, §3.8.6.1), or an end that disagrees
            // with us: those must not answer each other without a limit.
            if self.answers.take(now, self.answers_allowed) {
                self.receiver.acknowledge_now();
            }
        }
    }

    /// The peer has probed our window, and has yet to hear that we took the octet: what it
    /// acknowledges and announces from before that octet, or with that octet again, counts all the
    /// same. Says whether it was news; a keep-alive, which looks the same, is none and waits for an
    /// answer.
    fn on_ack_before_window(&mut self, now: Time, segment: &Segment) -> bool {
        let nxt = self.receiver.nxt();
        // The number in the segment decides: what lies before the peer's SYN has no absolute one.
        let is_before = segment.seq + 1 == self.irs + nxt as u32;
        let acks = segment.flags.contains(Flags::ACK) && is_before;
        let ack = self.sent(segment.ack).filter(|&ack| acks && self.is_valid_ack(ack));
        let Some(ack) = ack.filter(|&ack| ack >= self.sender.una()) else { return false };
        // What acknowledges or allows more than any segment before it is later than those.
        let window = self.window(segment, nxt, ack);
        // A window is news only if there is something to send.
        let opens = !self.sender.has_nothing()
            && window.right_edge > self.sender.una() + self.sender.peer_window();
        let advances = ack > self.sender.una();
        if advances {
            let asked = self.ask(now, segment);
            self.on_ack(now, segment, nxt, ack, &asked);
        } else if opens {
            self.sender.on_window(now, &window);
        }
        advances || opens
    }

    /// The timestamp is there and not an old one (RFC 7323 §3.2, §5.3).
    #[inline]
    fn is_timely(&mut self, now: Time, segment: &Segment, len: u32) -> bool {
        let reset = segment.flags.contains(Flags::RST);
        match segment.options.timestamps {
            _ if reset => true,
            None if self.requires_timestamps => {
                self.refuse(Refusal::NoTimestamp);
                false
            }
            None => true,
            Some(stamp) if self.timestamps.is_old(now, stamp.value) => {
                self.refuse(Refusal::OldTimestamp);
                self.answer_stale(segment, len);
                false
            }
            Some(_) => true,
        }
    }

    /// PAWS, R1: an acknowledgment answers what is refused. Two ends whose TS.Recent is ahead of the
    /// other's clock refuse all that they hear, those answers too, and would answer each other for
    /// ever: what carries no data has few answers until something is acceptable again. Linux
    /// (`tcp_oow_rate_limited`) limits their rate.
    fn answer_stale(&mut self, segment: &Segment, len: u32) {
        let occupied = len > 0 || segment.flags.contains(Flags::FIN);
        if !occupied && self.stale_answers >= self.answers_allowed {
            return;
        }
        self.stale_answers += u32::from(!occupied);
        self.receiver.acknowledge_now();
    }

    /// What the segment says of the peer's window.
    #[inline]
    pub(super) fn window(&self, segment: &Segment, start: u64, ack: u64) -> Window {
        // RFC 7323 §2.2: the window of a SYN is never scaled.
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.send_shift };
        Window { seq: start, ack, right_edge: ack + (u64::from(segment.window) << shift) }
    }

    /// The same for a segment that is no SYN.
    #[inline(always)]
    pub(super) fn scaled(&self, segment: &Segment, start: u64, ack: u64) -> Window {
        let right_edge = ack + (u64::from(segment.window) << self.send_shift);
        Window { seq: start, ack, right_edge }
    }

    #[inline]
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        start: u64,
        ack: u64,
        asked: &Incoming,
    ) {
        let una = self.sender.una();
        if ack < una {
            return;
        }
        let congested =
            self.agreed.contains(Agreed::ECN) && segment.flags.contains(Flags::ECE) && una > 0;
        let echoed = match segment.options.timestamps {
            Some(stamp) if self.agreed.contains(Agreed::TIMESTAMPS) => {
                let since = self.sender.progress_at();
                self.timestamps.on_ack(now, una, self.sender.nxt(), since);
                self.timestamps.since(now, stamp.echo)
            }
            _ => None,
        };
        let window = self.window(segment, start, ack);
        let Incoming { may_count: bare, is_current: current, lets_out, .. } = *asked;
        let ack_of =
            |blocks| Ack { ack, window, blocks, bare, echoed, congested, current, lets_out };
        let blocks = &segment.options.sack;
        if blocks.is_empty() || !self.agreed.contains(Agreed::SACK) {
            self.sender.on_ack(now, &ack_of(&[]), &mut self.mechanisms);
        } else {
            let (blocks, count) = self.sacked(blocks);
            self.sender.on_ack(now, &ack_of(&blocks[..count]), &mut self.mechanisms);
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
    pub(super) fn on_sent_arrived(&mut self, now: Time, opens: bool) {
        if opens {
            self.sender.start();
            self.events |= Events::CONNECTED;
            if matches!(self.state, State::SynSent | State::SynReceived) {
                self.enter(State::Established);
            }
        }
        self.notify();
        if self.sender.outstanding() == 0 {
            self.timestamps.on_all_acknowledged();
        }
        if self.sender.una() == self.sender.stream.end() {
            match self.state {
                State::FinWait1 => {
                    self.enter(State::FinWait2);
                    self.limit_fin_wait_2(now);
                }
                State::Closing => self.enter_time_wait(now),
                State::LastAck => self.enter_closed(Events::CLOSED),
                _ => {}
            }
        }
    }

    fn on_peer_finished(&mut self, now: Time) {
        match self.state {
            State::SynReceived | State::Established => self.enter(State::CloseWait),
            State::FinWait1 => self.enter(State::Closing),
            State::FinWait2 => self.enter_time_wait(now),
            _ => return,
        }
        self.events |= Events::PEER_CLOSED;
    }

    /// The peer is there.
    #[inline]
    fn heard(&mut self, now: Time) {
        if let Some(keep_alive) = self.keep_alive
            && !self.is_ending()
        {
            self.unanswered = 0;
            self.alarm = now + keep_alive.idle;
        }
    }

    fn refuse(&mut self, why: Refusal) {
        self.sender.log.push(|| Event::Refused { why });
    }

    /// Asks the peer whether it meant that (RFC 5961), but not too often (§7).
    fn challenge(&mut self, now: Time) {
        if self.challenges.take(now, self.challenges_allowed) {
            self.receiver.acknowledge_now();
            self.sender.log.push(|| Event::Challenged);
        }
    }
}
