//! A host: demultiplexing, listeners, numbering, and one wake for all connections.

mod access;
mod addresses;
mod arrivals;
mod connectivity;
mod cookies;
mod datagrams;
mod fast_open;
mod four_tuple;
mod hints;
mod icmp;
mod lifecycle;
mod listeners;
mod memory;
mod numbering;
mod opening;
mod ordered;
mod path_mtu;
mod resets;
mod settings;
mod slot;
mod slots;
mod snapshot;
mod tfrc;

mod timers;
mod workloads;

pub use addresses::Prefix;
pub use four_tuple::FourTuple;
pub use listeners::{Binding, Listener};
pub use opening::Opening;
pub use ordered::Ordered;
pub use settings::{Settings, Statistics};
pub use slots::ConnectionId;
pub use snapshot::{AdoptError, ConnectionSnapshot, HostSnapshot};

use crate::shared_probe::SharedProbe;
use crate::{Application, Workload};
use addresses::Addresses;
use base::{Random, Schedule, Time};
use core::net::IpAddr;
use datagrams::Datagrams;
use fast_open::{CookieCache, Pending};
use hints::Hints;
use listeners::Listeners;
use memory::Memory;
use numbering::Numbering;
use opening::Share;
use path_mtu::PathMtus;
use resets::Resets;
use rustc_hash::FxHashMap;
use slot::{Slot, Step, Stop};
use slots::Slots;
use std::collections::VecDeque;
use tcp::{Connection, Event, Pressure};
use wire::{Body, Ecn, Packet, Payload, Ports};

/// The output of a host's packets. `A` is the type of its applications.
pub trait Outlet<A> {
    /// The place to write the next packet into.
    fn packet(&mut self) -> &mut Packet;
    /// Sends the packet that was written. Its payload is one segment, or (if the outlet takes more
    /// than one) several of `segment_size` bytes, of which only the last may be shorter: see
    /// [`tcp::Transmit`]. `route` is stored with the connection, for the outlet to cache the route
    /// of its packets. `application` has the bytes of the payload; it is `None` for datagrams and
    /// for packets of no connection (resets, SYN cookies).
    fn send(&mut self, segment_size: u32, route: &mut Option<u32>, application: Option<&A>);
    /// Like [`Outlet::send`], for one segment whose packet is known to have `len` octets, with all
    /// headers, and this ECN codepoint.
    #[inline]
    fn send_sized(
        &mut self,
        (_len, _ecn): (u32, Ecn),
        route: &mut Option<u32>,
        application: Option<&A>,
    ) {
        self.send(0, route, application);
    }
    /// Takes the payloads that the payload of the packet consists of, before it is sent: it is
    /// [`wire::Payload::GATHERED`]. Only connections of hosts with [`Settings::gather`] send such.
    #[inline]
    fn gather(&mut self, payloads: &mut dyn Iterator<Item = Payload>) {
        let _ = payloads;
    }
    /// The most segments in a packet.
    #[inline]
    fn segments(&self) -> u16 {
        1
    }
}

