//! A host: demultiplexing, listeners, numbering, and one wake for all connections.

use crate::Application;
use base::{Random, Schedule, Time};
use core::net::IpAddr;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tcp::{Config, Connection, Identity, Indication, Side, Source, State, Subject};
use wire::{Body, CorruptionNotice, Flags, Icmp, Ip, Packet, Segment, SeqNumber};

/// Names a connection of a host, for good: ids are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u32);

/// A connection to be opened.
#[derive(Clone, Debug)]
pub struct Opening<A> {
    /// When.
    pub at: Time,
    /// To which address.
    pub remote: IpAddr,
    /// To which port.
    pub remote_port: u16,
    /// With which settings.
    pub config: Config,
    /// What uses it.
    pub application: A,
}

/// Counts of what a host did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Statistics {
    /// Packets for no connection and no listener.
    pub strays: u64,
    /// Connections that were not opened, because no port was left.
    pub unopened: u64,
}

/// Where a host's packets go.
pub trait Outlet {
    /// The place to write the next packet into.
    fn packet(&mut self) -> &mut Packet;
    /// The packet is written: it goes out. `route` is kept with the connection, for the outlet to
    /// remember which way its packets go.
    fn send(&mut self, route: &mut Option<u32>);
}

/// What identifies a connection at a host with one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    remote: IpAddr,
    remote_port: u16,
    local_port: u16,
}

#[derive(Debug)]
struct Slot<A> {
    key: Key,
    /// The network header of what it sends.
    ip: Ip,
    /// For the outlet.
    route: Option<u32>,
    connection: Connection,
    application: A,
    /// Its wake, as it stands in the host's schedule.
    wake: Time,
    /// It stands in the queue of those that may have something to send.
    busy: bool,
}

impl<A: Application> Slot<A> {
    /// Whether a segment is for this connection.
    #[inline]
    fn is_for(&self, packet: &Packet, segment: &Segment) -> bool {
        segment.source_port == self.key.remote_port
            && segment.destination_port == self.key.local_port
            && packet.ip.source == self.key.remote
            && self.connection.state() != State::Closed
    }

    /// Tells the application what has happened. Says whether the connection is over.
    #[inline(always)]
    fn hear(&mut self, now: Time) -> bool {
        let events = self.connection.take_events();
        if events.is_empty() {
            return false;
        }
        self.application.handle(now, &mut self.connection, events);
        events.contains(tcp::Events::CLOSED)
    }

    /// Sends all that may be sent now; returns when the connection wants to be asked again.
    #[inline(always)]
    fn transmit(&mut self, now: Time, outlet: &mut impl Outlet) -> Time {
        loop {
            let packet = outlet.packet();
            let Some(transmit) = self.connection.poll_transmit(now, 1, packet) else {
                break;
            };
            packet.ip = self.ip;
            packet.ip.ecn = transmit.ecn;
            outlet.send(&mut self.route);
            if !transmit.more {
                break;
            }
        }
        self.connection.poll_timeout()
    }
}

/// Where the dynamic ports begin (RFC 6335 §6).
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// How many connections can be found without a look into the table.
const HINTS: usize = 256;

/// A number that tells the connections of a host apart as far as possible.
#[inline]
fn hint(segment: &Segment) -> usize {
    usize::from(segment.source_port).wrapping_add(2 * usize::from(segment.destination_port)) % HINTS
}

/// Settings and application for whoever connects.
type Accept<A> = Box<dyn FnMut() -> (Config, A) + Send>;

/// A host with one address, and its connections.
pub struct Host<A> {
    address: IpAddr,
    slots: Vec<Slot<A>>,
    by_key: FxHashMap<Key, u32>,
    /// The connection of the last packet: the next is often for the same.
    last: u32,
    /// Which connection the last packet with the same [`hint`] was for.
    hints: [u32; HINTS],
    listeners: FxHashMap<u16, Accept<A>>,
    /// Sorted by time, the next first.
    openings: VecDeque<Opening<A>>,
    /// When each connection wants to be asked; never later than that, perhaps earlier.
    schedule: Schedule,
    /// Connections that may have something to send.
    busy: Vec<u32>,
    next_port: u16,
    random: Random,
    statistics: Statistics,
}

