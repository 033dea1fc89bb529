//! Hosts that are stored and restored in the middle of everything, under another clock, go on as
//! if nothing had happened.

use base::settings::{Bytes, Span};
use base::{Duration, Random, Seed, Time};
use core::net::{IpAddr, Ipv4Addr};
use host::traffic::Messages;
use host::{
    AdoptError, Application, BufferedSource, Ends, FourTuple, Host, HostSnapshot, Opening, Outlet,
    PacedSource, Place, Requester, Requests, Responder, Settings, Sink, SlowSink, Source, Traffic,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcp::{Config, Connection, Events, KeepAlive, ReceiveWindow};
use wire::{Packet, Payload};

const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];

/// Late enough for clocks that are behind.
const START: Time = Time::from_nanos(1 << 41);

/// Nanoseconds that one clock is ahead of another, modulo 2^64.
#[derive(Clone, Copy, Debug, Default)]
struct Shift(u64);

impl Shift {
    fn of(self, time: Time) -> Time {
        if time >= Time::NEVER {
            return Time::NEVER;
        }
        Time::from_nanos(time.as_nanos().wrapping_add(self.0))
    }

    fn back(self, time: Time) -> Time {
        Shift(self.0.wrapping_neg()).of(time)
    }
}

/// Writes, reads, closes and sometimes aborts at times of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Chatter {
    seed: u64,
    /// Random numbers drawn so far.
    drawn: u64,
    next: Time,
    to_write: u64,
    written: u64,
    read: u64,
    /// All that the peer writes, as the name of its stream says.
    to_read: u64,
    aborts: bool,
    peer_closed: bool,
}

impl Chatter {
    fn new(seed: u64) -> Chatter {
        let mut chatter = Chatter {
            seed,
            drawn: 0,
            next: Time::NEVER,
            to_write: 0,
            written: 0,
            read: 0,
            to_read: 0,
            aborts: false,
            peer_closed: false,
        };
        chatter.to_write = chatter.bits() % 60_000;
        chatter.aborts = chatter.bits().is_multiple_of(10);
        chatter
    }

    fn bits(&mut self) -> u64 {
        self.drawn += 1;
        Seed(self.seed).stream(&format!("chatter.{}", self.drawn)).bits()
    }

    fn later(&mut self, now: Time) {
        self.next = now + Duration::from_nanos(1 + self.bits() % 100_000_000);
    }
}

impl Application for Chatter {
    fn handle(&mut self, now: Time, _: &mut Connection, events: Events) {
        self.peer_closed |= events.contains(Events::PEER_CLOSED);
        if events.contains(Events::CONNECTED) {
            self.later(now);
        }
    }

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        let mut room = (self.bits() % 8_000) as u32;
        while let Some(payload) = connection.read_up_to(room) {
            assert_eq!(payload.offset, self.read, "bytes came twice or in disorder");
            self.read = payload.end();
            self.to_read = u64::from(payload.stream);
            room -= payload.len;
        }
        let len = (self.bits() % 8_000).min(self.to_write - self.written);
        connection.write(self.to_write as u32, self.written, len);
        self.written += len;
        if self.written == self.to_write {
            if self.aborts {
                connection.abort();
            }
            connection.close();
        }
        let has_all = self.peer_closed && room > 0;
        assert!(!has_all || self.read == self.to_read, "the stream is not whole");
        if has_all && self.written == self.to_write {
            self.next = Time::NEVER;
        } else {
            self.later(now);
        }
    }
}

/// Any application. Whatever takes in a stream checks that it is whole when it ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Program {
    Chatter(Chatter),
    Traffic { traffic: Traffic, size: u64 },
}

impl Program {
    fn check(&self) {
        let Program::Traffic { traffic, size } = self else { return };
        let Some(sink) = traffic.sink() else { return };
        assert_eq!(sink.misplaced, 0, "bytes came twice or in disorder");
        assert!(sink.received <= *size);
        assert!(sink.finished_at.is_none() || sink.received == *size, "the stream is not whole");
    }
}

impl Application for Program {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        match self {
            Program::Chatter(chatter) => chatter.handle(now, connection, events),
            Program::Traffic { traffic, .. } => traffic.handle(now, connection, events),
        }
        self.check();
    }

    fn take(&mut self, now: Time, payload: Payload) -> bool {
        match self {
            Program::Chatter(chatter) => chatter.take(now, payload),
            Program::Traffic { traffic, .. } => {
                Application::<Connection>::take(traffic, now, payload)
            }
        }
    }

    fn next_wake(&self) -> Time {
        match self {
            Program::Chatter(chatter) => chatter.next_wake(),
            Program::Traffic { traffic, .. } => Application::<Connection>::next_wake(traffic),
        }
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        match self {
            Program::Chatter(chatter) => chatter.wake(now, connection),
            Program::Traffic { traffic, .. } => traffic.wake(now, connection),
        }
        self.check();
    }
}

