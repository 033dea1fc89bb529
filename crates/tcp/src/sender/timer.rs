//! The sender's timer: retransmission (RFC 6298), window probes (RFC 9293 §3.8.6.1), and the limits
//! after which the connection is aborted (§3.8.3).

use super::Sender;
use crate::config::SsthreshOnBackoff;
use crate::event::Event;
use crate::mechanism::{Mechanisms, Signal, Verdict};
use base::Time;

impl Sender {
    /// When [`Sender::on_deadline`] is due.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Restarts the timer, because data is outstanding.
    #[inline(always)]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.deadline = now + self.rtt.rto();
        if let Some(timeout) = self.config.user_timeout {
            self.deadline = self.deadline.min(self.progress_at + timeout);
        }
    }

    /// Handles the timer.
    pub(crate) fn on_deadline(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        if now < self.deadline {
            return;
        }
        self.deadline = Time::NEVER;
        if self.config.user_timeout.is_some_and(|timeout| self.progress_at + timeout <= now)
            && self.board.outstanding() > 0
        {
            self.timed_out = true;
            return;
        }
        if core::mem::take(&mut self.held_back) {
            return self.stream.flush();
        }
        let Some(&first) = self.board.first() else {
            // Data waits for the peer's window.
            self.rtt.back_off();
            self.probing = true;
            self.probe_due = true;
            return;
        };
        self.consecutive_timeouts =
            if self.timeout_una == self.board.una() { self.consecutive_timeouts + 1 } else { 1 };
        self.timeout_una = self.board.una();
        let opens = self.board.una() == 0;
        let retries = if opens { self.config.syn_retries } else { self.config.retries };
        if self.consecutive_timeouts > retries {
            self.timed_out = true;
            return;
        }
        // RFC 6298 §5.5, 5.6.
        self.rtt.back_off();
        self.restart_timer(now);
        if self.window_end <= self.board.una() {
            // No segment is lost: the peer's window is closed. Its answers keep the connection
            // alive.
            self.probing = true;
            self.board.forget_reneged();
            self.forced_queue.push_back(first.start);
            self.log.push(|| Event::Probed);
            return;
        }
        self.statistics.timeouts += 1;
        self.log.push(|| Event::TimedOut {
            consecutive: self.consecutive_timeouts,
            rto: self.rtt.rto(),
        });
        let (decrease, keep_ssthresh) = match self.verdict(now, &first, Signal::Rto, mechanisms) {
            Verdict::Corruption => {
                self.board.mark_latest_copy_lost(self.board.head(), true);
                self.forced_queue.push_back(first.start);
                return;
            }
            Verdict::Congestion { keep_ssthresh } => (None, keep_ssthresh),
            Verdict::Decrease(factor) => (Some(factor), false),
        };
        let hold = self.consecutive_timeouts > 1
            && self.config.ssthresh_on_backoff == SsthreshOnBackoff::Hold;
        let episode = self.episode(now, decrease, keep_ssthresh || hold);
        self.controller.on_rto(&episode);
        self.arm_undo_on_timeout();
        self.cwr_pending = true;
        self.reduced_until = self.board.nxt();
        self.log.push(|| Event::Reduced {
            signal: Signal::Rto,
            window: self.controller.window(),
            ssthresh: self.controller.ssthresh(),
        });
        self.enter_loss();
    }

    /// Starts the persist timer if data may not be sent and none is outstanding: no acknowledgment
    /// will come to change that. The window may be closed (RFC 9293 §3.8.6.1), or a small segment
    /// held back.
    pub(super) fn arm_persist_timer(&mut self, now: Time) {
        let waiting = self.board.outstanding() == 0 && self.board.nxt() < self.stream.end();
        if waiting && self.deadline == Time::NEVER {
            self.held_back = self.has_peer_window_for_next();
            self.probing = !self.held_back;
            self.deadline = now + self.rtt.rto();
        }
    }

    /// Whether the peer's window has room for the whole next segment.
    fn has_peer_window_for_next(&self) -> bool {
        let nxt = self.board.nxt();
        let next = self.stream.available(nxt).clamp(1, u64::from(self.mss));
        nxt + next <= self.window_end
    }

    /// Handles an answer to a window probe; the window reached to `edge` before.
    pub(super) fn on_window_while_probing(&mut self, now: Time, edge: u64) {
        // RFC 9293 §3.8.6.1, MUST-37: as long as it answers, the connection stays open.
        self.consecutive_timeouts = 0;
        self.progress_at = now;
        let refused = self.board.first().map(|record| record.start);
        let open = match refused {
            Some(start) => self.window_end > start,
            None => self.has_peer_window_for_next() || self.next_len().is_some(),
        };
        if !open {
            return;
        }
        self.probing = false;
        self.probe_due = false;
        self.rtt.end_back_off();
        match refused {
            // The window had room for it: it is in flight.
            Some(start) if start < edge => {}
            // The refused octet is sent again at once.
            Some(start) => {
                self.forced_queue.push_back(start);
                self.restart_timer(now);
            }
            None => self.deadline = Time::NEVER,
        }
    }

    /// Whether a limit has passed and the connection is to be aborted.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timed_out
    }
}
