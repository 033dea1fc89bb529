//! The handshake: SYNs and the options that they negotiate.

use super::ecn::{EcnOffer, answered_ecn, is_ecn_setup};
use super::input::Arrived;
use super::{Connection, Events, Negotiated, OutOfBand, Reset};
use crate::event::DropReason;
use crate::mechanism::Incoming;
use crate::state::State;
use base::Time;
use wire::{Ecn, EcnFields, Flags, Packet, Payload, Segment};

impl Connection {
    /// Puts a new passive connection into the state after `syn` and our answer to it, which a SYN
    /// cookie has kept elsewhere (RFC 4987 §3.6). When the answer was sent is not known, so it
    /// gives no round-trip sample.
    pub fn assume_syn_answered(&mut self, now: Time, syn: &Segment) {
        self.handle_segment(now, syn, Payload::default(), Ecn::NotCapable);
        let mut answer = Packet::BLANK;
        self.poll_transmit(now, 1, &mut answer);
        self.sender.disable_rtt_samples();
    }

    /// RFC 9293 §3.10.7.3. Returns the part of the payload that was accepted.
    pub(super) fn in_syn_sent(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        ecn: EcnFields,
    ) -> Payload {
        let acks = segment.flags.contains(Flags::ACK);
        let ack = self.sent_offset(segment.ack).filter(|_| acks).unwrap_or(0);
        // It acknowledges our SYN, and perhaps data that went with it.
        let acceptable = ack > 0 && ack <= self.sender.nxt();
        if acks && !acceptable {
            self.log_drop(DropReason::BadAck);
            if !segment.flags.contains(Flags::RST) {
                self.out_of_band = Some(OutOfBand::Reset(Reset { seq: segment.ack, acks: false }));
            }
        } else if segment.flags.contains(Flags::RST) {
            if acceptable && !self.retry_without_ecn() {
                self.enter_closed(Events::RESET | Events::CLOSED);
            }
        } else if segment.flags.contains(Flags::SYN) {
            self.on_peer_syn(now, segment, ecn);
            if acceptable {
                self.on_ack(now, segment, 0, ack, &Incoming::NO_OPINION);
                return self.on_syn_ack_payload(now, payload);
            }
            // Simultaneous open (RFC 9293 §3.5, figure 8): send our SYN again, with an ACK.
            self.enter(State::SynReceived);
            self.sender.retransmit_syn();
        }
        Payload::default()
    }

    /// Processes the peer's SYN: its sequence number and its options.
    pub(super) fn on_peer_syn(&mut self, now: Time, segment: &Segment, ecn: EcnFields) {
        self.irs = segment.seq;
        let options = &segment.options;
        let mut offered = Negotiated::empty();
        offered.set(Negotiated::SACK, options.sack_permitted);
        offered.set(Negotiated::SCALE, options.window_scale.is_some());
        offered.set(Negotiated::TIMESTAMPS, options.timestamps.is_some());
        offered |= answered_ecn(self.ecn_mode, segment.flags);
        self.negotiated &= offered;
        if self.negotiated.contains(Negotiated::ACCURATE_ECN) {
            self.begin_accurate_ecn(segment, ecn);
        }
        match options.window_scale {
            Some(shift) if self.negotiated.contains(Negotiated::SCALE) => {
                self.send_shift = shift.min(14)
            }
            _ => self.receive_shift = 0,
        }
        let peer_mss = options.mss.unwrap_or(self.default_mss).max(self.minimum_mss).max(1);
        let mss = self.mss.min(peer_mss);
        self.mechanisms.on_peer_syn(segment, self.negotiated.contains(Negotiated::TIMESTAMPS));
        if let Some(stamp) = options.timestamps
            && self.negotiated.contains(Negotiated::TIMESTAMPS)
        {
            self.timestamps.begin(now, stamp.value);
        }
        let sack = self.negotiated.contains(Negotiated::SACK);
        self.receiver.on_syn(self.data_len(mss), sack);
        self.sender.on_negotiated(self.data_len(mss.min(self.path_mss)), sack);
        self.on_peer_alive(now);
    }

    /// Handles a repeated SYN: our answer was lost, or both ends open at once.
    pub(super) fn on_syn_again(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        ecn: Ecn,
    ) {
        let ack = self.sent_offset(segment.ack).filter(|&ack| self.is_valid_ack(ack));
        if segment.flags.contains(Flags::ACK)
            && let Some(ack) = ack
        {
            // The answer to our SYN (RFC 9293 §3.5, figure 8).
            self.on_simultaneous_syn_ack(segment, ecn);
            let empty = Payload { len: 0, ..payload };
            let arrived = Arrived { segment, payload: empty, start: 0, fin: false };
            self.accept(now, &arrived, ack, Ecn::NotCapable);
        } else if segment.flags.contains(Flags::ACK) {
            self.on_bad_ack(now, segment);
        } else if !self.keeps_ecn_mode(segment, ecn) {
            // RFC 9768 §3.1.5
            self.abort();
        } else {
            if !is_ecn_setup(segment.flags) {
                // The peer has fallen back: RFC 3168 §6.1.1 permits neither ECT nor, in another
                // answer, ECE. The mode stays (RFC 9768 §3.1.5).
                self.ecn_offer = EcnOffer::Withdrawn;
            }
            self.sender.retransmit_syn();
        }
    }
}
