//! A client, a spoofer and a server on two bad paths: whatever becomes of packets and ends, and if the
//! connection moves to another spoofer, each stream arrives whole, in order and once, or an end whose
//! connection is open learns that it failed.

use base::{Duration, Random, Rate, Seed, Time};
use core::net::{IpAddr, Ipv4Addr};
use host::{Application, Host, Middlebox, Opening, Outbox, Outlet, Port, Verdict};
use middlebox::{Connect, Splitter};
use proptest::prelude::*;
use relay::{Handover, HopRate, Limits, Policy, RelaySnapshot, Split, Teardown};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use tcp::{Config, Connection, EcnMode, Events, KeepAlive, ReceiveWindow, State};
use wire::{Ecn, Packet};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const BOX: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
const PORT: u16 = 80;

/// What one end does.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Bytes that it sends, and closes.
    size: u64,
    /// It closes only when the peer has.
    waits: bool,
    /// It reads at such intervals only.
    reads_every: Option<Duration>,
    /// It resets the connection at this time.
    aborts_at: Option<Time>,
    /// Its form of ECN.
    ecn: EcnMode,
    /// Nothing goes to it or comes from it from this time on.
    vanishes_at: Option<Time>,
}

/// The program at one end.
#[derive(Clone, Debug)]
struct Program {
    plan: Plan,
    /// Its own stream is this one, the peer's the other.
    stream: u32,
    received: u64,
    wrong: u64,
    next: Time,
    is_ended: bool,
    is_aborted: bool,
    over: Option<Events>,
}

impl Program {
    fn new(stream: u32, plan: Plan) -> Program {
        Program {
            plan,
            stream,
            received: 0,
            wrong: 0,
            next: Time::NEVER,
            is_ended: false,
            is_aborted: false,
            over: None,
        }
    }

    fn read(&mut self, connection: &mut Connection, most: u32) {
        let mut left = most;
        while left > 0
            && let Some(payload) = connection.read_up_to(left)
        {
            let expected = (1 - self.stream, self.received);
            self.wrong += u64::from((payload.stream, payload.offset) != expected);
            self.received += u64::from(payload.len);
            left -= payload.len;
        }
    }
}

impl Application for Program {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        if events.contains(Events::CONNECTED) {
            connection.write(self.stream, 0, self.plan.size);
            if !self.plan.waits {
                connection.close();
            }
            let reads = self.plan.reads_every.map_or(Time::NEVER, |every| now + every);
            self.next = reads.min(self.plan.aborts_at.unwrap_or(Time::NEVER).max(now));
        }
        self.is_ended |= events.contains(Events::PEER_CLOSED);
        if self.plan.reads_every.is_none() || events.contains(Events::CLOSED) {
            self.read(connection, u32::MAX);
        }
        if self.is_ended && self.plan.waits {
            connection.close();
        }
        if events.contains(Events::CLOSED) {
            self.over = Some(events);
        }
    }

    fn next_wake(&self) -> Time {
        if self.over.is_some() { Time::NEVER } else { self.next }
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        if self.plan.aborts_at.is_some_and(|at| at <= now) {
            self.is_aborted = true;
            self.next = Time::NEVER;
            return connection.abort();
        }
        self.read(connection, 5000);
        let reads = self.plan.reads_every.map_or(Time::NEVER, |every| now + every);
        self.next = reads.min(self.plan.aborts_at.unwrap_or(Time::NEVER));
    }
}

/// What a path does to packets.
#[derive(Clone, Copy, Debug)]
struct Path {
    delay: Duration,
    /// The largest delay besides, which differs from packet to packet.
    jitter: Duration,
    loss: f64,
    duplication: f64,
    /// The share of ECN-capable packets that it marks.
    marks: f64,
    /// From this time on, it loses all.
    cut_at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Client,
    Box,
    Server,
}

/// The box.
#[derive(Clone, Debug)]
struct Spoofing {
    policy: Policy,
    connect: Connect,
    /// Ends that are behind a hop, and its rate.
    hop: Option<(Vec<Place>, HopRate)>,
    /// What all connections may hold.
    memory: Option<u64>,
    /// The connection moves to another box at these times.
    moves: Vec<Move>,
    /// Segments in a packet of the box. With several, packets come to it in bursts.
    segments: u16,
}

