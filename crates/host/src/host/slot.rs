//! A connection in a host's table, with its application.

use super::{ConnectionId, FourTuple, Inlet, Outlet, Statistics};
use crate::Application;
use base::{Duration, Time};
use tcp::{Events, FastPath, FastPathOutcome, Predicted, State};
use wire::{Body, Flags, Ip, Packet, Payload, Ports, Segment};

/// A connection, its application, and the host's state for it.
//
// The cache line in front of the connection has what every packet needs.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Slot<A> {
    /// Its wake in the host's schedule.
    pub(super) wake: Time,
    /// The route that the outlet has cached.
    pub(super) route: Option<u32>,
    /// The ports of its arriving segments.
    pub(super) ports: Ports,
    /// The network header of its packets.
    pub(super) ip: Ip,
    pub(super) connection: Predicted,
    pub(super) application: A,
    pub(super) id: ConnectionId,
    /// It is in [`Host::busy`](super::Host).
    pub(super) busy: bool,
    /// It counts against the backlog of a listener.
    pub(super) half_open: bool,
    /// It closed before it was established; its application is never called.
    pub(super) failed_open: bool,
    /// It was opened by Fast Open, and its handshake is not complete.
    pub(super) fast_open_pending: bool,
    /// Bytes of memory counted for it, if that is limited.
    pub(super) memory_counted: u64,
    /// The workload that opened it.
    pub(super) workload: Option<u32>,
}

/// The outcome of [`Slot::step`].
pub(super) enum Step {
    /// The packet is processed, and the host's own state is to be updated.
    Processed {
        /// The connection was established, or may have closed.
        state_changed: bool,
        /// Its next deadline.
        due: Time,
    },
    /// The packet may be for another connection, or carries more than TCP.
    Refused,
}

/// Why [`Slot::exchange_on_fast_path`] has stopped.
pub(super) enum Stop {
    /// All packets are processed. A segment may be held back until this time.
    Done(Time),
    /// The present packet is not a segment for this connection. A segment may be held back until this
    /// time.
    Other(Time),
    /// The present packet is not eligible for the fast path.
    Off,
    /// The present packet is processed; there may be more to send, or events.
    More,
}

/// The application as the reader of what the fast path receives.
struct Reading<'a, A> {
    now: Time,
    application: &'a mut A,
}

impl<A: Application> tcp::Reader for Reading<'_, A> {
    #[inline(always)]
    fn take(&mut self, payload: Payload) -> bool {
        self.application.take(self.now, payload)
    }
}

/// The events that concern the host, too.
const STATE_CHANGES: Events =
    Events::CONNECTED.union(Events::CONFIRMED).union(Events::PEER_CLOSED).union(Events::CLOSED);

/// Whether the present packet is a segment for a connection.
#[inline(always)]
fn is_next<A>(ports: Ports, ip: &Ip, inlet: &mut impl Inlet<A>) -> bool {
    inlet.ports() == ports && is_along(ip, &inlet.arrived().ip)
}

/// Whether a packet's addresses are those of a connection, towards this end.
#[inline]
fn is_along(ip: &Ip, arrived: &Ip) -> bool {
    arrived.source == ip.destination && arrived.destination == ip.source
}

/// Whether a fast path that is over may go on, since nothing but a segment is due that pacing holds
/// back. If nothing comes before that, it is sent.
#[inline(never)]
fn goes_on<A>(
    path: &mut FastPath<'_>,
    (ip, route, application): (&Ip, &mut Option<u32>, &A),
    inlet: &mut impl Inlet<A>,
) -> bool {
    while path.is_over() {
        if !inlet.keeps_time() || !path.is_held() {
            return false;
        }
        if !inlet.pause(path.held_until()) {
            return true;
        }
        let now = inlet.now();
        let written = path.release(now, inlet.packet());
        send_on_fast_path(path, now, written, (ip, route, application), inlet);
    }
    true
}

/// Sends a segment that the fast path has `written`, if there is one, and those that may follow at
/// once. The connection's network header, route and application go with them.
#[inline(never)]
fn send_on_fast_path<A>(
    path: &mut FastPath<'_>,
    now: Time,
    mut written: Option<u32>,
    (ip, route, application): (&Ip, &mut Option<u32>, &A),
    outlet: &mut impl Outlet<A>,
) {
    let headers = (ip.len() + Segment::HEADER) as u32;
    while let Some(len) = written {
        let packet = outlet.packet();
        packet.ip = *ip;
        packet.ip.ecn = path.data_ecn();
        outlet.send_sized((headers + len, path.data_ecn()), route, Some(application));
        written = if path.has_more() { path.poll_transmit(now, outlet.packet()) } else { None };
    }
}

impl<A: Application> Slot<A> {
    /// The connection's 4-tuple.
    pub(super) fn tuple(&self) -> FourTuple {
        FourTuple {
            local: self.ip.source,
            local_port: self.ports.destination(),
            remote: self.ip.destination,
            remote_port: self.ports.source(),
        }
    }

    /// Whether a packet with these ports is a segment for this connection.
    #[inline]
    pub(super) fn is_between(&self, ports: Ports, packet: &Packet) -> bool {
        ports == self.ports && is_along(&self.ip, &packet.ip)
    }

    /// Whether such a segment cannot open another connection.
    #[inline]
    pub(super) fn holds_its_ports(&self) -> bool {
        !matches!(self.connection.state(), State::TimeWait | State::Closed)
    }

