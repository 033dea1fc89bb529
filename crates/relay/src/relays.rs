//! The split connections of a box, with all halves in one host.

mod associations;
mod carried;
mod half_open;
mod halves;
mod handover;
mod opening;
mod over_srp;
mod snapshot;
mod split;
mod users;

pub use associations::{AssociationSnapshot, StreamName};
pub use carried::{Carried, Change, End, Ended, Ending, Stage};
pub use handover::Handover;
pub use opening::Onward;
pub use snapshot::{AdoptError, RelaySnapshot};
pub use split::{Seen, Split};
pub use users::Limits;

use crate::hop::{FlowId, Hop, Metered};
use crate::users::user_of;
use crate::{Half, HopRate, Next, Policy, Relay, Side};
use base::{Random, Time};
use carried::Life;
use core::net::IpAddr;
use half_open::HalfOpen;
use halves::{HalfEvents, HalfId, Halves};
use host::{ConnectionId, FourTuple, Host, HostIndication, Outlet};
use opening::Waiting;
use rustc_hash::FxHashMap;
use tcp::{Connection, Events};
use users::Users;
use wire::{Body, Icmp, Packet, Payload};

/// Split connections.
pub struct Relays {
    halves: Halves,
    splits: Vec<Option<Entry>>,
    by_client: FxHashMap<FourTuple, u32>,
    vacant: Vec<u32>,
    hop: Option<Hop>,
    statistics: Statistics,
    users: Users,
    /// Bytes that the box holds now.
    held: u64,
    half_open: HalfOpen,
    /// No connection is split any more.
    is_draining: bool,
    /// Those that have begun and ended, if note is kept of them.
    changes: Option<Vec<Change>>,
    /// [`Relays::transmit`] is due.
    transmission_waits: bool,
}

#[derive(Debug)]
struct Entry {
    relay: Relay,
    /// By [`Side`]; `None` if it was over when the relay was adopted, or has not been accepted yet.
    halves: [Option<HalfId>; 2],
    /// Which half is connected next, if not both are.
    waiting: Option<Waiting>,
    /// Not both halves are connected.
    is_half_open: bool,
    /// The connection as its client names it.
    client: FourTuple,
    /// Whose it is ([`Entry::user`]).
    user: IpAddr,
    /// Bytes held as of the last event.
    held: u64,
    /// Its windows are small, because its user holds as much as he may.
    is_pressed: bool,
    /// By [`Side`], whether the end is known to be behind the hop.
    behind_hop: [bool; 2],
    /// When it was split.
    began: Time,
    life: Life,
}

impl Entry {
    /// Without halves.
    fn new(now: Time, client: FourTuple) -> Entry {
        let relay = Relay::new(Policy::default());
        Entry {
            relay,
            halves: [None; 2],
            waiting: None,
            is_half_open: false,
            client,
            user: user_of(client.local),
            held: 0,
            is_pressed: false,
            behind_hop: [false; 2],
            began: now,
            life: Life::new(now),
        }
    }
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// Counts of split connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections that were split.
    pub split: u64,
    /// Those that are over.
    pub over: u64,
    /// Relays that other boxes have handed over.
    pub adopted: u64,
    /// Those that were removed, to be adopted by another box.
    pub removed: u64,
    /// The most bytes that were held at once: received and not passed on, or passed on and not
    /// acknowledged. Data that arrived out of order is not counted.
    pub held_at_most: u64,
    /// The most that were held of one connection, in both directions.
    pub held_of_one_at_most: u64,
    /// Notices of corruption about segments of the box's.
    pub notices: u64,
    /// Notices of nodes that need not have seen the segment, which were ignored.
    pub incredible_notices: u64,
}

impl Relays {
    /// None yet. `address` is the box's own, `random` is for secrets.
    #[must_use]
    pub fn new(address: IpAddr, random: Random) -> Relays {
        let mut halves = Halves::new(address, random);
        let host = &mut halves.host;
        host.set(host::Settings { shared_probe: true, ..host.settings() });
        Relays {
            halves,
            splits: Vec::new(),
            by_client: FxHashMap::default(),
            vacant: Vec::new(),
            hop: None,
            statistics: Statistics::default(),
            users: Users::default(),
            held: 0,
            half_open: HalfOpen::default(),
            is_draining: false,
            changes: None,
            transmission_waits: false,
        }
    }

    /// Replaces the secrets of the halves' initial numbers ([`Host::set_secrets`]).
    pub fn set_secrets(&mut self, random: Random) {
        self.halves.host.set_secrets(random);
    }