#[derive(Clone, Copy, Debug)]
struct Move {
    at: Time,
    /// The clock of the other box shows so much more than that of the world.
    ahead: Duration,
    /// The other box has a hop, too.
    keeps_hop: bool,
    /// All are handed over at once, as to a new version of the same program, and not one after the other.
    is_upgrade: bool,
}

impl Spoofing {
    fn splitter(&self, seed: u64, has_hop: bool) -> Splitter {
        let split = Split { configs: [config(50_000), config(30_000)], policy: self.policy };
        let mut splitter = Splitter::new(BOX, Seed(seed).stream("box"), split);
        if let Some((ends, rate)) = self.hop.as_ref().filter(|_| has_hop) {
            splitter.set_hop(ends.iter().map(|&end| Port(end as u32)).collect(), *rate);
        }
        splitter.relays_mut().set_limits(Limits { memory: self.memory, ..Limits::default() });
        splitter.with_connect(self.connect)
    }

    fn outbox(&self) -> Outbox {
        Outbox { segments: self.segments, ..Outbox::default() }
    }
}

struct World {
    now: Time,
    number: u64,
    flying: BTreeMap<(Time, u64), (Place, Place, Packet)>,
    hosts: [Host<Program>; 2],
    vanish: [Time; 2],
    spoofing: Spoofing,
    splitter: Splitter,
    /// The splitter's clock shows so much more than the world's.
    ahead: Duration,
    /// A burst of packets for the splitter lasts so long, and it is not woken before.
    burst_until: Time,
    /// Packets with data that the splitter has sent to the client.
    to_client: u32,
    paths: [Path; 2],
    random: Random,
}

#[derive(Default)]
struct Sent(Option<Packet>, Vec<Packet>);

impl<A> Outlet<A> for Sent {
    fn packet(&mut self) -> &mut Packet {
        self.0.get_or_insert(Packet::BLANK)
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.1.extend(self.0);
    }
}

fn keep_alive() -> Option<KeepAlive> {
    let seconds = Duration::from_secs;
    Some(KeepAlive { idle: seconds(120), interval: seconds(20), probes: 6 })
}

fn config(receive_window: u32) -> Config {
    Config {
        receive_window: ReceiveWindow::fixed(receive_window),
        keep_alive: keep_alive(),
        time_wait: Duration::from_secs(10),
        ..Config::default()
    }
}

impl World {
    fn new(seed: u64, plans: [Plan; 2], paths: [Path; 2], spoofing: Spoofing) -> World {
        let stream = |name: &str| Seed(seed).stream(name);
        let host = |address: IpAddr| {
            let mut host = Host::new(address, stream(&address.to_string()));
            let settings = host::Settings { keep_closed: true, ..host::Settings::default() };
            host.set(settings);
            host
        };
        let (mut client, mut server) = (host(CLIENT), host(SERVER));
        let of_server = Program::new(1, plans[1]);
        server.listen(PORT, move || {
            (Config { ecn: plans[1].ecn, ..config(40_000) }, of_server.clone())
        });
        client.open(Opening {
            at: Time::ZERO,
            remote: SERVER,
            remote_port: PORT,
            local: None,
            local_port: None,
            config: Config { ecn: plans[0].ecn, ..config(70_000) },
            application: Program::new(0, plans[0]),
        });
        World {
            now: Time::ZERO,
            number: 0,
            flying: BTreeMap::new(),
            hosts: [client, server],
            vanish: plans.map(|plan| plan.vanishes_at.unwrap_or(Time::NEVER)),
            splitter: spoofing.splitter(seed, true),
            spoofing,
            ahead: Duration::ZERO,
            burst_until: Time::ZERO,
            to_client: 0,
            paths,
            random: stream("paths"),
        }
    }

