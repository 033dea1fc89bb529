//! A connection in a host's table, with its application.

use super::{ConnectionId, FourTuple, Inlet, Outlet, Statistics};
use crate::Application;
use base::Time;
use tcp::{Connection, Events, FastPathOutcome, State};
use wire::{Body, Ip, Packet, Payload, Ports, Segment};

/// A connection, and what the host knows of it.
#[derive(Debug)]
pub(super) struct Slot<A> {
    pub(super) id: ConnectionId,
    /// The ports of what arrives.
    pub(super) ports: Ports,
    /// The network header of what it sends.
    pub(super) ip: Ip,
    /// For the outlet.
    pub(super) route: Option<u32>,
    pub(super) connection: Connection,
    pub(super) application: A,
    /// Its wake, as it stands in the host's schedule.
    pub(super) wake: Time,
    /// It stands in the queue of those that may have something to send.
    pub(super) busy: bool,
    /// It counts against the backlog of a listener.
    pub(super) half_open: bool,
    /// It ended before it was established, and its application has not heard of it.
    pub(super) stillborn: bool,
    /// Bytes of memory that count for it, if that is limited.
    pub(super) charged: u64,
    /// The workload that is to hear of its end.
    pub(super) workload: Option<u32>,
}

/// Why [`Slot::exchange`] has stopped.
pub(super) enum Stop {
    /// All packets are taken in.
    Done,
    /// The packet that is here is for somebody else.
    Other,
    /// So it may be, or it says something beyond TCP.
    Refused,
    /// The packet that is here is taken in, and the host is to look after what has changed.
    Changed {
        /// The connection has been established or perhaps is over.
        turned: bool,
        /// When it wants to be asked again.
        due: Time,
    },
}

/// What [`Slot::follow`] has come to.
enum Followed {
    /// All packets are taken in.
    Done,
    /// The packet that is here is for somebody else.
    Other,
    /// It is no case for the fast path.
    Off,
    /// It is taken in, and there may be more to send or to be told.
    More,
}

/// An application that is reading.
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

/// Whether the packet that is here is a segment between the two ends of a connection.
#[inline(always)]
fn is_next<A>(ports: Ports, ip: &Ip, inlet: &mut impl Inlet<A>) -> bool {
    inlet.ports() == ports && is_along(ip, &inlet.arrived().ip)
}

/// Whether a packet comes from the remote end of a connection to this one.
#[inline]
fn is_along(ip: &Ip, arrived: &Ip) -> bool {
    arrived.source == ip.destination && arrived.destination == ip.source
}

impl<A: Application> Slot<A> {
    /// Between which ends the connection is.
    pub(super) fn tuple(&self) -> FourTuple {
        FourTuple {
            local: self.ip.source,
            local_port: self.ports.destination(),
            remote: self.ip.destination,
            remote_port: self.ports.source(),
        }
    }

    /// Whether a packet is a segment between the two ends of this connection.
    #[inline]
    pub(super) fn is_between(&self, packet: &Packet) -> bool {
        packet.ports() == self.ports && is_along(&self.ip, &packet.ip)
    }

    /// Whether such a segment can be for no other.
    #[inline]
    pub(super) fn holds_its_ports(&self) -> bool {
        !matches!(self.connection.state(), State::TimeWait | State::Closed)
    }

