//! A node: its host and its boxes.

use crate::address;
use crate::fabric::{Fabric, NextArrival};
use crate::network::NodeId;
use crate::slab::{Handle, Slab};
use base::{Random, Time};
use host::{Application, Boxes, Host, Inlet, LinkEvent, Outlet, Port, Settings, Verdict};
use link::{Arrival, Fate};
use wire::{Packet, Ports};

/// A host and the boxes in its node.
pub(crate) struct Node<A> {
    pub(crate) host: Host<A>,
    pub(crate) boxes: Boxes,
    /// Room for what boxes are to see of what the host sends, likewise.
    host_outbox: Vec<Handle>,
}

impl<A: Application> Node<A> {
    /// The node with this index, without boxes. `random` is for its host's secrets.
    pub(crate) fn new(index: usize, random: Random) -> Node<A> {
        let mut host = Host::new(address::of(index), random);
        host.add_address(address::v6_of(index));
        // The results of a run are read from what is over, too.
        host.set(Settings { keep_closed: true, ..Settings::default() });
        Node { host, boxes: Boxes::default(), host_outbox: Vec::new() }
    }

    /// Packets arrive by a link: the one that is due, and more as long as they come before `until` and
    /// whatever else is due here. One that is not intact, or that boxes want to see, is returned, and
    /// is the last.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        index: usize,
        link: usize,
        until: Time,
        fabric: &mut Fabric,
    ) -> Option<Arrival<Handle>> {
        // What boxes of other nodes do to state shared with them comes in the order of time.
        let until = if self.boxes.share_state() { fabric.now } else { until };
        loop {
            let Some(arrival) = fabric.arrive(link) else {
                fabric.expect(link, Time::NEVER);
                return None;
            };
            let next = fabric.next_arrival(link);
            let special = arrival.fate != Fate::Intact || self.boxes.inspect_packets();
            // The sooner it is known what comes next, the better.
            let last = special || next >= until;
            if last {
                fabric.expect(link, next);
            }
            if special {
                return Some(arrival);
            }
            let until_wake = until.min(fabric.schedule.wake(index as u32));
            let handle = arrival.packet;
            let ports = fabric.slab.get(handle).ports();
            let behind = if last { NextArrival::at(next) } else { fabric.coming(link) };
            let sink = PacketSink { index, fabric, place: None };
            let mut batch = ArrivalBatch { sink, link, until: until_wake, handle, ports, behind };
            let sooner = self.host.exchange(&mut batch);
            let ArrivalBatch { sink, behind: NextArrival { at: next, .. }, .. } = batch;
            sink.release_unused();
            if sooner {
                self.settle(index, fabric);
            }
            if last {
                return None;
            }
            if next >= until || next >= fabric.schedule.wake(index as u32) {
                fabric.expect(link, next);
                return None;
            }
            fabric.advance_to(next);
        }
    }

    /// Receives a packet at a node with or without boxes.
    #[inline(never)]
    pub(crate) fn receive_any(
        &mut self,
        index: usize,
        link: usize,
        handle: Handle,
        fabric: &mut Fabric,
    ) {
        if !self.pass_boxes(index, Some(link), handle, fabric) {
            return;
        }
        let packet = fabric.slab.get(handle);
        if !self.host.takes(packet) {
            return self.pass_on(index, handle, fabric);
        }
        self.host.handle_packet(fabric.now, packet);
        fabric.slab.release(handle);
        self.flush(index, fabric);
    }

    /// Passes a link event to the boxes.
    pub(crate) fn tell(
        &mut self,
        index: usize,
        link: usize,
        event: LinkEvent<'_>,
        fabric: &mut Fabric,
    ) {
        self.boxes.link(fabric.now, port(link), event);
        self.empty_outbox(index, fabric);
        self.await_boxes(index, fabric);
    }

    /// The queue of a link that begins here has dropped a packet that it had taken.
    pub(crate) fn tell_of_drop(
        &mut self,
        index: usize,
        link: usize,
        packet: &Packet,
        fabric: &mut Fabric,
    ) {
        if self.boxes.inspect_packets() {
            self.tell(index, link, LinkEvent::Dropped(packet), fabric);
        }
    }

    /// Shows a packet to the boxes, which came by a link unless it starts here; says whether they
    /// forward it.
    fn pass_boxes(
        &mut self,
        index: usize,
        link: Option<usize>,
        handle: Handle,
        fabric: &mut Fabric,
    ) -> bool {
        let packet = fabric.slab.get_mut(handle);
        let verdict = self.boxes.packet(fabric.now, link.map(port), packet);
        if verdict != Verdict::Forward {
            fabric.slab.release(handle);
        }
        self.empty_outbox(index, fabric);
        self.await_boxes(index, fabric);
        verdict == Verdict::Forward
    }

    /// Brings the node's wake forward to the boxes' deadlines.
    fn await_boxes(&self, index: usize, fabric: &mut Fabric) {
        fabric.schedule.bring_forward(index as u32, self.boxes.next_wake());
    }

    /// Does what boxes want to be done.
    fn empty_outbox(&mut self, index: usize, fabric: &mut Fabric) {
        if self.boxes.outbox.is_empty() {
            return;
        }
        // What the host does in turn may make the boxes want more, meanwhile.
        let mut outbox = core::mem::take(&mut self.boxes.outbox);
        for indication in outbox.indications.drain(..) {
            self.host.indicate(fabric.now, &indication);
            self.flush(index, fabric);
        }
        for packet in outbox.packets.drain(..) {
            if self.host.takes(&packet) {
                self.host.handle_packet(fabric.now, &packet);
                self.flush(index, fabric);
            } else {
                let handle = fabric.slab.insert(packet);
                self.forward(index, handle, fabric);
            }
        }
        if self.boxes.outbox.is_empty() {
            self.boxes.outbox = outbox;
        } else {
            self.empty_outbox(index, fabric);
        }
    }

    /// Puts a packet on its way. Boxes that inspect packets hear what the queue makes of it.
    fn forward(&mut self, index: usize, handle: Handle, fabric: &mut Fabric) {
        if !self.boxes.inspect_packets() {
            return fabric.forward(index, handle);
        }
        let (now, route) = (fabric.now, fabric.route(index, handle));
        let boxes = &mut self.boxes;
        fabric.send_told(route, handle, |link, packet, accepted| {
            if accepted {
                boxes.queued(now, Port(link), packet);
            } else {
                boxes.link(now, Port(link), LinkEvent::Dropped(packet));
            }
        });
    }

    /// Forwards a packet for another node.
    fn pass_on(&mut self, index: usize, handle: Handle, fabric: &mut Fabric) {
        if fabric.count_hop(handle) {
            self.forward(index, handle, fabric);
            self.empty_outbox(index, fabric);
        }
    }

    /// Handles the host's wake.
    #[inline]
    pub(crate) fn serve(&mut self, index: usize, fabric: &mut Fabric) {
        let next = if self.boxes.inspect_packets() {
            self.host.handle_timeout(fabric.now);
            self.boxes.wake(fabric.now);
            self.empty_outbox(index, fabric);
            self.transmit_inspected(index, fabric);
            self.host.poll_timeout().min(self.boxes.next_wake())
        } else {
            let mut sink = PacketSink { index, fabric, place: None };
            let next = self.host.serve(sink.fabric.now, &mut sink);
            sink.release_unused();
            next
        };
        fabric.schedule.set(index as u32, next);
        self.watch(index, fabric);
    }

    /// Sends what the host has to send, and brings its next wake forward if need be.
    pub(crate) fn flush(&mut self, index: usize, fabric: &mut Fabric) {
        if self.boxes.inspect_packets() {
            self.transmit_inspected(index, fabric);
        } else {
            let mut sink = PacketSink { index, fabric, place: None };
            let _ = self.host.transmit(sink.fabric.now, &mut sink);
            sink.release_unused();
        }
        self.settle(index, fabric);
    }

    /// Sends what the host has to send, past the boxes.
    fn transmit_inspected(&mut self, index: usize, fabric: &mut Fabric) {
        // It is laid out first, since a box may hand the host a packet in turn.
        let written = core::mem::take(&mut self.host_outbox);
        let mut host_outbox = HostOutbox { slab: &mut fabric.slab, written };
        let _ = self.host.transmit(fabric.now, &mut host_outbox);
        let mut written = host_outbox.written;
        for handle in written.drain(..) {
            if self.pass_boxes(index, None, handle, fabric) {
                self.forward(index, handle, fabric);
            }
        }
        self.host_outbox = written;
        self.empty_outbox(index, fabric);
    }

    /// Brings the node's wake forward after an action of the host.
    fn settle(&mut self, index: usize, fabric: &mut Fabric) {
        fabric.schedule.bring_forward(index as u32, self.host.poll_timeout());
        self.watch(index, fabric);
    }

    /// Passes the host's events to the observer.
    #[inline]
    fn watch(&mut self, index: usize, fabric: &mut Fabric) {
        if let Some(observer) = &mut fabric.observer {
            observer.events(fabric.now, NodeId(index), &mut self.host);
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
    fabric: &'a mut Fabric,
    /// The slot of the next packet, once taken.
    place: Option<Handle>,
}

impl PacketSink<'_> {
    #[inline]
    fn release_unused(self) {
        if let Some(handle) = self.place {
            self.fabric.slab.release(handle);
        }
    }
}

