//! Deadlines.

use super::{Association, Phase};
use base::{Events, Time};
use wire::srp::Reason;

impl Association {
    /// The OPEN is doubled in time this often.
    const OPEN_BACKOFF: u32 = 2;

    /// When [`Association::handle_timeout`] is to be called; [`Time::NEVER`] if nothing is awaited.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        if self.is_suspended || self.phase == Phase::Closed {
            return Time::NEVER;
        }
        let mut next = self.open_due.min(self.timer).min(self.receiver.due());
        next = next.min(self.give_up_at()).min(self.keep_alive_at());
        if self.flight_allows() {
            let due = if self.has_segment() { Time::ZERO } else { self.tail_due() };
            next = next.min(due.max(self.sender.pacing.next()));
        }
        if self.phase == Phase::Open && self.sender.is_interrupted() {
            next = next.min(self.sender.pacing.next());
        }
        self.clock.world(next)
    }

    /// When the pace would let something be sent if there were something: an association whose
    /// [`Association::poll_transmit`] is called then, on any occasion, knows that it was idle.
    /// [`Time::NEVER`] if it does not matter. Nobody needs to wake for it.
    #[must_use]
    pub fn poll_pacing(&self) -> Time {
        let is_idle = self.phase == Phase::Open && !self.is_suspended && !self.has_segment();
        match is_idle && self.flight_allows() {
            true => self.clock.world(self.sender.pacing.next()),
            false => Time::NEVER,
        }
    }

    /// Handles the deadlines that have passed.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.clock.local(now);
        if self.is_suspended || self.phase == Phase::Closed {
            return;
        }
        if self.give_up_at() <= now {
            self.fail(Events::TIMED_OUT);
            // It may hear us, although we do not hear it.
            self.reset_due = Some(Reason::TimedOut);
            return;
        }
        if self.timer <= now {
            self.statistics.timeouts += 1;
            self.sender.rtt.back_off();
            self.sender.pacing.on_timeout();
            self.probe_due = true;
            self.timer = now + self.sender.rtt.timeout();
        }
        if self.keep_alive_at() <= now {
            self.probe_due = true;
        }
    }

    /// Whether there is a segment to be sent, as far as the peer accepts it.
    pub(super) fn has_segment(&self) -> bool {
        self.phase == Phase::Open
            && (self.sender.has_lost() || (self.slots.has_active() && self.sender.accepts_new()))
    }

    /// When something is to be sent of the tail.
    pub(super) fn tail_due(&self) -> Time {
        match self.phase {
            Phase::Open => self.sender.tail_due(),
            Phase::Opening | Phase::Closed => Time::NEVER,
        }
    }

    fn give_up_at(&self) -> Time {
        self.waiting_since.map_or(Time::NEVER, |since| since + self.config.give_up)
    }

    fn keep_alive_at(&self) -> Time {
        let is_quiet = self.phase == Phase::Open && self.timer == Time::NEVER && !self.probe_due;
        match self.config.keep_alive {
            Some(interval) if is_quiet => self.heard_at + interval,
            _ => Time::NEVER,
        }
    }

    /// The peer was heard.
    pub(super) fn on_heard(&mut self, now: Time) {
        (self.heard_at, self.waiting_since) = (now, None);
    }

    /// Something was sent that the peer answers.
    pub(super) fn on_question_sent(&mut self, now: Time) {
        self.waiting_since.get_or_insert(now);
        if self.timer == Time::NEVER {
            self.timer = now + self.sender.rtt.timeout();
        }
    }

    /// The peer has answered: the timeout starts again if more is awaited.
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.timer = match self.sender.needs_answer() {
            true => now + self.sender.rtt.timeout(),
            false => Time::NEVER,
        };
    }

    pub(super) fn on_open_sent(&mut self, now: Time) {
        let timeout = self.config.initial_timeout;
        let doubled = timeout.doubled(self.opens_sent.min(Association::OPEN_BACKOFF));
        self.opened_at = now;
        self.opens_sent = self.opens_sent.saturating_add(1);
        self.open_due = now + doubled.max(base::Duration::from_millis(1));
        self.waiting_since.get_or_insert(now);
    }
}
