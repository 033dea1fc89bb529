//! The thread between two devices.

mod sending;

use super::passing::Passing;
use super::routes::Routes;
use super::tap::Tap;
use super::{Boundary, Change, Counts, Ended, Inline, Moment, Opened, Received, Side, Underlay};
use crate::device::Device;
use crate::payloads::Payloads;
use crate::steering::{PassedOn, Steering};
use crate::tun::VIRTIO_HEADER_LEN;
use crate::{Clock, virtio};
use base::Time;
use core::net::{IpAddr, Ipv6Addr};
use core::num::NonZeroU64;
use core::ops::Range;
use host::{LinkEvent, Middlebox, Outbox, Verdict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use wire::{Body, Flags, Packet};

/// Packets that are read from a device before the other one is looked at.
const TURN: usize = 16;

/// A function for the thread to call.
type Call<B> = Box<dyn FnOnce(Time, &mut B, &Counts) + Send>;

/// A function for it to call while packets wait.
type Pause<B> = Box<dyn FnOnce(Moment<'_, B>) + Send>;

/// What the thread is asked for.
pub(super) enum Command<B> {
    Call(Call<B>),
    Pause(Pause<B>),
    Tap([Tap; 2]),
    Memory(u64),
    LinkUp(Side),
    Stop,
}

/// A packet that another worker has read, with the device's header in front.
pub(super) struct HandedOver {
    from: Side,
    packet: Vec<u8>,
}

/// Everything that the thread has.
pub(super) struct Worker<B> {
    middlebox: B,
    outbox: Outbox,
    payloads: Payloads,
    devices: [Device; 2],
    /// By the [`Side`] from which they come.
    passing: [Passing; 2],
    routes: Routes,
    underlay: Option<Box<dyn Underlay>>,
    boundary: Option<Box<dyn Boundary>>,
    clock: Clock,
    counts: Counts,
    commands: Receiver<Command<B>>,
    bell: Arc<OwnedFd>,
    /// What it has to do with the other workers of its devices, if there are any.
    steering: Option<Steering<HandedOver>>,
    /// A payload that is in too many pieces.
    joined: Vec<u8>,
    /// A packet that is protected.
    protected: Vec<u8>,
}

impl<B: Middlebox> Worker<B> {
    pub(super) fn new(
        inline: Inline<B>,
        commands: Receiver<Command<B>>,
        bell: Arc<OwnedFd>,
        steering: Option<Steering<HandedOver>>,
    ) -> Worker<B> {
        let Inline { middlebox, tuns, routes, underlay, boundary, payloads, clock } = inline;
        let segments = if boundary.is_some() { 1 } else { u16::MAX };
        Worker {
            middlebox,
            outbox: Outbox { segments, ..Outbox::default() },
            payloads,
            devices: tuns.map(Device::new),
            passing: Default::default(),
            routes,
            underlay,
            boundary,
            clock,
            counts: Counts::default(),
            commands,
            bell,
            steering,
            joined: Vec::new(),
            protected: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Ended<B> {
        // Otherwise a timer may be 50 us late. It cannot fail for the calling thread.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            let mut more = self.take_handed_over();
            more |= Side::ALL.map(|side| self.read(side)).contains(&true);
            if let Some(steering) = &mut self.steering {
                steering.wake();
            }
            more |= self.read_underlay();
            more |= Side::ALL.map(|side| self.write_passing(side)).contains(&true);
            let now = self.clock.now();
            self.serve_underlay(now);
            if self.middlebox.next_wake() <= now {
                self.wake(now);
            }
            self.flush();
            let removed = self.devices.iter().any(|device| device.removed);
            let goes_on = self.obey();
            // What a command made it send does not wait until the thread has slept.
            self.flush();
            if removed || !goes_on {
                self.send_rest();
                let counts = self.counts();
                return Ended { middlebox: self.middlebox, counts, removed };
            }
            if !more {
                self.sleep(now);
            }
        }
    }

    /// Lets the middlebox do what is due, and send what it has to send.
    fn wake(&mut self, now: Time) {
        self.middlebox.wake(now, &mut self.outbox.context());
        self.send(now);
    }

    /// Passes packets that other workers have read. Says whether there may be more. They come first: what is in the
    /// worker's own queues is probably later.
    fn take_handed_over(&mut self) -> bool {
        for _ in 0..TURN {
            let handed_over = self.steering.as_mut().and_then(Steering::next);
            let Some(HandedOver { from, packet }) = handed_over else { return false };
            self.make_room();
            self.payloads.space()[..packet.len()].copy_from_slice(&packet);
            self.pass(from, packet.len());
        }
        true
    }

    /// Reads packets from a device, and passes them. Says whether there may be more.
    fn read(&mut self, from: Side) -> bool {
        let more = self.read_queue(from, TURN, Device::read);
        self.passing[from as usize].note(more);
        // Other packets do not wait for more SYNs or RSTs: a flood of them waits in their queue, and is lost there. An
        // RST that has overtaken data is answered by an ACK, and comes again (RFC 5961, section 3).
        let few = self.passing[from as usize].few();
        let control = [Device::read_syn, Device::read_rst];
        more | control.map(|read| self.read_queue(from, few, read)).contains(&true)
    }

    /// Reads at most so many packets by `read`, and passes them. Says whether there may be more.
    fn read_queue(
        &mut self,
        from: Side,
        most: usize,
        read: fn(&mut Device, &mut [u8]) -> Option<usize>,
    ) -> bool {
        for _ in 0..most {
            self.make_room();
            let device = &mut self.devices[from as usize];
            let Some(len) = read(device, self.payloads.space()) else { return false };
            self.pass(from, len);
        }
        true
    }

    /// Makes room for a packet, and frees bytes that the middlebox does not hold, if there are many.
    fn make_room(&mut self) {
        if self.payloads.has_many() {
            debug_assert!(self.outbox.is_empty());
            let middlebox = &self.middlebox;
            self.payloads.free_all_but(|held| middlebox.held_payloads(held));
        }
        self.payloads.make_room();
    }

    /// Reads packets of the peer's, and passes them. Says whether there may be more.
    fn read_underlay(&mut self) -> bool {
        for _ in 0..TURN {
            self.make_room();
            let Some(underlay) = &mut self.underlay else { return false };
            let now = self.clock.now();
            let (mut packet, range) = match underlay.receive(now, self.payloads.space()) {
                Received::Nothing => return false,
                Received::Other => continue,
                Received::Packet(packet, range) => (*packet, range),
                Received::Damaged(packet) => {
                    let (event, cx) = (LinkEvent::Corrupted(&packet), &mut self.outbox.context());
                    self.middlebox.link(now, Side::Wan.port(), event, cx);
                    self.send(now);
                    continue;
                }
            };
            if !range.is_empty() && !self.payloads.has_room() {
                self.counts.without_bytes += 1;
                continue;
            }
            packet.payload = self.payloads.keep_read(range);
            let (from, cx) = (Some(Side::Wan.port()), &mut self.outbox.context());
            match self.middlebox.packet(now, from, &mut packet, cx) {
                Verdict::Consume => self.counts.consumed += 1,
                // It is for the middlebox alone.
                Verdict::Forward | Verdict::Drop(_) => self.counts.dropped += 1,
            }
            self.send(now);
        }
        true
    }

    /// Handles what is due of the underlay, and tells the middlebox of its changes.
    fn serve_underlay(&mut self, now: Time) {
        let Some(underlay) = &mut self.underlay else { return };
        if underlay.poll_timeout() <= now {
            underlay.handle_timeout(now);
        }
        while let Some(change) = underlay.poll_change() {
            let event = match change {
                Change::Up(peer) => LinkEvent::Up { peer },
                Change::Down(peer) => LinkEvent::Down { peer },
                Change::Mtu(peer, bytes) => LinkEvent::Mtu { peer, bytes },
            };
            self.middlebox.link(now, Side::Wan.port(), event, &mut self.outbox.context());
        }
        if !self.outbox.is_empty() {
            self.send(now);
        }
    }

    /// Passes a packet, `len` bytes that were read, or hands it over to its worker.
    fn pass(&mut self, from: Side, len: usize) {
        let now = self.clock.now();
        let (header, bytes) = self.payloads.space()[..len].split_at(VIRTIO_HEADER_LEN);
        let parsed = match virtio::is_verified(header) {
            true => Packet::parse_trusted(bytes),
            false => Packet::parse(bytes),
        };
        // What cannot be read is for others to refuse.
        let Ok((mut packet, payload)) = parsed else {
            let passes = |boundary: &mut Box<dyn Boundary>| boundary.passes_unread(now, bytes);
            if self.boundary.as_mut().is_none_or(passes) {
                return self.write_as_read(from, len);
            }
            self.counts.dropped += 1;
            return;
        };
        if let Some(steering) = &mut self.steering {
            let packet_as_read = || HandedOver { from, packet: [header, bytes].concat() };
            match steering.pass_on(&packet, packet_as_read) {
                PassedOn::Own => {}
                PassedOn::HandedOver => return self.counts.handed_over += 1,
                PassedOn::Dropped => return self.counts.overload += 1,
            }
        }
        let mut range = VIRTIO_HEADER_LEN + payload.start..VIRTIO_HEADER_LEN + payload.end;
        let segment_size = virtio::segment_size(header);
        let may_leave_as_read = match self.cross_boundary(now, from, &mut packet, &range) {
            Opened::AsItIs => !self.is_protected(now, from.other(), &packet),
            Opened::Opened(place) => {
                range = range.start + place.start..range.start + place.end;
                false
            }
            Opened::Dropped => {
                self.counts.dropped += 1;
                return;
            }
        };
        if opens(&packet) && !self.passing[from as usize].admits_opening() {
            self.counts.overload += 1;
            return;
        }
        if !range.is_empty() && !self.payloads.has_room() {
            self.counts.without_bytes += 1;
            return;
        }
        packet.payload = self.payloads.identity(&range);
        let before = packet;
        let verdict =
            self.middlebox.packet(now, Some(from.port()), &mut packet, &mut self.outbox.context());
        let count = match verdict {
            Verdict::Forward => &mut self.counts.passed,
            Verdict::Consume => &mut self.counts.consumed,
            Verdict::Drop(_) => &mut self.counts.dropped,
        };
        *count += 1;
        if verdict == Verdict::Forward {
            let to = from.other().port().opposite();
            self.middlebox.queued(now, to, &mut packet, &mut self.outbox.context());
        }
        let is_as_read = may_leave_as_read && packet == before && self.outbox.is_empty();
        if verdict == Verdict::Forward && is_as_read {
            self.write_as_read(from, len);
            // The middlebox may hold a copy.
            self.payloads.keep_read(range);
            return;
        }
        self.payloads.keep_read(range);
        // What the middlebox sends leaves before the packet that it saw.
        self.send(now);
        if verdict == Verdict::Forward {
            self.write(from.other(), &packet, segment_size.unwrap_or(packet.payload.len));
        }
    }

    /// Passes a packet that has just been read to the boundary, if there is one and the packet comes from behind it and
    /// is not to go back there, and what that indicates to the middlebox.
    fn cross_boundary(
        &mut self,
        now: Time,
        from: Side,
        packet: &mut Packet,
        payload: &Range<usize>,
    ) -> Opened {
        let Some(boundary) = self.boundary.as_mut().filter(|_| from == Side::Wan) else {
            return Opened::AsItIs;
        };
        if self.routes.side(now, packet.ip.destination) == Some(Side::Wan) {
            return Opened::AsItIs;
        }
        let bytes = &mut self.payloads.space()[payload.clone()];
        let opened = boundary.open(now, packet, bytes, &mut self.outbox.context());
        for indication in self.outbox.indications.drain(..) {
            self.middlebox.indicate(now, &indication);
        }
        opened
    }

    /// Does what was asked for. Says whether it is to go on.
    fn obey(&mut self) -> bool {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Call(call) => {
                    let (now, counts) = (self.clock.now(), self.counts());
                    call(now, &mut self.middlebox, &counts);
                    // Resets go before packets that pass now because their connections are no longer known: an end that
                    // gets one of those first ignores the reset.
                    self.wake(now);
                }
                Command::Pause(pause) => {
                    self.send_rest();
                    let now = self.clock.now();
                    let [lan, wan] = &self.devices;
                    pause(Moment {
                        now,
                        middlebox: &mut self.middlebox,
                        peer: self.underlay.as_ref().and_then(|underlay| underlay.peer()),
                        payloads: &mut self.payloads,
                        tuns: [&lan.tun, &wan.tun],
                    });
                    self.wake(now);
                }
                Command::Tap(taps) => {
                    for (device, tap) in self.devices.iter_mut().zip(taps) {
                        device.tap = Some(tap);
                    }
                }
                Command::Memory(held) => self.payloads.limit(held),
                Command::LinkUp(side) => self.on_link_up(side),
                Command::Stop => return false,
            }
        }
        true
    }

    /// What lies behind the device of a side can be reached again.
    fn on_link_up(&mut self, side: Side) {
        let now = self.clock.now();
        if let Some(underlay) = self.underlay.as_mut().filter(|_| side == Side::Wan) {
            underlay.on_way_changed(now);
            return self.serve_underlay(now);
        }
        // No one neighbour is meant.
        let event = LinkEvent::Up { peer: IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        self.middlebox.link(now, side.port(), event, &mut self.outbox.context());
        self.send(now);
    }

    fn counts(&self) -> Counts {
        let [lan, wan] = &self.devices;
        let refused = self.underlay.as_ref().map_or(0, |underlay| underlay.refused());
        Counts { devices: [lan.counts, wan.counts], refused, ..self.counts }
    }

    /// Sleeps until there is something to do.
    fn sleep(&mut self, now: Time) {
        let underlay = self.underlay.as_ref();
        let due = underlay.map_or(Time::NEVER, |underlay| underlay.poll_timeout());
        let due = due.min(self.middlebox.next_wake());
        let nanos = due.since(now).as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let events = |device: &Device| match device.is_blocked() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let bell = PollFd::new(&*self.bell, PollFlags::IN);
        let devices = self.devices.iter().map(|device| PollFd::new(&device.tun, events(device)));
        let control = self.devices.iter().filter_map(|device| device.tun.control_queues());
        let others = control.flatten().chain(underlay.map(|underlay| underlay.socket()));
        let others = others.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        // In the places of those that there are not, the bell once more.
        let mut watched: [PollFd<'_>; 8] = std::array::from_fn(|_| bell.clone());
        for (place, descriptor) in watched[1..].iter_mut().zip(devices.chain(others)) {
            *place = descriptor;
        }
        // Whatever it says, everything is looked at: only for how long it sleeps matters.
        let _ = poll(&mut watched, (due < Time::NEVER).then_some(&timeout));
        let rings = !watched[0].revents().is_empty();
        self.counts.slept += 1;
        if rings {
            let _ = rustix::io::read(&*self.bell, &mut [0u8; 8]);
        }
    }
}

/// Whether a packet opens a connection.
fn opens(packet: &Packet) -> bool {
    let Body::Tcp(segment) = &packet.body else { return false };
    segment.flags & (Flags::SYN | Flags::ACK) == Flags::SYN
}