/// A batch of arriving packets, with an outlet: an answer may be written over the packet that it
/// answers.
pub trait Inlet<A>: Outlet<A> {
    /// When the present packet has arrived.
    fn now(&self) -> Time;
    /// The present packet.
    fn arrived(&mut self) -> &mut Packet;
    /// Its ports; at less cost if they are known.
    #[inline]
    fn ports(&mut self) -> Ports {
        self.arrived().ports()
    }
    /// Sends the answer of `len` bytes that was written in its place, with all headers and
    /// this ECN codepoint, by the route that [`Outlet::send`] has stored with the connection.
    fn answer(&mut self, route: Option<u32>, len: u32, ecn: Ecn);
    /// Frees its place after processing; the next outgoing packet may use it ([`Outlet::packet`]).
    fn release(&mut self);
    /// Forwards it: it is for another host.
    fn pass_on(&mut self);
    /// Advances to the next packet, after the last was answered, released or passed on; false if
    /// there is none, or if another event comes first.
    fn advance(&mut self) -> bool;
    /// Whether the inlet keeps track of the host's wake, by the methods below; the others are not
    /// called unless it does.
    #[inline]
    fn keeps_time(&self) -> bool {
        false
    }
    /// Advances to `at`, if nothing else comes before: no packet, and no wake of the host.
    #[inline]
    fn pause(&mut self, _at: Time) -> bool {
        false
    }
    /// Notes that the host wants to be woken at `wake` at the latest.
    #[inline]
    fn bring_forward(&mut self, _wake: Time) {}
    /// Advances to the host's wake, if that is what comes next, and returns the time. The outcome of
    /// the wake is then given to [`Inlet::woken`].
    #[inline]
    fn wait(&mut self) -> Option<Time> {
        None
    }
    /// Notes the outcome of a wake.
    #[inline]
    fn woken(&mut self, _served: Served) {}
}

/// The outcome of a host's wake ([`Host::serve`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When the host is to be woken next.
    pub next: Time,
    /// Something was due. Otherwise the wake was one of a deadline that has moved back.
    pub was_due: bool,
}

/// Why [`Host::exchange_on_fast_path`] has stopped.
enum Batch {
    /// All packets are processed.
    Done {
        /// A wake has moved forward.
        sooner: bool,
    },
    /// The present packet is processed; its connection may have more to send, or events.
    Taken { id: u32 },
    /// The present packet is for this connection, and not eligible for the fast path.
    Off { id: u32 },
    /// The present packet is no segment for a connection.
    Unknown,
}

/// A host and its connections. It has one address, or one of each version of IP, and may act for
/// other hosts.
pub struct Host<A> {
    addresses: Addresses,
    settings: Settings,
    slots: Slots<A>,
    by_tuple: FxHashMap<FourTuple, u32>,
    hints: Hints,
    listeners: Listeners<A>,
    /// Sorted by time, the next first.
    openings: VecDeque<Opening<A>>,
    /// The wake of each connection: its deadline or earlier.
    schedule: Schedule,
    /// Connections that may have segments to send.
    busy: Vec<u32>,
    /// Closed connections, to be removed once their last segment is sent.
    closed: Vec<u32>,
    /// Connections whose applications request the host's owner.
    requests: Vec<u32>,
    resets: Resets,
    /// The Fast Open cookies that servers have given us.
    fast_open_cookies: CookieCache,
    /// Connections by Fast Open whose handshake is not complete.
    fast_opens: Pending,
    datagrams: Datagrams,
    workloads: Vec<Workload<A>>,
    /// The probe of a changed path that connections share.
    probe: Option<Box<SharedProbe<ConnectionId>>>,
    /// When a workload or the shared probe is next due.
    next_task: Time,
    numbering: Numbering,
    path_mtus: PathMtus,
    /// The next local port to be tried, as an offset from the hash.
    next_port: u16,
    share: Share,
    memory: Memory,
    /// Whether the events of connections are recorded.
    watches: bool,
    /// Connections are observed: their events are recorded, or they share a probe.
    observes: bool,
    events: VecDeque<(ConnectionId, Event)>,
    statistics: Statistics,
}

impl<A: Application> Host<A> {
    /// A host without connections. `random` is for its secrets.
    #[must_use]
    pub fn new(address: IpAddr, random: Random) -> Host<A> {
        Host::with(Addresses::new(address), Numbering::new(random), Slots::new())
    }

    /// Replaces the secrets from which initial numbers are derived. With those of a host before this one, and a clock
    /// that has gone on, numbers go on from those of its connections (RFC 6528 §3). To be called before any connection
    /// is opened.
    pub fn set_secrets(&mut self, random: Random) {
        self.numbering = Numbering::new(random);
    }