    /// Takes in what arrives as long as it is for this connection, and sends all that may be sent
    /// after each. If `one`, the host wants to look after each.
    #[inline]
    pub(super) fn exchange(
        &mut self,
        one: bool,
        inlet: &mut impl Inlet<A>,
        statistics: &mut Statistics,
    ) -> Stop {
        loop {
            match if one { Followed::Off } else { self.follow(inlet, statistics) } {
                Followed::Done => return Stop::Done,
                Followed::Other => return Stop::Other,
                Followed::More => {}
                Followed::Off => {
                    let now = inlet.now();
                    let packet = &*inlet.arrived();
                    let Body::Tcp(segment) = &packet.body else { return Stop::Refused };
                    if packet.unparsed.has_ip() || !self.holds_its_ports() {
                        return Stop::Refused;
                    }
                    statistics.segments += 1;
                    let (payload, ecn) = (packet.payload, packet.ip.ecn);
                    self.connection.handle_segment(now, segment, payload, ecn);
                    inlet.release();
                }
            }
            let now = inlet.now();
            let turned = self.hear(now);
            let due = self.transmit(now, inlet);
            if turned || due < self.wake || one {
                return Stop::Changed { turned, due };
            }
            if !inlet.advance() {
                return Stop::Done;
            }
            if !is_next(self.ports, &self.ip, inlet) {
                return Stop::Other;
            }
        }
    }

    /// The same as far as the connection is on the fast path.
    #[inline(never)]
    fn follow(&mut self, inlet: &mut impl Inlet<A>, statistics: &mut Statistics) -> Followed {
        let Slot { ports, ip, route, connection, application, wake, .. } = self;
        let clock = connection.clock();
        let Some(mut path) = connection.fast_path(*wake) else { return Followed::Off };
        let headers = (ip.len() + Segment::HEADER) as u32;
        loop {
            let now = inlet.now();
            let packet = inlet.arrived();
            match path.exchange(now, packet, &mut Reading { now: clock.local(now), application }) {
                FastPathOutcome::Refused => return Followed::Off,
                FastPathOutcome::Taken => inlet.release(),
                FastPathOutcome::Answered(len) => {
                    packet.ip = *ip;
                    inlet.answer(*route, headers + len);
                    while path.has_more() && path.poll_transmit(now, inlet.packet()).is_some() {
                        inlet.packet().ip = *ip;
                        inlet.send(0, route, Some(application));
                    }
                }
            }
            statistics.segments += 1;
            statistics.fast_path += 1;
            // The application's wake is where it was.
            if path.is_over() {
                return Followed::More;
            }
            if !inlet.advance() {
                return Followed::Done;
            }
            if !is_next(*ports, ip, inlet) {
                return Followed::Other;
            }
        }
    }

    /// Tells the application what has happened. Says whether the connection has been established
    /// or perhaps is over: then `Host::turn` looks after it.
    #[inline(always)]
    pub(super) fn hear(&mut self, now: Time) -> bool {
        let mut turned = false;
        loop {
            let events = self.connection.take_events();
            if events.is_empty() {
                return turned;
            }
            if events.intersects(Events::CONNECTED | Events::PEER_CLOSED | Events::CLOSED) {
                self.stillborn = self.half_open && !turned && !events.contains(Events::CONNECTED);
                turned = true;
            }
            if !self.stillborn {
                let now = self.connection.clock().local(now);
                self.application.handle(now, &mut self.connection, events);
            }
        }
    }

    /// Does what is due.
    pub(super) fn serve(&mut self, now: Time) {
        if self.connection.poll_timeout() <= now {
            self.connection.handle_timeout(now);
        }
        let now = self.connection.clock().local(now);
        if self.application.next_wake() <= now && self.is_open() {
            self.application.wake(now, &mut self.connection);
        }
    }

    /// When it wants to be asked again.
    #[inline(always)]
    pub(super) fn due(&self) -> Time {
        let timer = self.connection.poll_timeout();
        let wake = self.connection.clock().world(self.application.next_wake());
        // Most applications have no wake at all.
        if wake != Time::NEVER && wake < timer && self.is_open() { wake } else { timer }
    }

    /// Whether its application may be woken.
    fn is_open(&self) -> bool {
        !self.half_open && self.connection.state() != State::Closed
    }

    /// Sends all that may be sent now; returns when the connection wants to be asked again.
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
            outlet.send(transmit.segment_size, &mut self.route, Some(&self.application));
            if !transmit.more {
                break;
            }
        }
        self.due()
    }
}
