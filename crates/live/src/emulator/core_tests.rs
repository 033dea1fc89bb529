//! Tests of the emulator's decisions.

use super::*;
use base::{Duration, Rate};
use link::{
    Arrival, Discipline, Drr, ErrorModel, Fate, Impairments, Interval, Intervals, Jitter,
    JitterShape, Queue, Reordering, Uniform, WhenDown,
};

/// When, by which direction, how long, and what comes first in it.
type Sent = (Time, usize, usize, u8);
/// When, by which direction, what came first in it, and in what state; `None` if it was dropped.
type Arrived = (Time, usize, u8, Option<Fate>);

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Everything goes wrong on it.
fn bad() -> Config {
    Config {
        rate: Rate::from_bps(1_000_000),
        delay: millis(20),
        queue: Queue::Packets(20),
        errors: ErrorModel::from(Uniform { bit: 2e-5, packet: 0.1 }),
        impairments: Impairments {
            reordering: Reordering { probability: 0.1, delay: millis(30) },
            duplication: 0.1,
            jitter: Jitter { bound: millis(5), shape: JitterShape::Bell, reorders: true },
        },
        when_down: Some(WhenDown::KEEP),
        ..Config::default()
    }
}

/// Names of the directions of two links.
const NAMES: [&str; 4] = ["link.a->b", "link.b->a", "link.b->c", "link.c->b"];

fn core(seed: u64, config: &Config, outages: Option<&Outages>) -> Core {
    let directions = NAMES.map(|name| (name.to_owned(), config.clone()));
    let outages: Vec<_> = outages.map(|outages| (0, outages.clone())).into_iter().collect();
    Core::new(Seed(seed), directions.into(), &outages, Vec::new())
}

/// A sequence that is a little more than the links can carry.
fn sequence() -> Vec<Sent> {
    let mut random = Seed(7).stream("sequence");
    let mut now = Time::ZERO;
    let packet = |number: u16| {
        now += random.exponential_span(Duration::from_micros(1400));
        let len = 40 + (random.bits() % 1400) as usize;
        (now, (random.bits() % 4) as usize, len, number as u8)
    };
    (0..2000).map(packet).collect()
}

/// What becomes of a sequence.
fn drive(core: &mut Core, sequence: &[Sent]) -> (Vec<Arrived>, Vec<(Time, usize, bool)>) {
    let (mut arrived, mut turned) = (Vec::new(), Vec::new());
    let mut until = |core: &mut Core, end: Time| {
        while core.next() <= end && core.next() < Time::NEVER {
            let now = core.next();
            match core.wake() {
                None => {}
                Some(Happening::Switched(acted)) => {
                    turned.extend(acted.turns.iter().map(|turn| (now, turn.link, turn.up)));
                }
                Some(Happening::Packet { direction, output }) => {
                    let (packet, fate) = match output {
                        Output::Arrived(Arrival { packet, fate })
                        | Output::Copied(Arrival { packet, fate }) => (packet, Some(fate)),
                        Output::Dropped(packet) | Output::Cut(packet) => (packet, None),
                    };
                    arrived.push((now, direction, core.buffers.get(packet)[0], fate));
                    if !matches!(output, Output::Copied(_)) {
                        core.buffers.release(packet);
                    }
                }
            }
        }
    };
    for &(now, direction, len, first) in sequence {
        until(core, now);
        core.enter(now, direction, &vec![first; len]);
    }
    until(core, Time::ZERO + Duration::from_secs(1000));
    (arrived, turned)
}

fn random_outages() -> Outages {
    Outages::Random { up: millis(400), down: millis(50) }
}

#[test]
fn the_same_sequence_gets_the_same_decisions_in_the_same_order() {
    let run = |seed| drive(&mut core(seed, &bad(), Some(&random_outages())), &sequence());
    let once = run(3);
    assert_eq!(once, run(3));
    assert_ne!(once, run(4));
    // It is worth comparing: everything has happened.
    let (arrived, turned) = once;
    assert!(turned.len() > 5);
    for fate in [Fate::Intact, Fate::Corrupted, Fate::Lost] {
        assert!(arrived.iter().filter(|it| it.3 == Some(fate)).count() > 50, "{fate:?}");
    }
}

#[test]
fn decisions_are_those_of_the_lab() {
    // Its links are made with these names, and called at these times.
    let mut core = core(3, &bad(), None);
    drive(&mut core, &sequence());
    for (direction, name) in NAMES.into_iter().enumerate() {
        let mut link = Link::<u32>::new(&bad(), Seed(3), name);
        for (now, _, len, _) in sequence().into_iter().filter(|sent| sent.1 == direction) {
            while link.next_event() <= now {
                link.wake(link.next_event());
            }
            let _ = link.enqueue(now, 0, len as u32, wire::Ecn::NotCapable);
        }
        while link.next_event() < Time::NEVER {
            link.wake(link.next_event());
        }
        assert_eq!(core.statistics(direction), link.statistics(), "{name}");
    }
}

#[test]
fn what_enters_leaves_and_nothing_is_kept() {
    let mut core = core(3, &bad(), Some(&random_outages()));
    let (arrived, _) = drive(&mut core, &sequence());
    let all: Vec<_> = (0..4).map(|direction| core.statistics(direction)).collect();
    let sum = |part: fn(&Statistics) -> u64| all.iter().map(part).sum::<u64>();
    assert_eq!(sum(|it| it.packets + it.dropped), 2000);
    assert!(sum(|it| it.dropped) > 50 && sum(|it| it.duplicated) > 50);
    assert_eq!(arrived.len() as u64, sum(|it| it.packets + it.duplicated));
    assert_eq!(core.buffers.len(), 0);
    assert!((0..4).all(|direction| core.unfinished(direction) == 0));
}

