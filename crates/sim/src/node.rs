//! A node: its host and its boxes.

use crate::address;
use crate::network::{Network, NextArrival};
use crate::slab::{Handle, Slab};
use crate::topology::NodeId;
use base::{Random, Time};
use host::{
    Application, Boxes, Host, HostIndication, Inlet, LinkEvent, Outbox, Outgoing, Outlet, Port,
    Served, Settings, Verdict,
};
use link::{Arrival, Fate};
use std::collections::VecDeque;
use wire::{Ecn, Packet, Ports};

/// A host and the boxes in its node.
pub(crate) struct Node<A> {
    pub(crate) host: Host<A>,
    pub(crate) boxes: Boxes,
    /// Packets from the host that are to pass the boxes, likewise.
    host_outbox: Vec<Handle>,
    /// What boxes want of the host while it reacts to what they wanted before.
    for_host: VecDeque<ForHost>,
    /// The host reacts to what boxes want.
    is_reacting: bool,
}

/// What a box wants of the host of its node.
enum ForHost {
    Indication(HostIndication),
    Packet(Packet),
}

impl<A: Application> Node<A> {
    /// The node with this index, without boxes. `random` is for its host's secrets.
    pub(crate) fn new(index: usize, random: Random) -> Node<A> {
        let mut host = Host::new(address::of(index), random);
        host.add_address(address::v6_of(index));
        // The results of a run include connections that have ended.
        host.set(Settings { keep_closed: true, ..Settings::default() });
        Node {
            host,
            boxes: Boxes::default(),
            host_outbox: Vec::new(),
            for_host: VecDeque::new(),
            is_reacting: false,
        }
    }

