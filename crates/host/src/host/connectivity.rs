//! What a host's layers below say of its connectivity.

use super::{ConnectionId, Host};
use crate::Application;
use crate::shared_probe::{Glance, SharedProbe};
use base::Time;
use core::net::IpAddr;
use std::collections::VecDeque;
use tcp::{Connection, Connectivity, Indication, State};

impl<A: Application> Host<A> {
    /// The way to all peers has changed, or is about to; or to those at some addresses, if any are
    /// named. Connections are told at once or when it is their turn
    /// ([`Settings::shared_probe`]).
    ///
    /// [`Settings::shared_probe`]: super::Settings::shared_probe
    pub fn on_connectivity(&mut self, now: Time, connectivity: Connectivity, peers: &[IpAddr]) {
        let is_told = |slot: &&super::Slot<A>| {
            (peers.is_empty() || peers.contains(&slot.ip.destination)) && !is_over(&slot.connection)
        };
        let told: Vec<ConnectionId> = self.slots.iter().filter(is_told).map(|s| s.id).collect();
        if self.settings.shared_probe && connectivity == (Connectivity::Changed { window: None }) {
            return self.share_probe(now, told);
        }
        if let (Some(probe), Connectivity::Changed { .. }) = (&mut self.probe, connectivity) {
            probe.withdraw(&told);
        }
        for id in told {
            self.tell_connectivity(now, id, connectivity);
        }
    }

    /// Lets one of some connections probe the path for all.
    fn share_probe(&mut self, now: Time, told: Vec<ConnectionId>) {
        // Nobody is forgotten whose turn had not come when the path of others changed.
        let before = self.probe.take().map_or_else(VecDeque::new, |mut probe| {
            probe.withdraw(&told);
            probe.into_waiting()
        });
        let mut waiting = Vec::new();
        for id in told {
            match self.connection(id).and_then(Connection::waiting_since) {
                Some(since) => waiting.push((since, id)),
                // It has nothing to probe with, but its peer may have data for us.
                None => {
                    self.tell_connectivity(now, id, Connectivity::Changed { window: Some(1) });
                }
            }
        }
        waiting.sort_unstable();
        let waiting: VecDeque<_> = waiting.into_iter().map(|(_, id)| id).chain(before).collect();
        if waiting.len() > 1 {
            self.probe = Some(Box::new(SharedProbe::new(now, waiting)));
        } else if let Some(&id) = waiting.front() {
            self.tell_connectivity(now, id, Connectivity::Changed { window: None });
        }
        self.go_on_probing(now);
    }

    /// Tells connections what the shared probe has for them now.
    pub(super) fn go_on_probing(&mut self, now: Time) {
        while let Some(probe) = &mut self.probe
            && let Some((id, connectivity)) = probe.poll(now)
        {
            let glance = self.tell_connectivity(now, id, connectivity);
            if let (Some(probe), Connectivity::Changed { .. }) = (&mut self.probe, connectivity) {
                probe.started(now, id, glance);
            }
        }
        self.probe.take_if(|probe| probe.is_over(now));
        self.attends = self.watches || self.probe.is_some();
        self.set_chore();
    }

    /// Something has happened to a connection. Says whether the host may want to be woken earlier.
    pub(super) fn observe(&mut self, now: Time, id: u32) -> bool {
        let (Some(probe), Some(slot)) = (&mut self.probe, self.slots.get(id as usize)) else {
            return false;
        };
        probe.observe(now, slot.id, &glance(&slot.connection));
        let before = self.chore;
        self.go_on_probing(now);
        self.chore < before
    }

    /// Tells a connection of a change; how it stands if it begins anew for that.
    fn tell_connectivity(
        &mut self,
        now: Time,
        id: ConnectionId,
        connectivity: Connectivity,
    ) -> Option<Glance> {
        let connection = &mut self.slots.find_mut(id)?.connection;
        let before = connection.statistics().reprobes;
        connection.indicate(now, &Indication::Connectivity(connectivity));
        let probes = connection.statistics().reprobes > before;
        let glance = probes.then(|| glance(connection));
        self.after(now, id.index);
        glance
    }
}

fn is_over(connection: &Connection) -> bool {
    matches!(connection.state(), State::TimeWait | State::Closed)
}

fn glance(connection: &Connection) -> Glance {
    let (vitals, statistics) = (connection.vitals(), connection.statistics());
    Glance {
        window: vitals.window,
        ssthresh: vitals.ssthresh,
        srtt: vitals.srtt,
        rto: vitals.rto,
        losses: statistics.reductions + statistics.timeouts,
        waits: vitals.flight > 0,
        over: is_over(connection),
    }
}
