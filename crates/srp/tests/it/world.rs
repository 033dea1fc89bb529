//! Two ends, the hop between them, and what their streams have carried.

use crate::hop::Hop;
use base::{Duration, Events, Time};
use srp::{Association, Config, Ends, StreamId};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::srp::Pdu;
use wire::{Body, Ip, Packet, Payload, Srp};

/// One end of a stream, as its user sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    /// Its connection's number, which is the port of its client.
    pub(crate) connection: u16,
    /// Bytes to be written, then the end.
    pub(crate) to_write: u64,
    /// Bytes read, which were in order.
    pub(crate) read: u64,
    /// The most that it reads in an attempt, and at most every so often.
    pub(crate) reads: u32,
    pub(crate) events: Events,
    pub(crate) aborted: bool,
    pub(crate) refuses: bool,
    pub(crate) holds: bool,
}

pub(crate) struct End {
    pub(crate) association: Option<Association>,
    /// Its clock is ahead by this.
    pub(crate) ahead: Duration,
    pub(crate) users: BTreeMap<StreamId, User>,
    /// The users of connections that the other end opens.
    pub(crate) expected: BTreeMap<u16, User>,
}

/// The stream of payload of an end in a connection.
fn payload_stream(end: usize, connection: u16) -> u32 {
    u32::from(connection) << 1 | end as u32
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) ends: [End; 2],
    pub(crate) hops: [Hop; 2],
    flying: BTreeMap<(Time, u64), (usize, Srp, Payload)>,
    sent: u64,
    pub(crate) config: Config,
    /// PDUs are written and read again.
    pub(crate) is_on_wire: bool,
    /// All that is sent is lost: the link is down.
    pub(crate) is_down: bool,
    /// The link is down at this end: nothing leaves it, and nothing arrives.
    pub(crate) is_down_at: Option<usize>,
    /// The streams whose segments the first end has sent, in order.
    pub(crate) order: Vec<u16>,
    /// The machines of both ends are busy: the ends see what happens at multiples of this time only.
    pub(crate) tick: Duration,
}

pub(crate) const TOKEN: u32 = 77;

impl World {
    pub(crate) fn new(configs: [Config; 2], hops: [Hop; 2]) -> World {
        let now = Time::ZERO + Duration::from_secs(1);
        let [config, accepting] = configs;
        let opener = Association::connect(now, &config, TOKEN);
        let end = |association| End {
            association,
            ahead: Duration::ZERO,
            users: BTreeMap::new(),
            expected: BTreeMap::new(),
        };
        World {
            now,
            ends: [end(Some(opener)), end(None)],
            hops,
            flying: BTreeMap::new(),
            sent: 0,
            config: accepting,
            is_on_wire: false,
            is_down: false,
            is_down_at: None,
            order: Vec::new(),
            tick: Duration::ZERO,
        }
    }

    pub(crate) fn local(&self, end: usize) -> Time {
        self.now + self.ends[end].ahead
    }

    pub(crate) fn association(&mut self, end: usize) -> &mut Association {
        self.ends[end].association.as_mut().expect("it is there")
    }

    /// Opens a connection: `users` are those of its client, at `end`, and of its server.
    pub(crate) fn open(&mut self, end: usize, users: [User; 2]) -> Option<StreamId> {
        let now = self.local(end);
        let [client, server] = users;
        let address = IpAddr::from([10, 0, 0, 1]);
        let (client_port, server_port) = (client.connection, 80);
        let ends = Ends { client: address, server: address, client_port, server_port };
        let id = self.ends[end].association.as_mut()?.open(now, ends)?;
        self.ends[1 - end].expected.insert(client.connection, server);
        self.ends[end].users.insert(id, client);
        self.write(end, id);
        self.settle(end);
        Some(id)
    }

    fn write(&mut self, end: usize, id: StreamId) {
        let End { association, users, .. } = &mut self.ends[end];
        let (Some(association), Some(user)) = (association.as_mut(), users.get_mut(&id)) else {
            return;
        };
        let Some(mut stream) = association.stream(id) else { return };
        if user.holds {
            stream.hold_end();
        }
        let number = payload_stream(end, user.connection);
        // In two pieces.
        let first = user.to_write / 3;
        stream.write(number, 0, first);
        stream.write(number, first, user.to_write - first);
        stream.close();
    }

    pub(crate) fn abort(&mut self, end: usize, id: StreamId) {
        if let Some(user) = self.ends[end].users.get_mut(&id) {
            user.aborted = true;
        }
        if let Some(mut stream) = self.association(end).stream(id) {
            stream.abort();
        }
        self.settle(end);
    }