    /// Processes the present packet unless that `is_taken`, and sends all that may be sent then.
    pub(super) fn step(
        &mut self,
        is_taken: bool,
        inlet: &mut impl Inlet<A>,
        statistics: &mut Statistics,
    ) -> Step {
        let now = inlet.now();
        if !is_taken {
            let packet = &*inlet.arrived();
            let Body::Tcp(segment) = &packet.body else { return Step::Refused };
            // The host learns from SYN-ACKs.
            let is_syn = segment.flags.contains(Flags::SYN);
            if packet.unparsed.has_ip() || is_syn || !self.holds_its_ports() {
                return Step::Refused;
            }
            statistics.segments += 1;
            let (payload, ecn) = (packet.payload, packet.ecn_fields());
            self.connection.handle_segment(now, segment, payload, ecn);
            inlet.release();
        }
        let state_changed = self.dispatch_events(now);
        Step::Processed { state_changed, due: self.transmit(now, inlet) }
    }

    /// Processes packets as long as they are for this connection and eligible for the fast path.
    #[inline(always)]
    pub(super) fn exchange_on_fast_path(
        &mut self,
        inlet: &mut impl Inlet<A>,
        statistics: &mut Statistics,
    ) -> Stop {
        let Slot { ports, ip, route, connection, application, wake, .. } = self;
        let clock = connection.clock();
        let Some(mut path) = connection.fast_path(*wake) else { return Stop::Off };
        let headers = (ip.len() + Segment::HEADER) as u32;
        let mut taken = 0;
        let stop = loop {
            let now = inlet.now();
            let packet = inlet.arrived();
            match path.exchange(now, packet, &mut Reading { now: clock.local(now), application }) {
                FastPathOutcome::Refused => break Stop::Off,
                FastPathOutcome::Taken => inlet.release(),
                FastPathOutcome::Answered { len, ecn } => {
                    packet.ip = *ip;
                    packet.ip.ecn = ecn;
                    inlet.answer(*route, headers + len, ecn);
                    if path.has_more() {
                        let written = path.poll_transmit(now, inlet.packet());
                        send_on_fast_path(&mut path, now, written, (ip, route, application), inlet);
                    }
                }
            }
            taken += 1;
            if path.is_over() && !goes_on(&mut path, (ip, route, application), inlet) {
                break Stop::More;
            }
            if !inlet.advance() {
                break Stop::Done(path.held_until());
            }
            if !is_next(*ports, ip, inlet) {
                break Stop::Other(path.held_until());
            }
        };
        statistics.segments += taken;
        statistics.fast_path += taken;
        stop
    }

    /// When a segment is due that pacing holds back.
    #[inline]
    pub(super) fn held_until(&self) -> Time {
        self.connection.held_until()
    }

    /// Sends what pacing has held back until now, if that is all that is due and can take the fast path,
    /// and returns the next deadline; `None` if it is left to the general path.
    #[inline]
    pub(super) fn release(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> Option<Time> {
        let next = now + Duration::from_nanos(1);
        let wake = self.next_wake();
        if wake <= now || outlet.segments() > 1 {
            return None;
        }
        let Slot { ip, route, connection, application, .. } = self;
        let mut path = connection.fast_path(next).filter(FastPath::is_held)?;
        let written = path.release(now, outlet.packet());
        send_on_fast_path(&mut path, now, written, (ip, route, application), outlet);
        // A smaller segment may be next.
        if path.is_over() && !path.is_held() {
            return Some(self.transmit(now, outlet));
        }
        Some(self.connection.poll_timeout().min(wake))
    }

    /// Dispatches the connection's events to the application. Returns whether the connection was
    /// established or may have closed: then `Host::on_state_change` is to be called.
    #[inline(always)]
    pub(super) fn dispatch_events(&mut self, now: Time) -> bool {
        let mut state_changed = false;
        loop {
            let events = self.connection.take_events();
            if events.is_empty() {
                return state_changed;
            }
            if events.intersects(STATE_CHANGES) {
                self.failed_open =
                    self.half_open && !state_changed && !events.contains(Events::CONNECTED);
                state_changed = true;
            }
            if !self.failed_open {
                let now = self.connection.clock().local(now);
                self.application.handle(now, &mut self.connection, events);
            }
        }
    }

    /// Handles the timers that are due.
    pub(super) fn serve(&mut self, now: Time) {
        if self.connection.poll_timeout() <= now {
            self.connection.handle_timeout(now);
        }
        let now = self.connection.clock().local(now);
        if self.application.next_wake() <= now && self.is_open() {
            self.application.wake(now, &mut self.connection);
        }
    }

    /// Its next deadline.
    #[inline(always)]
    pub(super) fn due(&self) -> Time {
        self.connection.poll_timeout().min(self.next_wake())
    }

    /// The next wake of its application.
    #[inline(always)]
    fn next_wake(&self) -> Time {
        let wake = self.connection.clock().world(self.application.next_wake());
        // Most applications have no wake.
        if wake != Time::NEVER && self.is_open() { wake } else { Time::NEVER }
    }

    /// Whether its application may be woken.
    fn is_open(&self) -> bool {
        !self.half_open && self.connection.state() != State::Closed
    }

    /// Sends all that may be sent now; returns the next deadline.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> Time {
        loop {
            let segments = outlet.segments();
            let packet = outlet.packet();
            let Some(transmit) = self.connection.poll_transmit(now, segments, packet) else {
                break;
            };
            packet.ip = self.ip;
            packet.ip.ecn = transmit.ecn;
            let payload = packet.payload;
            if payload.stream == Payload::GATHERED {
                outlet.gather(&mut self.connection.gathered(payload));
            }
            outlet.send(transmit.segment_size, &mut self.route, Some(&self.application));
            if !transmit.more {
                break;
            }
        }
        self.due()
    }
}
