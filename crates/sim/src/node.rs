//! A node: its host, and the boxes that its packets pass.

use crate::address;
use crate::fabric::{Coming, Fabric};
use crate::network::NodeId;
use crate::slab::{Handle, Slab};
use base::{Random, Time};
use host::{
    Application, Context, Host, Inlet, LinkEvent, Middlebox, Outlet, Passage, Port, Settings,
};
use link::{Arrival, Fate};
use wire::{Packet, Ports};

/// A host and the boxes in its node.
pub(crate) struct Node<A> {
    pub(crate) host: Host<A>,
    boxes: Vec<Box<dyn Middlebox + Send>>,
    /// Whether any box wants to see packets.
    inspected: bool,
    /// Whether any box shares state with boxes of other nodes, so that this node must not run ahead.
    keeps_step: bool,
    /// Room for what boxes make, kept for the next time.
    outbox: Vec<Packet>,
    /// Room for what boxes are to see of what the host sends, likewise.
    tray: Vec<Handle>,
}

impl<A: Application> Node<A> {
    /// The node with this index, without boxes. `random` is for its host's secrets.
    pub(crate) fn new(index: usize, random: Random) -> Node<A> {
        let mut host = Host::new(address::of(index), random);
        host.add_address(address::v6_of(index));
        // The results of a run are read from what is over, too.
        host.set(Settings { keep_closed: true, ..Settings::default() });
        Node {
            host,
            boxes: Vec::new(),
            inspected: false,
            keeps_step: false,
            outbox: Vec::new(),
            tray: Vec::new(),
        }
    }

    /// Puts a box behind those that are there.
    pub(crate) fn add_box(&mut self, middlebox: impl Middlebox + Send + 'static) {
        self.inspected |= middlebox.inspects_packets();
        self.keeps_step |= middlebox.shares_state();
        self.boxes.push(Box::new(middlebox));
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
        let until = if self.keeps_step { fabric.now } else { until };
        loop {
            let Some(arrival) = fabric.arrive(link) else {
                fabric.expect(link, Time::NEVER);
                return None;
            };
            let next = fabric.next_arrival(link);
            let special = arrival.fate != Fate::Intact || self.inspected;
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
            let behind = if last { Coming::at(next) } else { fabric.coming(link) };
            let plug = Plug { index, fabric, place: None };
            let mut train = Train { plug, link, until: until_wake, handle, ports, behind };
            let sooner = self.host.exchange(&mut train);
            let Train { plug, behind: Coming { at: next, .. }, .. } = train;
            plug.unplug();
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
            fabric.turn_to(next);
        }
    }

    /// The same whatever boxes there are.
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
        if address::node(packet.ip.destination) != Some(index) {
            return self.pass_on(index, handle, fabric);
        }
        self.host.handle_packet(fabric.now, packet);
        fabric.slab.release(handle);
        self.flush(index, fabric);
    }

    /// Something happens on a link that begins or ends here.
    pub(crate) fn tell(
        &mut self,
        index: usize,
        link: usize,
        event: LinkEvent<'_>,
        fabric: &mut Fabric,
    ) {
        for middlebox in &mut self.boxes {
            let mut cx = Context { send: &mut self.outbox };
            middlebox.link(fabric.now, port(link), event, &mut cx);
        }
        self.send_outbox(index, fabric);
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
        if self.inspected {
            self.tell(index, link, LinkEvent::Dropped(packet), fabric);
        }
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
        if fabric.count_hop(handle) {
            self.forward(index, handle, fabric);
            self.send_outbox(index, fabric);
        }
    }

    /// The host's wake has come.
    #[inline]
    pub(crate) fn serve(&mut self, index: usize, fabric: &mut Fabric) {
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
    pub(crate) fn flush(&mut self, index: usize, fabric: &mut Fabric) {
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

/// Packets that come to a host by a link, one after the other.
struct Train<'a> {
    plug: Plug<'a>,
    link: usize,
    /// When something else may be due.
    until: Time,
    /// The packet that is here.
    handle: Handle,
    /// Its ports.
    ports: Ports,
    /// The packet behind it.
    behind: Coming,
}

impl<A> Outlet<A> for Train<'_> {
    #[inline(always)]
    fn packet(&mut self) -> &mut Packet {
        Outlet::<A>::packet(&mut self.plug)
    }

    #[inline]
    fn send(&mut self, segment_size: u32, route: &mut Option<u32>, application: Option<&A>) {
        self.plug.send(segment_size, route, application);
    }
}

impl<A> Inlet<A> for Train<'_> {
    #[inline(always)]
    fn now(&self) -> Time {
        self.plug.fabric.now
    }

    #[inline(always)]
    fn arrived(&mut self) -> &mut Packet {
        self.plug.fabric.slab.get_mut(self.handle)
    }

    #[inline(always)]
    fn ports(&mut self) -> Ports {
        self.ports
    }

    #[inline(always)]
    fn answer(&mut self, route: Option<u32>, len: u32) {
        self.plug.fabric.send_plain(self.plug.index, route, self.handle, len);
    }

    #[inline]
    fn release(&mut self) {
        if let Some(free) = self.plug.place.replace(self.handle) {
            self.plug.fabric.slab.release(free);
        }
    }

    #[inline]
    fn pass_on(&mut self) {
        self.plug.fabric.pass_on(self.plug.index, self.handle);
    }

    #[inline(always)]
    fn advance(&mut self) -> bool {
        let Coming { at: now, ports } = self.behind;
        if now >= self.until {
            return false;
        }
        let fabric = &mut *self.plug.fabric;
        let Some((handle, behind)) = fabric.arrive_intact(now, self.link) else { return false };
        (self.handle, self.ports, self.behind) = (handle, ports, behind);
        fabric.turn_to(now);
        true
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