    /// Reads what a user reads at once.
    pub(crate) fn read(&mut self, end: usize, id: StreamId) {
        let now = self.local(end);
        let End { association, users, .. } = &mut self.ends[end];
        let (Some(association), Some(user)) = (association.as_mut(), users.get_mut(&id)) else {
            return;
        };
        let expected = payload_stream(1 - end, user.connection);
        let Some(mut stream) = association.stream(id) else { return };
        while let Some(payload) = stream.read_up_to(user.reads) {
            assert_eq!((payload.stream, payload.offset), (expected, user.read), "in order, once");
            user.read += u64::from(payload.len);
        }
        if user.holds && user.events.contains(Events::PEER_CLOSING) {
            user.holds = false;
            stream.release_end(now);
        }
    }

    /// Takes events and sends, until an end has nothing more to do.
    pub(crate) fn settle(&mut self, end: usize) {
        for _ in 0..100_000 {
            let now = self.local(end);
            let Some(association) = self.ends[end].association.as_mut() else { return };
            if let Some((id, ends)) = association.poll_incoming() {
                let user = self.ends[end].expected.remove(&ends.client_port);
                let user = user.expect("it was opened, once");
                if user.refuses {
                    self.association(end).refuse(id, srp::Reason::Refused);
                } else {
                    self.ends[end].users.insert(id, user);
                    self.association(end).accept_stream(id);
                    self.write(end, id);
                }
                continue;
            }
            if let Some((id, events)) = association.poll_events() {
                let user = self.ends[end].users.get_mut(&id).expect("its owner knows it");
                assert!(!user.events.contains(Events::CLOSED), "nothing after the end: {events:?}");
                user.events |= events;
                self.read(end, id);
                continue;
            }
            let Some((srp, payload)) = association.poll_transmit(now) else { return };
            self.send(end, srp, payload);
        }
        panic!("it does not settle");
    }

    fn send(&mut self, end: usize, srp: Srp, payload: Payload) {
        let bytes = 28 + srp.len() as u64 + u64::from(payload.len);
        let srp = if self.is_on_wire { on_wire(srp, payload) } else { srp };
        if let (0, Pdu::Data(segment)) = (end, &srp.pdu) {
            self.order.push(segment.stream);
        }
        if self.is_down || self.is_down_at == Some(end) {
            return;
        }
        for at in self.hops[end].send(self.now, bytes) {
            self.sent += 1;
            self.flying.insert((at, self.sent), (1 - end, srp, payload));
        }
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Time {
        let arrival = self.flying.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        let wakes = self.ends.iter().map(|end| {
            let wake = end.association.as_ref().map_or(Time::NEVER, Association::poll_timeout);
            match wake {
                Time::NEVER => Time::NEVER,
                wake => Time::from_nanos(wake.as_nanos().saturating_sub(end.ahead.as_nanos())),
            }
        });
        let next = wakes.fold(arrival, Time::min).max(self.now);
        match (next, self.tick.as_nanos()) {
            (Time::NEVER, _) | (_, 0) => next,
            (next, tick) => Time::from_nanos(next.as_nanos().next_multiple_of(tick)),
        }
    }

    /// Runs until a time.
    pub(crate) fn run(&mut self, until: Time) {
        let mut same = 0;
        while self.next() <= until {
            let next = self.next();
            same = if next == self.now { same + 1 } else { 0 };
            assert!(same < 100_000, "it makes no progress");
            self.now = next;
            while let Some(first) = self.flying.first_entry()
                && first.key().0 <= self.now
            {
                let (end, srp, payload) = first.remove();
                if self.is_down_at != Some(end) {
                    self.arrive(end, &srp, payload);
                }
            }
            for end in 0..2 {
                let now = self.local(end);
                if let Some(association) = self.ends[end].association.as_mut()
                    && association.poll_timeout() <= now
                {
                    association.handle_timeout(now);
                }
                self.settle(end);
            }
        }
        self.now = self.now.max(until);
    }

    fn arrive(&mut self, end: usize, srp: &Srp, payload: Payload) {
        let (now, config) = (self.local(end), &self.config);
        match &mut self.ends[end].association {
            Some(association) => association.handle(now, srp, payload),
            none => *none = Association::accept(now, config, srp),
        }
        self.settle(end);
    }
}

/// A PDU as it comes out of the network.
fn on_wire(srp: Srp, payload: Payload) -> Srp {
    let address = IpAddr::from([10, 0, 0, 1]);
    let srp = Srp { destination_port: Srp::PORT, ..srp };
    let packet =
        Packet { ip: Ip::new(address, address), body: Body::Srp(srp), payload, ..Packet::BLANK };
    let mut bytes = Vec::new();
    let payload = vec![0; payload.len as usize];
    packet.emit(&payload, &mut bytes).expect("it can be written");
    let (read, _) = Packet::parse(&bytes).expect("it is a packet");
    assert_eq!(read.body, packet.body);
    assert!(payload.is_empty() || matches!(srp.pdu, Pdu::Data(_)));
    Srp { destination_port: 0, ..srp }
}