    /// Runs until nothing happens any more, at most until `end`. Returns whether that was before.
    fn run(&mut self, end: Time) -> bool {
        loop {
            let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let hosts = [0, 1].map(|host| match self.has_vanished(host) {
                true => Time::NEVER,
                false => self.hosts[host].poll_timeout(),
            });
            let splitter = match self.splitter.next_wake() {
                Time::NEVER => Time::NEVER,
                at => (at - self.ahead).max(self.burst_until),
            };
            let moves = self.spoofing.moves.first().map_or(Time::NEVER, |one| one.at);
            let next = arrival.min(hosts[0]).min(hosts[1]).min(splitter);
            if next == Time::NEVER {
                return true;
            }
            if moves <= next {
                self.now = moves.max(self.now);
                let next = self.spoofing.moves.remove(0);
                self.hand_over(&next);
                continue;
            }
            if next > end {
                return false;
            }
            self.now = next.max(self.now);
            if arrival == next {
                let (_, (from, to, packet)) = self.flying.pop_first().unwrap();
                self.arrive(from, to, packet);
            } else if let Some(host) = hosts.iter().position(|&at| at == next) {
                self.hosts[host].handle_timeout(self.now);
                self.flush(host);
            } else {
                self.wake();
            }
        }
    }

    fn wake(&mut self) {
        let mut outbox = self.spoofing.outbox();
        self.splitter.wake(self.now + self.ahead, &mut outbox.context());
        self.send_all(outbox);
    }

    /// Moves all split connections to another box, which takes the place of this one.
    fn hand_over(&mut self, to: &Move) {
        let old = self.now + self.ahead;
        let handed = if to.is_upgrade { self.all_at_once(old) } else { self.one_by_one(old) };
        self.ahead = to.ahead;
        self.splitter = self.spoofing.splitter(self.number, to.keeps_hop);
        let (now, relays) = (self.now + self.ahead, self.splitter.relays_mut());
        match handed {
            Handed::OneByOne(snapshots) => {
                snapshots.into_iter().for_each(|snapshot| relays.adopt(now, snapshot).unwrap());
            }
            Handed::AllAtOnce(all) => {
                relays.take_over(now, all, |lost, why| panic!("{lost}: {why}"))
            }
        }
        self.wake();
    }

    fn one_by_one(&mut self, old: Time) -> Handed {
        // The pace over a hop lets a wake that comes earlier send earlier.
        let is_due = self.splitter.next_wake() <= old || self.spoofing.hop.is_some();
        let relays = self.splitter.relays_mut();
        let connections: Vec<_> = relays.connections().collect();
        let half_open = relays.half_open_connections();
        let snapshots: Vec<RelaySnapshot> = connections
            .into_iter()
            .filter_map(|client| {
                let Some(snapshot) = relays.snapshot(old, &client) else {
                    relays.reset(old, &client);
                    return None;
                };
                assert!(relays.remove(old, &client));
                assert_eq!(relays.snapshot(old, &client).map(|_| ()), None);
                Some(sent(&snapshot))
            })
            .collect();
        let mut outbox = self.spoofing.outbox();
        self.splitter.wake(old, &mut outbox.context());
        assert!(half_open > 0 || is_due || outbox.packets.is_empty(), "the ends are told");
        self.send_all(outbox);
        assert_eq!((relays_left(&self.splitter), self.splitter.relays().held()), (0, 0));
        Handed::OneByOne(snapshots)
    }

    fn all_at_once(&mut self, old: Time) -> Handed {
        // The pace over a hop lets a wake that comes earlier send earlier.
        let is_due = self.splitter.next_wake() <= old || self.spoofing.hop.is_some();
        let relays = self.splitter.relays_mut();
        let half_open = relays.half_open_connections();
        relays.reset_half_open(old);
        let mut outbox = self.spoofing.outbox();
        self.splitter.wake(old, &mut outbox.context());
        assert!(half_open > 0 || is_due || outbox.packets.is_empty(), "the ends are told");
        self.send_all(outbox);
        let relays = self.splitter.relays();
        let all = relays.hand_over(old);
        assert_eq!(all.connections().len(), relays.open_connections());
        Handed::AllAtOnce(sent(&all))
    }

