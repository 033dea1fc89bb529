//! Connectivity-change indications from the layers below a host.

use super::{ConnectionId, Host};
use crate::Application;
use crate::shared_probe::{CongestionState, SharedProbe};
use base::Time;
use core::net::IpAddr;
use std::collections::VecDeque;
use tcp::{Connection, Connectivity, Indication, State};

impl<A: Application> Host<A> {
    /// The path to all peers has changed or is about to; or only the path to `peers`, unless empty.
    /// The indication reaches connections at once or, with [`Settings::shared_probe`], one after the
    /// other.
    ///
    /// [`Settings::shared_probe`]: super::Settings::shared_probe
    pub fn on_connectivity(&mut self, now: Time, connectivity: Connectivity, peers: &[IpAddr]) {
        let is_affected = |slot: &&super::Slot<A>| {
            (peers.is_empty() || peers.contains(&slot.ip.destination))
                && !is_closed(&slot.connection)
        };
        let affected = self.slots.iter().filter(is_affected).map(|s| s.id).collect();
        self.on_connectivity_of(now, connectivity, affected);
    }

    /// The same for some connections alone.
    pub fn on_connectivity_of(
        &mut self,
        now: Time,
        connectivity: Connectivity,
        affected: Vec<ConnectionId>,
    ) {
        if self.settings.shared_probe && connectivity == (Connectivity::Changed { window: None }) {
            return self.share_probe(now, affected);
        }
        if let (Some(probe), Connectivity::Changed { .. }) = (&mut self.probe, connectivity) {
            probe.withdraw(&affected);
        }
        for id in affected {
            self.indicate_connectivity(now, id, connectivity);
        }
    }

    /// Lets one of some connections probe the path for all.
    fn share_probe(&mut self, now: Time, affected: Vec<ConnectionId>) {
        // Connections that still waited when the path of others changed keep waiting.
        let before = self.probe.take().map_or_else(VecDeque::new, |mut probe| {
            probe.withdraw(&affected);
            probe.into_waiting()
        });
        let mut waiting = Vec::new();
        for id in affected {
            match self.connection(id).and_then(Connection::waiting_since) {
                Some(since) => waiting.push((since, id)),
                // It has nothing to probe with, but its peer may have data for us.
                None => {
                    self.indicate_connectivity(now, id, Connectivity::Changed { window: Some(1) });
                }
            }
        }
        waiting.sort_unstable();
        let waiting: VecDeque<_> = waiting.into_iter().map(|(_, id)| id).chain(before).collect();
        if waiting.len() > 1 {
            self.probe = Some(Box::new(SharedProbe::new(now, waiting)));
        } else if let Some(&id) = waiting.front() {
            self.indicate_connectivity(now, id, Connectivity::Changed { window: None });
        }
        self.poll_shared_probe(now);
    }

    /// Passes the shared probe's due indications to connections.
    pub(super) fn poll_shared_probe(&mut self, now: Time) {
        while let Some(probe) = &mut self.probe
            && let Some((id, connectivity)) = probe.poll(now)
        {
            let state = self.indicate_connectivity(now, id, connectivity);
            if let (Some(probe), Connectivity::Changed { .. }) = (&mut self.probe, connectivity) {
                probe.started(now, id, state);
            }
        }
        self.probe.take_if(|probe| probe.is_over(now));
        self.observes = self.watches || self.probe.is_some();
        self.set_next_task();
    }

    /// Updates the shared probe after a step of a connection. Returns whether the host may want to be
    /// woken earlier.
    pub(super) fn observe_probe(&mut self, now: Time, id: u32) -> bool {
        let (Some(probe), Some(slot)) = (&mut self.probe, self.slots.get(id as usize)) else {
            return false;
        };
        probe.observe(now, slot.id, &congestion_state(&slot.connection));
        let before = self.next_task;
        self.poll_shared_probe(now);
        self.next_task < before
    }

    /// Indicates a change to a connection; returns its congestion state if it probes the path anew.
    fn indicate_connectivity(
        &mut self,
        now: Time,
        id: ConnectionId,
        connectivity: Connectivity,
    ) -> Option<CongestionState> {
        let connection = &mut self.slots.find_mut(id)?.connection;
        let before = connection.statistics().reprobes;
        connection.indicate(now, &Indication::Connectivity(connectivity));
        let probes = connection.statistics().reprobes > before;
        let state = probes.then(|| congestion_state(connection));
        self.after(now, id.index);
        state
    }
}

fn is_closed(connection: &Connection) -> bool {
    matches!(connection.state(), State::TimeWait | State::Closed)
}

fn congestion_state(connection: &Connection) -> CongestionState {
    let (vitals, statistics) = (connection.vitals(), connection.statistics());
    CongestionState {
        window: vitals.window,
        ssthresh: vitals.ssthresh,
        srtt: vitals.srtt,
        rto: vitals.rto,
        losses: statistics.reductions + statistics.timeouts,
        outstanding: vitals.flight > 0,
        closed: is_closed(connection),
    }
}
