//! Access to connections from outside, as their applications have it, and applications that request it.

use super::{ConnectionId, Host};
use crate::Application;
use base::Time;
use tcp::Connection;

impl<A: Application> Host<A> {
    /// Calls a function with a connection, as its application would use it; [`Host::transmit`] is
    /// to be called afterwards. `None` if the connection no longer exists.
    pub fn access<R>(
        &mut self,
        now: Time,
        id: ConnectionId,
        using: impl FnOnce(&mut Connection, &mut A) -> R,
    ) -> Option<R> {
        let slot = self.slots.find_mut(id)?;
        let result = using(&mut slot.connection, &mut slot.application);
        self.after(now, id.index);
        Some(result)
    }

    /// Calls a function with two connections, as [`Host::access`] does with one. `None` if one of them
    /// no longer exists.
    pub fn access_both<R>(
        &mut self,
        now: Time,
        ids: [ConnectionId; 2],
        using: impl FnOnce([(&mut Connection, &mut A); 2]) -> R,
    ) -> Option<R> {
        let both = self.slots.find_both(ids)?;
        let result = using(both.map(|slot| (&mut *slot.connection, &mut slot.application)));
        for id in ids {
            self.after(now, id.index);
        }
        Some(result)
    }

    /// The next connection whose application requests its host's owner
    /// ([`Application::requests`]). To be called until there is none before every
    /// [`Host::transmit`], which removes connections that are over.
    pub fn poll_request(&mut self) -> Option<ConnectionId> {
        while let Some(id) = self.requests.pop() {
            if let Some(slot) = self.slots.get(id as usize)
                && slot.application.requests()
            {
                return Some(slot.id);
            }
        }
        None
    }
}
