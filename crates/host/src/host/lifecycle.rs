//! How connections come into a host's table, and go.

use super::{ConnectionId, FourTuple, Host, Slot};
use crate::Application;
use base::Time;
use tcp::{Config, Connection, Identity, Side, State};
use wire::{Ip, Ports, SeqNumber};

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
        let mut connection = self.make_connection(now, &tuple, config, side, iss);
        connection.watch(self.watches);
        let id = self.slots.next_id();
        self.seat(Slot {
            id,
            ports: Ports::new(tuple.remote_port, tuple.local_port),
            ip: Ip::new(tuple.local, tuple.remote),
            route: None,
            connection,
            application,
            wake: Time::NEVER,
            busy: false,
            half_open: side == Side::Passive,
            stillborn: false,
            charged: 0,
            workload: None,
        });
        self.make_busy(id.index);
        id.index
    }

    /// A connection that is in no slot yet.
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
        self.numbering.start(now, Connection::new(config, side, identity))
    }

    /// Puts in a new connection.
    pub(super) fn seat(&mut self, slot: Slot<A>) {
        let index = slot.id.index;
        if index as usize == self.slots.count() {
            self.schedule.add();
        }
        self.by_tuple.insert(slot.tuple(), index);
        self.slots.add(slot);
    }

    /// A connection has been established or perhaps is over.
    #[cold]
    pub(super) fn turn(&mut self, now: Time, id: u32) {
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
        if state == State::Closed {
            self.by_tuple.remove(&tuple);
            self.over.push(id);
            self.make_busy(id);
        }
    }

    /// Puts away what is over.
    pub(super) fn put_away(&mut self) {
        while let Some(id) = self.over.pop() {
            self.reschedule(id, Time::NEVER);
            if !self.settings.keep_closed || self.slots[id as usize].stillborn {
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

    /// Something may have happened to a connection. Says whether the host may want to be woken
    /// earlier.
    #[cold]
    pub(super) fn attend(&mut self, now: Time, id: u32) -> bool {
        if self.watches {
            self.collect(id);
        }
        self.observe(now, id)
    }

    /// Takes over the events of a connection.
    fn collect(&mut self, id: u32) {
        let Slot { id, connection, .. } = &mut self.slots[id as usize];
        while let Some(event) = connection.poll_event() {
            self.events.push_back((*id, event));
        }
    }
}