impl<A> Outlet<A> for PacketSink<'_> {
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

/// A batch of arrivals at a host by one link.
struct ArrivalBatch<'a> {
    sink: PacketSink<'a>,
    link: usize,
    /// The time of the next other event.
    until: Time,
    /// The present packet.
    handle: Handle,
    /// Its ports.
    ports: Ports,
    /// The next arrival.
    behind: NextArrival,
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
}

impl<A> Inlet<A> for ArrivalBatch<'_> {
    #[inline(always)]
    fn now(&self) -> Time {
        self.sink.fabric.now
    }

    #[inline(always)]
    fn arrived(&mut self) -> &mut Packet {
        self.sink.fabric.slab.get_mut(self.handle)
    }

    #[inline(always)]
    fn ports(&mut self) -> Ports {
        self.ports
    }

    #[inline(always)]
    fn answer(&mut self, route: Option<u32>, len: u32) {
        self.sink.fabric.send_plain(self.sink.index, route, self.handle, len);
    }

    #[inline]
    fn release(&mut self) {
        if let Some(free) = self.sink.place.replace(self.handle) {
            self.sink.fabric.slab.release(free);
        }
    }

    #[inline]
    fn pass_on(&mut self) {
        self.sink.fabric.pass_on(self.sink.index, self.handle);
    }

    #[inline(always)]
    fn advance(&mut self) -> bool {
        let NextArrival { at: now, ports } = self.behind;
        if now >= self.until {
            return false;
        }
        let fabric = &mut *self.sink.fabric;
        let Some((handle, behind)) = fabric.arrive_intact(now, self.link) else { return false };
        (self.handle, self.ports, self.behind) = (handle, ports, behind);
        fabric.advance_to(now);
        true
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
