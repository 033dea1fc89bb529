//! A mobile host that moves between base stations at any time, which may restart, on paths that lose,
//! duplicate and reorder packets: each stream arrives whole, in order and once, or every end whose
//! connection is open learns of the failure; and nothing is left in any base station.

use base::settings::{Bytes, Span};
use base::{Duration, Rate, Seed, Time};
use core::net::IpAddr;
use host::{Application, Context, LinkEvent, Middlebox, Opening, Port, Verdict};
use link::{ErrorModel, Impairments, Interval, Intervals, Reordering, Uniform};
use middlebox::{
    BaseStation, Contents, HopTransport, Impaired, Impairment, Mobile, MobileAgent, Protocol,
    Station,
};
use proptest::prelude::*;
use relay::{Handoff, HopRate, Teardown};
use sim::{LinkId, NodeId, Roaming, Topology, World};
use std::sync::{Arc, Mutex};
use tcp::{Config, Connection, Events, KeepAlive, State};
use wire::{Packet, Payload};

const PORT: u16 = 80;

/// What one end does.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Bytes that it sends, and closes.
    size: u64,
    /// It closes only when the peer has.
    waits: bool,
    /// It resets the connection at this time.
    aborts_at: Option<Time>,
}

/// The program at one end of a connection.
#[derive(Clone, Debug)]
struct Program {
    plan: Plan,
    /// Its own stream is this one, the peer's the other.
    stream: u32,
    received: u64,
    wrong: u64,
    is_ended: bool,
    is_aborted: bool,
    next: Time,
    over: Option<Events>,
}

impl Program {
    fn new(stream: u32, plan: Plan) -> Program {
        Program {
            plan,
            stream,
            received: 0,
            wrong: 0,
            is_ended: false,
            is_aborted: false,
            next: Time::NEVER,
            over: None,
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
            self.next = self.plan.aborts_at.unwrap_or(Time::NEVER).max(now);
        }
        while let Some(payload) = connection.read() {
            let expected = (self.stream ^ 1, self.received);
            self.wrong += u64::from((payload.stream, payload.offset) != expected);
            self.received += u64::from(payload.len);
        }
        self.is_ended |= events.contains(Events::PEER_CLOSED);
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

    fn wake(&mut self, _: Time, connection: &mut Connection) {
        self.is_aborted = true;
        self.next = Time::NEVER;
        connection.abort();
    }
}

/// A connection.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    /// The mobile host opens it.
    of_mobile: bool,
    start: Time,
    /// Of the opener and of its peer.
    plans: [Plan; 2],
}

#[derive(Clone, Copy, Debug)]
struct Path {
    delay: Duration,
    loss: f64,
    duplication: f64,
    reordering: f64,
}

impl Path {
    fn config(self, bps: u64) -> link::Config {
        link::Config {
            rate: Rate::from_bps(bps),
            delay: self.delay,
            errors: ErrorModel::from(Uniform { bit: 0.0, packet: self.loss }),
            impairments: Impairments {
                duplication: self.duplication,
                reordering: Reordering {
                    probability: self.reordering,
                    delay: Duration::from_millis(20),
                },
                ..Impairments::default()
            },
            ..link::Config::default()
        }
    }
}

/// A stay at a base station, and the time away afterwards.
#[derive(Clone, Copy, Debug)]
struct Stay {
    station: usize,
    stays: Duration,
    pause: Duration,
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    transfers: Vec<Transfer>,
    wireless: Path,
    wired: Path,
    stays: Vec<Stay>,
    /// Restarts of base stations.
    restarts: Vec<(usize, Time)>,
    semantics: Teardown,
    cache: u64,
    hop: HopTransport,
    /// What SRP is told of the hops to the base stations, and of those in the other direction.
    rates: [HopRate; 2],
    shares: [bool; 2],
    /// What becomes of the association with SRP, as the mobile host and the base stations see it.
    handoffs: [Handoff; 2],
    /// What becomes of control messages where they arrive, beside what the path does to all packets.
    control: Impairment,
}

/// A box that the test keeps a hand on.
struct Shared<B>(Arc<Mutex<B>>);

impl<B: Middlebox> Middlebox for Shared<B> {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        self.0.lock().unwrap().packet(now, from, packet, cx)
    }

    fn link(&mut self, now: Time, port: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        self.0.lock().unwrap().link(now, port, event, cx);
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.0.lock().unwrap().held_payloads(held);
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.0.lock().unwrap().counts(count);
    }

    fn next_wake(&self) -> Time {
        self.0.lock().unwrap().next_wake()
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.0.lock().unwrap().wake(now, cx);
    }
}

