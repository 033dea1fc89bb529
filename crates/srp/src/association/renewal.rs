//! A handoff after which the association is not restored but made anew: its streams go on in another one.
//!
//! The opener renews it ([`Association::renew`]): segment numbers and all estimates begin again, under the next
//! token, so that nothing that was sent before counts any more. Then each end says of each stream what it has in
//! order ([`wire::srp::Chunk::Continue`]), and the other sends what follows. A stream that an end does not have
//! any more was over for both, as each forgets one only after the other has all that it needs; one
//! that it never had is opened by what its opener says.

use super::{Association, Phase};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::stream::{Control, Flags};
use base::Time;
use wire::srp::{Continue, Limits};

impl Association {
    /// Ends a suspension, like [`Association::resume`], but in an association that is made anew: for the end that
    /// has opened it. The other end, which does not know it yet, may be the one of before, or one that
    /// [waits](Association::await_renewal). One that the peer has not answered yet is only opened again.
    pub fn renew(&mut self, now: Time) {
        let is_unanswered = self.phase == Phase::Opening && self.first.is_none();
        if self.phase == Phase::Closed || is_unanswered || !self.is_opener {
            return self.resume(now);
        }
        let now = self.clock.local(now);
        let first = *self.first.get_or_insert(self.token);
        self.begin_again(now, self.token.wrapping_add(1), first);
        (self.phase, self.open_due, self.opens_sent) = (Phase::Opening, now, 0);
        self.sweep();
    }

    /// After [`Association::adopt`], in place of [`Association::resume`]: nothing is sent before the peer, which
    /// has opened the association, renews it or sends something else.
    pub fn await_renewal(&mut self, now: Time) {
        if self.phase == Phase::Closed || self.is_opener {
            return self.resume(now);
        }
        let now = self.clock.local(now);
        (self.phase, self.is_suspended) = (Phase::Opening, false);
        (self.timer, self.probe_due) = (Time::NEVER, false);
        (self.heard_at, self.waiting_since) = (now, Some(now));
        self.receiver.stop();
    }

    /// The peer renews the association, or repeats that it does.
    pub(super) fn on_renewal(&mut self, now: Time, token: u32, (first, limits): (u32, Limits)) {
        let age = |token: u32| token.wrapping_sub(first);
        if self.is_opener || first != self.first_token() || age(token) < age(self.token) {
            self.statistics.ignored += 1;
            return;
        }
        if token != self.token {
            self.begin_again(now, token, first);
            self.on_limits(limits);
        }
        self.opened_due = true;
        self.on_heard(now);
        self.sweep();
    }

    /// Forgets all but the streams, and of them what was only under way.
    fn begin_again(&mut self, now: Time, token: u32, first: u32) {
        (self.token, self.first) = (token, Some(first));
        self.sender = Sender::new(&self.config);
        self.receiver = Receiver::new(self.config.segments);
        (self.is_suspended, self.opened_due, self.probe_due) = (false, false, false);
        (self.timer, self.open_due) = (Time::NEVER, Time::NEVER);
        (self.heard_at, self.waiting_since) = (now, None);
        let all: Vec<u32> = self.slots.iter().map(|(slot, _)| slot).collect();
        for slot in all {
            let is_found = |number| self.slots.find(number) == Some(slot);
            let is_known = self.slots.get(slot).is_some_and(|stream| is_found(stream.number));
            if let Some(stream) = self.slots.get_mut(slot) {
                stream.renew(is_known);
            }
            self.slots.activate(slot);
        }
    }

    /// The peer says what it has of a stream: what follows is to be sent.
    pub(super) fn on_continue(&mut self, slot: u32, has: Continue) {
        let Some(stream) = self.slots.get_mut(slot) else { return };
        if let Some(ends) = has.ends
            && !stream.flags.intersects(Flags::OURS | Flags::OPENED)
        {
            stream.control |= Control::CONTINUE;
            self.on_opened(slot, ends);
        }
        let Some(stream) = self.slots.get_mut(slot) else { return };
        if !stream.flags.contains(Flags::UNSETTLED) {
            self.slots.activate(slot);
            return;
        }
        stream.flags -= Flags::UNSETTLED;
        stream.send.settle(has.received, has.is_whole);
        stream.send.raise_limit(has.limit);
        self.notify(slot);
        self.slots.activate(slot);
    }
}
