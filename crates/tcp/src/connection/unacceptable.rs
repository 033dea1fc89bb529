//! Segments that are not acceptable: PAWS (RFC 7323 §5), sequence numbers outside the window
//! (RFC 9293 §3.10.7.4), blind resets, SYNs and acknowledgments (RFC 5961).

use super::{Connection, Events, OutOfBand, Reset, Side};
use crate::event::{DropReason, Event};
use crate::state::State;
use base::Time;
use wire::{Ecn, Flags, Payload, Segment};

impl Connection {
    /// Checks the timestamp: present if it is required, and not old (RFC 7323 §3.2, §5.3).
    #[inline]
    pub(super) fn passes_paws(&mut self, now: Time, segment: &Segment, len: u32) -> bool {
        let reset = segment.flags.contains(Flags::RST);
        match segment.options.timestamps {
            _ if reset => true,
            None if self.requires_timestamps => {
                self.log_drop(DropReason::NoTimestamp);
                false
            }
            None => true,
            Some(stamp) if self.timestamps.is_old(now, stamp.value) => {
                self.log_drop(DropReason::OldTimestamp);
                self.acknowledge_refused(segment, len);
                false
            }
            Some(_) => true,
        }
    }

    /// Answers a segment that PAWS refused with an acknowledgment (R1). Two ends whose TS.Recent is
    /// ahead of the other's clock refuse every segment, those answers too, and would answer each
    /// other without end: the answers to segments without data are limited until a segment is
    /// acceptable. Linux (`tcp_oow_rate_limited`) limits their rate.
    fn acknowledge_refused(&mut self, segment: &Segment, len: u32) {
        let occupied = len > 0 || segment.flags.contains(Flags::FIN);
        if !occupied && self.paws_acks >= self.out_of_window_acks_allowed {
            return;
        }
        self.paws_acks += u32::from(!occupied);
        self.receiver.acknowledge_now();
    }

    pub(super) fn on_bad_ack(&mut self, now: Time, segment: &Segment) {
        self.log_drop(DropReason::BadAck);
        if self.sender.una() == 0 {
            // RFC 9293 §3.10.7.4, fifth, in SYN-RECEIVED.
            self.out_of_band = Some(OutOfBand::Reset(Reset { seq: segment.ack, acks: false }));
        } else {
            self.challenge(now);
        }
    }

    /// Handles a segment outside the window, a reset or a SYN.
    #[cold]
    pub(super) fn on_suspicious(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        start: u64,
        acceptable: bool,
        ecn: Ecn,
    ) {
        if segment.flags.contains(Flags::RST) {
            return self.on_reset(now, start, acceptable);
        }
        if !segment.flags.contains(Flags::SYN) {
            return self.on_unacceptable(now, segment, payload, start);
        }
        if self.sender.una() == 0 && start == 0 {
            return self.on_syn_again(now, segment, payload, ecn);
        }
        // RFC 5961 §4.2: wherever it lies.
        self.log_drop(DropReason::BlindSyn);
        self.challenge(now);
        if self.accurate_ecn.is_some() && self.receiver.ack_due() {
            self.on_syn_ack_again(segment, ecn);
        }
    }

    /// RFC 5961 §3.2
    fn on_reset(&mut self, now: Time, start: u64, acceptable: bool) {
        let nxt = self.receiver.nxt();
        if self.state == State::TimeWait {
            // RFC 1337 §3: an old reset must not end TIME-WAIT.
            self.log_drop(DropReason::TimeWaitReset);
        } else if start == nxt {
            let silent = self.state == State::SynReceived
                && self.side == Side::Passive
                && !self.is_connected_early();
            // A passive open that fails returns to LISTEN: the application does not know of it yet.
            let events = if silent { Events::empty() } else { Events::RESET };
            self.enter_closed(events | Events::CLOSED);
        } else {
            self.log_drop(DropReason::BlindReset);
            // Until the connection is established, the peer knows only the window of our SYN.
            let window = match self.state {
                State::SynReceived => self.receiver.syn_window(),
                _ => self.receiver.window(),
            };
            if acceptable && start < nxt + window {
                self.challenge(now);
            }
        }
    }

    /// Answers a segment outside the window with our state (RFC 9293 §3.10.7.4, first).
    #[cold]
    pub(super) fn on_unacceptable(
        &mut self,
        now: Time,
        segment: &Segment,
        payload: Payload,
        start: u64,
    ) {
        self.log_drop(DropReason::OutsideWindow);
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let occupied = payload.len > 0 || segment.flags.contains(Flags::FIN);
        if occupied && self.state == State::TimeWait {
            // The peer retransmits its FIN, or data before it: our acknowledgment was lost.
            self.enter_time_wait(now);
        }
        let end = start + u64::from(payload.len);
        let updates = self.on_ack_before_window(now, segment);
        if payload.len > 0 && end <= self.receiver.nxt() {
            self.receiver.on_duplicate_data(start, end);
            self.repeat_ecn_counters(start);
        } else if occupied {
            self.receiver.acknowledge_now();
        } else if !updates {
            // A keep-alive or a window probe (RFC 9293 §3.8.4, §3.8.6.1), or a peer that disagrees
            // on the state: the ends must not answer each other without a limit.
            if self.out_of_window_acks.take(now, self.out_of_window_acks_allowed) {
                self.receiver.acknowledge_now();
            }
        }
    }

    /// Processes the acknowledgment and window of a segment that begins one octet before the
    /// receive window: the peer has probed our window and does not know yet that we accepted the
    /// octet. Returns whether it advances SND.UNA or opens the window. A keep-alive, which looks
    /// the same, does neither and waits for an answer.
    fn on_ack_before_window(&mut self, now: Time, segment: &Segment) -> bool {
        let nxt = self.receiver.nxt();
        // The number in the segment decides: octets before the peer's SYN have no absolute number.
        let is_before = segment.seq + 1 == self.irs + nxt as u32;
        let acks = segment.flags.contains(Flags::ACK) && is_before;
        let ack = self.sent_offset(segment.ack).filter(|&ack| acks && self.is_valid_ack(ack));
        let Some(ack) = ack.filter(|&ack| ack >= self.sender.una()) else { return false };
        // A segment that acknowledges or allows more than any before it is later than those.
        let window = self.announced_window(segment, nxt, ack);
        // An opened window matters only if there is data to send.
        let opens = !self.sender.is_all_acked()
            && window.window_end > self.sender.una() + self.sender.peer_window();
        let advances = ack > self.sender.una();
        if advances {
            let asked = self.ask_mechanisms(now, segment);
            self.on_ack(now, segment, nxt, ack, &asked);
        } else if opens {
            self.sender.on_window(now, &window);
        }
        advances || opens
    }

    /// Sends a challenge acknowledgment (RFC 5961), within the limit of §7.
    pub(super) fn challenge(&mut self, now: Time) {
        if self.challenges.take(now, self.challenges_allowed) {
            self.receiver.acknowledge_now();
            self.sender.log.push(|| Event::Challenged);
        }
    }

    pub(super) fn log_drop(&mut self, why: DropReason) {
        self.sender.log.push(|| Event::Refused { why });
    }
}
