//! The goodput of a hop: what arrives of the data in order, as a share of what the hop could carry.

use crate::hop::{Hop, Loss};
use crate::world::{User, World};
use base::{Duration, Rate, Seed};
use srp::Config;

const SEGMENT: u32 = 1436;

struct Case {
    mbps: f64,
    /// The round trip without a queue, milliseconds.
    rtt: u64,
    loss: Loss,
    /// Packets.
    queue: usize,
    known: bool,
    /// See [`World::tick`].
    tick: Duration,
}

impl Case {
    fn share(&self) -> f64 {
        match self.loss {
            Loss::Uniform(share) | Loss::Bursts(share, _) => share,
        }
    }

    fn rate(&self) -> Rate {
        Rate::from_bps((self.mbps * 1e6) as u64).expect("it is more than 0")
    }
}

struct Result {
    /// Goodput as a share of payload capacity x (1 - loss), with the share of packets that the hop lost.
    goodput: f64,
    /// The longest queue, packets, after the start.
    queue: usize,
    /// Packets dropped by the queue, as a share of those sent.
    dropped: f64,
    /// Segments that arrived twice, as a share.
    duplicates: f64,
    /// The rate that was measured, as a share of the hop's.
    rate: f64,
}

fn hop(case: &Case, seed: u64) -> [Hop; 2] {
    let hop = |name, loss| {
        let random = Seed(seed).stream(name);
        let delay = Duration::from_micros(case.rtt * 500);
        let mut hop = Hop::new(Some(case.rate()), delay, loss, random);
        hop.queue = case.queue;
        hop
    };
    // SACKs are lost, too.
    [hop("there", case.loss), hop("back", case.loss)]
}

/// A stream that always has data, for some seconds after a start of its own.
fn run(case: &Case, seed: u64, seconds: u64) -> Result {
    let config = Config {
        segment_size: SEGMENT,
        window: 64 << 20,
        rate: case.known.then(|| case.rate()),
        repeat: true,
        ..Config::default()
    };
    let mut world = World::new([config.clone(), config], hop(case, seed));
    world.tick = case.tick;
    world.settle(0);
    let user = User { connection: 1, reads: u32::MAX, ..User::default() };
    let server = user.clone();
    let bytes = case.rate().as_bps() / 8 * 3000;
    world.open(0, [User { to_write: bytes, ..user }, server]).expect("it is possible");
    let start = Duration::from_millis(5000 + 25 * case.rtt);
    world.run(world.now + start);
    let read = |world: &World| world.ends[1].users.values().map(|user| user.read).sum::<u64>();
    let (before, dropped) = (read(&world), world.hops[0].dropped);
    let sent = |world: &mut World| {
        let statistics = world.association(0).statistics();
        statistics.segments + statistics.retransmissions
    };
    let sent_before = sent(&mut world);
    let hop = &mut world.hops[0];
    (hop.longest_queue, hop.carried, hop.lost) = (0, 0, 0);
    let span = Duration::from_secs(seconds);
    world.run(world.now + span);
    let goodput = (read(&world) - before) as f64 * 8.0 / span.as_secs_f64();
    let capacity = case.rate().as_bps() as f64 * f64::from(SEGMENT) / f64::from(SEGMENT + 44);
    let lost = world.hops[0].lost as f64 / world.hops[0].carried as f64;
    let sent = (sent(&mut world) - sent_before) as f64;
    let received = world.association(1).statistics();
    let measured = world.association(0).rate().map_or(0.0, |rate| rate.as_bps() as f64);
    Result {
        goodput: goodput / (capacity * (1.0 - lost)),
        queue: world.hops[0].longest_queue,
        dropped: (world.hops[0].dropped - dropped) as f64 / sent,
        duplicates: received.duplicates as f64 / received.received as f64,
        rate: measured / case.rate().as_bps() as f64,
    }
}

/// Packets in a bandwidth-delay product.
fn pipe(mbps: f64, rtt: u64) -> usize {
    ((mbps * 1e3 * rtt as f64) / (8.0 * f64::from(SEGMENT + 44))) as usize
}

fn cases(known: bool) -> Vec<Case> {
    let mut all = Vec::new();
    for (mbps, rtt) in [(1.0, 10), (1.0, 600), (5.0, 100), (20.0, 30), (20.0, 600), (50.0, 10)] {
        for loss in [
            Loss::Uniform(0.0),
            Loss::Uniform(0.01),
            Loss::Uniform(0.1),
            Loss::Bursts(0.01, 4.0),
            Loss::Bursts(0.1, 4.0),
        ] {
            for queue in [20, pipe(mbps, rtt).max(20)] {
                all.push(Case { mbps, rtt, loss, queue, known, tick: Duration::ZERO });
            }
        }
    }
    all
}

fn check(known: bool) {
    let mut missed = 0;
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for case in cases(known) {
        let result = run(&case, seed, if case.mbps <= 1.0 { 200 } else { 40 });
        let target = if case.share() <= 0.01 { 0.98 } else { 0.95 };
        let is_met = result.goodput >= target;
        missed += usize::from(!is_met);
        println!(
            "{:>4} Mbit/s {:>3} ms {:<18} queue {:>4}: goodput {:.3}{} rate {:.3} dropped {:.4} \
             duplicates {:.4} longest queue {}",
            case.mbps,
            case.rtt,
            format!("{:?}", case.loss),
            case.queue,
            result.goodput,
            if is_met { ' ' } else { '!' },
            result.rate,
            result.dropped,
            result.duplicates,
            result.queue,
        );
    }
    assert_eq!(missed, 0, "cases below the target");
}

#[test]
fn a_hop_of_known_rate_is_used_fully() {
    check(true);
}

#[test]
fn a_hop_of_unknown_rate_is_used_fully() {
    check(false);
}

#[test]
fn late_wakes_do_not_lower_the_rate() {
    for (mbps, rtt) in [(20.0, 600), (50.0, 100)] {
        for loss in [0.0, 0.01] {
            let loss = Loss::Uniform(loss);
            let tick = Duration::from_millis(8);
            let case = Case { mbps, rtt, loss, queue: pipe(mbps, rtt), known: true, tick };
            let result = run(&case, 1, 20);
            assert!(result.goodput >= 0.97, "{mbps} Mbit/s, {loss:?}: {}", result.goodput);
        }
    }
}

#[test]
fn idle_time_gives_no_more_than_a_short_burst() {
    let case = Case {
        mbps: 20.0,
        rtt: 100,
        loss: Loss::Uniform(0.0),
        queue: 200,
        known: true,
        tick: Duration::ZERO,
    };
    let config = Config { segment_size: SEGMENT, rate: Some(case.rate()), ..Config::default() };
    let mut world = World::new([config.clone(), config], hop(&case, 1));
    world.settle(0);
    world.run(world.now + Duration::from_secs(1));
    let mut sent_at_once = |connection| {
        let user = User { connection, reads: u32::MAX, ..User::default() };
        let server = user.clone();
        let before = world.hops[0].carried;
        let user = User { to_write: 100 * u64::from(SEGMENT), ..user };
        world.open(0, [user, server]).expect("it is possible");
        let sent = world.hops[0].carried - before;
        world.run(world.now + Duration::from_secs(3));
        sent
    };
    // Segments of the first one have waited for their time.
    let first = sent_at_once(1);
    assert!((2..=10).contains(&first), "{first}");
    assert_eq!(sent_at_once(2), first);
}