    /// Receives packets from a link: the one that is due, and more as long as they arrive before
    /// `until` and before other events of the node. A packet that is not intact, or that boxes
    /// inspect, is returned and ends the batch.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        index: usize,
        link: usize,
        until: Time,
        network: &mut Network,
    ) -> Option<Arrival<Handle>> {
        // Boxes of other nodes change state that they share with these in the order of time.
        let until = if self.boxes.share_state() { network.now } else { until };
        loop {
            let Some(arrival) = network.arrive(link) else {
                network.expect(link, Time::NEVER);
                return None;
            };
            let next = network.next_arrival(link);
            let special = arrival.fate != Fate::Intact || self.boxes.inspect_packets();
            // Look up the next arrival early, so that its packet is in the cache.
            let last = special || next >= until;
            if last {
                network.expect(link, next);
            }
            if special {
                return Some(arrival);
            }
            let wake = network.schedule.wake(index as u32);
            let handle = arrival.packet;
            let ports = network.slab.get(handle).ports();
            let behind = if last { NextArrival::at(next) } else { network.coming(link) };
            let sink = PacketSink { index, network, place: None };
            let until_wake = until.min(wake);
            let mut batch = ArrivalBatch {
                sink,
                link,
                horizon: until,
                wake,
                until: until_wake,
                handle,
                ports,
                behind,
            };
            let untracked = self.host.exchange(&mut batch);
            debug_assert!(!untracked, "the batch keeps track of wakes");
            let ArrivalBatch {
                sink, wake: next_wake, behind: NextArrival { at: next, .. }, ..
            } = batch;
            sink.release_unused();
            if next_wake != wake {
                network.schedule.set(index as u32, next_wake);
            }
            if last {
                return None;
            }
            if next >= until || next >= next_wake {
                network.expect(link, next);
                return None;
            }
            network.advance_to(next);
        }
    }

    /// Receives a packet at a node with or without boxes.
    #[inline(never)]
    pub(crate) fn receive_any(
        &mut self,
        index: usize,
        link: usize,
        handle: Handle,
        network: &mut Network,
    ) {
        if !self.pass_boxes(index, Some(link), handle, network) {
            return;
        }
        let packet = network.slab.get(handle);
        if !self.host.takes(packet) {
            return self.pass_on(index, handle, network);
        }
        self.host.handle_packet(network.now, packet);
        network.slab.release(handle);
        self.flush(index, network);
    }

    /// Passes a link event to the boxes.
    pub(crate) fn on_link_event(
        &mut self,
        index: usize,
        link: usize,
        event: LinkEvent<'_>,
        network: &mut Network,
    ) {
        self.boxes.link(network.now, port(link), event);
        self.empty_outbox(index, network);
        self.await_boxes(index, network);
    }

    /// Passes to the boxes that the queue of a link from here has dropped a packet after accepting
    /// it.
    pub(crate) fn on_drop(
        &mut self,
        index: usize,
        link: usize,
        packet: &Packet,
        network: &mut Network,
    ) {
        if self.boxes.inspect_packets() {
            self.on_link_event(index, link, LinkEvent::Dropped(packet), network);
        }
    }

    /// Passes a packet to the boxes; returns whether they forward it. `link` is where it came from,
    /// if not from this host.
    fn pass_boxes(
        &mut self,
        index: usize,
        link: Option<usize>,
        handle: Handle,
        network: &mut Network,
    ) -> bool {
        let packet = network.slab.get_mut(handle);
        let verdict = self.boxes.packet(network.now, link.map(port), packet);
        if verdict != Verdict::Forward {
            network.slab.release(handle);
        }
        self.empty_outbox(index, network);
        self.await_boxes(index, network);
        self.watch_boxes(index, network);
        verdict == Verdict::Forward
    }

    /// Brings the node's wake forward to the boxes' deadlines.
    fn await_boxes(&self, index: usize, network: &mut Network) {
        network.schedule.bring_forward(index as u32, self.boxes.next_wake());
    }

    /// Carries out what boxes have put into their outbox, in order. A box may answer its own host, which
    /// answers the box in turn, without any time passing: then what is for the host waits until it has
    /// reacted to what came before.
    fn empty_outbox(&mut self, index: usize, network: &mut Network) {
        if self.boxes.outbox.is_empty() {
            return;
        }
        if self.is_reacting {
            let mut outbox = core::mem::take(&mut self.boxes.outbox);
            self.for_host.extend(outbox.indications.drain(..).map(ForHost::Indication));
            for Outgoing { packet, .. } in outbox.packets.drain(..) {
                match self.host.takes(&packet) {
                    true => self.for_host.push_back(ForHost::Packet(packet)),
                    false => self.send_of_box(index, packet, network),
                }
            }
            self.keep_outbox(outbox);
            return;
        }
        self.is_reacting = true;
        while !self.boxes.outbox.is_empty() {
            let mut outbox = core::mem::take(&mut self.boxes.outbox);
            for indication in outbox.indications.drain(..) {
                self.react(index, ForHost::Indication(indication), network);
            }
            for Outgoing { packet, .. } in outbox.packets.drain(..) {
                match self.host.takes(&packet) {
                    true => self.react(index, ForHost::Packet(packet), network),
                    false => self.send_of_box(index, packet, network),
                }
            }
            self.keep_outbox(outbox);
            while let Some(next) = self.for_host.pop_front() {
                self.react(index, next, network);
            }
        }
        self.is_reacting = false;
    }

    /// Lets the host react to what a box wants.
    fn react(&mut self, index: usize, wanted: ForHost, network: &mut Network) {
        match wanted {
            ForHost::Indication(indication) => self.host.indicate(network.now, &indication),
            ForHost::Packet(packet) => self.host.handle_packet(network.now, &packet),
        }
        self.flush(index, network);
    }

    /// Sends a packet of a box.
    fn send_of_box(&mut self, index: usize, packet: Packet, network: &mut Network) {
        let handle = network.slab.insert(packet);
        self.forward(index, handle, network);
    }

    /// Keeps the memory of an outbox that is carried out.
    fn keep_outbox(&mut self, outbox: Outbox) {
        if self.boxes.outbox.is_empty() {
            self.boxes.outbox = outbox;
        }
    }

    /// Sends a packet. Boxes that inspect packets get the queue's decision.
    fn forward(&mut self, index: usize, handle: Handle, network: &mut Network) {
        if !self.boxes.inspect_packets() {
            return network.forward(index, handle);
        }
        let (now, route) = (network.now, network.route(index, handle));
        let boxes = &mut self.boxes;
        if let Some(link) = route
            && !boxes.leaving(now, Port(link), network.slab.get(handle))
        {
            return network.slab.release(handle);
        }
        network.send_with_outcome(route, handle, |link, packet, accepted| {
            if accepted {
                boxes.queued(now, Port(link), packet);
            } else {
                boxes.link(now, Port(link), LinkEvent::Dropped(packet));
            }
        });
        self.await_boxes(index, network);
    }

    /// Forwards a packet for another node.
    fn pass_on(&mut self, index: usize, handle: Handle, network: &mut Network) {
        if network.count_hop(handle) {
            self.forward(index, handle, network);
            self.empty_outbox(index, network);
        }
    }

    /// Handles the host's wake.
    #[inline]
    pub(crate) fn serve(&mut self, index: usize, network: &mut Network) {
        let Served { next, was_due } = if self.boxes.inspect_packets() {
            let box_due = self.boxes.next_wake() <= network.now;
            let was_due = self.host.handle_timeout(network.now) | box_due;
            self.boxes.wake(network.now);
            self.empty_outbox(index, network);
            self.watch_boxes(index, network);
            self.transmit_inspected(index, network);
            Served { next: self.host.poll_timeout().min(self.boxes.next_wake()), was_due }
        } else {
            let mut sink = PacketSink { index, network, place: None };
            let served = self.host.serve(sink.network.now, &mut sink);
            sink.release_unused();
            served
        };
        network.events += u64::from(was_due);
        network.schedule.set(index as u32, next);
        self.watch(index, network);
    }

    /// Transmits the host's packets, and brings its next wake forward if necessary.
    pub(crate) fn flush(&mut self, index: usize, network: &mut Network) {
        if self.boxes.inspect_packets() {
            self.transmit_inspected(index, network);
        } else {
            let mut sink = PacketSink { index, network, place: None };
            let _ = self.host.transmit(sink.network.now, &mut sink);
            sink.release_unused();
        }
        self.settle(index, network);
    }

    /// Transmits the host's packets through the boxes.
    fn transmit_inspected(&mut self, index: usize, network: &mut Network) {
        // All are taken first, because a box may hand the host a packet in turn.
        let written = core::mem::take(&mut self.host_outbox);
        let mut host_outbox = HostOutbox { slab: &mut network.slab, written };
        let _ = self.host.transmit(network.now, &mut host_outbox);
        let mut written = host_outbox.written;
        for handle in written.drain(..) {
            if self.pass_boxes(index, None, handle, network) {
                self.forward(index, handle, network);
            }
        }
        self.host_outbox = written;
        self.empty_outbox(index, network);
    }

    /// Brings the node's wake forward after an action of the host.
    fn settle(&mut self, index: usize, network: &mut Network) {
        network.schedule.bring_forward(index as u32, self.host.poll_timeout());
        self.watch(index, network);
    }

    /// Passes the boxes to the observer.
    #[inline]
    fn watch_boxes(&self, index: usize, network: &mut Network) {
        if let Some(observer) = &mut network.observer {
            observer.boxes(network.now, NodeId(index), &self.boxes);
        }
    }

    /// Passes the host's events to the observer.
    #[inline]
    fn watch(&mut self, index: usize, network: &mut Network) {
        if let Some(observer) = &mut network.observer {
            observer.events(network.now, NodeId(index), &mut self.host);
        }
    }
}

