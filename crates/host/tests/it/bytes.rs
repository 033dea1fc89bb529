//! Hosts whose packets carry bytes: whatever becomes of the packets, the store is given the stream.

use base::{Duration, Random, Seed, Time};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;
use host::{Application, Bytes, Host, Opening, Outlet};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tcp::{Config, Connection, Events, ReceiveWindow, State};
use wire::{Flags, Packet, Payload, SeqNumber};

/// Byte number `place` of what the end with `key` sends.
fn byte(key: u64, place: u64) -> u8 {
    let mixed = (place ^ key << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// An application that sends `size` bytes and reads in pieces.
struct Program {
    key: u64,
    peers_key: u64,
    size: u64,
    /// A ring of the receive window's size.
    ring: Vec<u8>,
    read: u64,
    random: Random,
    next: Time,
    ended: bool,
    /// Bytes of its own that the peer has acknowledged.
    released: u64,
}

impl Program {
    fn new(key: u64, size: u64, window: u32, random: Random) -> Program {
        let ring = vec![0; window as usize];
        let (peers_key, next) = (1 - key, Time::NEVER);
        Program { key, peers_key, size, ring, read: 0, random, next, ended: false, released: 0 }
    }

    /// Reads so many bytes at most, and says whether there were any.
    fn read(&mut self, connection: &mut Connection, most: u32) -> bool {
        let Some(payload) = connection.read_up_to(most) else { return false };
        assert_eq!(payload.offset, self.read);
        self.read = payload.end();
        for place in payload.offset..payload.end() {
            let found = self.ring[place as usize % self.ring.len()];
            assert_eq!(found, byte(self.peers_key, place), "byte {place} is another");
        }
        true
    }
}

impl Application for Program {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        if events.contains(Events::CONNECTED) {
            connection.write(0, 0, self.size);
            connection.close();
        }
        self.ended |= events.contains(Events::PEER_CLOSED);
        if events.contains(Events::CLOSED) {
            // There are no further wakes: read the rest now.
            while self.read(connection, u32::MAX) {}
        }
        let later = Duration::from_nanos(1 + self.random.bits() % 20_000_000);
        self.next = self.next.min(now + later);
    }

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        let most = 1 + (self.random.bits() % 5000) as u32;
        while self.read(connection, most) && !self.random.chance(0.3) {}
        self.next = match connection.readable() {
            0 => Time::NEVER,
            _ => now + Duration::from_millis(1),
        };
    }
}

impl Bytes for Program {
    fn fetch(&self, payload: Payload, out: &mut [u8]) {
        assert!(payload.offset >= self.released, "it was acknowledged");
        assert!(payload.end() <= self.size && payload.len as usize == out.len());
        for (place, out) in (payload.offset..).zip(out) {
            *out = byte(self.key, place);
        }
    }

    fn store(&mut self, place: u64, bytes: &[u8]) {
        let end = place + bytes.len() as u64;
        assert!(place >= self.read && end <= self.read + self.ring.len() as u64, "no room");
        for (place, &found) in (place..).zip(bytes) {
            assert_eq!(found, byte(self.peers_key, place), "what was refused is stored");
            let len = self.ring.len();
            self.ring[place as usize % len] = found;
        }
    }

    fn keep(&mut self, place: u64, buffer: Vec<u8>, range: Range<usize>) -> Option<Vec<u8>> {
        self.store(place, &buffer[range]);
        place.is_multiple_of(2).then_some(buffer)
    }

    fn release(&mut self, unacknowledged: u64) {
        let released = self.size - unacknowledged;
        assert!(released > self.released);
        self.released = released;
    }
}

/// Writes packets as bytes, in units of up to so many segments.
struct Port {
    next: Packet,
    unit: u16,
    sent: Vec<Vec<u8>>,
}

impl<A: Bytes> Outlet<A> for Port {
    fn packet(&mut self) -> &mut Packet {
        &mut self.next
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, application: Option<&A>) {
        let mut payload = vec![0; self.next.payload.len as usize];
        if let Some(application) = application.filter(|_| !payload.is_empty()) {
            application.fetch(self.next.payload, &mut payload);
        }
        let mut bytes = Vec::new();
        self.next.emit(&payload, &mut bytes).expect("a host's packets can be written");
        self.sent.push(bytes);
    }

    fn segments(&self) -> u16 {
        self.unit
    }
}

struct Line {
    hosts: [Host<Program>; 2],
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    random: Random,
    unit: u16,
    /// Old payloads, of which pieces come again.
    past: Vec<(usize, Vec<u8>)>,
    /// The sequence numbers of the SYNs.
    first: [SeqNumber; 2],
}

impl Line {
    fn transmit(&mut self, now: Time, end: usize) {
        let mut port = Port { next: Packet::BLANK, unit: self.unit, sent: Vec::new() };
        let _ = self.hosts[end].transmit(now, &mut port);
        for bytes in port.sent {
            let (mut packet, _) = Packet::parse(&bytes).expect("it was written by a host");
            if let Some(segment) = packet.tcp_mut().filter(|s| s.flags.contains(Flags::SYN)) {
                self.first[end] = segment.seq;
            }
            self.past.push((1 - end, bytes.clone()));
            self.fly(now, 1 - end, bytes);
            if self.random.chance(0.2) {
                let again = (self.random.bits() % self.past.len() as u64) as usize;
                let (to, bytes) = self.past[again].clone();
                let bytes = self.mangled(1 - to, &bytes);
                self.fly(now, to, bytes);
            }
        }
    }