/// How many kinds of traffic there are.
const KINDS: u16 = 5;
/// The port of the first; that of each other follows.
const TRAFFIC: u16 = 90;
/// Where chatterers listen.
const CHATTER: u16 = 80;

/// What opens and what accepts the connections of a port.
fn programs(port: u16, seed: u64) -> [Program; 2] {
    const STREAM: u32 = 7;
    const SIZE: u64 = 70_000;
    let some = Duration::from_millis(30);
    let dialogue = Requests {
        request: Bytes(700),
        response: Bytes(9_000),
        think: Some(Span(Duration::from_millis(80))),
        count: Some(9),
    };
    let [traffic, accepting] = match port.checked_sub(TRAFFIC) {
        Some(0) => [
            Traffic::Source(Source::new(STREAM, Some(SIZE))),
            SlowSink::new(Sink::new(STREAM), 3_000, some).into(),
        ],
        Some(1) => [
            PacedSource::new(STREAM, Some(SIZE), 1_700, some).into(),
            Traffic::Sink(Sink::new(STREAM)),
        ],
        Some(2) => [
            BufferedSource::new(STREAM, Some(SIZE), 4_500).into(),
            Traffic::Sink(Sink::new(STREAM)),
        ],
        Some(3) => {
            let requester = Requester::new(STREAM, dialogue).into();
            let responder = Responder::new(STREAM, dialogue).into();
            let size = 9 * dialogue.response.0;
            return [requester, responder].map(|traffic| Program::Traffic { traffic, size });
        }
        Some(4) => {
            let (interval, count) = (Span(some), 41);
            let messages = Messages { size: Bytes(1_700), interval, count: Some(count) };
            let [sender, receiver] =
                messages.ends(&Place { stream: STREAM, is_carried: true, start: START });
            let size = count * messages.size.0;
            return [sender, receiver].map(|traffic| Program::Traffic { traffic, size });
        }
        _ => return [seed, 1000].map(|seed| Program::Chatter(Chatter::new(seed))),
    };
    [traffic, accepting].map(|traffic| Program::Traffic { traffic, size: SIZE })
}

/// Two hosts and a line between them that delays, reorders, doubles and loses.
struct Line {
    hosts: [Host<Program>; 2],
    /// The hosts' clocks.
    clocks: [Shift; 2],
    flying: BTreeMap<(Time, u64), (usize, Packet)>,
    random: Random,
    loss: f64,
    /// All packets sent, with the time and the sending host.
    log: Vec<(Time, usize, Packet)>,
}

/// Where a host's packets go, and the time.
struct Port<'a> {
    next: Packet,
    sent: &'a mut Vec<Packet>,
}

impl<A> Outlet<A> for Port<'_> {
    fn packet(&mut self) -> &mut Packet {
        &mut self.next
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.sent.push(self.next);
    }
}

fn config() -> Config {
    Config {
        mss: 1000,
        receive_window: ReceiveWindow::fixed(20_000),
        timestamps: true,
        ecn: tcp::EcnMode::Classic,
        fast_open: true,
        retries: 8,
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(20),
            interval: Duration::from_secs(5),
            probes: 3,
        }),
        ..Config::default()
    }
}

fn listen(host: &mut Host<Program>) {
    for port in (TRAFFIC..TRAFFIC + KINDS).chain([CHATTER]) {
        let [_, accepting] = programs(port, 0);
        host.listen(port, move || (config(), accepting.clone()));
    }
}

impl Line {
    fn new(seed: u64, loss: f64) -> Line {
        let host = |end: usize| {
            let mut host = Host::new(ADDRESSES[end], Seed(seed).stream(["a", "b"][end]));
            host.set(Settings { resets: 2, ..Settings::default() });
            host
        };
        let mut hosts = [host(0), host(1)];
        listen(&mut hosts[1]);
        Line {
            hosts,
            clocks: [Shift::default(); 2],
            flying: BTreeMap::new(),
            random: Seed(seed).stream("line"),
            loss,
            log: Vec::new(),
        }
    }

    fn open(&mut self, now: Time, seed: u64, port: u16) {
        let at = self.clocks[0].of(now);
        self.hosts[0].open(Opening {
            at,
            remote: ADDRESSES[1],
            remote_port: port,
            local: None,
            local_port: None,
            config: config(),
            application: programs(port, seed)[0].clone(),
        });
        self.serve(now, 0);
    }

