//! Tail loss probes (RFC 8985 §7): if the acknowledgments of a flight's tail stay away, a probe
//! fetches one before the retransmission timer expires.

use super::acks::Ack;
use super::timer::Timer;
use super::{NEW_DATA, Sender};
use crate::event::Event;
use crate::mechanism::{Mechanisms, Signal};
use crate::scoreboard::Record;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// TLP.max_ack_delay: as long as receivers delay acknowledgments (Linux: 200 ms).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

/// A loss probe that is not accounted for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LossProbe {
    /// TLP.end_seq: SND.NXT once it was sent.
    end: u64,
    /// TLP.is_retrans: the range that it repeats, as it was before; none if it is new data.
    repeated: Option<Record>,
}

impl Sender {
    /// Starts the probe timer instead of the retransmission timer where probes are sent: in
    /// established connections without a gap, one for each tail (RFC 8985 §7.2).
    #[inline(always)]
    pub(super) fn start_probe_timer(&mut self, now: Time) {
        if self.detector.uses_rack() && self.may_probe() {
            self.timer = Timer::Probe;
            self.deadline = self.probe_or_retransmission(now);
        }
    }

    /// When the running probe timer expires, without regard for data sent from now on, and for a
    /// single segment: what these add is waited for when it does.
    #[inline(always)]
    pub(super) fn probe_or_retransmission(&self, now: Time) -> Time {
        self.retransmission_after(now).min(now + self.rtt.probe_timeout())
    }

    fn may_probe(&self) -> bool {
        self.is_clean() && self.probe.is_none() && self.board.una() > 0
    }

    /// Handles the probe timer: sends a probe, or waits since data was sent meanwhile. False if the
    /// retransmission timer has taken over.
    pub(super) fn on_probe_timer(&mut self, now: Time) -> bool {
        // A single segment may wait for the receiver's delayed acknowledgment.
        let single = self.board.outstanding() <= u64::from(self.mss);
        let delay = if single { MAX_ACK_DELAY } else { Duration::ZERO };
        let due = self.sent_at.max(self.progress_at) + self.rtt.probe_timeout() + delay;
        // The retransmission timer runs since data was last acknowledged (RFC 6298 §5.3).
        self.retransmission_at = self.retransmission_after(self.progress_at);
        let due = due.min(self.retransmission_at);
        let closed = self.window_end <= self.board.una();
        if !self.may_probe() || closed || self.board.outstanding() == 0 {
            self.deadline = self.retransmission_at;
            self.timer = Timer::Retransmission;
        } else if due > now {
            self.deadline = due;
        } else {
            self.send_probe();
            // RFC 8985 §7.3: the retransmission timer follows, with a full timeout.
            self.start_retransmission_timer(now);
        }
        self.deadline > now
    }

    /// Queues new data as a probe or, if there is none or the peer has no room for it, the last
    /// segment once more (RFC 8985 §7.3, TLP_send_probe).
    fn send_probe(&mut self) {
        let (nxt, len) = (self.board.nxt(), self.next_len());
        let probe = match (len, self.board.highest_unsacked()) {
            (Some(len), _) => {
                self.forced_queue.push_back(NEW_DATA);
                Some(LossProbe { end: nxt + len, repeated: None })
            }
            (None, Some(index)) => {
                let last = *self.board.get(index);
                self.forced_queue.push_back(last.start);
                Some(LossProbe { end: nxt, repeated: Some(last) })
            }
            (None, None) => None,
        };
        self.probe = probe.map(Box::new);
        self.statistics.loss_probes += 1;
        self.log.push(|| Event::ProbedTail);
    }

    /// Whether the last loss probe is new data.
    #[cfg(test)]
    pub(crate) fn probes_with_new_data(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.repeated.is_none())
    }

    /// Ends the probe's episode if an acknowledgment shows its outcome (RFC 8985 §7.4,
    /// TLP_process_ack).
    pub(super) fn on_ack_of_probe(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        dsack: Option<(u64, u64)>,
        mechanisms: &mut Mechanisms,
    ) {
        let Some(LossProbe { end, repeated }) = self.probe.as_deref().copied() else { return };
        if ack.ack < end {
            return;
        }
        let arrived_twice = dsack.is_some_and(|(_, until)| until == end);
        let duplicate = ack.ack == self.board.una() && ack.may_be_dupack && ack.blocks.is_empty();
        match repeated {
            Some(lost) if !arrived_twice && ack.ack > end => {
                self.probe = None;
                // The probe has repaired a loss that nothing else shows.
                self.reduce_once(now, &lost, Signal::Rack, mechanisms);
            }
            Some(_) if !arrived_twice && !duplicate => {}
            _ => self.probe = None,
        }
    }
}
