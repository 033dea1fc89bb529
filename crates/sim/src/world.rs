//! The event loop.

use crate::address;
use crate::bytes::{ByteFault, Bytes, Capture, CapturePoint};
use crate::fabric::{Fabric, Flow};
use crate::network::{LinkId, Network, NodeId};
use crate::observer::{Digest, Series, TraceTarget};
use crate::slab::{Handle, Slab};
use crate::switches::Turn;
use base::{Random, Seed, Time};
use core::net::IpAddr;
use host::{Application, Context, Host, LinkEvent, Middlebox, Outlet, Passage, Port, Settings};
use link::{Arrival, Fate};
use std::io;
use wire::{Body, CorruptionNotice, Packet};

/// A network in motion: nodes, and the fabric between them.
pub struct World<A> {
    nodes: Vec<Node<A>>,
    fabric: Fabric,
    /// Flows whose source hears at once of every corruption: Oracle ETEN (`bbn8333` §2.1.1), which
    /// no box could do.
    oracle: Vec<Flow>,
    events: u64,
}

struct Node<A> {
    host: Host<A>,
    boxes: Vec<Box<dyn Middlebox + Send>>,
    /// Whether any box wants to see packets.
    inspected: bool,
    /// Room for what boxes make, kept for the next time.
    outbox: Vec<Packet>,
    /// Room for what boxes are to see of what the host sends, likewise.
    tray: Vec<Handle>,
}

