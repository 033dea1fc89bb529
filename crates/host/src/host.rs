//! A host: demultiplexing, listeners, numbering, and one wake for all connections.

use crate::Application;
use base::{Random, Schedule, Time};
use core::net::IpAddr;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tcp::{Config, Connection, Indication, Side, Source, State, Subject, Written};
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
    /// The packet is written: it goes out.
    fn send(&mut self);
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
    connection: Connection,
    application: A,
    /// It stands in the queue of those that may have something to send.
    busy: bool,
}

/// Where the dynamic ports begin (RFC 6335 §6).
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// Settings and application for whoever connects.
type Accept<A> = Box<dyn FnMut() -> (Config, A) + Send>;

/// A host with one address, and its connections.
pub struct Host<A> {
    address: IpAddr,
    slots: Vec<Slot<A>>,
    by_key: FxHashMap<Key, u32>,
    /// The connection of the last packet: the next is often for the same.
    last: u32,
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
            connection: Connection::new(config, side, key.local_port, key.remote_port, iss),
            application,
            busy: false,
        });
        self.by_key.insert(key, id);
        self.make_busy(id);
        id
    }

    // --- the world's side ---

    /// Takes in a packet that is addressed to this host.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) {
        match &packet.body {
            Body::Tcp(segment) => {
                let key = Key {
                    remote: packet.ip.source,
                    remote_port: segment.source_port,
                    local_port: segment.destination_port,
                };
                let Some(id) = self.find(&key).or_else(|| self.accept(key, segment)) else {
                    self.statistics.strays += 1;
                    return;
                };
                self.last = id;
                let connection = &mut self.slots[id as usize].connection;
                connection.handle_segment(now, segment, packet.payload);
                self.after(now, id);
            }
            Body::Icmp(Icmp::Corruption { notice, .. }) => self.notify(now, Source::Router, notice),
            Body::Udp(_) | Body::Icmp(_) => self.statistics.strays += 1,
        }
    }

    /// Tells the connection that a copy of one of its segments was corrupted.
    pub fn notify(&mut self, now: Time, source: Source, notice: &CorruptionNotice) {
        let key = Key {
            remote: notice.destination,
            remote_port: notice.destination_port,
            local_port: notice.source_port,
        };
        let Some(id) = self.find(&key) else {
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
                self.schedule.set(id, due);
                continue;
            }
            connection.handle_timeout(now);
            self.schedule.set(id, connection.poll_timeout());
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
    #[inline]
    pub fn transmit(&mut self, now: Time, outlet: &mut impl Outlet) {
        while let Some(id) = self.busy.pop() {
            let slot = &mut self.slots[id as usize];
            slot.busy = false;
            loop {
                let packet = outlet.packet();
                let written = slot.connection.poll_transmit(now, packet);
                if written == Written::Nothing {
                    break;
                }
                packet.ip.source = self.address;
                packet.ip.destination = slot.key.remote;
                packet.ip.hop_limit = Ip::HOP_LIMIT;
                packet.ip.ecn = wire::Ecn::NotCapable;
                outlet.send();
                if written == Written::Last {
                    break;
                }
            }
            self.schedule.bring_forward(id, slot.connection.poll_timeout());
        }
    }

    // --- inside ---

    #[inline]
    fn find(&self, key: &Key) -> Option<u32> {
        match self.slots.get(self.last as usize) {
            Some(slot) if slot.key == *key && slot.connection.state() != State::Closed => {
                Some(self.last)
            }
            _ => self.by_key.get(key).copied(),
        }
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
    #[inline]
    fn after(&mut self, now: Time, id: u32) {
        let slot = &mut self.slots[id as usize];
        let events = slot.connection.take_events();
        if !events.is_empty() {
            slot.application.handle(now, &mut slot.connection, events);
            if events.contains(tcp::Events::CLOSED) {
                self.by_key.remove(&slot.key);
            }
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