struct Run {
    world: World<Program>,
    mobile: NodeId,
    server: NodeId,
    nodes: Vec<NodeId>,
    stations: Vec<Arc<Mutex<BaseStation>>>,
    contents: Contents,
}

/// The settings of both ends. A reset may be lost: an end that waits for data learns of it by its
/// keep-alive.
fn config() -> Config {
    Config {
        time_wait: Duration::from_secs(10),
        retries: 8,
        keep_alive: Some(keep_alive()),
        ..Config::default()
    }
}

impl Case {
    /// Where the mobile host is; at the last base station for ever.
    fn places(&self, links: &[LinkId]) -> Intervals<LinkId> {
        let mut at = Duration::ZERO;
        let mut list = Vec::new();
        for (n, stay) in self.stays.iter().enumerate() {
            let is_last = n + 1 == self.stays.len();
            let end = if is_last { Duration::MAX } else { at + stay.stays };
            list.push(Interval { start: at, end, value: links[stay.station] });
            if !is_last {
                at = end + stay.pause;
            }
        }
        Intervals::new(list, None).unwrap()
    }

    fn build(&self) -> Run {
        let mut topology = Topology::new();
        let [mobile, server, campus] = ["mobile", "server", "campus"].map(|n| topology.add_node(n));
        let stations = ["left", "middle", "right"].map(|name| topology.add_node(name));
        let wired = self.wired.config(10_000_000);
        topology.add_link(campus, server, wired.clone(), wired.clone());
        let links = stations.map(|station| {
            topology.add_link(station, campus, wired.clone(), wired.clone());
            let wireless = self.wireless.config(500_000);
            topology.add_link(mobile, station, wireless.clone(), wireless).0
        });
        topology.add_roaming(Roaming {
            notifies: Vec::new(),
            ..Roaming::new(mobile, self.places(&links))
        });
        let mut world = topology.build(Seed(self.seed));
        let contents = Contents::default();
        let station = Station {
            cache: Bytes(self.cache),
            semantics: self.semantics,
            rate: self.rates[1],
            share: self.shares[1],
            handoff: self.handoffs[1],
            ..Station::default()
        };
        let boxes = stations.iter().enumerate().map(|(n, &node)| {
            let random = Seed(self.seed).stream(&format!("station {n}"));
            let own = node.addresses(0);
            let tcp = Config { keep_alive: Some(keep_alive()), retries: 8, ..Config::default() };
            let base = BaseStation::new(station.clone(), own, &tcp, contents.clone(), random);
            let base = Arc::new(Mutex::new(base));
            let random = Seed(self.seed).stream(&format!("control {n}"));
            world.add_box(node, Box::new(Impaired::new(self.control.clone(), None, random)));
            world.add_box(node, Box::new(Shared(base.clone())));
            base
        });
        let boxes: Vec<_> = boxes.collect();
        let settings = Mobile {
            hop: self.hop,
            rate: self.rates[0],
            share: self.shares[0],
            handoff: self.handoffs[0],
            semantics: self.semantics,
            cache: Bytes(self.cache),
            ..Mobile::default()
        };
        let random = Seed(self.seed).stream("agent");
        let mut agent =
            MobileAgent::new(&settings, mobile.addresses(0), &Config::default(), random);
        agent.on_attached(Time::ZERO, stations[self.stays[0].station].address());
        let random = Seed(self.seed).stream("control");
        world.add_box(mobile, Box::new(Impaired::new(self.control.clone(), None, random)));
        world.add_box(mobile, Box::new(agent));
        self.open(&mut world, mobile, server);
        let nodes = stations.into_iter().chain([mobile]).collect();
        Run { world, mobile, server, nodes, stations: boxes, contents }
    }

    fn open(&self, world: &mut World<Program>, mobile: NodeId, server: NodeId) {
        for (n, transfer) in self.transfers.iter().enumerate() {
            let (from, to) = if transfer.of_mobile { (mobile, server) } else { (server, mobile) };
            let [opener, peer] = transfer.plans;
            let stream = 2 * n as u32;
            let port = PORT + n as u16;
            let program = Program::new(stream + 1, peer);
            world.host_mut(to).listen(port, move || (config(), program.clone()));
            world.host_mut(from).open(Opening {
                at: transfer.start,
                remote: to.address(),
                remote_port: port,
                local: None,
                local_port: None,
                config: config(),
                application: Program::new(stream, opener),
            });
        }
        world.wake(mobile);
        world.wake(server);
    }
}

