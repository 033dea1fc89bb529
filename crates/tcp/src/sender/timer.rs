//! The sender's timer: retransmission (RFC 6298), probes of a closed window (RFC 9293 §3.8.6.1),
//! and giving up (§3.8.3).

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

    /// Starts the timer anew: something is outstanding.
    #[inline(always)]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.deadline = now + self.rtt.rto();
        if let Some(timeout) = self.config.user_timeout {
            self.deadline = self.deadline.min(self.progress_at + timeout);
        }
    }

    /// The time has come for whatever was due.
    pub(crate) fn on_deadline(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        if now < self.deadline {
            return;
        }
        self.deadline = Time::NEVER;
        if self.config.user_timeout.is_some_and(|timeout| self.progress_at + timeout <= now)
            && self.board.outstanding() > 0
        {
            self.given_up = true;
            return;
        }
        if core::mem::take(&mut self.holding) {
            return self.stream.flush();
        }
        let Some(&first) = self.board.first() else {
            // Data waits, and the window has not let it out.
            self.rtt.back_off();
            self.probing = true;
            self.probe_due = true;
            return;
        };
        self.series = if self.timed_out_at == self.board.una() { self.series + 1 } else { 1 };
        self.timed_out_at = self.board.una();
        let opens = self.board.una() == 0;
        let retries = if opens { self.config.syn_retries } else { self.config.retries };
        if self.series > retries {
            self.given_up = true;
            return;
        }
        // RFC 6298 §5.5, 5.6.
        self.rtt.back_off();
        self.restart_timer(now);
        if self.right_edge <= self.board.una() {
            // Nothing is lost: the peer has no room. Its answers keep the connection alive.
            self.probing = true;
            self.board.forget_reneged();
            self.forced.push_back(first.start);
            self.log.push(|| Event::Probed);
            return;
        }
        self.statistics.timeouts += 1;
        self.log.push(|| Event::TimedOut { series: self.series, rto: self.rtt.rto() });
        let (decrease, keep_ssthresh) = match self.verdict(now, &first, Signal::Rto, mechanisms) {
            Verdict::Corruption => {
                self.board.lose_latest_copy(self.board.head(), true);
                self.forced.push_back(first.start);
                return;
            }
            Verdict::Congestion { keep_ssthresh } => (None, keep_ssthresh),
            Verdict::Decrease(factor) => (Some(factor), false),
        };
        let hold = self.series > 1 && self.config.ssthresh_on_backoff == SsthreshOnBackoff::Hold;
        let episode = self.episode(now, decrease, keep_ssthresh || hold);
        self.controller.on_rto(&episode);
        self.doubt_timeout();
        self.tell_reduction = true;
        self.reduced_until = self.board.nxt();
        self.log.push(|| Event::Reduced {
            signal: Signal::Rto,
            window: self.controller.window(),
            ssthresh: self.controller.ssthresh(),
        });
        self.start_over();
    }

    /// Nothing may be sent. If nothing is outstanding either, no acknowledgment will come to change
    /// that: the timer has to, for a window that has no room (RFC 9293 §3.8.6.1) or for data that is
    /// held back although it has.
    pub(super) fn wait(&mut self, now: Time) {
        let waiting = self.board.outstanding() == 0 && self.board.nxt() < self.stream.end();
        if waiting && self.deadline == Time::NEVER {
            self.holding = self.has_window_for_next();
            self.probing = !self.holding;
            self.deadline = now + self.rtt.rto();
        }
    }

    /// Whether the peer's window has room for all that the next segment could take.
    fn has_window_for_next(&self) -> bool {
        let nxt = self.board.nxt();
        let next = self.stream.available(nxt).clamp(1, u64::from(self.mss));
        nxt + next <= self.right_edge
    }

    /// The peer has answered while its window is being probed, which reached to `edge` before.
    pub(super) fn on_window_while_probing(&mut self, now: Time, edge: u64) {
        // RFC 9293 §3.8.6.1, MUST-37: as long as it answers, the connection stays open.
        self.series = 0;
        self.progress_at = now;
        let refused = self.board.first().map(|record| record.start);
        let open = match refused {
            Some(start) => self.right_edge > start,
            None => self.has_window_for_next() || self.next_len().is_some(),
        };
        if !open {
            return;
        }
        self.probing = false;
        self.probe_due = false;
        self.rtt.end_back_off();
        match refused {
            // There was room for it: it is on its way.
            Some(start) if start < edge => {}
            // What found no room goes at once.
            Some(start) => {
                self.forced.push_back(start);
                self.restart_timer(now);
            }
            None => self.deadline = Time::NEVER,
        }
    }

    /// Whether the peer has not been heard of for too long.
    pub(crate) fn gives_up(&self) -> bool {
        self.given_up
    }
}
