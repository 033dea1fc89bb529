//! Snapshots of hosts and of connections.

use super::{
    Addresses, ConnectionId, CookieCache, FourTuple, Host, Numbering, PathMtus, Resets, Settings,
    Slot, Slots, Statistics,
};
use crate::Application;
use base::Time;
use serde::{Deserialize, Serialize};
use tcp::{Connection, State};
use thiserror::Error;
use wire::{Ip, Ports};

/// A connection of a host and its application at one moment, to be stored or sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionSnapshot<A> {
    tuple: FourTuple,
    half_open: bool,
    connection: tcp::Snapshot,
    application: A,
}

/// The state of a host at one time: its connections, their applications, and its secrets. It does
/// not contain listeners, connections that have not been opened yet, workloads, sources and sinks
/// of datagrams, or a shared probe in progress: indicate the change of connectivity to a host that
/// has moved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostSnapshot<A> {
    version: u32,
    /// By the host's clock.
    taken_at: Time,
    addresses: Addresses,
    settings: Settings,
    numbering: Numbering,
    path_mtus: PathMtus,
    next_port: u16,
    slots: u32,
    vacant: Vec<ConnectionId>,
    connections: Vec<(ConnectionId, ConnectionSnapshot<A>)>,
    busy: Vec<u32>,
    resets: Resets,
    fast_open_cookies: CookieCache,
    statistics: Statistics,
}

/// Why a snapshot was not adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AdoptError {
    /// It was taken by another version of lasthop.
    #[error("the snapshot of the host is of version {found}, expected {expected}")]
    Version {
        /// The snapshot's.
        found: u32,
        /// The one that can be adopted.
        expected: u32,
    },
    /// A connection was not adopted.
    #[error(transparent)]
    Connection(#[from] tcp::AdoptError),
    /// The host has such a connection already.
    #[error("there is a connection {0} already")]
    Taken(FourTuple),
    /// It is inconsistent.
    #[error("the snapshot of the host contradicts itself about slot {0}")]
    Slot(u32),
}

impl<A> HostSnapshot<A> {
    /// The version of the snapshots that this code makes and adopts.
    pub const VERSION: u32 = 8;
}

impl<A: Application + Clone> Slot<A> {
    fn snapshot(&self, now: Time) -> ConnectionSnapshot<A> {
        let connection = self.connection.snapshot(now);
        ConnectionSnapshot {
            tuple: self.tuple(),
            half_open: self.half_open,
            connection,
            application: self.application.clone(),
        }
    }
}