    /// From now on, segments carry bytes whose payloads do not continue each other ([`Outlet::gather`]).
    pub fn gather(&mut self) {
        let host = &mut self.halves.host;
        host.set(host::Settings { gather: true, ..host.settings() });
    }

    /// Sets the rate of the hop that connections split from now on share. What is sent to ends behind
    /// it is sent at this rate, with equal shares for their addresses and then for the connections
    /// of each; and no half needs a slow start there, if the rate is known.
    pub fn set_hop(&mut self, rate: HopRate) {
        self.hop = Some(Hop::new(rate));
    }

    /// From now on, the hop has this rate. Connections that were split while it had none do not share it.
    pub fn set_hop_rate(&mut self, rate: base::Rate) {
        match &mut self.hop {
            Some(hop) => hop.set_rate(rate),
            None => self.set_hop(HopRate::Given(rate)),
        }
    }

    /// The rate of the hop, if it is known.
    #[must_use]
    pub fn hop_rate(&self) -> Option<base::Rate> {
        self.hop.as_ref()?.rate()
    }

    /// The host of the halves.
    #[must_use]
    pub fn host(&self) -> &Host<Half> {
        &self.halves.host
    }

    /// Counts.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Bytes that are held now ([`Statistics::held_at_most`]).
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The bytes that the relays hold, as payloads of the packets that brought them.
    pub fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        for (_, half, _) in self.halves.host.connections() {
            half.held_payloads().for_each(&mut *held);
        }
        self.halves.associations.held_payloads(held);
        self.splits.iter().flatten().flat_map(|entry| entry.relay.rest()).for_each(held);
    }

    /// The number of split connections that are not over.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.splits.len() - self.vacant.len()
    }

    /// Whether there is a connection between these ends, or none can be split: forged packets may name
    /// the same end twice, and there is no room for two halves.
    fn is_taken(&self, client: &FourTuple) -> bool {
        let exists = |side| self.halves.host.connection_at(&towards(side, client)).is_some();
        *client == client.reversed()
            || self.by_client.contains_key(client)
            || SIDES.into_iter().any(exists)
    }

    /// The number of the next relay.
    fn next_number(&mut self) -> u32 {
        self.vacant.pop().unwrap_or(self.splits.len() as u32)
    }

    /// Puts a relay into the table.
    fn put(&mut self, number: u32, mut entry: Entry, behind_hop: [bool; 2]) {
        let is_half_open = entry.waiting.is_some();
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Began(entry.client));
        }
        self.by_client.insert(entry.client, number);
        entry.user = entry.user();
        self.users.add(entry.user, entry.held);
        match self.splits.get_mut(number as usize) {
            Some(place) => *place = Some(entry),
            None => self.splits.push(Some(entry)),
        }
        if is_half_open {
            self.on_half_open(number);
        }
        for side in SIDES.into_iter().filter(|&side| behind_hop[side as usize]) {
            self.schedule(number, side);
        }
    }

    /// The end at a side of a connection is behind the hop: from now on, what goes there is scheduled.
    fn schedule(&mut self, number: u32, side: Side) {
        let flow = FlowId::new(number, side);
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        if !core::mem::replace(&mut entry.behind_hop[side as usize], true) {
            self.users.find_of(entry);
        }
        let Some(hop) = self.hop.as_mut().filter(|hop| !hop.contains(flow)) else { return };
        let half = entry.halves[side as usize].and_then(|id| self.halves.connection(id));
        let delivered = half.map_or(0, Connection::delivered);
        hop.add(flow, towards(side, &entry.client).remote, delivered);
        hop.make_ready(flow);
        entry.relay.schedule(side);
    }

    /// Takes a relay out of the table.
    fn take(&mut self, number: u32) -> Option<Entry> {
        self.not_half_open(number);
        let entry = self.splits.get_mut(number as usize)?.take()?;
        self.vacant.push(number);
        self.by_client.remove(&entry.client);
        self.held -= entry.held;
        self.users.remove(entry.user, entry.held);
        if let Some(hop) = &mut self.hop {
            SIDES.into_iter().for_each(|side| hop.remove(FlowId::new(number, side)));
        }
        Some(entry)
    }

    /// Processes a packet if it is for a half; returns whether it is: it belongs to a split connection.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) -> bool {
        self.handle(now, packet, false)
    }

    /// The same for a packet that comes from behind the hop ([`Relays::set_hop`]), as what is sent to its
    /// sender leads over it.
    pub fn handle_hop_packet(&mut self, now: Time, packet: &Packet) -> bool {
        self.handle(now, packet, true)
    }

    /// Passes an indication on to the half that it concerns. What it leads to is sent with the next packet, for which it
    /// is, or at the next timeout.
    pub fn indicate(&mut self, now: Time, indication: &HostIndication) {
        self.halves.host.indicate(now, indication);
    }

    fn handle(&mut self, now: Time, packet: &Packet, is_behind_hop: bool) -> bool {
        if !self.is_credible(packet, is_behind_hop) {
            return false;
        }
        let Some(id) = self.halves.host.handle_known(now, packet) else { return false };
        let half = self.halves.host.application(id).map(|half| (half.relay, half.side));
        if let Some((relay, side)) = half
            && is_behind_hop
        {
            self.schedule(relay, side);
        }
        let relay = half.map(|(relay, _)| relay);
        self.measure(now, id);
        self.run(now);
        if let Some(relay) = relay {
            self.count_held(relay);
        }
        true
    }

    /// Whether a packet is no notice, or one of a node that has seen the segment: it comes from where the segment went, and
    /// repeats its timestamp, which one who forges it would have to guess. In a lab, notices name copies by numbers.
    fn is_credible(&mut self, packet: &Packet, is_behind_hop: bool) -> bool {
        let Body::Icmp(notice @ (Icmp::Corruption { .. } | Icmp::Survival(_))) = &packet.body
        else {
            return true;
        };
        let host = &self.halves.host;
        let Some(id) = host.connection_of(packet) else { return true };
        let half = host.application(id).map(|half| (half.relay, half.side));
        let Some((relay, side)) = half else { return true };
        let Some(Some(Entry { behind_hop, .. })) = self.splits.get(relay as usize) else {
            return true;
        };
        let names_copy =
            !matches!(notice, Icmp::Corruption { notice, .. } if notice.timestamp.is_none());
        let needs_copy =
            host.settings().gather && host.connection(id).is_some_and(Connection::has_timestamps);
        let [own, other] = [side, side.other()].map(|side| behind_hop[side as usize]);
        // Neither may be known to be, and both can be.
        let comes_from_there = own == other || own == is_behind_hop;
        let is_credible = comes_from_there && (names_copy || !needs_copy);
        let Statistics { notices, incredible_notices, .. } = &mut self.statistics;
        *if is_credible { notices } else { incredible_notices } += 1;
        is_credible
    }

    /// Takes note of what a half has delivered over the hop.
    fn measure(&mut self, now: Time, id: ConnectionId) {
        if let Some(hop) = self.hop.as_mut().filter(|hop| hop.is_measured())
            && let (Some(half), Some(connection)) =
                (self.halves.host.application(id), self.halves.host.connection(id))
        {
            let flow = FlowId::new(half.relay, half.side);
            if hop.contains(flow)
                && let Some(rtt) = connection.latest_rtt()
            {
                hop.on_delivered(now, flow, connection.delivered(), rtt);
            }
        }
    }

    /// The hop is there again, or is another one. Connections over it with [`tcp::mechanism::Rlci`] begin anew on it,
    /// and what they have outstanding is sent again at once: one of them first, the others as it turns out what the
    /// hop can carry.
    pub fn reprobe_hop(&mut self, now: Time) {
        self.reprobe(now, |entry, side| entry.behind_hop[side as usize]);
    }

    /// A host with one of these addresses is behind another hop, or is there again: the same for the connections with
    /// it.
    pub fn reprobe_to(&mut self, now: Time, host: [Option<IpAddr>; 2]) {
        self.reprobe(now, |entry, side| {
            let end = match side {
                Side::Client => entry.client.local,
                Side::Server => entry.client.remote,
            };
            host.contains(&Some(end))
        });
    }

    fn reprobe(&mut self, now: Time, is_affected: impl Fn(&Entry, Side) -> bool) {
        let behind = self.splits.iter().flatten().flat_map(|entry| {
            let sides = SIDES.into_iter().filter(|&side| is_affected(entry, side));
            sides.filter_map(|side| match entry.halves[side as usize] {
                Some(HalfId::Tcp(id)) => Some(id),
                _ => None,
            })
        });
        let change = tcp::Connectivity::Changed { window: None };
        self.halves.host.on_connectivity_of(now, change, behind.collect());
        self.run(now);
    }

    /// When [`Relays::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        if self.transmission_waits {
            return Time::ZERO;
        }
        let wake = self.hop.as_ref().map_or(Time::NEVER, Hop::poll_timeout);
        let halves = &self.halves;
        halves.host.poll_timeout().min(halves.associations.poll_timeout()).min(wake)
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.halves.host.handle_timeout(now);
        self.halves.associations.handle_timeout(now);
        self.run(now);
    }

    /// Sends what may be sent after a packet has arrived. Where several segments leave as a unit, that waits for
    /// [`Relays::transmit`], which is due as soon as the packets are processed that have arrived with it: what they bring
    /// leaves in the same units, and their acknowledgments as one.
    pub fn transmit_soon(&mut self, now: Time, outlet: &mut impl Outlet<Half>) {
        if outlet.segments() > 1 {
            self.transmission_waits = true;
        } else {
            self.transmit(now, outlet);
        }
    }

    /// Sends all that may be sent now. To be called after every other call.
    pub fn transmit(&mut self, now: Time, outlet: &mut impl Outlet<Half>) {
        self.transmission_waits = false;
        self.halves.associations.transmit(now, outlet);
        loop {
            // The owner asks for the next deadline after each call anyway.
            let Some(hop) = &mut self.hop else {
                let _ = self.halves.host.transmit(now, outlet);
                return;
            };
            let _ = self.halves.host.transmit(now, &mut Metered { now, hop, outlet });
            let Some(flow) = hop.next(now) else { return hop.on_transmitted(now) };
            let next = self.pass_segment(now, flow);
            if let Some(hop) = &mut self.hop {
                hop.on_passed(flow, next);
            }
            self.run(now);
        }
    }

    /// Passes on a segment in a direction that is scheduled.
    fn pass_segment(&mut self, now: Time, flow: FlowId) -> Next {
        let side = flow.side();
        self.limit_memory(flow.relay());
        let Some(Some(Entry { relay, halves, .. })) = self.splits.get_mut(flow.relay() as usize)
        else {
            return Next::Nothing;
        };
        let [near, far] = [halves[side.other() as usize], halves[side as usize]];
        let Some(far) = far else { return Next::Nothing };
        let both = near.and_then(|near| {
            self.halves.access_both(now, [near, far], |near, far| {
                relay.pass_segment(side, Some(near), far)
            })
        });
        // Perhaps the other half is over, and its connection removed.
        let passed = both.or_else(|| {
            self.halves
                .access(now, far, |far| relay.pass_segment(side, None::<&mut Connection>, far))
        });
        passed.unwrap_or(Next::Nothing)
    }

    /// Lets the relays handle the events of their halves.
    fn run(&mut self, now: Time) {
        while let Some(HalfEvents { id, relay: number, side, events }) =
            self.halves.poll_events(now)
        {
            self.limit_memory(number);
            let Some(Some(Entry { relay, halves, waiting, life, .. })) =
                self.splits.get_mut(number as usize)
            else {
                continue;
            };
            life.on_events(now, side, events, || self.halves.amounts(id));
            let other = halves[side.other() as usize].filter(|_| waiting.is_none());
            let both = other.and_then(|other| {
                self.halves.access_both(now, [id, other], |near, far| {
                    relay.handle(now, (side, events), near, Some(far));
                })
            });
            if both.is_none() {
                // The other half is over, and its connection removed; or one is not connected yet.
                self.halves.access(now, id, |near| {
                    relay.handle(now, (side, events), near, None::<&mut Connection>);
                });
            }
            if let Some(hop) = &mut self.hop {
                hop.make_ready(FlowId::new(number, side.other()));
                if events.contains(Events::WRITABLE) {
                    hop.make_ready(FlowId::new(number, side));
                }
            }
            let is_over = relay.is_over();
            if events.contains(Events::CONNECTED) {
                self.skip_slow_start(now, id, FlowId::new(number, side));
            }
            self.on_answer(now, number, side, events);
            if is_over {
                self.finish(number);
            } else {
                self.count_held(number);
            }
        }
    }

    /// Counts what is held of a connection after an event.
    fn count_held(&mut self, number: u32) {
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        let halves = entry.halves.into_iter().flatten();
        let held = halves.map(|id| self.halves.held(id)).sum::<u64>()
            + entry.relay.rest().map(|rest| u64::from(rest.len)).sum::<u64>();
        let before = core::mem::replace(&mut entry.held, held);
        self.held = self.held + held - before;
        self.users.set_held(entry.user, [before, held]);
        let Statistics { held_at_most, held_of_one_at_most, .. } = &mut self.statistics;
        *held_at_most = self.held.max(*held_at_most);
        *held_of_one_at_most = held.max(*held_of_one_at_most);
    }
}

/// The 4-tuple of the half that speaks with the end at a side; `client` names the connection as its
/// client does.
fn towards(side: Side, client: &FourTuple) -> FourTuple {
    match side {
        Side::Client => client.reversed(),
        Side::Server => *client,
    }
}