fn keep_alive() -> KeepAlive {
    let (idle, interval) = (Duration::from_secs(60), Duration::from_secs(10));
    KeepAlive { idle, interval, probes: 6 }
}

impl Run {
    fn programs(&self) -> Vec<(IpAddr, u32, State, Program)> {
        let mut all = Vec::new();
        for node in [self.mobile, self.server] {
            for (_, connection, program) in self.world.host(node).connections() {
                all.push((node.address(), program.stream, connection.state(), program.clone()));
            }
        }
        all.sort_unstable_by_key(|&(_, stream, ..)| stream);
        all
    }

    /// Whether no connection is open, and no base station has one.
    fn is_over(&self) -> bool {
        let open = |&node: &NodeId| self.world.host(node).open_connections();
        [self.mobile, self.server].iter().all(|node| open(node) == 0)
            && self.stations.iter().all(|station| station.lock().unwrap().is_quiet())
    }

    /// What the boxes counted, for messages.
    fn counts(&self) -> String {
        let nodes = self.nodes.iter();
        let counts =
            nodes.map(|&node| format!("{} {:?}", node.address(), self.world.box_counts(node)));
        counts.collect::<Vec<_>>().join("\n")
    }

    /// Checks what each end has got.
    fn check(&self, case: &Case) -> Result<(), TestCaseError> {
        let all = self.programs();
        // A peer may have accepted the connection twice: the first was given up during a handoff.
        let has_all = |stream: u32, size: u64| {
            let mut peers = all.iter().filter(|one| one.1 == stream ^ 1).map(|one| &one.3);
            peers.any(|peer| peer.received == size || peer.is_aborted)
        };
        let failed = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
        for (address, stream, state, program) in &all {
            prop_assert_eq!(program.wrong, 0, "{} got other bytes of {}", address, stream);
            let plans = case.transfers[*stream as usize / 2].plans;
            let sent = plans[1 - *stream as usize % 2].size;
            prop_assert!(program.received <= sent);
            let counts = self.counts();
            prop_assert_eq!(*state, State::Closed, "{} hangs in {}: {}", address, stream, counts);
            let Some(events) = program.over else {
                prop_assert!(program.is_aborted, "{} was not told the end of {}", address, stream);
                continue;
            };
            if events.intersects(failed) || program.is_aborted {
                continue;
            }
            prop_assert!(program.is_ended, "{} of {} ended without a FIN", address, stream);
            prop_assert_eq!(program.received, sent, "{} misses bytes of {}", address, stream);
            if case.semantics == Teardown::EndToEnd {
                let size = program.plan.size;
                prop_assert!(has_all(*stream, size), "{} believes in {}", address, stream);
            }
        }
        Ok(())
    }
}