impl<A: Application> Host<A> {
    /// A host without connections. `random` is for initial sequence numbers.
    #[must_use]
    pub fn new(address: IpAddr, random: Random) -> Host<A> {
        Host {
            address,
            slots: Vec::new(),
            by_key: FxHashMap::default(),
            last: 0,
            hints: [0; HINTS],
            listeners: FxHashMap::default(),
            openings: VecDeque::new(),
            schedule: Schedule::new(),
            busy: Vec::new(),
            next_port: FIRST_DYNAMIC_PORT,
            random,
            statistics: Statistics::default(),
        }
    }

    /// The host's address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Counts of what the host did.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Every connection with its application, in the order of opening, closed ones too.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection, &A)> {
        self.slots
            .iter()
            .enumerate()
            .map(|(id, slot)| (ConnectionId(id as u32), &slot.connection, &slot.application))
    }

    /// One connection.
    ///
    /// # Panics
    /// If the id is another host's.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> &Connection {
        &self.slots[id.0 as usize].connection
    }

    // --- opening ---

    /// Accepts whoever connects to `port`, as `accept` says.
    pub fn listen(&mut self, port: u16, accept: impl FnMut() -> (Config, A) + Send + 'static) {
        self.listeners.insert(port, Box::new(accept));
    }

    /// Opens a connection at its time; those of one instant in the order of the calls.
    pub fn open(&mut self, opening: Opening<A>) {
        let index = self.openings.partition_point(|other| other.at <= opening.at);
        self.openings.insert(index, opening);
    }

    fn open_now(&mut self, opening: Opening<A>) {
        let Some(local_port) = self.free_port(opening.remote, opening.remote_port) else {
            self.statistics.unopened += 1;
            return;
        };
        let Opening { remote, remote_port, .. } = opening;
        let key = Key { remote, remote_port, local_port };
        self.add(key, &opening.config, Side::Active, opening.application);
    }

    /// The next dynamic port that makes an unused key, if there is one (RFC 6335 §6).
    fn free_port(&mut self, remote: IpAddr, remote_port: u16) -> Option<u16> {
        for _ in FIRST_DYNAMIC_PORT..=u16::MAX {
            let local_port = self.next_port;
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_DYNAMIC_PORT);
            if !self.by_key.contains_key(&Key { remote, remote_port, local_port }) {
                return Some(local_port);
            }
        }
        None
    }

    fn add(&mut self, key: Key, config: &Config, side: Side, application: A) -> u32 {
        let iss = SeqNumber(self.random.bits() as u32);
        let id = self.schedule.add();
        self.slots.push(Slot {
            key,
            ip: Ip::new(self.address, key.remote),
            route: None,
            connection: Connection::new(
                config,
                side,
                Identity {
                    local_port: key.local_port,
                    remote_port: key.remote_port,
                    iss,
                    timestamp_offset: 0,
                },
            ),
            application,
            wake: Time::NEVER,
            busy: false,
        });
        self.by_key.insert(key, id);
        self.make_busy(id);
        id
    }

    // --- the world's side ---

    /// Takes in a packet that is addressed to this host.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) {
        let segment = match &packet.body {
            Body::Tcp(segment) => segment,
            Body::Icmp(Icmp::Corruption { notice, .. }) => {
                return self.notify(now, Source::Router, notice);
            }
            Body::Udp(_) | Body::Icmp(_) => {
                self.statistics.strays += 1;
                return;
            }
        };
        let key = Key {
            remote: packet.ip.source,
            remote_port: segment.source_port,
            local_port: segment.destination_port,
        };
        let known = self.by_key.get(&key).copied();
        let Some(id) = known.or_else(|| self.accept(key, segment)) else {
            self.statistics.strays += 1;
            return;
        };
        self.hints[hint(segment)] = id;
        let connection = &mut self.slots[id as usize].connection;
        connection.handle_segment(now, segment, packet.payload, packet.ip.ecn);
        self.after(now, id);
    }

    /// Takes in the packet that lies where the outlet's next is to be written, then sends all that
    /// may be sent: an answer is written over what it answers.
    ///
    /// The same as [`Host::handle_packet`] and [`Host::transmit`], for less.
    #[must_use = "the host may want to be woken earlier"]
    #[inline]
    pub fn exchange(&mut self, now: Time, outlet: &mut impl Outlet) -> bool {
        let mut sooner = false;
        let packet = &*outlet.packet();
        if let Body::Tcp(segment) = &packet.body
            && let Some(id) = self.guess(packet, segment)
        {
            self.last = id;
            let slot = &mut self.slots[id as usize];
            slot.connection.handle_segment(now, segment, packet.payload, packet.ip.ecn);
            let over = slot.hear(now);
            let due = slot.transmit(now, outlet);
            if over {
                self.by_key.remove(&slot.key);
            }
            if due < slot.wake {
                self.reschedule(id, due);
                sooner = true;
            }
        } else {
            self.handle_packet(now, packet);
        }
        if !self.busy.is_empty() {
            sooner |= self.transmit(now, outlet);
        }
        sooner
    }

    /// Tells the connection that a copy of one of its segments was corrupted.
    pub fn notify(&mut self, now: Time, source: Source, notice: &CorruptionNotice) {
        let key = Key {
            remote: notice.destination,
            remote_port: notice.destination_port,
            local_port: notice.source_port,
        };
        let Some(&id) = self.by_key.get(&key) else {
            self.statistics.strays += 1;
            return;
        };
        let subject = Subject::Corrupted { seq: notice.seq, len: notice.len, copy: notice.copy };
        self.slots[id as usize].connection.indicate(now, &Indication { source, subject });
        self.after(now, id);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        while self.openings.front().is_some_and(|opening| opening.at <= now) {
            if let Some(opening) = self.openings.pop_front() {
                self.open_now(opening);
            }
        }
        loop {
            let (time, id) = self.schedule.first();
            if time > now {
                break;
            }
            let connection = &mut self.slots[id as usize].connection;
            let due = connection.poll_timeout();
            if due > now {
                // Its deadline moved on since; nobody had to say so.
                self.reschedule(id, due);
                continue;
            }
            connection.handle_timeout(now);
            let due = connection.poll_timeout();
            self.reschedule(id, due);
            self.after(now, id);
        }
    }

    /// When [`Host::handle_timeout`] is next worth calling.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        let opening = self.openings.front().map_or(Time::NEVER, |opening| opening.at);
        self.schedule.first().0.min(opening)
    }

    /// Sends all that may be sent now. To be called after every other call.
    ///
    /// Says whether a connection wants to be woken earlier than it did: then
    /// [`Host::poll_timeout`] may have come forward.
    #[must_use = "the host may want to be woken earlier"]
    pub fn transmit(&mut self, now: Time, outlet: &mut impl Outlet) -> bool {
        let mut sooner = false;
        while let Some(id) = self.busy.pop() {
            let slot = &mut self.slots[id as usize];
            slot.busy = false;
            let due = slot.transmit(now, outlet);
            if due < slot.wake {
                self.reschedule(id, due);
                sooner = true;
            }
        }
        sooner
    }

    // --- inside ---

    fn reschedule(&mut self, id: u32, wake: Time) {
        self.slots[id as usize].wake = wake;
        self.schedule.set(id, wake);
    }

    /// The connection that a segment is for, if it is one of the two most likely.
    #[inline]
    fn guess(&self, packet: &Packet, segment: &Segment) -> Option<u32> {
        let is_for =
            |id: u32| self.slots.get(id as usize).is_some_and(|slot| slot.is_for(packet, segment));
        if is_for(self.last) {
            return Some(self.last);
        }
        Some(self.hints[hint(segment)]).filter(|&id| is_for(id))
    }

    fn accept(&mut self, key: Key, segment: &Segment) -> Option<u32> {
        if segment.flags != Flags::SYN {
            return None;
        }
        let (config, application) = self.listeners.get_mut(&key.local_port)?();
        Some(self.add(key, &config, Side::Passive, application))
    }

    /// A connection was given something: its application hears of it, and it may have something
    /// to send.
    fn after(&mut self, now: Time, id: u32) {
        let slot = &mut self.slots[id as usize];
        if slot.hear(now) {
            self.by_key.remove(&slot.key);
        }
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