impl<A: Application> World<A> {
    pub(crate) fn new(network: &Network, seed: Seed) -> World<A> {
        let nodes = (0..network.nodes).map(|index| {
            let random = seed.stream(&format!("node.{index}"));
            let mut host = Host::new(address::of(index), random);
            host.add_address(address::v6_of(index));
            // The results of a run are read from what is over, too.
            host.set(Settings { keep_closed: true, ..Settings::default() });
            Node { host, boxes: Vec::new(), inspected: false, outbox: Vec::new(), tray: Vec::new() }
        });
        World {
            nodes: nodes.collect(),
            fabric: Fabric::new(network, seed),
            oracle: Vec::new(),
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
        self.nodes[node.0].flush(node.0, &mut self.fabric);
    }

    /// Puts a box into a node, behind those that are there.
    pub fn add_box(&mut self, node: NodeId, middlebox: impl Middlebox + Send + 'static) {
        self.fabric.schedule.bring_forward(node.0 as u32, middlebox.next_wake());
        let node = &mut self.nodes[node.0];
        node.inspected |= middlebox.inspects_packets();
        node.boxes.push(Box::new(middlebox));
    }

    /// Lets the source of a flow, given by its addresses, hear of every corruption of its packets
    /// at the moment that a node detects it.
    pub fn add_oracle(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.oracle.push((source, destination, destination_port));
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
        self.fabric.add_mistakes(flow, probability, random);
    }

    /// Records time series and logs of `targets`.
    pub fn trace(&mut self, targets: &[TraceTarget]) {
        let observer = self.fabric.observer.get_or_insert_default();
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
        self.fabric.observer.get_or_insert_default().digest = Some(Digest::default());
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
        self.fabric.observer.get_or_insert_default().bytes.get_or_insert_default()
    }

    // --- a run ---

    /// Runs until `end`, what happens at `end` included.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let (time, component) = self.fabric.schedule.first();
            if time > end {
                self.fabric.now = self.fabric.now.max(end);
                return;
            }
            self.fabric.now = time;
            self.events += 1;
            let component = component as usize;
            match component.checked_sub(self.nodes.len()) {
                None => self.nodes[component].serve(component, &mut self.fabric),
                Some(link) => match self.fabric.arrive(link) {
                    Some((node, Arrival { packet, fate: Fate::Intact })) => {
                        self.nodes[node].receive(node, link, packet, &mut self.fabric);
                    }
                    Some((node, arrival)) => self.receive_any(node, link, arrival),
                    None => self.wake_link(link),
                },
            }
        }
    }

    /// More is due at a link than an arrival, or at what switches links, or a mistake.
    #[inline(never)]
    fn wake_link(&mut self, link: usize) {
        if let Some((node, arrival)) = self.fabric.wake(link) {
            self.receive_any(node, link, arrival);
        }
        self.tell_of_links();
        while let Some(packet) = self.fabric.mistaken() {
            self.tell_source(&packet);
        }
    }

    /// A packet is at a node, in whatever state, by a link.
    #[inline(never)]
    fn receive_any(&mut self, node: usize, link: usize, arrival: Arrival<Handle>) {
        let Arrival { packet, fate } = arrival;
        match fate {
            Fate::Intact => self.nodes[node].receive_any(node, link, packet, &mut self.fabric),
            Fate::Marked => {
                self.fabric.mark(packet);
                self.nodes[node].receive_any(node, link, packet, &mut self.fabric);
            }
            Fate::Corrupted => self.detect(node, link, packet),
            Fate::Lost => self.fabric.slab.release(packet),
        }
    }

    /// Tells the boxes at both ends of links that have turned.
    fn tell_of_links(&mut self) {
        for Turn { link, up } in core::mem::take(&mut self.fabric.turned) {
            let (a, b) = self.fabric.ends(link);
            for (node, other, direction) in [(a, b, 2 * link + 1), (b, a, 2 * link)] {
                let peer = address::of(other);
                let event = if up { LinkEvent::Up { peer } } else { LinkEvent::Down { peer } };
                self.nodes[node].tell(node, direction, event, &mut self.fabric);
            }
        }
    }

    /// A damaged packet is at a node: it goes no further, but may be told of.
    fn detect(&mut self, node: usize, link: usize, handle: Handle) {
        let packet = *self.fabric.slab.get(handle);
        self.fabric.slab.release(handle);
        self.nodes[node].tell(node, link, LinkEvent::Corrupted(&packet), &mut self.fabric);
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
            source.host.notify(self.fabric.now, tcp::Source::Local, &notice);
            source.flush(index, &mut self.fabric);
        }
    }

    // --- after a run ---

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.fabric.now
    }

    /// A node's host.
    #[must_use]
    pub fn host(&self, node: NodeId) -> &Host<A> {
        &self.nodes[node.0].host
    }

    /// Counts of what a link did.
    #[must_use]
    pub fn link(&self, link: LinkId) -> link::Statistics {
        self.fabric.statistics(link)
    }

    /// The links from one node to another that packets take now; none if there is no way.
    #[must_use]
    pub fn path(&self, from: NodeId, to: NodeId) -> Vec<LinkId> {
        self.fabric.path(from.0, to.0)
    }

    /// Packets that found no way.
    #[must_use]
    pub fn unroutable(&self) -> u64 {
        self.fabric.unroutable
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.fabric.slab.len()
    }

    /// Events processed.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// When the next event is due; [`Time::NEVER`] once everything is quiet.
    #[must_use]
    pub fn next_event(&self) -> Time {
        self.fabric.schedule.first().0
    }

    /// The first thing that went wrong in byte mode or in a capture.
    #[must_use]
    pub fn byte_fault(&self) -> Option<ByteFault> {
        self.fabric.observer.as_ref()?.bytes.as_ref()?.fault
    }

    /// Ends the capture, if there is one.
    ///
    /// # Errors
    /// The first that its sink had.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        let observer = self.fabric.observer.as_mut();
        observer.and_then(|o| o.bytes.as_mut()).map_or(Ok(()), Bytes::finish_capture)
    }

    /// The recorded time series and the digest, if they were asked for.
    #[must_use]
    pub fn observations(mut self) -> (Series, Option<Digest>) {
        self.fabric.catch_up();
        self.fabric.observer.map_or_else(Default::default, |o| (o.series, o.digest))
    }
}

impl<A: Application> Node<A> {
    /// An intact packet arrives: the boxes see it, then it is delivered or goes on.
    #[inline]
    fn receive(&mut self, index: usize, link: usize, handle: Handle, fabric: &mut Fabric) {
        if self.inspected {
            return self.receive_any(index, link, handle, fabric);
        }
        let packet = fabric.slab.get_mut(handle);
        if address::node(packet.ip.destination) != Some(index) {
            return self.pass_on(index, handle, fabric);
        }
        let mut plug = Plug { index, fabric, place: Some(handle) };
        let sooner = self.host.exchange(plug.fabric.now, &mut plug);
        plug.unplug();
        if sooner || fabric.observer.is_some() {
            self.settle(index, fabric);
        }
    }