fn millis(range: core::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn path(most_loss: f64, most_delay: u64) -> impl Strategy<Value = Path> {
    let loss = prop_oneof![2 => Just(0.0), 2 => 0.0..most_loss];
    let duplication = prop_oneof![3 => Just(0.0), 1 => 0.0..0.2];
    let reordering = prop_oneof![3 => Just(0.0), 1 => 0.0..0.2];
    (millis(0..most_delay), loss, duplication, reordering).prop_map(
        |(delay, loss, duplication, reordering)| Path { delay, loss, duplication, reordering },
    )
}

fn plan() -> impl Strategy<Value = Plan> {
    let size = prop_oneof![Just(0), 1..3000_u64, 1..200_000_u64];
    let at = millis(0..8000).prop_map(|at| Some(Time::ZERO + at));
    let aborts_at = prop_oneof![8 => Just(None), 1 => at];
    (size, any::<bool>(), aborts_at).prop_map(|(size, waits, aborts_at)| Plan {
        size,
        waits,
        aborts_at,
    })
}

fn transfer() -> impl Strategy<Value = Transfer> {
    (any::<bool>(), millis(0..4000), plan(), plan()).prop_map(|(of_mobile, start, one, other)| {
        let waits = other.waits && !one.waits;
        let plans = [one, Plan { waits, ..other }];
        Transfer { of_mobile, start: Time::ZERO + start, plans }
    })
}

fn stays() -> impl Strategy<Value = Vec<Stay>> {
    let stays = prop_oneof![1 => millis(1..100), 2 => millis(100..3000)];
    let pause = prop_oneof![1 => Just(Duration::ZERO), 1 => millis(1..200), 1 => millis(200..5000)];
    let stay = (0..3_usize, stays, pause).prop_map(|(station, stays, pause)| Stay {
        station,
        stays,
        pause,
    });
    prop::collection::vec(stay, 1..7)
}

/// None, or up to half of the messages of mobile hosts and base stations, their transfers not.
fn control() -> impl Strategy<Value = Impairment> {
    let none = Impairment { protocol: Protocol::Udp, ports: vec![59_434], ..Impairment::default() };
    let some = (0.0..0.5, 0.0..0.5, 0.0..0.5, millis(1..3000));
    let some = some.prop_map(move |(loss, duplication, reordering, later)| Impairment {
        loss,
        duplication,
        reordering,
        reordering_delay: Span(later),
        ..none.clone()
    });
    prop_oneof![2 => Just(Impairment::default()), 1 => some]
}

/// Measured, that of the hop, or a wrong one.
fn rate() -> impl Strategy<Value = HopRate> {
    let given = |bps| HopRate::Given(Rate::from_bps(bps).unwrap());
    let wrong = prop_oneof![50_000..500_000_u64, 500_000..5_000_000_u64];
    prop_oneof![2 => Just(HopRate::Measured), 1 => Just(given(500_000)), 1 => wrong.prop_map(given)]
}

fn case() -> impl Strategy<Value = Case> {
    let restart = (0..3_usize, millis(0..8000)).prop_map(|(n, at)| (n, Time::ZERO + at));
    let restarts = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(restart, 1..3)];
    let semantics = prop_oneof![Just(Teardown::Spoofed), Just(Teardown::EndToEnd)];
    let paths = (path(0.2, 50), path(0.1, 100));
    let transfers = prop::collection::vec(transfer(), 1..4);
    let hop = prop_oneof![Just(HopTransport::Tcp), Just(HopTransport::Srp)];
    // Both the same, as they should be, or not.
    let handoffs = prop_oneof![
        2 => Just([Handoff::Restored; 2]),
        3 => Just([Handoff::New; 2]),
        1 => Just([Handoff::Restored, Handoff::New]),
        1 => Just([Handoff::New, Handoff::Restored]),
    ];
    let srp = ([rate(), rate()], any::<[bool; 2]>(), handoffs);
    let rest = (restarts, semantics, 2000..100_000_u64, (hop, srp, control()));
    (any::<u64>(), transfers, paths, stays(), rest).prop_map(
        |(seed, transfers, (wireless, wired), stays, (mut restarts, semantics, cache, rest))| {
            restarts.sort_unstable_by_key(|&(_, at)| at);
            let (hop, (rates, shares, handoffs), control) = rest;
            Case {
                seed,
                transfers,
                wireless,
                wired,
                stays,
                restarts,
                semantics,
                cache,
                hop,
                rates,
                shares,
                handoffs,
                control,
            }
        },
    )
}

/// The mobile host opens connections during quick handoffs, and nothing is lost but control messages and what is in flight
/// at a handoff. No end gives up.
fn quick_case() -> impl Strategy<Value = Case> {
    let stays = prop::collection::vec(
        (0..3_usize, millis(1..900), prop_oneof![3 => Just(Duration::ZERO), 1 => millis(1..100)]),
        2..12,
    );
    // Each base station is visited: the link to one that is not would always be there.
    let all = Just([0, 1, 2]).prop_shuffle();
    let stays = (stays, all, millis(1..500)).prop_map(|(stays, all, last)| {
        let stay = |(station, stays, pause)| Stay { station, stays, pause };
        let all = all.map(|station| (station, last, Duration::ZERO));
        stays.into_iter().chain(all).map(stay).collect::<Vec<_>>()
    });
    let some = (0.0..0.5, 0.0..0.5, 0.0..0.5, millis(1..3000));
    let control = some.prop_map(|(loss, duplication, reordering, later)| Impairment {
        protocol: Protocol::Udp,
        ports: vec![59_434],
        loss,
        duplication,
        reordering,
        reordering_delay: Span(later),
        ..Impairment::default()
    });
    let transfers = prop::collection::vec(transfer(), 1..6);
    (case(), stays, control, transfers).prop_map(|(case, stays, control, transfers)| {
        let whole = |path| Path { loss: 0.0, ..path };
        let lasting = |plan| Plan { aborts_at: None, ..plan };
        let of_mobile =
            |it: Transfer| Transfer { of_mobile: true, plans: it.plans.map(lasting), ..it };
        let transfers = transfers.into_iter().map(of_mobile).collect();
        Case {
            transfers,
            wireless: whole(case.wireless),
            wired: whole(case.wired),
            stays,
            restarts: Vec::new(),
            control,
            ..case
        }
    })
}