/// A link direction, as a port of the boxes.
fn port(link: usize) -> Port {
    Port(link as u32)
}

/// A packet sink for a host: its packets are written into the slab, where they stay.
struct PacketSink<'a> {
    index: usize,
    network: &'a mut Network,
    /// The slot of the next packet, once taken.
    place: Option<Handle>,
}

impl PacketSink<'_> {
    #[inline]
    fn release_unused(self) {
        if let Some(handle) = self.place {
            self.network.slab.release(handle);
        }
    }
}

impl<A> Outlet<A> for PacketSink<'_> {
    #[inline]
    fn packet(&mut self) -> &mut Packet {
        let handle = *self.place.get_or_insert_with(|| self.network.slab.take());
        self.network.slab.get_mut(handle)
    }

    #[inline]
    fn send(&mut self, _: u32, route: &mut Option<u32>, _: Option<&A>) {
        if let Some(handle) = self.place.take() {
            let way = route.or_else(|| {
                let way = self.network.route(self.index, handle);
                if self.network.fixed_routes {
                    *route = way;
                }
                way
            });
            self.network.send(way, handle);
        }
    }

    #[inline]
    fn send_sized(
        &mut self,
        (len, ecn): (u32, Ecn),
        route: &mut Option<u32>,
        application: Option<&A>,
    ) {
        if route.is_none() || self.network.observer.is_some() {
            return self.send(0, route, application);
        }
        if let Some(handle) = self.place.take() {
            self.network.send_plain(self.index, *route, handle, len, ecn);
        }
    }
}