    fn has_vanished(&self, host: usize) -> bool {
        self.vanish[host] <= self.now
    }

    fn arrive(&mut self, from: Place, to: Place, mut packet: Packet) {
        let host = match to {
            Place::Client => 0,
            Place::Server => 1,
            Place::Box => {
                let mut outbox = self.spoofing.outbox();
                let port = Some(Port(from as u32));
                let context = &mut outbox.context();
                if self.spoofing.segments > 1 && self.burst_until < self.now {
                    self.burst_until = self.now + Duration::from_millis(1);
                }
                let now = self.now + self.ahead;
                let verdict = self.splitter.packet(now, port, &mut packet, context);
                if verdict == Verdict::Forward {
                    outbox.context().send(packet);
                }
                return self.send_all(outbox);
            }
        };
        if !self.has_vanished(host) {
            self.hosts[host].handle_packet(self.now, &packet);
            self.flush(host);
        }
    }

    fn flush(&mut self, host: usize) {
        let mut sent = Sent::default();
        let _ = self.hosts[host].transmit(self.now, &mut sent);
        let from = [Place::Client, Place::Server][host];
        for packet in sent.1 {
            self.fly(from, Place::Box, packet);
        }
    }

    fn send_all(&mut self, outbox: Outbox) {
        for packet in outbox.into_packets() {
            let to = if packet.ip.destination == CLIENT { Place::Client } else { Place::Server };
            self.to_client += u32::from(to == Place::Client && packet.payload.len > 0);
            self.fly(Place::Box, to, packet);
        }
    }

    fn fly(&mut self, from: Place, to: Place, packet: Packet) {
        let path = self.paths[usize::from(from == Place::Server || to == Place::Server)];
        let copies = if self.random.chance(path.duplication) { 2 } else { 1 };
        for _ in 0..copies {
            let mut packet = packet;
            if packet.ip.ecn != Ecn::NotCapable && self.random.chance(path.marks) {
                packet.ip.ecn = Ecn::Congested;
            }
            if self.random.chance(path.loss) || path.cut_at <= self.now {
                continue;
            }
            let jitter = path.jitter.as_nanos() as f64 * self.random.uniform();
            let at = self.now + path.delay + Duration::from_nanos(jitter as u64);
            self.flying.insert((at, self.number), (from, to, packet));
            self.number += 1;
        }
    }

    fn program(&self, host: usize) -> Option<&Program> {
        self.hosts[host].connections().next().map(|(_, _, program)| program)
    }

    /// Checks that each end has got all. What it says last may still be lost, so that it is answered by a
    /// reset once its peer has forgotten the connection.
    fn check_complete(&self) -> Result<(), TestCaseError> {
        for host in [0, 1] {
            let received = self.program(host).map(|program| program.received);
            let sent = self.program(1 - host).map(|peer| peer.plan.size);
            prop_assert!(sent.is_some() && received == sent, "end {}: {:?}", host, received);
        }
        Ok(())
    }

    /// Checks what each end has got.
    fn check(&self, teardown: Teardown) -> Result<(), TestCaseError> {
        for host in [0, 1] {
            let Some((_, connection, program)) = self.hosts[host].connections().next() else {
                continue;
            };
            prop_assert_eq!(program.wrong, 0, "end {} got other bytes", host);
            let sent = self.program(1 - host).map_or(0, |peer| peer.plan.size);
            prop_assert!(program.received <= sent, "end {} got more than was sent", host);
            if self.has_vanished(host) {
                continue;
            }
            prop_assert_eq!(connection.state(), State::Closed, "end {} hangs", host);
            let Some(events) = program.over else {
                prop_assert!(program.is_aborted, "end {} was not told the end", host);
                continue;
            };
            let failed = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
            if !events.intersects(failed) && !program.is_aborted {
                prop_assert!(program.is_ended, "end {} ended without its peer's FIN", host);
                prop_assert_eq!(program.received, sent, "end {} misses bytes", host);
                if teardown == Teardown::EndToEnd
                    && let Some(peer) = self.program(1 - host)
                    && !self.has_vanished(1 - host)
                    && !peer.is_aborted
                {
                    let size = program.plan.size;
                    prop_assert_eq!(peer.received, size, "end {} believes that all arrived", host);
                }
            }
        }
        Ok(())
    }
}

