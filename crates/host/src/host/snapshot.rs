//! Hosts that move, and connections that move between hosts.

use super::{
    Addresses, ConnectionId, Host, Key, Numbering, Resets, Settings, Slot, Slots, Statistics,
};
use crate::Application;
use base::Time;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use tcp::{Connection, State};
use thiserror::Error;
use wire::Ip;

/// A connection of a host at one moment, to be stored or sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionSnapshot {
    remote: IpAddr,
    remote_port: u16,
    local_port: u16,
    half_open: bool,
    connection: tcp::Snapshot,
}

/// A host at one moment: its connections and its secrets. Listeners, connections that have not
/// been opened yet, applications, workloads, and sources and sinks of datagrams are not in it, nor is
/// a shared probe that is under way: a host that has moved is to be told of that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostSnapshot {
    version: u32,
    /// By the host's clock.
    taken_at: Time,
    addresses: Addresses,
    settings: Settings,
    numbering: Numbering,
    next_port: u16,
    slots: u32,
    vacant: Vec<ConnectionId>,
    connections: Vec<(ConnectionId, ConnectionSnapshot)>,
    busy: Vec<u32>,
    resets: Resets,
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
    /// There is a connection between the same ports of the same hosts already.
    #[error("port {local_port} has a connection to port {remote_port} of {remote} already")]
    Taken {
        /// Our port.
        local_port: u16,
        /// The peer's address.
        remote: IpAddr,
        /// The peer's port.
        remote_port: u16,
    },
    /// It contradicts itself.
    #[error("the snapshot of the host contradicts itself about slot {0}")]
    Slot(u32),
}

impl HostSnapshot {
    /// The version of the snapshots that this code makes and adopts.
    pub const VERSION: u32 = 5;
}

impl<A: Application> Slot<A> {
    fn snapshot(&self, now: Time) -> ConnectionSnapshot {
        let Key { remote, remote_port, local_port } = self.key;
        let connection = self.connection.snapshot(now);
        ConnectionSnapshot {
            remote,
            remote_port,
            local_port,
            half_open: self.half_open,
            connection,
        }
    }
}

impl<A: Application> Host<A> {
    /// A snapshot of the host, in which every connection has its place. What has been handed out
    /// already (packets, events) is not in it; who watches the host has to ask again.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> HostSnapshot {
        // One that is over may still have a reset to send.
        let alive = |slot: &&Slot<A>| slot.busy || slot.connection.state() != State::Closed;
        let slots = self.slots.iter().filter(alive);
        HostSnapshot {
            version: HostSnapshot::VERSION,
            taken_at: self.numbering.local(now),
            addresses: self.addresses,
            settings: self.settings,
            numbering: self.numbering.clone(),
            next_port: self.next_port,
            slots: self.slots.count() as u32,
            vacant: self.slots.vacant().to_vec(),
            connections: slots.map(|slot| (slot.id, slot.snapshot(now))).collect(),
            busy: self.busy.clone(),
            resets: self.resets.clone(),
            statistics: self.statistics,
        }
    }

    /// The host of a snapshot, going on at `now` as it would have gone on when the snapshot was
    /// taken, whatever clock that was taken by. Each connection keeps its id and is given an
    /// `application`, listeners are to be added again.
    ///
    /// # Errors
    /// If the snapshot has another version or contradicts itself.
    pub fn adopt(
        snapshot: HostSnapshot,
        now: Time,
        mut application: impl FnMut(ConnectionId, &Connection) -> A,
    ) -> Result<Host<A>, AdoptError> {
        let HostSnapshot { version, taken_at, addresses, mut numbering, .. } = snapshot;
        if version != HostSnapshot::VERSION {
            return Err(AdoptError::Version { found: version, expected: HostSnapshot::VERSION });
        }
        numbering.ahead = now.as_nanos().wrapping_sub(taken_at.as_nanos());
        let slots = Slots::restored(snapshot.slots as usize, snapshot.vacant);
        let mut host = Host::with(addresses, numbering, slots);
        host.settings = snapshot.settings;
        host.next_port = snapshot.next_port;
        host.resets = snapshot.resets;
        host.statistics = snapshot.statistics;
        for _ in 0..snapshot.slots {
            host.schedule.add();
        }
        for (id, connection) in snapshot.connections {
            if id.index >= snapshot.slots {
                return Err(AdoptError::Slot(id.index));
            }
            let slot = host.slot(now, id, connection, |connection| application(id, connection))?;
            let due = slot.due();
            if slot.connection.state() == State::Closed {
                host.over.push(id.index);
            } else {
                host.by_key.insert(slot.key, id.index);
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

    /// A snapshot of one connection, if it is still there.
    #[must_use]
    pub fn snapshot_connection(&self, now: Time, id: ConnectionId) -> Option<ConnectionSnapshot> {
        self.slots.find(id).map(|slot| slot.snapshot(now))
    }

    /// Goes on with a connection that was another host's, under this host's addresses and a new id.
    ///
    /// # Errors
    /// If the snapshot has another version, or there is such a connection already.
    pub fn adopt_connection(
        &mut self,
        now: Time,
        snapshot: ConnectionSnapshot,
        application: A,
    ) -> Result<ConnectionId, AdoptError> {
        let id = self.slots.next_id();
        let slot = self.slot(now, id, snapshot, |_| application)?;
        if slot.half_open
            && let Some(listener) = self.listeners.get_mut(&slot.key.local_port)
        {
            listener.half_open += 1;
        }
        self.seat(slot);
        self.make_busy(id.index);
        Ok(id)
    }

    /// The slot of a connection that was snapshotted.
    fn slot(
        &self,
        now: Time,
        id: ConnectionId,
        snapshot: ConnectionSnapshot,
        application: impl FnOnce(&Connection) -> A,
    ) -> Result<Slot<A>, AdoptError> {
        let ConnectionSnapshot { remote, remote_port, local_port, half_open, connection } =
            snapshot;
        let key = Key { remote, remote_port, local_port };
        if self.by_key.contains_key(&key) {
            return Err(AdoptError::Taken { local_port, remote, remote_port });
        }
        let mut connection = Connection::adopt(connection, now)?;
        connection.watch(self.watches);
        let application = application(&connection);
        Ok(Slot {
            id,
            key,
            ip: Ip::new(self.addresses.towards(remote), remote),
            route: None,
            connection,
            application,
            wake: Time::NEVER,
            busy: false,
            half_open,
            stillborn: false,
            charged: 0,
            workload: None,
        })
    }
}
