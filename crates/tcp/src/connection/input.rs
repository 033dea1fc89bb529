//! Arriving segments: RFC 9293 §3.10.7, with the checks of RFC 5961 and RFC 7323.

use super::{Connection, Events, Negotiated, absolute};
use crate::event::{DropReason, Event};
use crate::mechanism::{Hooks, Incoming};
use crate::state::State;
use base::Time;
use wire::{Ecn, EcnFields, Flags, Payload, Segment};

/// A segment that passed the checks of sequence number and control bits.
pub(super) struct Arrived<'a> {
    pub(super) segment: &'a Segment,
    pub(super) payload: Payload,
    /// Its first octet, absolute.
    pub(super) start: u64,
    pub(super) fin: bool,
}

impl Connection {
    /// Processes a segment of this connection; `ecn` is the codepoint of its IP header, with the AccECN
    /// option of the segment, or alone. Returns the part of the payload that was accepted, inside the window and not yet acknowledged, some of
    /// which may have been accepted before. A caller that carries bytes keeps those and no others.
    #[inline]
    pub fn handle_segment(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        ecn: impl Into<EcnFields>,
    ) -> Payload {
        let ecn = ecn.into();
        if let Some(accurate) = &mut self.accurate_ecn {
            accurate.set_arrived(ecn.counters, payload.len);
        }
        let now = self.clock.local(now);
        match self.state {
            State::Closed => Payload::default(),
            State::SynSent => self.in_syn_sent(now, segment, payload, ecn),
            _ if self.receiver.nxt() == 0 => {
                self.on_peer_syn(now, segment, ecn);
                self.on_fast_open_syn(now, segment, payload)
            }
            _ => self.in_synchronized(now, segment, payload, ecn.codepoint),
        }
    }

