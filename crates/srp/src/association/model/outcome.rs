//! The end of all, if nothing goes wrong any more.

use super::world::{End, KEEP_ALIVE, NOW, World, events};
use crate::Association;
use base::{Events, Time};
use std::fmt;

impl World {
    /// Whether all ends as it should, if nothing goes wrong from now on.
    pub(super) fn settles(mut self) -> Result<(), String> {
        self.checks = false;
        for _ in 0..300 {
            if !self.flying.is_empty() {
                self.deliver(0)?;
                continue;
            }
            let suspended =
                |end: &End| end.association.as_ref().is_some_and(|it| it.is_suspended());
            if let Some(end) = self.ends.iter().position(suspended) {
                self.association(end)?.resume(NOW);
                self.settle(end)?;
                continue;
            }
            let wake =
                |end: &End| end.association.as_ref().map_or(Time::NEVER, |it| it.poll_timeout());
            let wakes = [0, 1].map(|end| wake(&self.ends[end]));
            let end = usize::from(wakes[1] < wakes[0]);
            // Keep-alives only find out whether the peer is there.
            let holds_nothing =
                |end: &End| end.association.as_ref().is_none_or(|it| it.holds_nothing().is_ok());
            let is_over = self.ends.iter().all(|end| end.is_over() && holds_nothing(end));
            if wakes[end] == Time::NEVER || (is_over && wakes[end] >= NOW + KEEP_ALIVE) {
                return self.check();
            }
            self.deadline(end)?;
        }
        Err(format!("it does not end: {self}"))
    }

    /// Checks the end of all.
    fn check(&self) -> Result<(), String> {
        for (n, end) in self.ends.iter().enumerate() {
            if !end.is_over() {
                return Err(format!("end {n} waits for ever: {self}"));
            }
            if let Some(association) = &end.association {
                association.holds_nothing()?;
            }
            for user in &end.users {
                let peers = &self.ends[1 - n].users;
                let peer = peers.iter().find(|peer| peer.stream == user.stream);
                user.check(peer).map_err(|error| format!("{error} at {n}: {user:?} {peer:?}"))?;
            }
        }
        Ok(())
    }
}

impl End {
    pub(super) fn is_over(&self) -> bool {
        self.users.iter().all(|user| events(user.events).contains(Events::CLOSED))
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, End { association, users, .. }) in self.ends.iter().enumerate() {
            let phase = association.as_ref().map(|it| (it.phase, it.held_streams()));
            writeln!(f, "end {n}: {phase:?}, {users:?}")?;
        }
        write!(f, "in flight: {:?}", self.flying)
    }
}

impl Association {
    pub(super) fn holds_nothing(&self) -> Result<(), String> {
        let held = (self.held_streams(), self.in_flight(), self.held_payloads().count());
        match held {
            (0, 0, 0) => Ok(()),
            _ => Err(format!("streams, bytes in flight, payloads: {held:?} are held at the end")),
        }
    }
}
