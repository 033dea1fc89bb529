//! The event loop.

use crate::network::{LinkId, Network, NodeId};
use crate::observer::{Digest, Observer, Series, TraceTarget};
use crate::routing::Routes;
use crate::slab::{Handle, Slab};
use crate::address;
use base::{Schedule, Seed, Time};
use core::net::IpAddr;
use host::{Application, Context, Host, LinkEvent, Middlebox, Passage};
use link::{Fate, Link};
use wire::{Body, CorruptionNotice, Packet};

/// A network in motion. Nodes are components 0, 1, 2, ... of the schedule, links follow.
pub struct World<A> {
    now: Time,
    schedule: Schedule,
    nodes: Vec<Node<A>>,
    links: Vec<Hop>,
    routes: Routes,
    slab: Slab,
    /// Flows whose source hears at once of every corruption: Oracle ETEN (`bbn8333` §2.1.1), which
    /// no box could do.
    oracle: Vec<(IpAddr, IpAddr, u16)>,
    observer: Option<Box<Observer>>,
    /// Packets that no route or no node wanted.
    unroutable: u64,
    /// What boxes have sent and the world has not.
    outbox: Vec<Packet>,
    events: u64,
}

struct Node<A> {
    host: Host<A>,
    boxes: Vec<Box<dyn Middlebox + Send>>,
}

struct Hop {
    link: Link<Handle>,
    to: usize,
}

