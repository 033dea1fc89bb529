//! Indications in, and the actions that mechanisms ask for.

use super::{Connection, Events, absolute};
use crate::indication::Indication;
use crate::mechanism::{Action, Hooks};
use crate::state::State;
use base::Time;
use wire::SeqNumber;

impl Connection {
    /// Processes an indication of a lower layer, a router or the peer.
    pub fn indicate(&mut self, now: Time, indication: &Indication) {
        if self.state == State::Closed {
            return;
        }
        let now = self.clock.local(now);
        let Some(indication) = self.with_copy(indication) else { return };
        let indication = &indication;
        if let Indication::Unreachable { seq, hard } = *indication {
            return self.on_unreachable(seq, hard);
        }
        if let Indication::TooBig { seq, mss } = *indication {
            return self.on_too_big(now, seq, mss);
        }
        if !self.mechanisms.has_hook(Hooks::INDICATION) {
            return;
        }
        // A corruption of octets that have arrived, or lie outside the window, is ignored (RFC 5927
        // §4.1).
        if let Indication::PeerCorrupted { .. } = *indication
            && !self.is_relevant(indication)
        {
            return;
        }
        if let Indication::Connectivity(_) = *indication {
            return self.on_connectivity(now, indication);
        }
        let view = self.sender.view(now);
        if let Some(action) = self.mechanisms.indication(&view, indication) {
            self.apply(now, action);
        }
    }

    /// The same indication, which names a copy by its number; `None` if it names one by a timestamp that is not that of
    /// the latest copy of the segment.
    fn with_copy(&self, indication: &Indication) -> Option<Indication> {
        let Indication::Corrupted { seq, len, timestamp: Some(timestamp), .. } = *indication else {
            return Some(*indication);
        };
        let (copy, sent_at) = self.sender.latest_copy(self.sent_offset(seq)?)?;
        let is_latest = self.timestamps.value(sent_at) == timestamp;
        is_latest.then_some(Indication::Corrupted { seq, len, copy, timestamp: None })
    }

    /// Passes a change of connectivity to every mechanism.
    fn on_connectivity(&mut self, now: Time, indication: &Indication) {
        for index in 0..self.mechanisms.len() {
            let view = self.sender.view(now);
            if let Some(action) = self.mechanisms.indication_to(index, &view, indication) {
                self.apply(now, action);
            }
        }
    }

    /// Whether an indication can be about this connection in its present state: about the latest
    /// copy of an outstanding segment, or about octets of the peer that are missing.
    #[must_use]
    pub fn is_relevant(&self, indication: &Indication) -> bool {
        match *indication {
            Indication::Corrupted { seq, copy, .. } => {
                self.sent_offset(seq).is_some_and(|start| self.sender.is_missing(start, copy))
            }
            Indication::PeerCorrupted { seq, len, .. } => {
                let nxt = self.receiver.nxt();
                let start = absolute(seq, self.irs, nxt).filter(|_| nxt > 0);
                start.is_some_and(|start| self.receiver.is_missing(start, start + u64::from(len)))
            }
            Indication::Unreachable { seq, .. } | Indication::TooBig { seq, .. } => {
                self.is_outstanding(seq)
            }
            // These are about a path, or about what follows, not about a segment.
            Indication::Path(_)
            | Indication::Link { .. }
            | Indication::Connectivity(_)
            | Indication::PeerLosses(_) => false,
        }
    }

    fn is_outstanding(&self, seq: SeqNumber) -> bool {
        self.sent_offset(seq)
            .is_some_and(|seq| (self.sender.una()..self.sender.nxt()).contains(&seq))
    }

    /// Carries out a mechanism's action.
    pub(super) fn apply(&mut self, now: Time, action: Action) {
        let (seq, copy, judged) = match action {
            Action::Lost { seq, copy } => (seq, copy, true),
            Action::RetransmitNow { seq, copy } => (seq, copy, false),
            Action::Acknowledge => return self.receiver.acknowledge_now(),
            Action::ForceSend => return self.force_send(),
            Action::Reprobe { window, resend } => return self.reprobe(now, window, resend),
            Action::EndSlowStart => return self.sender.end_slow_start(),
            Action::CloseWindow => {
                self.receiver.close_window();
                return self.update_fast_path();
            }
            Action::OpenWindow => {
                self.receiver.open_window();
                return self.update_fast_path();
            }
        };
        let Some(copy) = self.mechanisms.admit(&self.sender.view(now), copy) else { return };
        if let Some(start) = self.sent_offset(seq) {
            self.sender.on_notice(now, start, copy, judged, &mut self.mechanisms);
        }
    }

    /// Starts anew on another path.
    fn reprobe(&mut self, now: Time, window: Option<u32>, resend: bool) {
        self.timestamps.bump();
        let resends = self.sender.reprobe(now, window, resend);
        if !resends {
            self.force_send();
        }
    }

    /// Sends a segment of new data at once, or else an acknowledgment.
    fn force_send(&mut self) {
        if !self.sender.force_new_data() {
            self.receiver.acknowledge_now();
        }
    }

    /// Handles an ICMP error. Once the peer has answered, it does not end the connection (RFC 5461
    /// §4).
    fn on_unreachable(&mut self, seq: SeqNumber, hard: bool) {
        // RFC 5927 §4.1: the quoted sequence number must be outstanding.
        if self.is_outstanding(seq) && hard && self.state == State::SynSent {
            self.enter_closed(Events::UNREACHABLE | Events::CLOSED);
        }
    }
}