    fn fly(&mut self, now: Time, to: usize, bytes: Vec<u8>) {
        if self.random.chance(0.1) {
            return;
        }
        let delay = Duration::from_nanos(1_000_000 + self.random.bits() % 5_000_000);
        self.flying.insert((now + delay, self.random.bits()), (to, bytes));
    }

    /// A packet of the past: a piece of it, or one with bytes of its own that must be refused.
    fn mangled(&mut self, from: usize, bytes: &[u8]) -> Vec<u8> {
        let (mut packet, range) = Packet::parse(bytes).expect("it has been sent");
        let mut payload = bytes[range].to_vec();
        let skip = (self.random.bits() % (payload.len() as u64 + 1)) as u32;
        let kind = self.random.bits() % 7;
        let noise = self.random.bits() as u8 | 1;
        if let Some(segment) = packet.tcp_mut()
            && !segment.flags.intersects(Flags::SYN | Flags::RST)
        {
            match kind {
                0 | 1 => {
                    segment.seq = segment.seq + skip;
                    payload.drain(..skip as usize);
                }
                2 if skip < payload.len() as u32 => {
                    segment.flags -= Flags::FIN;
                    payload.truncate(skip as usize);
                }
                3 => segment.flags -= Flags::ACK,
                4 => segment.ack = segment.ack + 0x4000_0000,
                // It claims to begin before the stream.
                6 if segment.flags.contains(Flags::ACK) => segment.seq = self.first[from],
                // Far ahead of the window, or far behind.
                5 => segment.seq = SeqNumber(segment.seq.0 ^ 0x4000_0000),
                _ => {}
            }
            if kind >= 3 {
                payload.iter_mut().for_each(|byte| *byte ^= noise);
            }
        }
        packet.payload.len = payload.len() as u32;
        let mut mangled = Vec::new();
        packet.emit(&payload, &mut mangled).expect("it is no longer than it was");
        mangled
    }

    fn run(&mut self) {
        for _ in 0..2_000_000 {
            let timers = self.hosts.iter().map(Host::poll_timeout);
            let flying = self.flying.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let now = timers.fold(flying, Ord::min);
            if now == Time::NEVER {
                return;
            }
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now) {
                let (to, bytes) = entry.remove();
                let (packet, payload) = Packet::parse(&bytes).expect("it was written by a host");
                if self.random.chance(0.5) {
                    self.hosts[to].handle_bytes(now, &packet, &bytes[payload]);
                } else {
                    let all = payload.len();
                    let returned = self.hosts[to].handle_buffer(now, &packet, bytes, payload);
                    assert!(returned.is_some() || all > 0);
                }
                self.transmit(now, to);
            }
            for end in 0..2 {
                self.hosts[end].handle_timeout(now);
                self.transmit(now, end);
            }
        }
        panic!("it never ends");
    }
}

fn transfer(seed: u64, sizes: [u64; 2], unit: u16, window: u32, timestamps: bool, six: bool) {
    let address = |end: u8| match six {
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(end) + 1)),
        false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, end + 1)),
    };
    let config = Config {
        mss: 1000,
        receive_window: ReceiveWindow::fixed(window),
        timestamps,
        retries: 50,
        ..Config::default()
    };
    let program = |end: u64| {
        let random = Seed(seed).stream(["one", "two"][end as usize]);
        Program::new(end, sizes[end as usize], window, random)
    };
    let mut hosts = [0, 1].map(|end| {
        let mut host = Host::new(address(end), Seed(seed).stream(["a", "b"][usize::from(end)]));
        host.set(host::Settings { keep_closed: true, ..host::Settings::default() });
        host
    });
    let (accepted, mut server) = (config.clone(), Some(program(1)));
    hosts[1].listen(80, move || {
        let empty = Program::new(1, 0, window, Seed(0).stream("none"));
        (accepted.clone(), server.take().unwrap_or(empty))
    });
    hosts[0].open(Opening {
        at: Time::ZERO,
        remote: address(1),
        remote_port: 80,
        local: None,
        local_port: None,
        config,
        application: program(0),
    });
    let random = Seed(seed).stream("line");
    let mut line = Line {
        hosts,
        flying: BTreeMap::new(),
        random,
        unit,
        past: Vec::new(),
        first: [SeqNumber(0); 2],
    };
    line.run();
    for (end, host) in line.hosts.iter().enumerate() {
        let (id, connection, program) = host.connections().next().expect("there is one");
        assert_eq!(connection.state(), State::Closed);
        assert!(program.ended);
        assert_eq!((program.read, program.released), (sizes[1 - end], sizes[end]));
        let tuple = host.four_tuple(id).expect("it is kept");
        assert_eq!((tuple.local, tuple.remote), (address(end as u8), address(1 - end as u8)));
        assert_eq!([tuple.local_port, tuple.remote_port][1 - end], 80);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn the_store_is_given_the_stream_and_nothing_that_a_connection_refuses(
        seed: u64,
        sizes in [0u64..200_000, 0u64..50_000],
        unit in prop_oneof![Just(1u16), 2u16..44],
        window in 2_000u32..100_000,
        timestamps: bool,
        six: bool,
    ) {
        transfer(seed, sizes, unit, window, timestamps, six);
    }
}