impl Run {
    /// Checks that no end which has opened a connection has failed before all had arrived, in both directions. One that
    /// has closed may fail afterwards: the base station forgets what only waits in TIME-WAIT.
    fn check_none_failed(&self, case: &Case) -> Result<(), TestCaseError> {
        let failed = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
        let all = self.programs();
        for (address, stream, _, opener) in all.iter().filter(|it| it.1.is_multiple_of(2)) {
            let plans = case.transfers[*stream as usize / 2].plans;
            let mut peers = all.iter().filter(|one| one.1 == stream ^ 1).map(|one| &one.3);
            let is_whole = opener.received == plans[1].size
                && opener.is_ended
                && peers.any(|peer| peer.received == plans[0].size);
            let has_failed = opener.over.is_none_or(|events| events.intersects(failed));
            prop_assert!(!has_failed || is_whole, "{address} of {stream}: {opener:?}");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_connection_of_the_mobile_host_is_reset_while_only_messages_are_lost(case in quick_case()) {
        let mut run = case.build();
        run.world.run_until(Time::ZERO + Duration::from_secs(600));
        run.check(&case)?;
        run.check_none_failed(&case)?;
        prop_assert!(run.is_over());
    }
}

proptest! {
    // Eight times as many as of other tests, unless PROPTEST_CASES says how many.
    #![proptest_config(ProptestConfig {
        cases: match std::env::var_os("PROPTEST_CASES") {
            Some(_) => ProptestConfig::default().cases,
            None => 8 * ProptestConfig::default().cases,
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn streams_survive_handoffs_whole_or_open_ends_learn_of_the_failure(case in case()) {
        let mut run = case.build();
        for &(station, at) in &case.restarts {
            run.world.run_until(at);
            run.stations[station].lock().unwrap().restart();
        }
        // Where a fifth of the packets is lost, a transfer may take hours.
        for minutes in [10, 30, 120, 600] {
            run.world.run_until(Time::ZERO + Duration::from_secs(60 * minutes));
            if run.is_over() {
                break;
            }
        }
        run.check(&case)?;
        for (n, station) in run.stations.iter().enumerate() {
            prop_assert!(station.lock().unwrap().is_quiet(), "station {} has state left", n);
        }
        prop_assert!(run.contents.is_empty(), "bytes are left");
    }
}

/// The station to which the host returns has begun to open a connection of the same ends, when the host was
/// there for a moment before; the other station has opened it meanwhile.
#[test]
fn a_connection_that_is_handed_over_replaces_one_that_is_being_opened() {
    let millis = Duration::from_millis;
    let path =
        |delay, duplication| Path { delay: millis(delay), loss: 0.0, duplication, reordering: 0.0 };
    let stay = |station, stays, pause| Stay { station, stays: millis(stays), pause: millis(pause) };
    let plan = |size, waits| Plan { size, waits, aborts_at: None };
    let case = Case {
        seed: 0,
        transfers: vec![Transfer {
            of_mobile: false,
            start: Time::ZERO + millis(2619),
            plans: [plan(70_650, false), plan(0, true)],
        }],
        wireless: path(33, 0.0),
        wired: path(86, 0.188_215_176_078_257_7),
        stays: vec![
            stay(1, 1, 3645),
            stay(1, 60, 0),
            stay(0, 1, 1050),
            stay(0, 1102, 0),
            stay(1, 1, 0),
        ],
        restarts: Vec::new(),
        semantics: Teardown::Spoofed,
        cache: 2000,
        hop: HopTransport::Srp,
        rates: [HopRate::Measured; 2],
        shares: [false; 2],
        handoffs: [Handoff::Restored; 2],
        control: Impairment::default(),
    };
    let mut run = case.build();
    run.world.run_until(Time::ZERO + Duration::from_secs(600));
    run.check(&case).unwrap();
    assert!(run.is_over());
}
