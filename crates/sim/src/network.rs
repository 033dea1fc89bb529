//! The network between the nodes: links, routes, the packets on them, and the clock.

use crate::address;
use crate::digest::Digest;
use crate::mistakes::{Flow, Mistakes, Passage};
use crate::observer::Observer;
use crate::slab::{Handle, Slab};
use crate::topology::{LinkId, Topology};
use base::{Duration, Quantiles, Random, Schedule, Seed, Time};
use core::net::IpAddr;
use core::ops::Range;
use link::{Acted, Arrival, Fate, Link, Move, Output, Routes, Switches, Turn};
use std::collections::BTreeMap;
use wire::{Body, Ecn, Packet, Ports, Protected};

/// The network between the nodes. In the schedule, nodes are components 0, 1, 2, ..., then links,
/// then their switches, then the mistakes of an oracle.
pub(crate) struct Network {
    pub(crate) now: Time,
    pub(crate) schedule: Schedule,
    pub(crate) slab: Slab,
    pub(crate) observer: Option<Box<Observer>>,
    /// The digests of link directions are computed.
    takes_digests: bool,
    /// Packets without a route or a receiver.
    pub(crate) unroutable: u64,
    /// Events processed; a node's wake is none if nothing is due.
    pub(crate) events: u64,
    /// Links that have just gone down or come up, not yet indicated.
    pub(crate) turned: Vec<Turn>,
    /// A node that has just moved or is about to, not yet indicated.
    pub(crate) moved: Option<Move>,
    links: Vec<LinkDirection>,
    routes: Routes,
    /// Routes never change and may be cached.
    pub(crate) fixed_routes: bool,
    switches: Switches,
    nodes: u32,
    /// Packets with payload that links have dropped, by where they were going.
    data_drops: BTreeMap<(IpAddr, u16), u64>,
    /// By link; used by mistakes only.
    passages: Vec<Passage>,
    mistakes: Option<Box<Mistakes>>,
}

/// A packet event of a link.
pub(crate) enum Woken {
    /// It has arrived at the end of the link.
    Arrived {
        /// At which node.
        to: usize,
        arrival: Arrival<Handle>,
    },
    /// The queue drops it after accepting it; the caller passes it to [`Network::dropped`].
    Dropped {
        /// At which node.
        at: usize,
        packet: Handle,
    },
}

/// With more packets on a link, they have probably left the processor's caches when they arrive.
const MANY: u64 = 1024;
/// The number of packets that [`Network::read_ahead`] reads.
const AHEAD: u64 = 32;

/// The next arrival of a link.
#[derive(Clone, Copy)]
pub(crate) struct NextArrival {
    /// Its time; never, if there is none.
    pub(crate) at: Time,
    /// The packet.
    arrival: Arrival<Handle>,
    /// The packet's ports, read early so that they are cached for demultiplexing.
    pub(crate) ports: Ports,
}

impl NextArrival {
    /// None, or one that comes too late to be of interest: only its time is known.
    pub(crate) fn at(at: Time) -> NextArrival {
        let arrival = Arrival { packet: Handle::default(), fate: Fate::Intact };
        NextArrival { at, arrival, ports: Ports::NONE }
    }
}

struct LinkDirection {
    link: Link<Handle>,
    from: usize,
    to: usize,
    /// The lookahead of the node at the end: see [`crate::World::run_until`].
    ahead: Duration,
    /// The digest of all arrivals, if requested.
    digest: Digest,
}

/// Gives nodes with one incoming link a lookahead of its delay, if the links that begin there have
/// arrivals as their only events.
fn allow_lookahead(links: &mut [LinkDirection], topology: &Topology) {
    let (mut ways, mut plain) = (vec![0; topology.nodes.len()], vec![true; topology.nodes.len()]);
    for direction in &*links {
        ways[direction.to] += 1;
        plain[direction.from] &= direction.link.has_no_dequeue_events();
    }
    for (direction, described) in links.iter_mut().zip(&topology.links) {
        if ways[direction.to] == 1 && plain[direction.to] {
            direction.ahead = described.config.delay;
        }
    }
}