#[test]
fn both_directions_of_a_link_are_down_in_an_outage() {
    let [second, third] = [1, 2].map(Duration::from_secs);
    let down = Intervals::new([Interval { start: second, end: third, value: () }], None).unwrap();
    let config = Config { when_down: Some(WhenDown::DROP), ..Config::default() };
    let mut core = core(1, &config, Some(&Outages::At(down)));
    let sequence: Vec<Sent> = (0..120)
        .map(|number| {
            (Time::ZERO + millis(25 * u64::from(number) + 5), number as usize % 4, 100, number)
        })
        .collect();
    let (arrived, turned) = drive(&mut core, &sequence);
    let [second, third] = [second, third].map(|at| Time::ZERO + at);
    assert_eq!(turned, [(second, 0, false), (third, 0, true)]);
    let expected = sequence
        .iter()
        .filter(|(at, direction, ..)| *direction >= 2 || *at < second || *at >= third);
    let expected: Vec<u8> = expected.map(|it| it.3).collect();
    assert_eq!(arrived.iter().map(|it| it.2).collect::<Vec<u8>>(), expected);
}

#[test]
fn a_link_may_be_down_at_first() {
    let start = Duration::ZERO;
    let down = Intervals::new([Interval { start, end: millis(10), value: () }], None).unwrap();
    let config = Config { when_down: Some(WhenDown::KEEP), ..Config::default() };
    let mut core = core(1, &config, Some(&Outages::At(down)));
    let (arrived, turned) = drive(&mut core, &[(Time::ZERO + millis(4), 0, 100, 9)]);
    let up = Time::ZERO + millis(10);
    assert_eq!(turned, [(up, 0, true)]);
    assert_eq!(arrived, [(up, 0, 9, Some(Fate::Intact))]);
}

#[test]
fn a_node_that_moves_loses_what_is_on_its_way_and_is_reached_by_its_next_link() {
    let links = Intervals::steps([(millis(0), 0), (millis(100), 1)], None).unwrap();
    let moving = Attachments { node: 1, links, notifies: vec![1], warning: None };
    let config = Config { delay: millis(20), when_down: Some(WhenDown::DROP), ..Config::default() };
    // Nodes 0 and 2 are where it is attached.
    let directions = NAMES.map(|name| (name.to_owned(), config.clone()));
    let mut core = Core::new(Seed(1), directions.into(), &[], vec![moving]);
    assert!(core.change_routes());
    let ends = [(0, 1), (1, 0), (1, 2), (2, 1)];
    let routes = |core: &Core| [0, 2].map(|node| core.routes(3, ends.into_iter()).next(node, 1));
    assert_eq!(routes(&core), [Some(0), None]);
    let sequence = [(70, 0), (70, 3), (90, 0), (110, 0), (110, 3)];
    let sequence: Vec<Sent> = sequence
        .into_iter()
        .zip(1..)
        .map(|((at, direction), first)| (Time::ZERO + millis(at), direction, 100, first))
        .collect();
    let (arrived, turned) = drive(&mut core, &sequence);
    let [at, first, last] = [100, 90, 130].map(|at| Time::ZERO + millis(at));
    assert_eq!(turned, [(at, 0, false), (at, 1, true)]);
    assert_eq!(routes(&core), [None, Some(3)]);
    // The second and the fourth were not taken.
    let intact = Some(Fate::Intact);
    assert_eq!(arrived, [(first, 0, 1, intact), (at, 0, 3, None), (last, 3, 5, intact)]);
}

/// An IPv4 packet from a host, with UDP from a port.
fn datagram(host: u8, source_port: u16, len: u32) -> Vec<u8> {
    let mut packet = wire::Packet::BLANK;
    packet.ip = wire::Ip::new([10, 0, 0, host].into(), [10, 0, 1, 1].into());
    packet.body = wire::Body::Udp(wire::Udp { source_port, destination_port: 7000 });
    packet.payload.len = len;
    let mut bytes = Vec::new();
    packet.emit(&vec![0; len as usize], &mut bytes).unwrap();
    bytes
}

#[test]
fn flows_of_real_packets_take_turns() {
    let discipline = Discipline::Drr(Drr { quantum: 1000, ..Drr::default() });
    let config = Config { rate: Rate::from_bps(1_000_000), discipline, ..Config::default() };
    let mut core = core(1, &config, None);
    // Port 1 sends five packets, then port 2 of the same host two, then port 1 of another two.
    for (host, port, count) in [(1, 1, 5), (1, 2, 2), (2, 1, 2)] {
        for _ in 0..count {
            core.enter(Time::ZERO, 0, &datagram(host, port, 972)).unwrap();
        }
    }
    let mut order = Vec::new();
    while core.next() < Time::NEVER {
        if let Some(Happening::Packet { output: Output::Arrived(arrival), .. }) = core.wake() {
            let packet = core.buffers.get(arrival.packet);
            order.push((packet[15], packet[21]));
        }
    }
    let [first, second, other] = [(1, 1), (1, 2), (2, 1)];
    assert_eq!(order, [first, first, second, other, first, second, other, first, first]);
}