/// What goes to another box.
enum Handed {
    OneByOne(Vec<RelaySnapshot>),
    AllAtOnce(Handover),
}

/// As it would be sent.
fn sent<T: Serialize + DeserializeOwned>(state: &T) -> T {
    rmp_serde::from_slice(&rmp_serde::to_vec_named(state).unwrap()).unwrap()
}

/// Halves and relays that are left in a box.
fn relays_left(splitter: &Splitter) -> usize {
    splitter.relays().host().open_connections() + splitter.relays().connections().count()
}

fn millis(most: u64) -> impl Strategy<Value = Duration> {
    (0..=most).prop_map(Duration::from_millis)
}

fn path() -> impl Strategy<Value = Path> {
    let loss = prop_oneof![2 => Just(0.0), 2 => 0.0..0.05, 1 => 0.0..0.3];
    let duplication = prop_oneof![3 => Just(0.0), 1 => 0.0..0.2];
    let jitter = prop_oneof![2 => Just(Duration::ZERO), 1 => millis(100)];
    let cut = prop_oneof![5 => Just(Time::NEVER), 1 => millis(8000).prop_map(|at| Time::ZERO + at)];
    let marks = prop_oneof![2 => Just(0.0), 1 => 0.0..0.2];
    (millis(300), jitter, loss, duplication, marks, cut).prop_map(
        |(delay, jitter, loss, duplication, marks, cut_at)| Path {
            delay,
            jitter,
            loss,
            duplication,
            marks,
            cut_at,
        },
    )
}

fn plan(fails: bool) -> impl Strategy<Value = Plan> {
    let size = prop_oneof![Just(0), 1..3000_u64, 1..200_000_u64];
    let reads_every = prop_oneof![4 => Just(None), 1 => (50..2000_u64).prop_map(Some)];
    let time = || (0..8000_u64).prop_map(|millis| Some(Time::ZERO + Duration::from_millis(millis)));
    let failing = u32::from(fails);
    let aborts_at = prop_oneof![4 => Just(None), failing => time()];
    let vanishes_at = prop_oneof![4 => Just(None), failing => time()];
    let ecn = prop_oneof![Just(EcnMode::Off), Just(EcnMode::Classic), Just(EcnMode::Accurate)];
    (size, any::<bool>(), reads_every, aborts_at, ecn, vanishes_at).prop_map(
        |(size, waits, reads_every, aborts_at, ecn, vanishes_at)| Plan {
            size,
            waits,
            reads_every: reads_every.map(Duration::from_millis),
            aborts_at,
            ecn,
            vanishes_at,
        },
    )
}