    fn serve(&mut self, now: Time, end: usize) {
        self.hosts[end].handle_timeout(self.clocks[end].of(now));
        self.transmit(now, end);
    }

    fn transmit(&mut self, now: Time, end: usize) {
        let mut sent = Vec::new();
        let mut port = Port { next: Packet::BLANK, sent: &mut sent };
        let _ = self.hosts[end].transmit(self.clocks[end].of(now), &mut port);
        for packet in sent {
            self.log.push((now, end, packet));
            let copies =
                if self.random.chance(self.loss) { (self.random.bits() % 3) as usize } else { 1 };
            for _ in 0..copies {
                let delay = Duration::from_nanos(10_000_000 + self.random.bits() % 20_000_000);
                let number = self.random.bits();
                self.flying.insert((now + delay, number), (1 - end, packet));
            }
        }
    }

    /// When something happens next.
    fn next(&self) -> Time {
        let flying = self.flying.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        (0..2)
            .map(|end| self.clocks[end].back(self.hosts[end].poll_timeout()))
            .fold(flying, Ord::min)
    }

    /// Runs until before `end`.
    fn run_until(&mut self, end: Time) {
        while self.next() < end {
            let now = self.next();
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now) {
                let (to, packet) = entry.remove();
                self.hosts[to].handle_packet(self.clocks[to].of(now), &packet);
                self.transmit(now, to);
            }
            for end in 0..2 {
                self.serve(now, end);
            }
        }
    }

    /// A host is stored, its clock is set, and the host is restored.
    fn move_host(&mut self, now: Time, end: usize, shift: Shift) {
        let text = json(self.hosts[end].snapshot(self.clocks[end].of(now))).to_string();
        let stored = snapshot_of(serde_json::from_str(&text).expect("the same"));
        let clock = Shift(self.clocks[end].0.wrapping_add(shift.0));
        let restored = Host::adopt(stored, clock.of(now));
        self.hosts[end] = restored.expect("it is whole");
        self.clocks[end] = clock;
        if end == 1 {
            listen(&mut self.hosts[1]);
        }
    }
}

/// All that tests do with stored hosts goes by these two: each other way would be compiled for all that is in one.
fn json(snapshot: HostSnapshot<Program>) -> serde_json::Value {
    serde_json::to_value(snapshot).expect("it is plain data")
}

fn snapshot_of(json: serde_json::Value) -> HostSnapshot<Program> {
    serde_json::from_value(json).expect("it is of a snapshot")
}

/// Something that is done to the line, so many milliseconds after the start.
#[derive(Clone, Debug)]
enum Deed {
    Open { seed: u64, port: u16 },
    Move { end: usize, shift: Shift },
}

fn run(seed: u64, loss: f64, deeds: &BTreeMap<u64, Deed>) -> Line {
    let mut line = Line::new(seed, loss);
    for (&at, deed) in deeds {
        let now = START + Duration::from_nanos(at);
        line.run_until(now);
        match *deed {
            Deed::Open { seed, port } => line.open(now, seed, port),
            Deed::Move { end, shift } => line.move_host(now, end, shift),
        }
    }
    line.run_until(START + Duration::from_secs(3600));
    line
}

fn moments(most: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(
        prop_oneof![0..100_000_000_u64, 0..5_000_000_000_u64, 0..90_000_000_000_u64],
        1..most,
    )
}

fn moves() -> impl Strategy<Value = Vec<(u64, usize, i64)>> {
    let shift = prop_oneof![Just(0), -(1_i64 << 34)..1 << 34, -(1_i64 << 37)..1 << 37];
    (moments(8), prop::collection::vec((0..2_usize, shift), 8))
        .prop_map(|(at, moves)| at.into_iter().zip(moves).map(|(at, (e, s))| (at, e, s)).collect())
}

proptest! {
    #[test]
    fn hosts_that_are_moved_go_on_as_if_nothing_had_happened(
        seed in any::<u64>(),
        loss in prop_oneof![Just(0.0), 0.0..0.3],
        opened in moments(5),
        ports in prop::collection::vec(
            prop_oneof![Just(CHATTER), Just(CHATTER + 1), TRAFFIC..TRAFFIC + KINDS], 5),
        moved in moves(),
    ) {
        let mut deeds = BTreeMap::new();
        for (index, at) in (0..).zip(opened) {
            // There is no listener on the port after the chatterers'.
            let port = ports[index as usize];
            deeds.insert(2 * at, Deed::Open { seed: seed ^ index, port });
        }
        let undisturbed = run(seed, loss, &deeds);
        for (at, end, shift) in moved {
            deeds.insert(2 * at + 1, Deed::Move { end, shift: Shift(shift as u64) });
        }
        let moved = run(seed, loss, &deeds);
        prop_assert_eq!(&moved.log, &undisturbed.log);
        for line in [&moved, &undisturbed] {
            prop_assert!(line.hosts.iter().all(Host::is_quiet), "something is left");
        }
        for end in 0..2 {
            let counts = [&moved, &undisturbed].map(|line| line.hosts[end].statistics());
            prop_assert_eq!(counts[0], counts[1]);
        }
    }
}