/// A batch of arrivals at a host by one link.
struct ArrivalBatch<'a> {
    sink: PacketSink<'a>,
    link: usize,
    /// The time until which no event elsewhere affects the node.
    horizon: Time,
    /// The host's wake.
    wake: Time,
    /// The earlier of both.
    until: Time,
    /// The present packet.
    handle: Handle,
    /// Its ports.
    ports: Ports,
    /// The next arrival.
    behind: NextArrival,
}

impl ArrivalBatch<'_> {
    #[inline]
    fn wake_at(&mut self, wake: Time) {
        self.wake = wake;
        self.until = self.horizon.min(wake);
    }
}

impl<A> Outlet<A> for ArrivalBatch<'_> {
    #[inline(always)]
    fn packet(&mut self) -> &mut Packet {
        Outlet::<A>::packet(&mut self.sink)
    }

    #[inline]
    fn send(&mut self, segment_size: u32, route: &mut Option<u32>, application: Option<&A>) {
        self.sink.send(segment_size, route, application);
    }

    #[inline]
    fn send_sized(&mut self, size: (u32, Ecn), route: &mut Option<u32>, application: Option<&A>) {
        self.sink.send_sized(size, route, application);
    }
}

impl<A> Inlet<A> for ArrivalBatch<'_> {
    #[inline(always)]
    fn now(&self) -> Time {
        self.sink.network.now
    }

    #[inline(always)]
    fn arrived(&mut self) -> &mut Packet {
        self.sink.network.slab.get_mut(self.handle)
    }

    #[inline(always)]
    fn ports(&mut self) -> Ports {
        self.ports
    }

    #[inline(always)]
    fn answer(&mut self, route: Option<u32>, len: u32, ecn: Ecn) {
        self.sink.network.send_plain(self.sink.index, route, self.handle, len, ecn);
    }

    #[inline]
    fn release(&mut self) {
        if let Some(free) = self.sink.place.replace(self.handle) {
            self.sink.network.slab.release(free);
        }
    }

    #[inline]
    fn pass_on(&mut self) {
        self.sink.network.pass_on(self.sink.index, self.handle);
    }

    #[inline(always)]
    fn advance(&mut self) -> bool {
        let next = self.behind;
        if next.at >= self.until {
            return false;
        }
        let network = &mut *self.sink.network;
        let Some(handle) = network.arrive_intact(self.link, &next) else { return false };
        (self.handle, self.ports, self.behind) = (handle, next.ports, network.coming(self.link));
        network.advance_to(next.at);
        true
    }

    #[inline(always)]
    fn keeps_time(&self) -> bool {
        true
    }

    #[inline]
    fn pause(&mut self, at: Time) -> bool {
        // What comes from a link at the same time comes after it, as after a wake.
        let is_next = at < self.until && at <= self.behind.at;
        if is_next {
            self.sink.network.advance_to(at);
        }
        is_next
    }

    #[inline]
    fn bring_forward(&mut self, wake: Time) {
        self.wake_at(self.wake.min(wake));
    }

    #[inline]
    fn wait(&mut self) -> Option<Time> {
        // Of what happens at the same time, the node's wake comes first.
        let is_next = self.wake < self.horizon && self.wake <= self.behind.at;
        is_next.then(|| {
            self.sink.network.now = self.wake;
            self.wake
        })
    }

    #[inline]
    fn woken(&mut self, served: Served) {
        self.sink.network.events += u64::from(served.was_due);
        self.wake_at(served.next);
    }
}

/// A packet sink for a host whose packets pass boxes: they are written into the slab and listed.
struct HostOutbox<'a> {
    slab: &'a mut Slab,
    written: Vec<Handle>,
}

impl<A> Outlet<A> for HostOutbox<'_> {
    fn packet(&mut self) -> &mut Packet {
        let handle = self.slab.vacant();
        self.slab.get_mut(handle)
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.written.push(self.slab.take());
    }
}
