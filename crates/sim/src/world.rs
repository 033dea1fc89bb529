//! The event loop.

use crate::address;
use crate::bytes::{ByteFault, Bytes, Capture, CapturePoint};
use crate::digest::Digest;
use crate::mistakes::Flow;
use crate::network::{Network, Woken};
use crate::node::Node;
use crate::observer::{Series, TraceTarget};
use crate::slab::Handle;
use crate::topology::{LinkId, NodeId, Topology};
use base::{Quantiles, Random, Seed, Time};
use core::net::IpAddr;
use host::{Application, DropReason, Host, LinkEvent, Middlebox};
use link::{Arrival, Fate, Move, Movement, Turn};
use std::io;
use tcp::Connectivity;
use wire::{Body, CorruptionNotice, Packet};

/// A network in motion: nodes, and the network between them.
pub struct World<A> {
    nodes: Vec<Node<A>>,
    network: Network,
    /// Flows whose source is notified of every corruption at once: Oracle ETEN (`bbn8333` §2.1.1),
    /// which no box could implement.
    oracle: Vec<Flow>,
    /// Functions that give the oracle the inner packets of encrypted ones.
    views: Vec<View>,
}

/// The packet inside an encrypted one, if it is known.
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
        }
    }

    // --- before a run ---

    /// A node's host, to open connections and to listen. Call [`World::wake`] afterwards.
    pub fn host_mut(&mut self, node: NodeId) -> &mut Host<A> {
        &mut self.nodes[node.0].host
    }

    /// Schedules a node's host after it was changed from outside.
    pub fn wake(&mut self, node: NodeId) {
        self.nodes[node.0].flush(node.0, &mut self.network);
    }

    /// Puts a box into a node, behind those that are there.
    pub fn add_box(&mut self, node: NodeId, middlebox: Box<dyn Middlebox + Send>) {
        self.network.schedule.bring_forward(node.0 as u32, middlebox.next_wake());
        self.nodes[node.0].boxes.add(middlebox);
    }

    /// Notifies the source of a flow, given by its addresses, of every corruption of its packets at
    /// the moment that a node detects it.
    pub fn add_oracle(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.network.synchronize();
        self.oracle.push((source, destination, destination_port));
    }

    /// Lets the oracle see the packets inside encrypted ones, such as those of a tunnel: `view`
    /// returns those that it knows.
    pub fn see_inside(&mut self, view: impl Fn(&Packet) -> Option<Packet> + Send + 'static) {
        self.views.push(Box::new(view));
    }

    /// Notifies the source of a flow of packets that links have dropped, each with this
    /// `probability`, as if they had been corrupted: at the time when they could have been at the
    /// link's end. It is an oracle that mistakes congestion for corruption (`bbn8333` §8.3).
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
                TraceTarget::Boxes(node) => observer.series.boxes.push((node, Vec::new())),
            }
        }
    }

    /// Measures round trips, delays of datagrams, and queueing delays: before the first event.
    pub fn measure_latency(&mut self) {
        self.network.measure_queue_delays();
        for node in &mut self.nodes {
            let settings = node.host.settings();
            node.host.set(host::Settings { measure_latency: true, ..settings });
        }
    }

    /// Computes a [`Digest`] of the run.
    pub fn digest(&mut self) {
        self.network.take_digests();
    }

    /// Byte mode: every packet is written as bytes and parsed again before every link, its payload
    /// as a pattern. The run is the same but slower; [`World::byte_fault`] returns the first error.
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

    /// Runs until `end`, events at `end` included.
    ///
    /// A node with one incoming link is processed for up to the link's delay at a time: no event
    /// elsewhere can reach it sooner (Chandy and Misra's lookahead). The order of events at each
    /// node is the same; only state that several nodes share outside of the network could show a
    /// difference.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let (time, component) = self.network.schedule.first();
            if time > end {
                self.network.now = self.network.now.max(end);
                return;
            }
            let component = component as usize;
            let Some(link) = component.checked_sub(self.nodes.len()) else {
                self.network.now = time;
                self.nodes[component].serve(component, &mut self.network);
                continue;
            };
            self.network.advance_to(time);
            match self.network.arrivals_only_end(link) {
                Some(node) => self.follow(link, node, end),
                None => self.wake_link(link),
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

    /// Handles an event of a link other than an arrival, of a switch, or of the mistakes.
    #[inline(never)]
    fn wake_link(&mut self, link: usize) {
        match self.network.wake(link) {
            Some(Woken::Arrived { to, arrival }) => self.receive_any(to, link, arrival),
            Some(Woken::Dropped { at, packet: handle }) => {
                let packet = *self.network.slab.get(handle);
                self.network.dropped(link, handle);
                self.nodes[at].on_drop(at, link, &packet, &mut self.network);
            }
            None => {}
        }
        self.notify_of_links();
        self.notify_of_moves();
        while let Some(packet) = self.network.mistaken() {
            self.notify_source(&packet);
        }
    }

    /// Handles a packet that arrives by a link, in any state.
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

    /// Handles a packet with wrong bytes that its own code has corrected.
    #[cold]
    fn receive_corrected(&mut self, node: usize, link: usize, arrival: Arrival<Handle>) {
        let Arrival { packet: handle, fate } = arrival;
        if fate.is_marked() {
            self.network.mark(handle);
        }
        let packet = *self.network.slab.get(handle);
        self.nodes[node].on_link_event(
            node,
            link,
            LinkEvent::Corrected(&packet),
            &mut self.network,
        );
        self.nodes[node].receive_any(node, link, handle, &mut self.network);
    }

    /// Notifies the boxes at both ends of links that have gone down or come up.
    fn notify_of_links(&mut self) {
        for Turn { link, up } in core::mem::take(&mut self.network.turned) {
            let (a, b) = self.network.ends(link);
            for (node, other, direction) in [(a, b, 2 * link + 1), (b, a, 2 * link)] {
                let peer = address::of(other);
                let event = if up { LinkEvent::Up { peer } } else { LinkEvent::Down { peer } };
                self.nodes[node].on_link_event(node, direction, event, &mut self.network);
            }
        }
    }

    /// Notifies hosts of a node that has moved or is about to.
    fn notify_of_moves(&mut self) {
        let Some(Move { node, notifies, movement }) = self.network.moved.take() else { return };
        let change = match movement {
            Movement::Attached => Connectivity::Changed { window: None },
            Movement::Leaving => Connectivity::Ending,
        };
        let addresses: Vec<IpAddr> = NodeId(node).all_addresses().collect();
        for index in notifies {
            let peers = if index == node { &[][..] } else { &addresses };
            self.nodes[index].host.on_connectivity(self.network.now, change, peers);
            self.nodes[index].flush(index, &mut self.network);
        }
    }

    /// Handles a corrupted packet: it is dropped, and boxes and the oracle may report it.
    fn detect(&mut self, node: usize, link: usize, handle: Handle) {
        let packet = *self.network.slab.get(handle);
        self.network.slab.release(handle);
        self.nodes[node].on_link_event(
            node,
            link,
            LinkEvent::Corrupted(&packet),
            &mut self.network,
        );
        if self.oracle.is_empty() {
            return;
        }
        let packet = self.views.iter().find_map(|view| view(&packet)).unwrap_or(packet);
        if let Body::Tcp(segment) = &packet.body {
            let flow = (packet.ip.source, packet.ip.destination, segment.destination_port);
            if self.oracle.contains(&flow) {
                self.notify_source(&packet);
            }
        }
    }

    /// Notifies the source of a packet that it was corrupted.
    fn notify_source(&mut self, packet: &Packet) {
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

    /// The counts of the boxes of a node.
    #[must_use]
    pub fn box_counts(&self, node: NodeId) -> Vec<(&'static str, u64)> {
        self.nodes[node.0].boxes.counts()
    }

    /// Counts of what a link did.
    #[must_use]
    pub fn link(&self, link: LinkId) -> link::Statistics {
        self.network.statistics(link)
    }

    /// The times that packets waited for their transmission on a link, nanoseconds, if they are
    /// measured ([`World::measure_latency`]).
    #[must_use]
    pub fn queue_delays(&self, link: LinkId) -> Option<Quantiles> {
        self.network.queue_delays(link)
    }

    /// The TCP segments and UDP datagrams with payload for an address and port that links have dropped:
    /// their queues, or because they went down. Those inside a tunnel are not known.
    #[must_use]
    pub fn data_drops(&self, address: IpAddr, port: u16) -> u64 {
        self.network.data_drops(address, port)
    }

    /// Packets without a route.
    #[must_use]
    pub fn unroutable(&self) -> u64 {
        self.network.unroutable
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.network.slab.len()
    }

    /// Events processed. A node's wake is none if nothing is due.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.network.events
    }

    /// When the next event is due; [`Time::NEVER`] once everything is quiet.
    #[must_use]
    pub fn next_event(&self) -> Time {
        self.network.schedule.first().0
    }

    /// The first error of byte mode or of a capture.
    #[must_use]
    pub fn byte_fault(&self) -> Option<ByteFault> {
        self.network.observer.as_ref()?.bytes.as_ref()?.fault
    }

    /// Ends the capture, if there is one.
    ///
    /// # Errors
    /// The first error of its sink.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        let observer = self.network.observer.as_mut();
        observer.and_then(|o| o.bytes.as_mut()).map_or(Ok(()), Bytes::finish_capture)
    }

    /// The recorded time series and the digest, if requested.
    #[must_use]
    pub fn observations(mut self) -> (Series, Option<Digest>) {
        self.network.catch_up();
        let digest = self.network.digest();
        (self.network.observer.map_or_else(Series::default, |o| o.series), digest)
    }
}
