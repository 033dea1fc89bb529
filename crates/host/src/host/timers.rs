//! The timers of a host.

use super::{Host, Outlet, Served};
use crate::Application;
use base::Time;

/// When a host wakes, it looks at so many connections at most that would wake next. Most deadlines
/// have moved back by then, and the host wakes once for many.
const EARLY: u32 = 64;

impl<A: Application> Host<A> {
    /// Handles the timers that are due at `now`, then sends all that may be sent.
    ///
    /// It is the same as [`Host::handle_timeout`], [`Host::transmit`] and [`Host::poll_timeout`],
    /// at less cost.
    #[inline]
    pub fn serve(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> Served {
        if self.release_held(now, outlet) {
            return Served { next: self.poll_timeout(), was_due: true };
        }
        let connections = self.next_of_connections();
        if connections > now && self.busy.is_empty() {
            let was_due = self.datagrams.next() <= now;
            self.datagrams.send_due(now, outlet);
            return Served { next: connections.min(self.datagrams.next()), was_due };
        }
        let was_due = self.handle_timeout(now);
        let _ = self.transmit(now, outlet);
        Served { next: self.poll_timeout(), was_due }
    }

    /// Sends the segments that a connection's pacing has held back until now, on the fast path, if
    /// nothing else is due; returns whether there were any. It is the same as what follows otherwise, at
    /// less cost.
    #[inline]
    fn release_held(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> bool {
        let (time, id) = self.schedule.first();
        let plain = self.busy.is_empty() && self.has_fast_path();
        if time > now || !plain || self.next_of_others().min(self.datagrams.next()) <= now {
            return false;
        }
        // Of several that are due at once, the general path has the order.
        if self.slots[id as usize].held_until() > now || !self.schedule.is_only_until(id, now) {
            return false;
        }
        let Some(due) = self.slots[id as usize].release(now, outlet) else { return false };
        self.reschedule(id, due);
        true
    }

    /// Handles the timers that are due at `now`; returns whether there were any.
    pub fn handle_timeout(&mut self, now: Time) -> bool {
        let others = self.next_of_others().min(self.datagrams.next());
        let mut was_due = others <= now;
        self.open_due(now);
        self.run_tasks(now);
        self.datagrams.handle_timeout(now);
        let mut early = 0;
        loop {
            let (time, id) = self.schedule.first();
            if time > now && (early == EARLY || time == Time::NEVER) {
                break;
            }
            let slot = &mut self.slots[id as usize];
            let due = slot.due();
            if due > now {
                if due == time {
                    break;
                }
                // Its deadline has moved back since, which does not reschedule the wake.
                self.reschedule(id, due);
                early += u32::from(time > now);
                continue;
            }
            if slot.half_open && self.is_to_be_abandoned(now, id) {
                self.slots[id as usize].connection.fail();
            }
            let slot = &mut self.slots[id as usize];
            let before = slot.connection.reported_mss();
            slot.serve(now);
            was_due = true;
            self.note_path_mtu(now, id, before);
            self.after(now, id);
            let due = self.slots[id as usize].due();
            self.reschedule(id, due);
        }
        was_due
    }

    /// When [`Host::handle_timeout`] is to be called next.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.next_of_connections().min(self.datagrams.next())
    }

    /// The next deadline other than a datagram's.
    #[inline]
    fn next_of_connections(&self) -> Time {
        self.schedule.first().0.min(self.next_of_others())
    }

    /// The next opening or task.
    #[inline]
    fn next_of_others(&self) -> Time {
        let opening = self.openings.front().map_or(Time::NEVER, |opening| opening.at);
        opening.min(self.next_task)
    }
}
