//! The event loop.

use crate::address;
use crate::bytes::{ByteFault, Bytes, Capture, CapturePoint};
use crate::digest::Digest;
use crate::mistakes::Flow;
use crate::network::{Network, Woken};
use crate::node::Node;
use crate::observer::{Series, TraceTarget};
use crate::slab::Handle;
use crate::switches::{Move, Turn};
use crate::topology::{LinkId, NodeId, Roaming, Topology};
use base::{Random, Seed, Time};
use core::net::IpAddr;
use host::{Application, DropReason, Host, LinkEvent, Middlebox};
use link::{Arrival, Fate};
use std::io;
use wire::{Body, CorruptionNotice, Packet};

/// A network in motion: nodes, and the network between them.
pub struct World<A> {
    nodes: Vec<Node<A>>,
    network: Network,
    /// Flows whose source hears at once of every corruption: Oracle ETEN (`bbn8333` §2.1.1), which
    /// no box could do.
    oracle: Vec<Flow>,
    /// What is inside packets that hide others, as far as each knows; for the oracle.
    views: Vec<View>,
    /// Nodes that move.
    roaming: Vec<Roaming>,
}

/// What is inside a packet that hides another, if it is known.
type View = Box<dyn Fn(&Packet) -> Option<Packet> + Send>;

impl<A: Application> World<A> {
    pub(crate) fn new(topology: &Topology, seed: Seed) -> World<A> {
        let nodes = topology.nodes.iter().enumerate();
        let nodes =
            nodes.map(|(index, name)| Node::new(index, seed.stream(&format!("node.{name}"))));
        World {
            nodes: nodes.collect(),
            network: Network::new(topology, seed),
            oracle: Vec::new(),
            views: Vec::new(),
            roaming: topology.roaming.clone(),
        }
    }

    // --- before a run ---

    /// A node's host, to open connections and to listen. Tell the world with
    /// [`World::wake`] once done.
    pub fn host_mut(&mut self, node: NodeId) -> &mut Host<A> {
        &mut self.nodes[node.0].host
    }

    /// Looks after what was changed in a node's host from outside.
    pub fn wake(&mut self, node: NodeId) {
        self.nodes[node.0].flush(node.0, &mut self.network);
    }

    /// Puts a box into a node, behind those that are there.
    pub fn add_box(&mut self, node: NodeId, middlebox: Box<dyn Middlebox + Send>) {
        self.network.schedule.bring_forward(node.0 as u32, middlebox.next_wake());
        self.nodes[node.0].boxes.add(middlebox);
    }

    /// Lets the source of a flow, given by its addresses, hear of every corruption of its packets
    /// at the moment that a node detects it.
    pub fn add_oracle(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.network.synchronize();
        self.oracle.push((source, destination, destination_port));
    }

    /// Lets the oracle see what is inside packets that hide others, such as those of a tunnel: `view`
    /// says what, of those that it knows.
    pub fn see_inside(&mut self, view: impl Fn(&Packet) -> Option<Packet> + Send + 'static) {
        self.views.push(Box::new(view));
    }

    /// Lets the source of a flow, with this `probability` each, hear of packets that links dropped
    /// as if they had been corrupted on the link: when they could have been at its end. That is an
    /// oracle that mistakes congestion for corruption (`bbn8333` §8.3).
    pub fn add_mistakes(
        &mut self,
        source: IpAddr,
        destination: IpAddr,
        destination_port: u16,
        probability: f64,
        random: Random,
    ) {
        let flow = (source, destination, destination_port);
        self.network.add_mistakes(flow, probability, random);
    }

    /// Records time series and logs of `targets`.
    pub fn trace(&mut self, targets: &[TraceTarget]) {
        let observer = self.network.observer.get_or_insert_default();
        for target in targets {
            if let TraceTarget::Flows(node) | TraceTarget::Events(node) = *target {
                self.nodes[node.0].host.watch(true);
            }
            match *target {
                TraceTarget::Flows(node) => observer.flows.push(node),
                TraceTarget::Events(node) => observer.logs.push(node),
                TraceTarget::Queue(link) => observer.series.queues.push((link, Vec::new())),
            }
        }
    }

