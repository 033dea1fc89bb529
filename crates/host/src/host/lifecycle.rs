//! Connections in a host's table: insertion, state changes, removal.

use super::listeners::opens;
use super::{ConnectionId, FourTuple, Host, Slot};
use crate::Application;
use base::Time;
use tcp::{Config, Connection, Handshake, Identity, Side, State};
use wire::{Body, Ip, Packet, Ports, SeqNumber};

impl<A: Application> Host<A> {
    pub(super) fn add(
        &mut self,
        now: Time,
        tuple: FourTuple,
        config: &Config,
        side: Side,
        iss: SeqNumber,
        application: A,
    ) -> u32 {
        let connection = self.make_connection(now, &tuple, config, side, iss);
        self.put_in(tuple, connection, side == Side::Passive, application)
    }

    /// Continues one end of a connection whose handshake was seen on the path, in place of that end:
    /// `side` says which, and the host need not own its address ([`Connection::from_handshake`]). `None` if
    /// there is such a connection already.
    pub fn adopt_handshake(
        &mut self,
        now: Time,
        tuple: FourTuple,
        (side, handshake): (Side, &Handshake),
        config: &Config,
        application: A,
    ) -> Option<ConnectionId> {
        if self.by_tuple.contains_key(&tuple) {
            return None;
        }
        let secret = self.numbering.secret(now, &tuple);
        let is_ipv6 = tuple.remote.is_ipv6();
        let connection = Connection::from_handshake(config, side, handshake, is_ipv6, secret);
        let id = self.put_in(tuple, connection, false, application);
        self.after(now, id);
        Some(self.slots[id as usize].id)
    }

    /// Accepts the connection that a SYN opens, without a listener; the host need not own the address
    /// that it goes to. `None` if it is no such SYN, or if there is such a connection already.
    pub fn accept_syn(
        &mut self,
        now: Time,
        packet: &Packet,
        config: &Config,
        application: A,
    ) -> Option<ConnectionId> {
        let Body::Tcp(segment) = &packet.body else { return None };
        let tuple = FourTuple::of_segment(&packet.ip, segment);
        if !opens(segment.flags)
            || self.by_tuple.contains_key(&tuple)
            || self.is_bogus(tuple.remote)
        {
            return None;
        }
        let iss = self.numbering.sequence(now, &tuple);
        let connection = self.make_connection(now, &tuple, config, Side::Passive, iss);
        let number = self.put_in(tuple, connection, false, application);
        let id = self.slots[number as usize].id;
        self.handle_packet(now, packet);
        Some(id)
    }

    /// Puts a connection into the table.
    fn put_in(
        &mut self,
        tuple: FourTuple,
        mut connection: Connection,
        half_open: bool,
        application: A,
    ) -> u32 {
        connection.watch(self.watches);
        if self.settings.measure_latency {
            connection.measure_round_trips();
        }
        let id = self.slots.next_id();
        self.insert(Slot {
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
        });
        self.make_busy(id.index);
        id.index
    }

    /// Makes a connection without a slot.
    pub(super) fn make_connection(
        &self,
        now: Time,
        tuple: &FourTuple,
        config: &Config,
        side: Side,
        iss: SeqNumber,
    ) -> Connection {
        let identity = Identity {
            local_port: tuple.local_port,
            remote_port: tuple.remote_port,
            iss,
            timestamp_offset: self.numbering.timestamp_offset(tuple),
            is_ipv6: tuple.remote.is_ipv6(),
            secret: self.numbering.secret(now, tuple),
        };
        let mut connection = Connection::new(config, side, identity);
        if let Some(mss) = self.path_mtus.mss(self.numbering.local(now), tuple.remote) {
            connection.limit_mss(mss);
        }
        self.numbering.start(now, connection)
    }

    /// Inserts a new connection.
    pub(super) fn insert(&mut self, mut slot: Slot<A>) {
        if self.settings.gather {
            slot.connection.gather();
        }
        let index = slot.id.index;
        if index as usize == self.slots.count() {
            self.schedule.add();
        }
        self.by_tuple.insert(slot.tuple(), index);
        self.slots.add(slot);
    }

    /// Updates backlog, workload and table after a connection was established or closed.
    #[cold]
    pub(super) fn on_state_change(&mut self, now: Time, id: u32) {
        let slot = &mut self.slots[id as usize];
        let (tuple, state) = (slot.tuple(), slot.connection.state());
        if matches!(state, State::TimeWait | State::Closed)
            && let Some(workload) = slot.workload.take()
        {
            self.ended(now, workload);
        }
        let slot = &mut self.slots[id as usize];
        if core::mem::take(&mut slot.half_open) {
            self.leave_backlog(&tuple);
        }
        self.on_fast_open_change(now, id);
        if state == State::Closed {
            self.by_tuple.remove(&tuple);
            self.closed.push(id);
            self.make_busy(id);
        }
    }

    /// Whether the host sends nothing of its own accord any more: every connection is closed or in
    /// TIME-WAIT, and none will be opened, except by listeners.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let is_over = |&index: &u32| {
            let state = self.slots[index as usize].connection.state();
            matches!(state, State::TimeWait | State::Closed)
        };
        self.by_tuple.values().all(is_over)
            && self.openings.is_empty()
            && self.busy.is_empty()
            && self.resets.waiting.is_empty()
            && self.datagrams.next() == Time::NEVER
            && self.next_task == Time::NEVER
    }

    /// Ends all connections: the host's only device is gone. Their applications get
    /// [`tcp::Events::UNREACHABLE`]; nothing is sent.
    pub fn fail_connections(&mut self, now: Time) {
        for index in 0..self.slots.count() {
            if self.slots.get(index).is_some() {
                self.slots[index].connection.fail();
                self.after(now, index as u32);
            }
        }
    }

    /// Removes closed connections.
    pub(super) fn remove_closed(&mut self) {
        while let Some(id) = self.closed.pop() {
            self.reschedule(id, Time::NEVER);
            if !self.settings.keep_closed || self.slots[id as usize].failed_open {
                self.slots.remove(id);
            }
        }
    }

    /// Drops those of the kept connections that are over and that `drop` agrees to.
    pub fn drop_closed(&mut self, mut drop: impl FnMut(ConnectionId, &Connection, &A) -> bool) {
        for index in 0..self.slots.count() {
            if let Some(Slot { id, connection, application, busy: false, .. }) =
                self.slots.get(index)
                && connection.state() == State::Closed
                && drop(*id, connection, application)
            {
                self.slots.remove(index as u32);
            }
        }
    }

    /// Collects a connection's events and updates the shared probe. Returns whether the host may want
    /// to be woken earlier.
    #[cold]
    pub(super) fn observe(&mut self, now: Time, id: u32) -> bool {
        if self.watches {
            self.collect(id);
        }
        self.observe_probe(now, id)
    }

    /// Takes over the events of a connection.
    fn collect(&mut self, id: u32) {
        let Slot { id, connection, .. } = &mut self.slots[id as usize];
        while let Some(event) = connection.poll_event() {
            self.events.push_back((*id, event));
        }
    }
}