/// A line with a connection that is in the middle of a transfer at the returned time.
fn busy_line() -> (Line, Time) {
    let mut line = Line::new(1, 0.0);
    line.open(START, 3, 80);
    let now = START + Duration::from_millis(300);
    line.run_until(now);
    assert_eq!(line.hosts.each_ref().map(Host::open_connections), [1, 1]);
    (line, now)
}

#[test]
fn a_connection_can_move_to_a_host_that_takes_over_the_address() {
    let (mut line, now) = busy_line();
    let undisturbed = {
        let mut line = busy_line().0;
        line.run_until(START + Duration::from_secs(600));
        line.log
    };
    let id = line.hosts[0].connections().next().unwrap().0;
    let snapshot = line.hosts[0].snapshot_connection(now, id).unwrap();
    let taken = line.hosts[0].adopt_connection(now, snapshot.clone());
    assert!(
        matches!(taken, Err(AdoptError::Taken(FourTuple { remote_port: 80, .. }))),
        "it is still there"
    );

    let mut other = Host::new(ADDRESSES[0], Seed(77).stream("other"));
    other.adopt_connection(now, snapshot).unwrap();
    line.hosts[0] = other;
    line.serve(now, 0);
    line.run_until(START + Duration::from_secs(600));
    assert_eq!(line.log, undisturbed);
}

#[test]
fn a_connection_that_is_closed_when_it_moves_is_not_open_at_the_other_host() {
    let (mut line, now) = busy_line();
    let id = line.hosts[0].connections().next().unwrap().0;
    line.hosts[0].fail_connections(now);
    let snapshot = line.hosts[0].snapshot_connection(now, id).unwrap();

    let mut other = Host::new(ADDRESSES[0], Seed(77).stream("other"));
    let moved = other.adopt_connection(now, snapshot).unwrap();
    assert_eq!(other.open_connections(), 0);
    assert!(other.connection(moved).is_some());
    line.hosts[0] = other;
    line.serve(now, 0);
    assert_eq!(line.hosts[0].connections().count(), 0);
}

#[test]
fn every_kind_of_traffic_survives_restorations_every_few_milliseconds_under_any_clock() {
    for port in TRAFFIC..TRAFFIC + KINDS {
        let mut deeds = BTreeMap::from([(0, Deed::Open { seed: 1, port })]);
        let undisturbed = run(1, 0.05, &deeds);
        for at in 1..400_u64 {
            // One clock is set back so far that the connection began long before its zero.
            let shift = match at {
                200 => -((1 << 41) - (1 << 38)),
                _ => (at as i64 % 7 - 3) << 33,
            };
            deeds.insert(
                at * 7_300_000,
                Deed::Move { end: at as usize % 2, shift: Shift(shift as u64) },
            );
        }
        let moved = run(1, 0.05, &deeds);
        assert_eq!(moved.log, undisturbed.log, "port {port}");
        assert!(moved.log.len() > 100);
        assert!(moved.hosts.iter().all(|host| host.is_quiet()), "port {port}");
    }
}

#[test]
fn a_snapshot_of_another_version_is_refused() {
    let (line, now) = busy_line();
    let snapshot = line.hosts[0].snapshot(now);
    let mut value = json(snapshot);
    value["version"] = 77.into();
    let snapshot = snapshot_of(value);
    let refused = Host::adopt(snapshot, now).err();
    let expected = HostSnapshot::<Program>::VERSION;
    assert_eq!(refused, Some(AdoptError::Version { found: 77, expected }));
}

#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let (line, now) = busy_line();
    let value = json(line.hosts[0].snapshot(now));
    let id = &value["connections"][0][0];
    for (field, lie, slot) in [
        ("slots", 0.into(), 0),
        ("vacant", vec![id.clone()].into(), 0),
        ("vacant", serde_json::json!([{ "index": 9, "generation": 0 }]), 9),
        ("busy", vec![5].into(), 5),
    ] {
        let mut value = value.clone();
        value[field] = lie;
        let snapshot = snapshot_of(value);
        let refused = Host::adopt(snapshot, now).err();
        assert_eq!(refused, Some(AdoptError::Slot(slot)));
    }
}
