//! Timers: retransmission, delayed acknowledgment, mechanisms, TIME-WAIT, FIN-WAIT-2 and keep-alive.

use super::{Connection, Events, OutOfBand};
use crate::event::Event;
use crate::state::State;
use base::Time;

impl Connection {
    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.state == State::Closed {
            return;
        }
        let now = self.clock.local(now);
        self.sender.on_deadline(now, &mut self.mechanisms);
        if self.sender.has_timed_out() {
            return self.enter_closed(Events::TIMED_OUT | Events::CLOSED);
        }
        self.receiver.on_deadline(now);
        if self.mechanisms.deadline() <= now {
            let view = self.sender.view(now);
            if let Some(action) = self.mechanisms.on_deadline(&view) {
                self.apply(now, action);
            }
        }
        if self.state_timer <= now {
            self.on_state_timer(now);
        }
    }

    /// The next time at which [`Connection::handle_timeout`] has to be called.
    #[must_use]
    #[inline(always)]
    pub fn poll_timeout(&self) -> Time {
        let own = self.sender.deadline().min(self.receiver.deadline());
        // On the fast path there is no other timer.
        let others = || self.state_timer.min(self.mechanisms.deadline());
        self.clock.world(if self.on_fast_path { own } else { own.min(others()) })
    }

    /// Handles the end of TIME-WAIT or FIN-WAIT-2, or the keep-alive timer.
    fn on_state_timer(&mut self, now: Time) {
        let keep_alive = match self.keep_alive {
            Some(keep_alive) if !self.is_ending() => keep_alive,
            _ => return self.enter_closed(Events::CLOSED),
        };
        if self.unanswered_probes >= keep_alive.probes {
            self.abort();
            self.events |= Events::TIMED_OUT;
            return;
        }
        // Outstanding segments probe the peer already.
        if self.sender.outstanding() == 0 {
            self.unanswered_probes += 1;
            self.out_of_band = Some(OutOfBand::KeepAlive);
            self.sender.log.push(|| Event::KeptAlive { probes: self.unanswered_probes });
        }
        self.state_timer = now + keep_alive.interval;
    }

    /// Restarts the keep-alive timer: the peer is alive.
    #[inline]
    pub(super) fn on_peer_alive(&mut self, now: Time) {
        if let Some(keep_alive) = self.keep_alive
            && !self.is_ending()
        {
            self.unanswered_probes = 0;
            self.state_timer = now + keep_alive.idle;
        }
    }

    pub(super) fn enter_time_wait(&mut self, now: Time) {
        if self.state != State::TimeWait {
            self.enter(State::TimeWait);
        }
        self.state_timer = now + self.time_wait;
    }

    /// Starts the FIN-WAIT-2 timer if the application has closed both halves.
    pub(super) fn limit_fin_wait_2(&mut self, now: Time) {
        if let Some(limit) = self.fin_wait_2.filter(|_| self.is_read_closed) {
            self.state_timer = now + limit;
        }
    }

    /// Whether the state timer ends the connection, rather than probing the peer.
    fn is_ending(&self) -> bool {
        match self.state {
            State::TimeWait => true,
            State::FinWait2 => self.is_read_closed && self.fin_wait_2.is_some(),
            _ => false,
        }
    }
}