    /// Computes a [`Digest`] of the run.
    pub fn digest(&mut self) {
        self.network.take_digests();
    }

    /// Byte mode: every packet is written as bytes and read again before every link, its payload
    /// as a pattern. That changes nothing but the speed; [`World::byte_fault`] says whether it went
    /// well.
    pub fn byte_mode(&mut self) {
        self.bytes().replace = true;
    }

    /// Hands the packets that pass `points` to `sink`, until [`World::finish_capture`].
    pub fn capture(&mut self, points: Vec<CapturePoint>, sink: impl Capture + 'static) {
        self.bytes().capture(points, Box::new(sink));
    }

    fn bytes(&mut self) -> &mut Bytes {
        self.network.observer.get_or_insert_default().bytes.get_or_insert_default()
    }

    // --- a run ---

    /// Runs until `end`, what happens at `end` included.
    ///
    /// A node that only one link leads to is dealt with for a while at a time, up to the link's
    /// delay: nothing that happens elsewhere meanwhile can reach it sooner (Chandy and Misra's
    /// lookahead). Each node lives through the same in the same order; only what several nodes share
    /// behind the network's back would see a difference.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let (time, component) = self.network.schedule.first();
            if time > end {
                self.network.now = self.network.now.max(end);
                return;
            }
            self.network.advance_to(time);
            let component = component as usize;
            match component.checked_sub(self.nodes.len()) {
                None => self.nodes[component].serve(component, &mut self.network),
                Some(link) => match self.network.arrivals_only_end(link) {
                    Some(node) => self.follow(link, node, end),
                    None => self.wake_link(link),
                },
            }
        }
    }

    /// Packets arrive at the node at the end of a link.
    #[inline]
    fn follow(&mut self, link: usize, node: usize, end: Time) {
        let until = self.network.horizon(link).min(end);
        let special = self.nodes[node].follow(node, link, until, &mut self.network);
        if let Some(arrival) = special {
            self.receive_any(node, link, arrival);
        }
    }

    /// More is due at a link than an arrival, or at what switches links, or a mistake.
    #[inline(never)]
    fn wake_link(&mut self, link: usize) {
        match self.network.wake(link) {
            Some(Woken::Arrived { to, arrival }) => self.receive_any(to, link, arrival),
            Some(Woken::Dropped { at, packet: handle }) => {
                let packet = *self.network.slab.get(handle);
                self.network.dropped(link, handle);
                self.nodes[at].tell_of_drop(at, link, &packet, &mut self.network);
            }
            None => {}
        }
        self.tell_of_links();
        self.tell_of_moves();
        while let Some(packet) = self.network.mistaken() {
            self.tell_source(&packet);
        }
    }

    /// A packet is at a node, in whatever state, by a link.
    #[inline(never)]
    fn receive_any(&mut self, node: usize, link: usize, arrival: Arrival<Handle>) {
        let Arrival { packet, fate } = arrival;
        match fate {
            Fate::Intact => self.nodes[node].receive_any(node, link, packet, &mut self.network),
            Fate::Marked => {
                self.network.mark(packet);
                self.nodes[node].receive_any(node, link, packet, &mut self.network);
            }
            Fate::Corrected { .. } => self.receive_corrected(node, link, arrival),
            Fate::Corrupted => self.detect(node, link, packet),
            Fate::Lost => self.network.slab.release(packet),
        }
    }

    /// A packet is at a node that had wrong bytes, and whose own code has corrected them.
    #[cold]
    fn receive_corrected(&mut self, node: usize, link: usize, arrival: Arrival<Handle>) {
        let Arrival { packet: handle, fate } = arrival;
        if fate.is_marked() {
            self.network.mark(handle);
        }
        let packet = *self.network.slab.get(handle);
        self.nodes[node].tell(node, link, LinkEvent::Corrected(&packet), &mut self.network);
        self.nodes[node].receive_any(node, link, handle, &mut self.network);
    }

    /// Tells the boxes at both ends of links that have turned.
    fn tell_of_links(&mut self) {
        for Turn { link, up } in core::mem::take(&mut self.network.turned) {
            let (a, b) = self.network.ends(link);
            for (node, other, direction) in [(a, b, 2 * link + 1), (b, a, 2 * link)] {
                let peer = address::of(other);
                let event = if up { LinkEvent::Up { peer } } else { LinkEvent::Down { peer } };
                self.nodes[node].tell(node, direction, event, &mut self.network);
            }
        }
    }

    /// Tells hosts of a node that has moved or is about to.
    fn tell_of_moves(&mut self) {
        let Some(Move { roaming, connectivity }) = self.network.moved.take() else { return };
        let Roaming { node, tells, .. } = &self.roaming[roaming];
        let addresses: Vec<IpAddr> = node.all_addresses().collect();
        for &NodeId(index) in tells {
            let peers = if index == node.0 { &[][..] } else { &addresses };
            self.nodes[index].host.on_connectivity(self.network.now, connectivity, peers);
            self.nodes[index].flush(index, &mut self.network);
        }
    }

    /// A damaged packet is at a node: it goes no further, but may be told of.
    fn detect(&mut self, node: usize, link: usize, handle: Handle) {
        let packet = *self.network.slab.get(handle);
        self.network.slab.release(handle);
        self.nodes[node].tell(node, link, LinkEvent::Corrupted(&packet), &mut self.network);
        if self.oracle.is_empty() {
            return;
        }
        let packet = self.views.iter().find_map(|view| view(&packet)).unwrap_or(packet);
        if let Body::Tcp(segment) = &packet.body {
            let flow = (packet.ip.source, packet.ip.destination, segment.destination_port);
            if self.oracle.contains(&flow) {
                self.tell_source(&packet);
            }
        }
    }

    /// The source of a packet hears that it was corrupted.
    fn tell_source(&mut self, packet: &Packet) {
        let Body::Tcp(segment) = &packet.body else { return };
        let (from, to) = (packet.ip.source, packet.ip.destination);
        if let Some(index) = address::node(from) {
            let notice = CorruptionNotice::about(from, to, segment, packet.payload.len);
            let source = &mut self.nodes[index];
            source.host.notify(self.network.now, &notice);
            source.flush(index, &mut self.network);
        }
    }

    // --- after a run ---

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.network.now
    }

    /// A node's host.
    #[must_use]
    pub fn host(&self, node: NodeId) -> &Host<A> {
        &self.nodes[node.0].host
    }

    /// The packets that the boxes of a node dropped, by reason.
    pub fn box_drops(&self, node: NodeId) -> impl Iterator<Item = (DropReason, u64)> {
        self.nodes[node.0].boxes.drops()
    }

    /// Counts of what a link did.
    #[must_use]
    pub fn link(&self, link: LinkId) -> link::Statistics {
        self.network.statistics(link)
    }

    /// The links from one node to another that packets take now; none if there is no way.
    #[must_use]
    pub fn path(&self, from: NodeId, to: NodeId) -> Vec<LinkId> {
        self.network.path(from.0, to.0)
    }

    /// Packets that found no way.
    #[must_use]
    pub fn unroutable(&self) -> u64 {
        self.network.unroutable
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.network.slab.len()
    }

    /// Events processed.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.network.events
    }

    /// When the next event is due; [`Time::NEVER`] once everything is quiet.
    #[must_use]
    pub fn next_event(&self) -> Time {
        self.network.schedule.first().0
    }

    /// The first thing that went wrong in byte mode or in a capture.
    #[must_use]
    pub fn byte_fault(&self) -> Option<ByteFault> {
        self.network.observer.as_ref()?.bytes.as_ref()?.fault
    }

    /// Ends the capture, if there is one.
    ///
    /// # Errors
    /// The first that its sink had.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        let observer = self.network.observer.as_mut();
        observer.and_then(|o| o.bytes.as_mut()).map_or(Ok(()), Bytes::finish_capture)
    }

    /// The recorded time series and the digest, if they were asked for.
    #[must_use]
    pub fn observations(mut self) -> (Series, Option<Digest>) {
        self.network.catch_up();
        let digest = self.network.digest();
        (self.network.observer.map_or_else(Series::default, |o| o.series), digest)
    }
}