    /// The same whatever boxes there are.
    #[inline(never)]
    fn receive_any(&mut self, index: usize, link: usize, handle: Handle, fabric: &mut Fabric) {
        if !self.pass_boxes(index, Some(link), handle, fabric) {
            return;
        }
        let packet = fabric.slab.get(handle);
        if address::node(packet.ip.destination) != Some(index) {
            return self.pass_on(index, handle, fabric);
        }
        self.host.handle_packet(fabric.now, packet);
        fabric.slab.release(handle);
        self.flush(index, fabric);
    }

    /// Something happens on a link that ends here.
    fn tell(&mut self, index: usize, link: usize, event: LinkEvent<'_>, fabric: &mut Fabric) {
        for middlebox in &mut self.boxes {
            let mut cx = Context { send: &mut self.outbox };
            middlebox.link(fabric.now, port(link), event, &mut cx);
        }
        self.send_outbox(index, fabric);
        self.await_boxes(index, fabric);
    }

    /// Shows a packet to the boxes, which came by a link unless it starts here; false if one of
    /// them kept it.
    fn pass_boxes(
        &mut self,
        index: usize,
        link: Option<usize>,
        handle: Handle,
        fabric: &mut Fabric,
    ) -> bool {
        let packet = fabric.slab.get_mut(handle);
        let kept = self.boxes.iter_mut().any(|middlebox| {
            let mut cx = Context { send: &mut self.outbox };
            middlebox.packet(fabric.now, link.map(port), packet, &mut cx) == Passage::Drop
        });
        if kept {
            fabric.slab.release(handle);
        }
        self.send_outbox(index, fabric);
        self.await_boxes(index, fabric);
        !kept
    }

    /// Wakes the boxes that want it now.
    fn wake_boxes(&mut self, index: usize, fabric: &mut Fabric) {
        for middlebox in &mut self.boxes {
            if middlebox.next_wake() <= fabric.now {
                let mut cx = Context { send: &mut self.outbox };
                middlebox.wake(fabric.now, &mut cx);
            }
        }
        self.send_outbox(index, fabric);
    }

    /// A box may want to be woken sooner than the node is.
    fn await_boxes(&self, index: usize, fabric: &mut Fabric) {
        for middlebox in &self.boxes {
            fabric.schedule.bring_forward(index as u32, middlebox.next_wake());
        }
    }

    /// Sends what boxes have made.
    fn send_outbox(&mut self, index: usize, fabric: &mut Fabric) {
        if self.outbox.is_empty() {
            return;
        }
        // A packet for this very host may make the boxes send more, meanwhile.
        let mut outbox = core::mem::take(&mut self.outbox);
        for packet in outbox.drain(..) {
            if address::node(packet.ip.destination) == Some(index) {
                self.host.handle_packet(fabric.now, &packet);
                self.flush(index, fabric);
            } else {
                let handle = fabric.slab.insert(packet);
                self.forward(index, handle, fabric);
            }
        }
        if self.outbox.is_empty() {
            self.outbox = outbox;
        } else {
            self.send_outbox(index, fabric);
        }
    }

    /// Puts a packet on its way. Boxes that inspect packets hear what the queue makes of it.
    fn forward(&mut self, index: usize, handle: Handle, fabric: &mut Fabric) {
        if !self.inspected {
            return fabric.forward(index, handle);
        }
        let (now, route) = (fabric.now, fabric.route(index, handle));
        let (boxes, outbox) = (&mut self.boxes, &mut self.outbox);
        fabric.send_told(route, handle, |link, packet, accepted| {
            for middlebox in boxes {
                let mut cx = Context { send: outbox };
                if accepted {
                    middlebox.queued(now, Port(link), packet, &mut cx);
                } else {
                    middlebox.link(now, Port(link), LinkEvent::Dropped(packet), &mut cx);
                }
            }
        });
    }

