//! When a host wakes, and what it does then.

use super::{Host, Outlet};
use crate::Application;
use base::Time;

impl<A: Application> Host<A> {
    /// Does what is due at `now`, then sends all that may be sent; says when the next is due.
    ///
    /// The same as [`Host::handle_timeout`], [`Host::transmit`] and [`Host::poll_timeout`], for
    /// less.
    #[inline]
    pub fn serve(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> Time {
        let connections = self.next_of_connections();
        if connections > now && self.busy.is_empty() {
            self.datagrams.send_due(now, outlet);
            return connections.min(self.datagrams.next());
        }
        self.handle_timeout(now);
        let _ = self.transmit(now, outlet);
        self.poll_timeout()
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.open_due(now);
        self.run_tasks(now);
        self.datagrams.handle_timeout(now);
        loop {
            let (time, id) = self.schedule.first();
            if time > now {
                break;
            }
            let slot = &mut self.slots[id as usize];
            let due = slot.due();
            if due > now {
                // Its deadline moved on since; nobody had to say so.
                self.reschedule(id, due);
                continue;
            }
            slot.serve(now);
            self.after(now, id);
            let due = self.slots[id as usize].due();
            self.reschedule(id, due);
        }
    }

    /// When [`Host::handle_timeout`] is next worth calling.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.next_of_connections().min(self.datagrams.next())
    }

    /// When anything but a datagram is due.
    #[inline]
    fn next_of_connections(&self) -> Time {
        let opening = self.openings.front().map_or(Time::NEVER, |opening| opening.at);
        self.schedule.first().0.min(opening).min(self.next_task)
    }
}