impl<A: Application> World<A> {
    pub(crate) fn new(network: &Network, seed: Seed) -> World<A> {
        let mut schedule = Schedule::new();
        for _ in 0..network.nodes + network.links.len() {
            schedule.add();
        }
        let nodes = (0..network.nodes).map(|index| Node {
            host: Host::new(address::of(index), seed.stream(&format!("node.{index}"))),
            boxes: Vec::new(),
        });
        let links = network.links.iter().enumerate().map(|(index, direction)| {
            let name = if index % 2 == 0 { "forward" } else { "backward" };
            let random = seed.stream(&format!("link.{}.{name}.errors", index / 2));
            Hop { link: Link::new(direction.config, random), to: direction.to }
        });
        let ends: Vec<_> = network.links.iter().map(|link| (link.from, link.to)).collect();
        World {
            now: Time::ZERO,
            schedule,
            nodes: nodes.collect(),
            links: links.collect(),
            routes: Routes::shortest(network.nodes, &ends),
            slab: Slab::default(),
            oracle: Vec::new(),
            observer: None,
            unroutable: 0,
            outbox: Vec::new(),
            events: 0,
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
        self.flush(node.0);
    }

    /// Puts a box into a node, behind those that are there.
    pub fn add_box(&mut self, node: NodeId, middlebox: impl Middlebox + Send + 'static) {
        self.nodes[node.0].boxes.push(Box::new(middlebox));
    }

    /// Lets the source of a flow hear of every corruption of its packets at the moment that a node
    /// detects it.
    pub fn add_oracle(&mut self, source: NodeId, destination: NodeId, destination_port: u16) {
        self.oracle.push((source.address(), destination.address(), destination_port));
    }

    /// Records time series of `targets`.
    pub fn trace(&mut self, targets: &[TraceTarget]) {
        let observer = self.observer.get_or_insert_default();
        for target in targets {
            match *target {
                TraceTarget::Flows(node) => observer.nodes.push(node),
                TraceTarget::Queue(link) => observer.series.queues.push((link, Vec::new())),
            }
        }
    }

    /// Computes a [`Digest`] of the run.
    pub fn digest(&mut self) {
        self.observer.get_or_insert_default().digest = Some(Digest::default());
    }

    // --- a run ---

    /// Runs until `end`, what happens at `end` included.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let (time, component) = self.schedule.first();
            if time > end {
                self.now = self.now.max(end);
                return;
            }
            self.now = time;
            self.events += 1;
            let component = component as usize;
            match component.checked_sub(self.nodes.len()) {
                None => {
                    self.nodes[component].host.handle_timeout(time);
                    self.schedule.set(component as u32, self.nodes[component].host.poll_timeout());
                    self.flush(component);
                }
                Some(link) => self.arrival(link),
            }
        }
    }

    /// A packet reaches the end of a link.
    #[inline]
    fn arrival(&mut self, index: usize) {
        let hop = &mut self.links[index];
        let arrival = hop.link.arrive(self.now);
        let to = hop.to;
        let next = hop.link.next_arrival();
        self.schedule.set((self.nodes.len() + index) as u32, next);
        let Some(arrival) = arrival else { return };
        let handle = arrival.packet;
        if let Some(digest) = self.observer.as_mut().and_then(|o| o.digest.as_mut()) {
            digest.packet(self.now, index, self.slab.get(handle), arrival.fate);
        }
        match arrival.fate {
            Fate::Intact => self.receive(to, handle),
            Fate::Corrupted => self.detect(to, handle),
            Fate::Lost => self.slab.release(handle),
        }
    }

    /// An intact packet is at a node: its boxes see it, then it is delivered or goes on.
    #[inline]
    fn receive(&mut self, node: usize, handle: Handle) {
        if !self.nodes[node].boxes.is_empty() && !self.pass_boxes(node, handle) {
            return;
        }
        let packet = self.slab.get_mut(handle);
        if address::node(packet.ip.destination) == Some(node) {
            self.nodes[node].host.handle_packet(self.now, packet);
            self.slab.release(handle);
            self.flush(node);
        } else {
            packet.ip.hop_limit = packet.ip.hop_limit.saturating_sub(1);
            if packet.ip.hop_limit == 0 {
                self.unroutable += 1;
                self.slab.release(handle);
            } else {
                self.forward(node, handle);
            }
        }
    }

    /// Shows a packet to a node's boxes; false if one of them kept it.
    fn pass_boxes(&mut self, node: usize, handle: Handle) -> bool {
        let mut passage = Passage::Forward;
        let packet = self.slab.get_mut(handle);
        for middlebox in &mut self.nodes[node].boxes {
            let mut cx = Context { send: &mut self.outbox };
            passage = middlebox.packet(self.now, packet, &mut cx);
            if passage == Passage::Drop {
                break;
            }
        }
        if passage == Passage::Drop {
            self.slab.release(handle);
        }
        self.send_outbox(node);
        passage == Passage::Forward
    }

    /// A damaged packet is at a node: it goes no further, but may be told of.
    fn detect(&mut self, node: usize, handle: Handle) {
        let packet = *self.slab.get(handle);
        self.slab.release(handle);
        for middlebox in &mut self.nodes[node].boxes {
            let mut cx = Context { send: &mut self.outbox };
            middlebox.link(self.now, LinkEvent::Corrupted(&packet), &mut cx);
        }
        self.send_outbox(node);
        if let Body::Tcp(segment) = &packet.body {
            let (source, destination) = (packet.ip.source, packet.ip.destination);
            let told = self.oracle.contains(&(source, destination, segment.destination_port));
            if told && let Some(at) = address::node(source) {
                let notice =
                    CorruptionNotice::about(source, destination, segment, packet.payload.len);
                self.nodes[at].host.notify(self.now, tcp::Source::Local, &notice);
                self.flush(at);
            }
        }
    }

    fn send_outbox(&mut self, node: usize) {
        while let Some(packet) = self.outbox.pop() {
            let handle = self.slab.take();
            *self.slab.get_mut(handle) = packet;
            if address::node(packet.ip.destination) == Some(node) {
                self.receive(node, handle);
            } else {
                self.forward(node, handle);
            }
        }
    }

    /// Sends what a host has to send, and schedules its next wake.
    #[inline]
    fn flush(&mut self, node: usize) {
        loop {
            let handle = self.slab.take();
            let host = &mut self.nodes[node].host;
            if !host.poll_transmit(self.now, self.slab.get_mut(handle)) {
                self.slab.release(handle);
                break;
            }
            if self.nodes[node].boxes.is_empty() || self.pass_boxes(node, handle) {
                self.forward(node, handle);
            }
        }
        self.schedule.bring_forward(node as u32, self.nodes[node].host.poll_timeout());
        if let Some(observer) = &mut self.observer
            && observer.nodes.contains(&NodeId(node))
        {
            for (id, connection, _) in self.nodes[node].host.connections() {
                observer.series.flow(self.now, NodeId(node), id, connection.vitals());
            }
        }
    }

    /// Puts a packet on the link towards its destination.
    #[inline]
    fn forward(&mut self, node: usize, handle: Handle) {
        let packet = self.slab.get(handle);
        let route = address::node(packet.ip.destination)
            .and_then(|destination| self.routes.next(node, destination));
        let Some(index) = route else {
            self.unroutable += 1;
            self.slab.release(handle);
            return;
        };
        let len = packet.len();
        let link = &mut self.links[index as usize].link;
        match link.enqueue(self.now, handle, len) {
            Ok(()) => {
                let component = self.nodes.len() as u32 + index;
                self.schedule.bring_forward(component, link.next_arrival());
            }
            Err(handle) => self.slab.release(handle),
        }
        if let Some(observer) = &mut self.observer
            && !observer.series.queues.is_empty()
        {
            let queued = self.links[index as usize].link.queued_packets(self.now);
            observer.series.queue(self.now, LinkId(index as usize), queued);
        }
    }

    // --- after a run ---

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// A node's host.
    #[must_use]
    pub fn host(&self, node: NodeId) -> &Host<A> {
        &self.nodes[node.0].host
    }

    /// Counts of what a link did.
    #[must_use]
    pub fn link(&self, link: LinkId) -> link::Statistics {
        self.links[link.0].link.statistics()
    }

    /// Packets that found no way.
    #[must_use]
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slab.len()
    }

    /// Events processed.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The recorded time series and the digest, if they were asked for.
    #[must_use]
    pub fn observations(self) -> (Series, Option<Digest>) {
        self.observer.map_or_else(Default::default, |o| (o.series, o.digest))
    }
}