    /// A packet arrives that is for another node.
    fn pass_on(&mut self, index: usize, handle: Handle, fabric: &mut Fabric) {
        let packet = fabric.slab.get_mut(handle);
        packet.ip.hop_limit = packet.ip.hop_limit.saturating_sub(1);
        if packet.ip.hop_limit == 0 {
            fabric.discard(handle);
        } else {
            self.forward(index, handle, fabric);
            self.send_outbox(index, fabric);
        }
    }

    /// The host's wake has come.
    #[inline]
    fn serve(&mut self, index: usize, fabric: &mut Fabric) {
        let next = if self.inspected {
            self.host.handle_timeout(fabric.now);
            self.wake_boxes(index, fabric);
            self.transmit_inspected(index, fabric);
            let boxes = self.boxes.iter().map(|middlebox| middlebox.next_wake());
            boxes.fold(self.host.poll_timeout(), Time::min)
        } else {
            let mut plug = Plug { index, fabric, place: None };
            let next = self.host.serve(plug.fabric.now, &mut plug);
            plug.unplug();
            next
        };
        fabric.schedule.set(index as u32, next);
        self.watch(index, fabric);
    }

    /// Sends what the host has to send, and brings its next wake forward if need be.
    fn flush(&mut self, index: usize, fabric: &mut Fabric) {
        if self.inspected {
            self.transmit_inspected(index, fabric);
        } else {
            let mut plug = Plug { index, fabric, place: None };
            let _ = self.host.transmit(plug.fabric.now, &mut plug);
            plug.unplug();
        }
        self.settle(index, fabric);
    }

    /// Sends what the host has to send, past the boxes.
    fn transmit_inspected(&mut self, index: usize, fabric: &mut Fabric) {
        // It is laid out first, since a box may hand the host a packet in turn.
        let written = core::mem::take(&mut self.tray);
        let mut tray = Tray { slab: &mut fabric.slab, written };
        let _ = self.host.transmit(fabric.now, &mut tray);
        let mut written = tray.written;
        for handle in written.drain(..) {
            if self.pass_boxes(index, None, handle, fabric) {
                self.forward(index, handle, fabric);
            }
        }
        self.tray = written;
        self.send_outbox(index, fabric);
    }

    /// The host has done something: its wake may have come forward.
    fn settle(&mut self, index: usize, fabric: &mut Fabric) {
        fabric.schedule.bring_forward(index as u32, self.host.poll_timeout());
        self.watch(index, fabric);
    }

    /// Whoever watches the host takes note of what it did.
    #[inline]
    fn watch(&mut self, index: usize, fabric: &mut Fabric) {
        if let Some(observer) = &mut fabric.observer {
            observer.events(fabric.now, NodeId(index), &mut self.host);
        }
    }
}

/// A direction of a link, as boxes know it.
fn port(link: usize) -> Port {
    Port(link as u32)
}

/// A host plugged into the fabric: its packets are written into the slab, where they stay.
struct Plug<'a> {
    index: usize,
    fabric: &'a mut Fabric,
    /// Where the next packet goes, once that is decided.
    place: Option<Handle>,
}

impl Plug<'_> {
    #[inline]
    fn unplug(self) {
        if let Some(handle) = self.place {
            self.fabric.slab.release(handle);
        }
    }
}

impl<A> Outlet<A> for Plug<'_> {
    #[inline]
    fn packet(&mut self) -> &mut Packet {
        let handle = *self.place.get_or_insert_with(|| self.fabric.slab.take());
        self.fabric.slab.get_mut(handle)
    }

    #[inline]
    fn send(&mut self, _: u32, route: &mut Option<u32>, _: Option<&A>) {
        if let Some(handle) = self.place.take() {
            let way = route.or_else(|| {
                let way = self.fabric.route(self.index, handle);
                if self.fabric.fixed_routes {
                    *route = way;
                }
                way
            });
            self.fabric.send(way, handle);
        }
    }
}

/// A host whose packets pass boxes first: they are written into the slab and listed.
struct Tray<'a> {
    slab: &'a mut Slab,
    written: Vec<Handle>,
}

impl<A> Outlet<A> for Tray<'_> {
    fn packet(&mut self) -> &mut Packet {
        let handle = self.slab.vacant();
        self.slab.get_mut(handle)
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.written.push(self.slab.take());
    }
}
