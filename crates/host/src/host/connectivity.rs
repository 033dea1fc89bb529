//! What a host's layers below say of its connectivity.

use super::Host;
use crate::Application;
use base::Time;
use core::net::IpAddr;
use tcp::{Connectivity, Indication, Source, State, Subject};

impl<A: Application> Host<A> {
    /// The way to all peers has changed, or is about to; or to those at some addresses, if any are
    /// named. Connections hear of it from [`Source::Local`].
    pub fn on_connectivity(&mut self, now: Time, connectivity: Connectivity, peers: &[IpAddr]) {
        let indication =
            Indication { source: Source::Local, subject: Subject::Connectivity(connectivity) };
        for id in self.connections_with(peers) {
            self.slots[id as usize].connection.indicate(now, &indication);
            self.after(now, id);
        }
    }

    /// The connections with these peers, or with all, that are not over.
    fn connections_with(&self, peers: &[IpAddr]) -> Vec<u32> {
        let open = self.slots.iter().filter(|slot| {
            (peers.is_empty() || peers.contains(&slot.key.remote))
                && !matches!(slot.connection.state(), State::TimeWait | State::Closed)
        });
        open.map(|slot| slot.id.index).collect()
    }
}