/// The routes as they are now.
fn routes(nodes: usize, links: &[LinkDirection], switches: &Switches) -> Routes {
    switches.routes(nodes, links.iter().map(|direction| (direction.from, direction.to)))
}

impl Network {
    pub(crate) fn new(topology: &Topology, seed: Seed) -> Network {
        let mut schedule = Schedule::new();
        let switches = topology.switches(seed);
        let nodes = topology.nodes.len();
        for _ in 0..nodes + topology.links.len() + switches.len() {
            schedule.add();
        }
        let first_switch = (nodes + topology.links.len()) as u32;
        for index in 0..switches.len() {
            schedule.set(first_switch + index as u32, switches.next(index));
        }
        let links = topology.links.iter().enumerate().map(|(index, direction)| {
            let mut link = Link::new(&direction.config, seed, &direction.name);
            if !switches.is_up(index / 2) {
                link.set_up(Time::ZERO, false);
            }
            LinkDirection {
                link,
                from: direction.from,
                to: direction.to,
                ahead: Duration::ZERO,
                digest: Digest::default(),
            }
        });
        let mut links: Vec<LinkDirection> = links.collect();
        if switches.is_empty() {
            allow_lookahead(&mut links, topology);
        }
        Network {
            now: Time::ZERO,
            schedule,
            slab: Slab::default(),
            observer: None,
            takes_digests: false,
            unroutable: 0,
            events: 0,
            turned: Vec::new(),
            moved: None,
            routes: routes(nodes, &links, &switches),
            links,
            fixed_routes: !switches.change_routes(),
            switches,
            nodes: nodes as u32,
            data_drops: BTreeMap::new(),
            passages: topology.links.iter().map(|link| Passage::of(&link.config)).collect(),
            mistakes: None,
        }
    }

    /// The node at the end of a link whose only events are arrivals.
    #[inline]
    pub(crate) fn arrivals_only_end(&self, index: usize) -> Option<usize> {
        if self.observer.is_some() {
            return None;
        }
        self.links
            .get(index)
            .filter(|direction| direction.link.has_no_dequeue_events())
            .map(|direction| direction.to)
    }

    /// The arrival that is due on a link with a [`Network::arrivals_only_end`].
    #[inline]
    pub(crate) fn arrive(&mut self, index: usize) -> Option<Arrival<Handle>> {
        let arrival = self.links[index].link.arrive()?;
        self.add_to_digest(self.now, index, arrival);
        Some(arrival)
    }

    /// Takes the packet that [`Network::coming`] has returned, if it is intact.
    #[inline(always)]
    pub(crate) fn arrive_intact(&mut self, index: usize, next: &NextArrival) -> Option<Handle> {
        if next.arrival.fate != Fate::Intact {
            return None;
        }
        self.links[index].link.take_coming();
        self.add_to_digest(next.at, index, next.arrival);
        Some(next.arrival.packet)
    }

    /// The time of the next arrival on such a link.
    #[inline]
    pub(crate) fn next_arrival(&self, index: usize) -> Time {
        self.links[index].link.coming().map_or(Time::NEVER, |(at, _)| at)
    }

    /// The next arrival on such a link. It reads the packet: call it only if that is processed
    /// soon.
    #[inline]
    pub(crate) fn coming(&self, index: usize) -> NextArrival {
        let link = &self.links[index].link;
        let Range { start, end } = link.numbers();
        if start.is_multiple_of(AHEAD) && end - start >= MANY {
            self.read_ahead(index);
        }
        match link.coming() {
            Some((at, arrival)) => {
                NextArrival { at, arrival, ports: self.slab.get(arrival.packet).ports() }
            }
            None => NextArrival::at(Time::NEVER),
        }
    }

    /// Reads the next packets on a link at once, so that their cache misses overlap.
    #[inline(never)]
    fn read_ahead(&self, index: usize) {
        let packets = self.links[index].link.under_way();
        packets.take(AHEAD as usize).for_each(|handle| self.slab.get(handle).touch());
    }

