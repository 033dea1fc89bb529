//! A connection in a host's table, with its application.

use super::{ConnectionId, FourTuple, Inlet, Outlet, Statistics};
use crate::Application;
use base::{Duration, Time};
use tcp::{Connection, Events, FastPathOutcome, State};
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
    pub(super) connection: Connection,
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

/// Why [`Slot::exchange`] has stopped. Unless the connection has changed, it is to be woken at a time
/// that may be earlier than before.
pub(super) enum Stop {
    /// All packets are processed.
    Done {
        /// When it is to be woken at the latest.
        wake: Time,
    },
    /// The present packet is not a segment for this connection.
    Other {
        /// When it is to be woken at the latest.
        wake: Time,
    },
    /// The present packet needs the general path: it may be for another connection, or carries more
    /// than TCP.
    Refused,
    /// The present packet is processed, and the host's own state is to be updated.
    Changed {
        /// The connection was established, or may have closed.
        state_changed: bool,
        /// Its next deadline.
        due: Time,
    },
}

/// Why [`Slot::exchange_on_fast_path`] has stopped.
enum FastPathStop {
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

    /// Whether a packet is a segment for this connection.
    #[inline]
    pub(super) fn is_between(&self, packet: &Packet) -> bool {
        packet.ports() == self.ports && is_along(&self.ip, &packet.ip)
    }

    /// Whether such a segment cannot open another connection.
    #[inline]
    pub(super) fn holds_its_ports(&self) -> bool {
        !matches!(self.connection.state(), State::TimeWait | State::Closed)
    }

    /// Processes packets as long as they are for this connection, and sends all that may be sent after
    /// each. With `one`, it stops after each.
    #[inline]
    pub(super) fn exchange(
        &mut self,
        one: bool,
        inlet: &mut impl Inlet<A>,
        statistics: &mut Statistics,
    ) -> Stop {
        loop {
            match if one {
                FastPathStop::Off
            } else {
                self.exchange_on_fast_path(inlet, statistics)
            } {
                FastPathStop::Done(wake) => return Stop::Done { wake },
                FastPathStop::Other(wake) => return Stop::Other { wake },
                FastPathStop::More => {}
                FastPathStop::Off => {
                    let now = inlet.now();
                    let packet = &*inlet.arrived();
                    let Body::Tcp(segment) = &packet.body else { return Stop::Refused };
                    // The host learns from SYN-ACKs.
                    let is_syn = segment.flags.contains(Flags::SYN);
                    if packet.unparsed.has_ip() || is_syn || !self.holds_its_ports() {
                        return Stop::Refused;
                    }
                    statistics.segments += 1;
                    let (payload, ecn) = (packet.payload, packet.ecn_fields());
                    self.connection.handle_segment(now, segment, payload, ecn);
                    inlet.release();
                }
            }
            let now = inlet.now();
            let state_changed = self.dispatch_events(now);
            let due = self.transmit(now, inlet);
            if state_changed || due < self.wake || one {
                return Stop::Changed { state_changed, due };
            }
            if !inlet.advance() {
                return Stop::Done { wake: Time::NEVER };
            }
            if !is_next(self.ports, &self.ip, inlet) {
                return Stop::Other { wake: Time::NEVER };
            }
        }
    }

    /// The same as long as packets are eligible for the fast path.
    #[inline(never)]
    fn exchange_on_fast_path(
        &mut self,
        inlet: &mut impl Inlet<A>,
        statistics: &mut Statistics,
    ) -> FastPathStop {
        let Slot { ports, ip, route, connection, application, wake, .. } = self;
        let clock = connection.clock();
        let Some(mut path) = connection.fast_path(*wake) else { return FastPathStop::Off };
        let headers = (ip.len() + Segment::HEADER) as u32;
        let mut taken = 0;
        let stop = loop {
            let now = inlet.now();
            let packet = inlet.arrived();
            match path.exchange(now, packet, &mut Reading { now: clock.local(now), application }) {
                FastPathOutcome::Refused => break FastPathStop::Off,
                FastPathOutcome::Taken => inlet.release(),
                FastPathOutcome::Answered { len, ecn } => {
                    packet.ip = *ip;
                    packet.ip.ecn = ecn;
                    inlet.answer(*route, headers + len, ecn);
                    while path.has_more() && path.poll_transmit(now, inlet.packet()).is_some() {
                        inlet.packet().ip = *ip;
                        inlet.packet().ip.ecn = path.data_ecn();
                        inlet.send(0, route, Some(application));
                    }
                }
            }
            taken += 1;
            if path.is_over() {
                if !inlet.keeps_time() {
                    break FastPathStop::More;
                }
                while path.is_held() && inlet.pause(path.held_until()) {
                    let now = inlet.now();
                    let mut written = path.release(now, inlet.packet());
                    while written.is_some() {
                        inlet.packet().ip = *ip;
                        inlet.packet().ip.ecn = path.data_ecn();
                        inlet.send(0, route, Some(application));
                        written = path
                            .has_more()
                            .then(|| path.poll_transmit(now, inlet.packet()))
                            .flatten();
                    }
                }
                if path.is_over() && !path.is_held() {
                    break FastPathStop::More;
                }
            }
            if !inlet.advance() {
                break FastPathStop::Done(path.held_until());
            }
            if !is_next(*ports, ip, inlet) {
                break FastPathStop::Other(path.held_until());
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

    /// Sends what pacing has held back until now, if that is all that is due and can take the fast path;
    /// false if it is left to the general path.
    #[inline]
    pub(super) fn release(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> bool {
        let next = now + Duration::from_nanos(1);
        let wakes = self.connection.clock().world(self.application.next_wake()) <= now;
        if wakes || outlet.segments() > 1 {
            return false;
        }
        let Slot { ip, route, connection, application, .. } = self;
        let Some(mut path) = connection.fast_path(next) else { return false };
        if !path.is_held() {
            return false;
        }
        let mut written = path.release(now, outlet.packet());
        while written.is_some() {
            outlet.packet().ip = *ip;
            outlet.packet().ip.ecn = path.data_ecn();
            outlet.send(0, route, Some(application));
            written = path.has_more().then(|| path.poll_transmit(now, outlet.packet())).flatten();
        }
        // A smaller segment may be next.
        if path.is_over() && !path.is_held() {
            self.transmit(now, outlet);
        }
        true
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
        let timer = self.connection.poll_timeout();
        let wake = self.connection.clock().world(self.application.next_wake());
        // Most applications have no wake.
        if wake != Time::NEVER && wake < timer && self.is_open() { wake } else { timer }
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