    /// The offset of a segment's first byte of data in the peer's stream. `None` if it precedes the
    /// stream: no data of such segments is accepted. Before the peer's SYN has arrived, only that can
    /// have data (Fast Open).
    #[must_use]
    #[inline]
    pub fn place(&self, segment: &Segment) -> Option<u64> {
        if self.receiver.nxt() == 0 {
            return Some(0);
        }
        absolute(segment.seq, self.irs, self.receiver.nxt())?.checked_sub(1)
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
            // Before the peer's SYN: its payload is no part of this connection.
            self.on_unacceptable(now, segment, Payload::default(), 0);
            return Payload::default();
        };
        if self.negotiated.contains(Negotiated::TIMESTAMPS)
            && !self.passes_paws(now, segment, payload.len)
        {
            return Payload::default();
        }
        let control = segment.flags & (Flags::SYN | Flags::FIN | Flags::RST);
        let fin = control.contains(Flags::FIN);
        let end = start + u64::from(payload.len) + u64::from(fin);
        // First, check the sequence number. A peer that has used up its window is one past it.
        let acceptable = start <= nxt + self.receiver.window() && (start >= nxt || end > nxt);
        if !acceptable || control.intersects(Flags::SYN | Flags::RST) {
            self.on_suspicious(now, segment, payload, start, acceptable, ecn);
            return Payload::default();
        }
        if !segment.flags.contains(Flags::ACK) {
            self.log_drop(DropReason::NoAck);
            return Payload::default();
        }
        let Some(ack) = self.sent_offset(segment.ack).filter(|&ack| self.is_valid_ack(ack)) else {
            self.on_bad_ack(now, segment);
            return Payload::default();
        };
        if let Some(stamp) = segment.options.timestamps
            && self.negotiated.contains(Negotiated::TIMESTAMPS)
        {
            self.timestamps.update(now, stamp.value, start);
        }
        self.accept(now, &Arrived { segment, payload, start, fin }, ack, ecn)
    }

    /// Processes an acceptable segment. Returns the part of its payload that is accepted.
    #[inline]
    pub(super) fn accept(
        &mut self,
        now: Time,
        arrived: &Arrived<'_>,
        ack: u64,
        ecn: Ecn,
    ) -> Payload {
        let Arrived { segment, payload, start, fin } = *arrived;
        self.paws_acks = 0;
        self.on_peer_alive(now);
        if self.negotiated.contains(Negotiated::ECN) {
            // RFC 3168 §6.1.3
            self.echoes_congestion &= !segment.flags.contains(Flags::CWR);
            self.echoes_congestion |= ecn == Ecn::Congested;
        }
        let acknowledge =
            self.accurate_ecn.is_some() && self.count_codepoint(segment, ecn, payload.len);
        // RFC 6093 §6: urgent data is part of the stream, in line.
        self.sender.statistics.urgent += u64::from(segment.flags.contains(Flags::URG));
        let occupied = payload.len > 0 || fin;
        let mut asked = self.ask_mechanisms(now, segment);
        asked.may_be_dupack &= !occupied;
        if ack > self.sender.una() || self.sender.outstanding() > 0 {
            self.on_ack(now, segment, start, ack, &asked);
        } else if ack == self.sender.una() {
            if self.accurate_ecn.is_some() {
                // What is marked is counted, but there is nothing whose rate could be reduced.
                self.accurate_feedback(segment, start, ack);
            }
            self.sender.on_window(now, &self.announced_window(segment, start, ack));
        }
        let mut taken = Payload::default();
        if occupied && !self.receiver.is_finished() && self.state != State::Closed {
            if payload.len > 0 {
                self.tune_receive_buffer(now, segment);
            }
            let before = self.receiver.nxt();
            taken = self.receiver.on_data(now, start, payload, fin, &mut self.mechanisms);
            self.log_arrival(before, start, payload.len);
            if self.receiver.take_queue_overflow() {
                self.log_drop(DropReason::QueueFull);
            }
            if self.receiver.readable() > 0 {
                if self.is_read_closed {
                    // RFC 9293 §3.6.1, SHLD-3
                    self.abort();
                    return taken;
                }
                self.events |= Events::READABLE;
            }
            if self.receiver.is_finished() {
                self.on_peer_finished(now);
            } else if self.receiver.holds_fin_now() {
                self.events |= Events::PEER_CLOSING;
            }
        } else if occupied {
            self.receiver.acknowledge_now();
        } else if self.state == State::TimeWait && start > self.receiver.nxt() {
            // Nothing can follow the peer's FIN: the ends disagree.
            self.challenge(now);
        }
        if acknowledge && !self.receiver.ack_due() && self.state != State::Closed {
            self.acknowledge_marks(occupied);
        }
        taken
    }

    /// Adapts the receive buffer to the path, if it is time to, as a segment with data arrives.
    #[inline(always)]
    pub(super) fn tune_receive_buffer(&mut self, now: Time, segment: &Segment) {
        if self.receiver.is_tuning_due(now) {
            self.tune_receive_buffer_now(now, segment);
        }
    }

    #[inline(never)]
    fn tune_receive_buffer_now(&mut self, now: Time, segment: &Segment) {
        let stamp = segment.options.timestamps;
        let stamp = stamp.filter(|_| self.negotiated.contains(Negotiated::TIMESTAMPS));
        let echoed = stamp.and_then(|stamp| self.timestamps.age_of_echo(now, stamp.echo));
        self.receiver.tune(now, echoed, self.sender.min_rtt());
    }

    /// Records what has become of data that arrived when RCV.NXT was `before`.
    #[inline]
    pub(super) fn log_arrival(&mut self, before: u64, start: u64, len: u32) {
        let next = self.receiver.nxt();
        self.sender.log.push(|| match next > before {
            true => Event::Received { next },
            false => Event::OutOfOrder { start, len },
        });
    }

    /// Calls the mechanisms' hooks for an arriving segment.
    #[inline]
    pub(super) fn ask_mechanisms(&mut self, now: Time, segment: &Segment) -> Incoming {
        if !self.mechanisms.has_hook(Hooks::INCOMING) {
            return Incoming::NO_OPINION;
        }
        let mut all = Incoming::NO_OPINION;
        for index in 0..self.mechanisms.len() {
            let view = self.sender.view(now);
            let Some(incoming) = self.mechanisms.incoming_to(index, &view, segment) else {
                continue;
            };
            if let Some(action) = incoming.action {
                self.apply(now, action);
            }
            all = all.and(incoming);
        }
        all
    }

    /// Acknowledges the peer's FIN that was held, and holds none any more ([`Connection::hold_fin`]).
    pub fn release_fin(&mut self, now: Time) {
        if self.receiver.release_fin() && self.state != State::Closed {
            self.on_peer_finished(self.clock.local(now));
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
}