impl<A: Application + Clone> Host<A> {
    /// A snapshot of the host with all connections. Packets and events that were handed out are not
    /// in it; [`Host::watch`] has to be called again.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> HostSnapshot<A> {
        // A closed connection may still have a reset to send.
        let alive = |slot: &&Slot<A>| slot.busy || slot.connection.state() != State::Closed;
        let slots = self.slots.iter().filter(alive);
        HostSnapshot {
            version: HostSnapshot::<A>::VERSION,
            taken_at: self.numbering.local(now),
            addresses: self.addresses.clone(),
            settings: self.settings,
            numbering: self.numbering.clone(),
            path_mtus: self.path_mtus.clone(),
            next_port: self.next_port,
            slots: self.slots.count() as u32,
            vacant: self.slots.vacant().to_vec(),
            connections: slots.map(|slot| (slot.id, slot.snapshot(now))).collect(),
            busy: self.busy.clone(),
            resets: self.resets.clone(),
            fast_open_cookies: self.fast_open_cookies.clone(),
            statistics: self.statistics,
        }
    }

    /// The host of a snapshot. It continues at `now` as it would have continued when the snapshot
    /// was taken, whatever the clock of that time. Each connection keeps its id and its
    /// application; listeners are to be added again.
    ///
    /// # Errors
    /// If the snapshot has another version or is inconsistent.
    pub fn adopt(snapshot: HostSnapshot<A>, now: Time) -> Result<Host<A>, AdoptError> {
        let HostSnapshot { version, taken_at, addresses, mut numbering, .. } = snapshot;
        let expected = HostSnapshot::<A>::VERSION;
        if version != expected {
            return Err(AdoptError::Version { found: version, expected });
        }
        numbering.ahead = now.as_nanos().wrapping_sub(taken_at.as_nanos());
        let slots = Slots::restored(snapshot.slots as usize, snapshot.vacant);
        let mut host = Host::with(addresses, numbering, slots);
        host.settings = snapshot.settings;
        host.path_mtus = snapshot.path_mtus;
        host.next_port = snapshot.next_port;
        host.resets = snapshot.resets;
        host.fast_open_cookies = snapshot.fast_open_cookies;
        host.statistics = snapshot.statistics;
        for _ in 0..snapshot.slots {
            host.schedule.add();
        }
        for (id, connection) in snapshot.connections {
            if id.index >= snapshot.slots {
                return Err(AdoptError::Slot(id.index));
            }
            let slot = host.slot(now, id, connection)?;
            let due = slot.due();
            if slot.connection.state() == State::Closed {
                host.closed.push(id.index);
            } else {
                host.by_tuple.insert(slot.tuple(), id.index);
            }
            host.slots.put(slot);
            host.reschedule(id.index, due);
        }
        let taken = |id: &&ConnectionId| {
            id.index >= snapshot.slots || host.slots.get(id.index as usize).is_some()
        };
        if let Some(id) = host.slots.vacant().iter().find(taken) {
            return Err(AdoptError::Slot(id.index));
        }
        host.limit_memory();
        for id in snapshot.busy {
            if host.slots.get(id as usize).is_none() {
                return Err(AdoptError::Slot(id));
            }
            host.make_busy(id);
        }
        Ok(host)
    }

    /// A snapshot of one connection, if it still exists.
    #[must_use]
    pub fn snapshot_connection(
        &self,
        now: Time,
        id: ConnectionId,
    ) -> Option<ConnectionSnapshot<A>> {
        self.slots.find(id).map(|slot| slot.snapshot(now))
    }

    /// Continues a connection of another host, between the same two ends, with a new id. The host
    /// need not own the local address.
    ///
    /// # Errors
    /// If the snapshot has another version, or there is such a connection already.
    pub fn adopt_connection(
        &mut self,
        now: Time,
        snapshot: ConnectionSnapshot<A>,
    ) -> Result<ConnectionId, AdoptError> {
        let id = self.slots.next_id();
        let slot = self.slot(now, id, snapshot)?;
        if slot.half_open
            && let Some(listener) = self.listeners.get_mut(&slot.tuple())
        {
            listener.half_open += 1;
        }
        let (tuple, is_closed) = (slot.tuple(), slot.connection.state() == State::Closed);
        self.insert(slot);
        if is_closed {
            // It does not change its state any more, which would do this.
            self.by_tuple.remove(&tuple);
            self.closed.push(id.index);
        }
        self.make_busy(id.index);
        Ok(id)
    }

    /// The slot of a connection that was snapshotted.
    fn slot(
        &self,
        now: Time,
        id: ConnectionId,
        snapshot: ConnectionSnapshot<A>,
    ) -> Result<Slot<A>, AdoptError> {
        let ConnectionSnapshot { tuple, half_open, connection, application } = snapshot;
        if self.by_tuple.contains_key(&tuple) {
            return Err(AdoptError::Taken(tuple));
        }
        let mut connection = Connection::adopt(connection, now)?;
        connection.watch(self.watches);
        Ok(Slot {
            id,
            ports: Ports::new(tuple.remote_port, tuple.local_port),
            ip: Ip::new(tuple.local, tuple.remote),
            route: None,
            connection: connection.into(),
            application,
            wake: Time::NEVER,
            busy: false,
            half_open,
            failed_open: false,
            fast_open_pending: false,
            memory_counted: 0,
            workload: None,
        })
    }
}
