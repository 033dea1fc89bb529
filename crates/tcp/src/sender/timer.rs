//! The sender's timer: retransmission (RFC 6298), window probes (RFC 9293 §3.8.6.1), and the limits
//! after which the connection is aborted (§3.8.3).

use super::Sender;
use crate::config::SsthreshOnBackoff;
use crate::event::Event;
use crate::mechanism::{Mechanisms, Signal, Verdict};
use crate::scoreboard::{Record, Sent};
use base::Time;
use serde::{Deserialize, Serialize};

/// What the sender's timer runs for: one at a time (RFC 8985 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Timer {
    /// Retransmission, a window probe, or data that is held back.
    Retransmission,
    /// A loss probe, before retransmission.
    Probe,
    /// The end of RACK's reordering window, before retransmission.
    Reordering,
}

impl Sender {
    /// When [`Sender::on_deadline`] is due.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.deadline.min(self.pacer.wake_at())
    }

    /// When the timer expires; pacing has its own.
    #[inline]
    pub(crate) fn timer_deadline(&self) -> Time {
        self.deadline
    }

    /// Restarts the timer, because data is outstanding.
    #[inline(always)]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.start_retransmission_timer(now);
        self.start_probe_timer(now);
    }

    /// Like [`Sender::restart_timer`], on the fast path, where no timer but these two runs.
    #[inline(always)]
    pub(super) fn restart_timer_without_gap(&mut self, now: Time) {
        self.deadline = if self.timer == Timer::Probe {
            self.probe_or_retransmission(now)
        } else {
            self.retransmission_after(now)
        };
    }

    /// When the retransmission timer expires that was restarted at `now`.
    #[inline(always)]
    pub(super) fn retransmission_after(&self, now: Time) -> Time {
        let at = self.rtt.expiry(now);
        self.user_timeout.map_or(at, |timeout| at.min(self.progress_at + timeout))
    }

    /// Restarts the retransmission timer.
    #[inline(always)]
    pub(super) fn start_retransmission_timer(&mut self, now: Time) {
        let at = self.retransmission_after(now);
        self.retransmission_at = at;
        if self.timer == Timer::Reordering && self.deadline < Time::NEVER {
            self.deadline = at.min(self.deadline);
        } else {
            self.deadline = at;
            self.timer = Timer::Retransmission;
        }
    }

    /// Restarts the retransmission timer, if configured, after a SACK of which the latest segment was `sent` before
    /// the one at SND.UNA was sent again. A SACK of a later one does not: it says that the retransmission is late.
    pub(super) fn restart_timer_on_sack(&mut self, now: Time, sent: &Sent) {
        let is_ahead = |record: &Record| sent.at < record.sent.at;
        if self.rtt.restarts_on_sack() && self.board.first().is_some_and(is_ahead) {
            self.start_retransmission_timer(now);
        }
    }

    /// After an acknowledgment: waits for ranges that may be reordered rather than lost, or for
    /// the tail if there is no gap any more.
    pub(super) fn update_timer(&mut self, now: Time, progress: bool) {
        let Some(rack) = self.detector.rack() else { return };
        if self.deadline == Time::NEVER || self.board.outstanding() == 0 {
            return;
        }
        let at = rack.deadline(&self.board);
        if self.timer == Timer::Probe {
            self.retransmission_at = self.retransmission_after(self.progress_at);
        }
        if let Some(at) = at {
            self.deadline = at.min(self.retransmission_at);
            self.timer = Timer::Reordering;
        } else if self.timer == Timer::Reordering {
            self.deadline = self.retransmission_at;
            self.timer = Timer::Retransmission;
        }
        if progress {
            self.start_probe_timer(now);
        }
    }

    /// Handles the timer.
    pub(crate) fn on_deadline(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        if self.pacer.wake_at() <= now {
            self.pacer.stop(); // The segment is polled next.
        }
        if now < self.deadline {
            return;
        }
        let expired = self.deadline;
        self.deadline = Time::NEVER;
        self.check_app_limited();
        if self.user_timeout.is_some_and(|timeout| self.progress_at + timeout <= now)
            && self.board.outstanding() > 0
        {
            self.timed_out = true;
            return;
        }
        if core::mem::take(&mut self.held_back) {
            return self.stream.flush();
        }
        if self.timer == Timer::Reordering && expired < self.retransmission_at {
            self.deadline = self.retransmission_at;
            self.detect_losses(now, self.flight_size(), mechanisms);
            return self.update_timer(now, false);
        }
        if self.timer == Timer::Probe && self.on_probe_timer(now) {
            return;
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
        self.start_retransmission_timer(now);
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
        if self.confirm_too_big(now) {
            return;
        }
        self.on_timeout_while_searching(now);
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
        let episode = self.episode(now, self.flight_size(), decrease, keep_ssthresh || hold);
        self.controller.on_rto(&episode);
        self.arm_undo_on_timeout();
        self.cwr_pending = true;
        self.reduced_until = self.board.nxt();
        self.log.push(|| Event::Reduced {
            signal: Signal::Rto,
            window: self.controller.window(),
            ssthresh: self.controller.ssthresh(),
        });
        let phase = self.phase;
        self.record_fast_path_deliveries();
        let lost = self.board.lost();
        // What was sent a timeout ago is lost even if RACK has measured a longer round trip than the
        // timer's upper bound: otherwise each segment would cost a timeout of its own.
        let age = now.since(Time::ZERO);
        let timeout_ago = Time::ZERO + (age - self.rtt.rto().min(age));
        self.enter_loss(self.detector.cutoff_at_timeout(now).max(timeout_ago));
        let lost = self.board.lost().saturating_sub(lost);
        if lost > 0 {
            self.report_loss(now, &Record { len: lost as u32, ..first }); // At most a window.
        }
        self.start_frto(phase);
        // RFC 6298 §5.4: the first is sent again, whatever RACK holds to be in the network.
        if self.pipe() > 0 {
            self.forced_queue.push_back(first.start);
        }
    }

    /// Starts the persist timer if data may not be sent and none is outstanding: no acknowledgment
    /// will come to change that. The window may be closed (RFC 9293 §3.8.6.1), or a small segment
    /// held back.
    pub(super) fn arm_persist_timer(&mut self, now: Time) {
        let waiting = self.board.outstanding() == 0 && self.board.nxt() < self.stream.end();
        if waiting && self.deadline == Time::NEVER {
            self.held_back = self.has_peer_window_for_next();
            self.probing = !self.held_back;
            self.deadline = self.rtt.expiry(now);
            self.timer = Timer::Retransmission;
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
                self.start_retransmission_timer(now);
            }
            None => self.deadline = Time::NEVER,
        }
    }

    /// Whether a limit has passed and the connection is to be aborted.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timed_out
    }
}