    fn with(addresses: Addresses, numbering: Numbering, slots: Slots<A>) -> Host<A> {
        Host {
            addresses,
            settings: Settings::default(),
            slots,
            by_tuple: FxHashMap::default(),
            hints: Hints::new(),
            listeners: Listeners::default(),
            openings: VecDeque::new(),
            schedule: Schedule::new(),
            busy: Vec::new(),
            closed: Vec::new(),
            requests: Vec::new(),
            resets: Resets::default(),
            fast_open_cookies: CookieCache::default(),
            fast_opens: Pending::default(),
            datagrams: Datagrams::default(),
            workloads: Vec::new(),
            probe: None,
            next_task: Time::NEVER,
            numbering,
            path_mtus: PathMtus::default(),
            next_port: 0,
            share: Share::default(),
            memory: Memory::default(),
            watches: false,
            observes: false,
            events: VecDeque::new(),
            statistics: Statistics::default(),
        }
    }

    /// Sets the settings of the host.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
        self.limit_memory();
    }

    /// The settings of the host.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The host's address; the first, if it has two.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.addresses.first()
    }

    /// Adds an address of the other version of IP, or replaces the one of the same version.
    /// Existing connections and sources of datagrams keep theirs.
    pub fn add_address(&mut self, address: IpAddr) {
        self.addresses.add(address);
    }

    /// Lets the host act for other hosts: it owns all addresses of a prefix, too. It accepts
    /// connections to them, and answers from them.
    pub fn add_prefix(&mut self, prefix: Prefix) {
        self.addresses.add_prefix(prefix);
    }

    /// Whether an address is the host's own, or that of a host that it acts for.
    #[must_use]
    #[inline]
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.contain(address)
    }

    /// Counts of what the host did.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Every connection with its application, in the order of opening as long as closed ones are
    /// kept ([`Settings::keep_closed`]).
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection, &A)> {
        self.slots.iter().map(|slot| (slot.id, &*slot.connection, &slot.application))
    }

    /// One connection, if it still exists.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.find(id).map(|slot| &*slot.connection)
    }

    /// Sets the memory pressure of a connection, if it exists, where the host's own memory is not limited
    /// ([`Settings::memory`]).
    pub fn set_pressure(&mut self, id: ConnectionId, pressure: Pressure) {
        if let Some(slot) = self.slots.find_mut(id) {
            slot.connection.set_pressure(pressure);
        }
    }

    /// The application of a connection, if that still exists.
    #[must_use]
    pub fn application(&self, id: ConnectionId) -> Option<&A> {
        self.slots.find(id).map(|slot| &slot.application)
    }

    /// The 4-tuple of a connection, if that still exists.
    #[must_use]
    pub fn four_tuple(&self, id: ConnectionId) -> Option<FourTuple> {
        self.slots.find(id).map(Slot::tuple)
    }

    /// The connection that a packet belongs to: as a segment, or as an ICMP message about one.
    #[must_use]
    pub fn connection_of(&self, packet: &Packet) -> Option<ConnectionId> {
        self.connection_at(&FourTuple::of_packet(packet)?)
    }

    /// The connection with a 4-tuple, if there is one.
    #[must_use]
    pub fn connection_at(&self, tuple: &FourTuple) -> Option<ConnectionId> {
        self.by_tuple.get(tuple).map(|&id| self.slots[id as usize].id)
    }

    /// Whether a packet is this host's: it goes to an address that the host owns, or it belongs to a
    /// connection. Other packets are to be forwarded.
    #[must_use]
    pub fn takes(&self, packet: &Packet) -> bool {
        self.owns(packet.ip.destination) || self.connection_of(packet).is_some()
    }

    /// The number of connections that are not closed.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.by_tuple.len()
    }

    /// Whether no connection is open and none will be opened, except by listeners.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.by_tuple.is_empty() && self.schedule.first().0 == Time::NEVER && self.is_finished()
    }

    /// Records the events of all connections from now on, or no longer.
    pub fn watch(&mut self, keep: bool) {
        self.watches = keep;
        self.observes = keep || self.probe.is_some();
        self.events.clear();
        self.slots.iter_mut().for_each(|slot| slot.connection.watch(keep));
    }

    /// The next event, if events are recorded ([`Host::watch`]). To be called until there is none
    /// after every [`Host::transmit`] or [`Host::exchange`].
    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.events.pop_front()
    }

    // --- packets and timers ---

    /// Processes packets one by one, and sends all that may be sent after each. Wakes that come
    /// between them are handled if the inlet waits for them.
    ///
    /// It is the same as [`Host::handle_packet`] and [`Host::transmit`] for each, at less cost.
    /// Returns whether a connection's wake has moved forward without the inlet keeping track of it:
    /// then no more packets are processed, because [`Host::poll_timeout`] may be earlier now.
    #[must_use = "the host may want to be woken earlier"]
    #[inline]
    pub fn exchange(&mut self, inlet: &mut impl Inlet<A>) -> bool {
        loop {
            let sooner = match self.exchange_on_fast_path(inlet) {
                Batch::Done { sooner } => sooner,
                Batch::Taken { id } => self.step(id, true, inlet),
                Batch::Off { id } => self.step(id, false, inlet),
                Batch::Unknown => self.exchange_unknown(inlet),
            };
            if sooner {
                if !inlet.keeps_time() {
                    return true;
                }
                inlet.bring_forward(self.poll_timeout());
            }
            while !inlet.advance() {
                let Some(now) = inlet.wait() else { return false };
                let served = self.serve(now, inlet);
                inlet.woken(served);
            }
        }
    }

    /// Whether segments may take the fast path. A host that observes its connections, or limits their
    /// memory, does so at each step.
    #[inline]
    fn has_fast_path(&self) -> bool {
        self.settings.fast_path && !self.observes && !self.memory.is_limited()
    }

    /// Processes packets as long as they are eligible for the fast path.
    //
    // The loops over connections and over their packets are one function, since packets of many
    // connections alternate if those are paced.
    #[inline(never)]
    fn exchange_on_fast_path(&mut self, inlet: &mut impl Inlet<A>) -> Batch {
        let has_fast_path = self.has_fast_path();
        loop {
            let Some(id) = self.find(inlet) else { return Batch::Unknown };
            if !has_fast_path {
                return Batch::Off { id };
            }
            let slot = &mut self.slots[id as usize];
            match slot.exchange_on_fast_path(inlet, &mut self.statistics) {
                Stop::Done(wake) => return Batch::Done { sooner: self.keep_wake(id, wake) },
                Stop::Other(wake) => {
                    if wake < slot.wake {
                        self.reschedule(id, wake);
                        inlet.bring_forward(self.poll_timeout());
                    }
                }
                Stop::Off => return Batch::Off { id },
                Stop::More => return Batch::Taken { id },
            }
        }
    }

    /// Processes the present packet, which is for this connection, on the general path, unless it
    /// `is_taken`; returns whether a wake has moved forward.
    fn step(&mut self, id: u32, is_taken: bool, inlet: &mut impl Inlet<A>) -> bool {
        self.count_memory(id);
        match self.slots[id as usize].step(is_taken, inlet, &mut self.statistics) {
            Step::Processed { state_changed, due } => {
                self.after_exchange(id, state_changed, due, inlet)
            }
            Step::Refused => self.exchange_general(inlet),
        }
    }

    /// Updates the host after a connection has processed a segment on the fast path and sent all that
    /// it may; its next deadline is `due`.
    fn after_exchange(
        &mut self,
        id: u32,
        state_changed: bool,
        due: Time,
        inlet: &mut impl Inlet<A>,
    ) -> bool {
        let now = inlet.now();
        let mut sooner = self.keep_wake(id, due);
        self.count_memory(id);
        if state_changed {
            self.on_state_change(now, id);
        }
        if self.observes {
            sooner |= self.observe(now, id);
        }
        if !self.busy.is_empty() {
            sooner |= self.transmit(now, inlet);
        }
        sooner | (self.next_task <= now)
    }

    /// Processes a packet that is no segment for a connection.
    fn exchange_unknown(&mut self, inlet: &mut impl Inlet<A>) -> bool {
        let packet = &*inlet.arrived();
        match &packet.body {
            Body::Udp(udp) if self.owns(packet.ip.destination) => {
                let (udp, payload) = (*udp, packet.payload);
                self.on_datagram(inlet.now(), udp, payload);
                inlet.release();
                !self.busy.is_empty() && self.transmit(inlet.now(), inlet)
            }
            _ => self.exchange_general(inlet),
        }
    }

    /// Processes a packet of any kind.
    #[inline(never)]
    fn exchange_general(&mut self, inlet: &mut impl Inlet<A>) -> bool {
        let now = inlet.now();
        let packet = &*inlet.arrived();
        if !self.takes(packet) {
            inlet.pass_on();
            return false;
        }
        self.handle_packet(now, packet);
        inlet.release();
        self.transmit(now, inlet) | (self.next_task <= now)
    }

    /// Sends all that may be sent now. To be called after every other call.
    ///
    /// Returns whether a connection's wake has moved forward: then [`Host::poll_timeout`] may be
    /// earlier now.
    #[must_use = "the host may want to be woken earlier"]
    pub fn transmit(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> bool {
        let mut sooner = false;
        while let Some(id) = self.busy.pop() {
            let slot = &mut self.slots[id as usize];
            slot.busy = false;
            let due = slot.transmit(now, outlet);
            self.count_memory(id);
            sooner |= self.keep_wake(id, due);
            if self.observes {
                sooner |= self.observe(now, id);
            }
        }
        if !self.resets.waiting.is_empty() {
            self.send_resets(outlet);
        }
        sooner |= self.datagrams.transmit(now, outlet);
        if !self.closed.is_empty() {
            self.remove_closed();
        }
        sooner
    }

    // --- internals ---

    /// Schedules a connection's wake at `due`, if that is earlier than the present one; returns whether
    /// it was.
    #[inline]
    fn keep_wake(&mut self, id: u32, due: Time) -> bool {
        let sooner = due < self.slots[id as usize].wake;
        if sooner {
            self.reschedule(id, due);
        }
        sooner
    }

    fn reschedule(&mut self, id: u32, wake: Time) {
        self.slots[id as usize].wake = wake;
        self.schedule.set(id, wake);
    }

    /// The connection that the present packet is a segment for.
    #[inline(always)]
    fn find(&mut self, inlet: &mut impl Inlet<A>) -> Option<u32> {
        let ports = inlet.ports();
        let packet = &*inlet.arrived();
        let hinted = self.hints.get(ports);
        let is_for = |slot: &Slot<A>| slot.is_between(ports, packet);
        if ports != Ports::NONE && self.slots.get(hinted as usize).is_some_and(is_for) {
            return Some(hinted);
        }
        self.look_up(packet)
    }

    /// Like [`Host::find`], without a hint; stores one.
    #[inline(never)]
    fn look_up(&mut self, packet: &Packet) -> Option<u32> {
        let Body::Tcp(segment) = &packet.body else { return None };
        let id = self.by_tuple.get(&FourTuple::of_segment(&packet.ip, segment)).copied()?;
        self.hints.set(packet.ports(), id);
        Some(id)
    }

    /// Dispatches a connection's events to its application after a call, and queues it to transmit.
    fn after(&mut self, now: Time, id: u32) {
        let slot = &mut self.slots[id as usize];
        if slot.dispatch_events(now) {
            self.on_state_change(now, id);
        }
        if self.slots[id as usize].application.requests() {
            self.requests.push(id);
        }
        self.count_memory(id);
        self.make_busy(id);
    }

    #[inline]
    fn make_busy(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        if !slot.busy {
            slot.busy = true;
            self.busy.push(id);
        }
    }
}

#[cfg(test)]
mod tests;