/// Two ends of which one closes first.
fn plans(fails: bool) -> impl Strategy<Value = [Plan; 2]> {
    (plan(fails), plan(fails)).prop_map(|(client, server)| {
        let waits = server.waits && !client.waits;
        [client, Plan { waits, ..server }]
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let capacity = prop_oneof![Just(None), (2000..100_000_u64).prop_map(Some)];
    let teardown = prop_oneof![Just(Teardown::Spoofed), Just(Teardown::EndToEnd)];
    (capacity, teardown).prop_map(|(capacity, teardown)| Policy {
        capacity,
        teardown,
        ..Policy::default()
    })
}

fn hop() -> impl Strategy<Value = Option<(Vec<Place>, HopRate)>> {
    use Place::{Client, Server};
    let ends = prop_oneof![Just(vec![Client]), Just(vec![Server]), Just(vec![Client, Server])];
    // Most of them hold data back.
    let bps = prop_oneof![2 => 10_000..300_000_u64, 1 => 10_000..100_000_000_u64];
    let given = bps.prop_map(|bps| HopRate::Given(Rate::from_bps(bps).unwrap()));
    let rate = prop_oneof![2 => given, 1 => Just(HopRate::Measured)];
    prop_oneof![1 => Just(None), 2 => (ends, rate).prop_map(Some)]
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    // Most transfers take no longer than two seconds.
    let at = prop_oneof![2 => millis(2000), 1 => millis(8000)];
    let one = (at, millis(100_000), any::<bool>(), any::<bool>());
    prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec(one, 1..4)].prop_map(
        |mut moves| {
            moves.sort_unstable_by_key(|&(at, ..)| at);
            let each = |(at, ahead, keeps_hop, is_upgrade)| {
                let at = Time::ZERO + at;
                Move { at, ahead, keeps_hop, is_upgrade }
            };
            moves.into_iter().map(each).collect()
        },
    )
}

fn spoofing() -> impl Strategy<Value = Spoofing> {
    let connect = prop_oneof![2 => Just(Connect::EndToEnd), 1 => Just(Connect::First), 1 => Just(Connect::AtOnce)];
    let memory = prop_oneof![2 => Just(None), 1 => (1..200_000_u64).prop_map(Some)];
    let segments = prop_oneof![2 => Just(1), 1 => Just(44)];
    (policy(), connect, hop(), memory, moves(), segments).prop_map(
        |(policy, connect, hop, memory, moves, segments)| Spoofing {
            policy,
            connect,
            hop,
            memory,
            moves,
            segments,
        },
    )
}

proptest! {
    // A case takes a fifth of a millisecond: there are sixteen times as many as of other tests, unless
    // PROPTEST_CASES says how many.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 16,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_stream_arrives_whole_or_open_ends_learn_of_the_failure(
        seed in any::<u64>(),
        plans in prop_oneof![plans(false), plans(true)],
        paths in [path(), path()],
        spoofing in spoofing(),
    ) {
        let (teardown, memory) = (spoofing.policy.teardown, spoofing.memory);
        let is_calm = spoofing.moves.is_empty()
            && paths.iter().all(|path| path.cut_at == Time::NEVER && path.loss < 0.05)
            && plans.iter().all(|plan| plan.aborts_at.is_none() && plan.vanishes_at.is_none());
        let mut world = World::new(seed, plans, paths, spoofing);
        let quiet = world.run(Time::ZERO + Duration::from_secs(4 * 3600));
        prop_assert!(quiet, "it goes on");
        world.check(teardown)?;
        if is_calm {
            world.check_complete()?;
        }
        prop_assert_eq!(relays_left(&world.splitter), 0, "a half or a relay is left");
        let relays = world.splitter.relays();
        let statistics = relays.statistics();
        prop_assert_eq!(statistics.split + statistics.adopted, statistics.over + statistics.removed);
        prop_assert_eq!(relays.held(), 0);
        if let Some(memory) = memory {
            // One user leaves half of it; then each direction has its least, and a window.
            let most = memory / 2 + 2 * (16 << 10) + 80_000 + 2 * 1460;
            prop_assert!(statistics.held_at_most <= most, "{} of {}", statistics.held_at_most, most);
        }
    }
}

#[test]
fn what_comes_in_a_burst_leaves_in_units() {
    let path = |delay| Path {
        delay,
        jitter: Duration::ZERO,
        loss: 0.0,
        duplication: 0.0,
        marks: 0.0,
        cut_at: Time::NEVER,
    };
    let plan = |size| Plan {
        size,
        waits: false,
        reads_every: None,
        aborts_at: None,
        ecn: EcnMode::default(),
        vanishes_at: None,
    };
    let packets = |segments| {
        let spoofing = Spoofing {
            policy: Policy::default(),
            connect: Connect::EndToEnd,
            hop: None,
            memory: None,
            moves: Vec::new(),
            segments,
        };
        let paths = [path(Duration::from_millis(1)); 2];
        let mut world = World::new(1, [plan(0), plan(500_000)], paths, spoofing);
        assert!(world.run(Time::ZERO + Duration::from_secs(600)));
        world.check_complete().unwrap();
        world.to_client
    };
    let (one_by_one, in_units) = (packets(1), packets(44));
    assert!(one_by_one >= 500_000 / 1460);
    assert!(4 * in_units < one_by_one, "{in_units} packets, and {one_by_one} one by one");
}