    /// Advances the clock to the next event, at `time`.
    #[inline]
    pub(crate) fn advance_to(&mut self, time: Time) {
        self.now = time;
        self.events += 1;
    }

    /// Removes all lookahead, because a node learns of events at another without a delay.
    pub(crate) fn synchronize(&mut self) {
        self.links.iter_mut().for_each(|direction| direction.ahead = Duration::ZERO);
    }

    /// Schedules the next arrival of a link.
    #[inline]
    pub(crate) fn expect(&mut self, index: usize, next: Time) {
        self.schedule.set(self.nodes + index as u32, next);
    }

    /// The time until which no later event elsewhere can affect the node at the end of a link.
    #[inline]
    pub(crate) fn horizon(&self, index: usize) -> Time {
        self.now + self.links[index].ahead
    }

    /// Processes the event of a link that has other events than arrivals, or of a switch.
    pub(crate) fn wake(&mut self, index: usize) -> Option<Woken> {
        if index >= self.links.len() {
            if index - self.links.len() < self.switches.len() {
                self.switch(index);
            }
            return None;
        }
        if self.observer.is_some() {
            self.watch_queue(index);
        }
        let direction = &mut self.links[index];
        let output = direction.link.wake(self.now);
        self.schedule.set(self.nodes + index as u32, direction.link.next_event());
        let arrival = match output? {
            Output::Arrived(arrival) => arrival,
            Output::Copied(Arrival { packet, fate }) => {
                let packet = self.slab.insert(*self.slab.get(packet));
                Arrival { packet, fate }
            }
            Output::Dropped(packet) => {
                return Some(Woken::Dropped { at: direction.from, packet });
            }
            Output::Cut(packet) => {
                self.dropped(index, packet);
                return None;
            }
        };
        let to = direction.to;
        self.watch_arrival(index, arrival);
        Some(Woken::Arrived { to, arrival })
    }

    /// Marks a packet as having experienced congestion.
    pub(crate) fn mark(&mut self, handle: Handle) {
        self.slab.get_mut(handle).ip.ecn = Ecn::Congested;
    }

    /// Computes a digest of each direction of each link from now on.
    pub(crate) fn take_digests(&mut self) {
        self.takes_digests = true;
    }

    /// The digest of all arrivals, if requested.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let digests = self.links.iter().map(|direction| direction.digest);
        self.takes_digests.then(|| Digest::of(digests))
    }

    #[inline(always)]
    fn add_to_digest(&mut self, now: Time, index: usize, arrival: Arrival<Handle>) {
        if self.takes_digests {
            let packet = self.slab.get(arrival.packet);
            self.links[index].digest.add(now, packet, arrival.fate);
        }
    }

    #[cold]
    fn watch_arrival(&mut self, index: usize, arrival: Arrival<Handle>) {
        self.add_to_digest(self.now, index, arrival);
        let Arrival { packet, fate } = arrival;
        if fate.is_marked() {
            self.mark(packet);
        }
        if let Some(observer) = &mut self.observer {
            observer.arrival(self.now, index, self.slab.get(packet), fate);
        }
    }

    /// Processes the event of a switch, by its component index.
    #[cold]
    fn switch(&mut self, component: usize) {
        let index = component - self.links.len();
        let Acted { turns, routes: other_routes, moved } = self.switches.act(index);
        for &Turn { link, up } in &turns {
            for index in [2 * link, 2 * link + 1] {
                let direction = &mut self.links[index];
                direction.link.set_up(self.now, up);
                self.schedule.set(self.nodes + index as u32, direction.link.next_event());
                self.watch_queue(index);
            }
        }
        if other_routes {
            self.routes = routes(self.nodes as usize, &self.links, &self.switches);
        }
        self.schedule.set(self.nodes + component as u32, self.switches.next(index));
        self.turned.extend(turns);
        self.moved = moved;
    }

    /// The nodes at the ends of a link with two directions.
    pub(crate) fn ends(&self, link: usize) -> (usize, usize) {
        let forward = &self.links[2 * link];
        (forward.from, forward.to)
    }

    /// Notes a queue's length before or after a change.
    #[cold]
    fn watch_queue(&mut self, index: usize) {
        if let (Some(observer), Some(direction)) = (&mut self.observer, self.links.get_mut(index)) {
            observer.queue(self.now, LinkId(index), &mut direction.link);
        }
    }

    /// The link towards a packet's destination.
    pub(crate) fn route(&self, node: usize, handle: Handle) -> Option<u32> {
        let destination = address::node(self.slab.get(handle).ip.destination)?;
        self.routes.next(node, destination)
    }

    /// Decrements a packet's hop limit; false, and discards it, at zero.
    pub(crate) fn count_hop(&mut self, handle: Handle) -> bool {
        let ip = &mut self.slab.get_mut(handle).ip;
        ip.hop_limit = ip.hop_limit.saturating_sub(1);
        let goes_on = ip.hop_limit > 0;
        if !goes_on {
            self.discard(handle);
        }
        goes_on
    }

    /// Forwards a packet at a node without inspecting boxes.
    pub(crate) fn pass_on(&mut self, node: usize, handle: Handle) {
        if self.count_hop(handle) {
            self.forward(node, handle);
        }
    }

    /// Puts a packet on the link towards its destination.
    pub(crate) fn forward(&mut self, node: usize, handle: Handle) {
        self.send(self.route(node, handle), handle);
    }

    /// Puts a packet on a link; without a route it is discarded.
    pub(crate) fn send(&mut self, route: Option<u32>, handle: Handle) {
        self.send_with_outcome(route, handle, |_, _, _| {});
    }

    /// Like [`Network::send`], for a packet of `len` bytes with this ECN codepoint and without an observer; the
    /// link is `route`, if that is known.
    #[inline(always)]
    pub(crate) fn send_plain(
        &mut self,
        node: usize,
        route: Option<u32>,
        handle: Handle,
        len: u32,
        ecn: Ecn,
    ) {
        let Some(index) = route else {
            return self.forward(node, handle);
        };
        let link = &mut self.links[index as usize].link;
        let flow = || self.slab.get(handle).flow_key();
        let queued = link.enqueue_classed(self.now, handle, len, ecn, 0, flow);
        self.settle(index, queued);
    }

    /// Puts a packet on a link; without a route it is discarded. Calls `outcome` with the link, the
    /// packet, and whether the link's queue accepted it.
    #[inline(always)]
    pub(crate) fn send_with_outcome(
        &mut self,
        route: Option<u32>,
        handle: Handle,
        outcome: impl FnOnce(u32, &mut Packet, bool),
    ) {
        let Some(index) = route else {
            return self.discard(handle);
        };
        if self.observer.is_some() {
            return self.put_observed(index, handle, outcome);
        }
        self.put(index, handle, outcome);
    }

    /// Puts a packet on a link; returns whether the queue accepted it. Inlined into
    /// [`Network::send`], which is called for every packet.
    #[inline(always)]
    fn put(
        &mut self,
        index: u32,
        handle: Handle,
        outcome: impl FnOnce(u32, &mut Packet, bool),
    ) -> bool {
        let packet = self.slab.get(handle);
        let (len, ecn, corrects) = (packet.len(), packet.ip.ecn, packet.unparsed.corrects());
        let link = &mut self.links[index as usize].link;
        let flow = || packet.flow_key();
        let queued = link.enqueue_classed(self.now, handle, len, ecn, corrects, flow);
        let accepted = queued.is_ok();
        outcome(index, self.slab.get_mut(handle), accepted);
        self.settle(index, queued);
        accepted
    }

    /// Handles a link's answer to a packet.
    #[inline(always)]
    fn settle(&mut self, index: u32, queued: Result<Option<Time>, Handle>) {
        match queued {
            Ok(None) => {}
            Ok(Some(arrival)) => self.schedule.bring_forward(self.nodes + index, arrival),
            Err(handle) => self.dropped(index as usize, handle),
        }
    }

    /// Handles a packet that a link has dropped.
    #[cold]
    pub(crate) fn dropped(&mut self, index: usize, handle: Handle) {
        let packet = self.slab.get(handle);
        let port = match &packet.body {
            Body::Tcp(segment) => Some(segment.destination_port),
            Body::Udp(datagram) => Some(datagram.destination_port),
            // What is counted is the truth: nodes cannot read it.
            Body::EspTransport(Protected::Tcp(segment)) => Some(segment.destination_port),
            Body::EspTransport(Protected::Udp(datagram)) => Some(datagram.destination_port),
            Body::EspTransport(Protected::Tfrc(tfrc)) => Some(tfrc.destination_port),
            Body::Srp(srp) => Some(srp.destination_port),
            Body::Tfrc(tfrc) => Some(tfrc.destination_port),
            _ => None,
        };
        if let Some(port) = port.filter(|_| packet.payload.len > 0) {
            *self.data_drops.entry((packet.ip.destination, port)).or_default() += 1;
        }
        if let Some(mistakes) = &mut self.mistakes {
            mistakes.dropped(self.now, self.slab.get(handle), self.passages[index]);
            self.schedule.bring_forward(mistakes.component(), mistakes.next());
        }
        self.slab.release(handle);
    }

    /// The packets with payload for an address and port that links have dropped.
    pub(crate) fn data_drops(&self, address: IpAddr, port: u16) -> u64 {
        self.data_drops.get(&(address, port)).copied().unwrap_or(0)
    }

    /// Reports packets of a flow that links drop from now on as corrupted, with this probability.
    pub(crate) fn add_mistakes(&mut self, flow: Flow, probability: f64, random: Random) {
        self.synchronize();
        let schedule = &mut self.schedule;
        let mistakes = self.mistakes.get_or_insert_with(|| Box::new(Mistakes::new(schedule.add())));
        mistakes.add(flow, probability, random);
    }

    /// The next dropped packet whose report as corrupted is due.
    pub(crate) fn mistaken(&mut self) -> Option<Packet> {
        let mistakes = self.mistakes.as_mut()?;
        let packet = mistakes.due(self.now);
        if packet.is_none() {
            self.schedule.set(mistakes.component(), mistakes.next());
        }
        packet
    }

    #[cold]
    fn put_observed(
        &mut self,
        index: u32,
        handle: Handle,
        outcome: impl FnOnce(u32, &mut Packet, bool),
    ) {
        self.watch_queue(index as usize);
        if let Some(observer) = &mut self.observer {
            observer.sending(self.slab.get_mut(handle));
        }
        let accepted = self.put(index, handle, outcome);
        self.watch_queue(index as usize);
        if let Some(observer) = &mut self.observer
            && accepted
        {
            observer.sent(self.now, LinkId(index as usize), self.slab.get(handle));
        }
    }

    /// Discards a packet without a route.
    #[cold]
    pub(crate) fn discard(&mut self, handle: Handle) {
        self.unroutable += 1;
        self.slab.release(handle);
    }

    /// Updates the time series of queues.
    pub(crate) fn catch_up(&mut self) {
        if let Some(observer) = &mut self.observer {
            for (index, direction) in self.links.iter_mut().enumerate() {
                observer.queue(self.now, LinkId(index), &mut direction.link);
            }
        }
    }

    /// Measures the queueing delays of all links.
    pub(crate) fn measure_queue_delays(&mut self) {
        self.links.iter_mut().for_each(|direction| direction.link.measure_queue_delays());
    }

    /// The queueing delays of a link, nanoseconds, if they are measured.
    pub(crate) fn queue_delays(&self, link: LinkId) -> Option<Quantiles> {
        self.links[link.0].link.queue_delays()
    }

    pub(crate) fn statistics(&self, link: LinkId) -> link::Statistics {
        self.links[link.0].link.statistics()
    }
}
