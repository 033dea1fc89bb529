//! Single properties of the protocol, each on a hop made for it.

use crate::hop::{Hop, Loss};
use crate::world::{User, World};
use base::{Duration, Events, Rate, Seed};
use srp::{Config, Statistics, StreamId};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A hop of 10 Mbit/s and a round trip of 100 ms.
fn world(config: Config, losses: [f64; 2]) -> World {
    let hop = |name, loss| {
        let random = Seed(3).stream(name);
        Hop::new(Rate::from_bps(10_000_000), millis(50), Loss::Uniform(loss), random)
    };
    let mut world =
        World::new([config.clone(), config], [hop("there", losses[0]), hop("back", losses[1])]);
    world.settle(0);
    world.run(world.now + millis(200));
    world
}

fn known() -> Config {
    Config { rate: Rate::from_bps(10_000_000), ..Config::default() }
}

fn open(world: &mut World, connection: u16, up: u64) -> StreamId {
    let user = User { connection, reads: u32::MAX, ..User::default() };
    world.open(0, [User { to_write: up, ..user.clone() }, user]).expect("there is room")
}

fn read(world: &World, connection: u16) -> u64 {
    let users = world.ends[1].users.values();
    users.filter(|user| user.connection == connection).map(|user| user.read).sum()
}

/// `yavatkar1994` §2.3: "SRP can recover more than one segment in one round trip time".
#[test]
fn all_that_a_burst_has_lost_is_repaired_in_a_round_trip() {
    let mut world = world(known(), [0.0, 0.0]);
    open(&mut world, 1, 2_000_000);
    world.run(world.now + millis(500));
    world.is_down = true;
    world.run(world.now + millis(40));
    world.is_down = false;
    let sent = |world: &mut World| world.association(0).statistics();
    assert_eq!(sent(&mut world).retransmissions, 0);
    // What was sent at the end of the burst would have arrived 50 ms later; the SACK for what followed
    // arrives a round trip after it, and the retransmissions follow at the rate of the hop.
    world.run(world.now + millis(145));
    let lost = sent(&mut world).retransmissions;
    assert!((25..=35).contains(&lost), "40 ms of segments of 1.2 ms: {lost}");
    let behind = read(&world, 1);
    world.run(world.now + millis(55));
    assert!(read(&world, 1) > behind + 100_000, "what waited behind the gap is delivered");
    world.run(world.now + millis(2000));
    assert_eq!(read(&world, 1), 2_000_000);
    let statistics = sent(&mut world);
    assert_eq!((statistics.retransmissions, statistics.timeouts), (lost, 0));
    assert_eq!(world.association(1).statistics().duplicates, 0, "none was sent needlessly");
}

#[test]
fn a_lost_tail_is_found_by_a_probe_and_no_segment_is_sent_needlessly() {
    let mut world = world(known(), [0.0, 0.0]);
    open(&mut world, 1, 100_000);
    world.run(world.now + millis(20));
    world.is_down = true;
    world.run(world.now + millis(150));
    world.is_down = false;
    let id = *world.ends[0].users.keys().next().unwrap();
    world.run(world.now + millis(600));
    assert!(world.ends[0].users[&id].events.contains(Events::FINISHED));
    let (ours, theirs) = (world.association(0).statistics(), world.association(1).statistics());
    assert!(ours.timeouts >= 1 && ours.probes >= 1 && ours.retransmissions > 10, "{ours:?}");
    assert_eq!(theirs.duplicates, 0, "{theirs:?}");
}

#[test]
fn a_loss_in_one_stream_delays_no_other() {
    let mut world = world(known(), [0.0, 0.0]);
    // The whole of a short stream is lost, then another begins.
    world.is_down = true;
    open(&mut world, 1, 2000);
    world.run(world.now + millis(10));
    world.is_down = false;
    open(&mut world, 2, 50_000);
    world.run(world.now + millis(50 + 45));
    assert_eq!((read(&world, 1), read(&world, 2)), (0, 50_000));
    world.run(world.now + millis(150));
    assert_eq!(read(&world, 1), 2000);
}

#[test]
fn streams_share_the_hop_equally() {
    let mut world = world(known(), [0.05, 0.05]);
    for connection in 1..=20 {
        open(&mut world, connection, 10_000_000);
    }
    world.run(world.now + Duration::from_secs(10));
    let read: Vec<_> = (1..=20).map(|connection| read(&world, connection)).collect();
    let (least, most) = (*read.iter().min().unwrap(), *read.iter().max().unwrap());
    let all: u64 = read.iter().sum();
    assert!(all > 10_750_000, "95 % of what the hop carries in 9.5 s: {all}");
    assert!(least * 10 > most * 7, "{read:?}");
}

#[test]
fn a_deep_queue_does_not_fill() {
    let mut world = world(Config::default(), [0.01, 0.01]);
    // A second. A bandwidth-delay product is 84 packets.
    world.hops[0].queue = 850;
    open(&mut world, 1, 100_000_000);
    world.run(world.now + Duration::from_secs(5));
    world.hops[0].longest_queue = 0;
    world.run(world.now + Duration::from_secs(20));
    let queue = world.hops[0].longest_queue;
    assert!(queue <= 125, "{queue} packets");
    assert_eq!(world.hops[0].dropped, 0);
}

#[test]
fn thirty_percent_of_loss_leaves_seventy_percent_of_the_hop() {
    let mut world = world(Config { window: 16 << 20, ..known() }, [0.3, 0.3]);
    open(&mut world, 1, 100_000_000);
    world.run(world.now + Duration::from_secs(5));
    let before = read(&world, 1);
    world.run(world.now + Duration::from_secs(30));
    let share = (read(&world, 1) - before) as f64 * 8.0 / 30.0 / (1e7 * 1436.0 / 1480.0);
    assert!((0.66..0.73).contains(&share), "{share}");
}

#[test]
fn a_shared_hop_is_used_with_a_congestion_window() {
    let share = Config { share: true, ..Config::default() };
    let mut world = world(share, [0.0, 0.0]);
    world.hops[0].queue = 84;
    open(&mut world, 1, 100_000_000);
    world.run(world.now + Duration::from_secs(10));
    let (before, dropped) = (read(&world, 1), world.hops[0].dropped);
    world.run(world.now + Duration::from_secs(20));
    let share = (read(&world, 1) - before) as f64 * 8.0 / 20.0 / 1e7;
    assert!(share > 0.9, "{share}");
    // It fills the queue, halves, and takes some 80 round trips of 100 to 200 ms to fill it again.
    let dropped = world.hops[0].dropped - dropped;
    assert!((1..20).contains(&dropped), "{dropped}");
}

#[test]
fn a_handoff_loses_nothing_and_goes_on_at_once() {
    let mut world = world(known(), [0.0, 0.0]);
    open(&mut world, 1, 5_000_000);
    world.run(world.now + millis(1000));
    for end in 0..2 {
        let now = world.local(end);
        world.association(end).suspend(now);
    }
    world.is_down = true;
    // Longer than the time after which a silent peer is given up.
    world.run(world.now + Duration::from_secs(100));
    world.is_down = false;
    let before = (read(&world, 1), world.association(0).statistics());
    for end in 0..2 {
        let now = world.local(end);
        world.association(end).resume(now);
        world.settle(end);
    }
    world.run(world.now + millis(170));
    assert!(read(&world, 1) > before.0, "a round trip later data flows");
    assert_eq!(world.association(0).statistics().timeouts, before.1.timeouts);
    world.run(world.now + Duration::from_secs(5));
    assert_eq!(read(&world, 1), 5_000_000);
}

/// Milliseconds from the end of an interruption at this end until something new can be read.
fn first_after_interruption(interrupted: usize, repeat: bool) -> Option<u64> {
    let mut world = world(Config { repeat, ..known() }, [0.0, 0.0]);
    open(&mut world, 1, 5_000_000);
    world.run(world.now + millis(1000));
    world.is_down_at = Some(interrupted);
    world.run(world.now + Duration::from_secs(3));
    world.is_down_at = None;
    let before = read(&world, 1);
    for end in 0..2 {
        let now = world.local(end);
        world.association(end).resume(now);
        world.settle(end);
    }
    let after = (1..1000).find(|_| {
        world.run(world.now + millis(1));
        read(&world, 1) > before
    });
    world.run(world.now + Duration::from_secs(6));
    assert_eq!(read(&world, 1), 5_000_000);
    let repeated = world.association(0).statistics().repetitions;
    assert_eq!(repeated > 0, repeat);
    // The first ones, and the tail at the end.
    assert!(repeated <= 64, "{repeated}");
    after
}

#[test]
fn after_an_interruption_at_either_end_the_first_segments_are_sent_again_before_the_peer_answers() {
    for end in 0..2 {
        let [alone, repeated] =
            [false, true].map(|repeat| first_after_interruption(end, repeat).unwrap());
        // Half a round trip, besides up to 20 ms for segments that had arrived; without repetition, at least a whole one.
        assert!((50..75).contains(&repeated), "{end}: {repeated}");
        assert!(alone >= 100, "{end}: {alone}");
    }
}

/// The most segments that a stream sends in a row, of so many that always have data, over a hop of this rate.
fn longest_turn(streams: u16, bps: u64) -> usize {
    let mut world = world(Config { rate: Rate::from_bps(bps), ..Config::default() }, [0.0, 0.0]);
    for connection in 0..streams {
        open(&mut world, connection, 20_000_000);
    }
    world.run(world.now + millis(300));
    // All are open.
    world.order.clear();
    world.run(world.now + millis(200));
    assert!(world.order.len() > 100);
    world.order.chunk_by(|one, other| one == other).map(<[u16]>::len).max().unwrap_or(0)
}

#[test]
fn a_turn_of_a_stream_has_several_segments_if_all_turns_take_two_milliseconds_at_most() {
    // Full segments in 2 ms: 166, 16 and 1.
    assert_eq!(longest_turn(10, 1_000_000_000), 8);
    assert_eq!(longest_turn(40, 1_000_000_000), 4);
    assert_eq!(longest_turn(5, 100_000_000), 3);
    assert_eq!(longest_turn(5, 10_000_000), 1);
}

/// The share of a hop of 20 Mbit/s that is used in the 250 ms after a handoff to it, whose round trip is
/// 20 ms, from one with this round trip and rate.
fn share_after(round_trip: Duration, bps: u64) -> f64 {
    let mut world = world(Config::default(), [0.0, 0.0]);
    world.hops.iter_mut().for_each(|hop| hop.delay = round_trip / 2);
    world.hops[0].rate = Rate::from_bps(bps);
    open(&mut world, 1, 1_000_000_000);
    world.run(world.now + Duration::from_secs(20));
    world.is_down = true;
    for end in 0..2 {
        let now = world.local(end);
        world.association(end).suspend(now);
    }
    // What is on its way arrives nowhere.
    world.run(world.now + Duration::from_secs(2));
    world.is_down = false;
    world.hops.iter_mut().for_each(|hop| hop.delay = millis(10));
    world.hops[0].rate = Rate::from_bps(20_000_000);
    for end in 0..2 {
        let now = world.local(end);
        world.association(end).resume(now);
        world.settle(end);
    }
    let before = read(&world, 1);
    world.run(world.now + millis(250));
    (read(&world, 1) - before) as f64 * 8.0 / 5e6
}

#[test]
fn after_a_handoff_the_round_trip_and_rate_of_the_last_hop_do_not_hold_the_sender_back() {
    let same = share_after(millis(20), 20_000_000);
    assert!(same > 0.9, "{same}");
    for (round_trip, bps) in [(millis(600), 20_000_000), (millis(600), 500_000)] {
        let share = share_after(round_trip, bps);
        assert!(share > 0.85 * same, "{round_trip:?}, {bps} bit/s: {share} instead of {same}");
    }
}

#[test]
fn a_measured_rate_follows_that_of_the_hop() {
    let mut world = world(Config::default(), [0.02, 0.02]);
    world.hops[0].queue = 100;
    open(&mut world, 1, 1_000_000_000);
    world.run(world.now + Duration::from_secs(10));
    for mbps in [10, 3, 30, 10] {
        world.hops[0].rate = Rate::from_bps(mbps * 1_000_000);
        world.run(world.now + Duration::from_secs(20));
        let before = read(&world, 1);
        world.run(world.now + Duration::from_secs(20));
        let share = (read(&world, 1) - before) as f64 * 8.0 / 20e6 / mbps as f64;
        assert!(share > 0.95 * 0.98 * 1436.0 / 1480.0, "{mbps} Mbit/s: {share}");
        let rate = world.association(0).rate().expect("it is measured").as_bps();
        assert!((900_000..1_100_000).contains(&(rate / mbps)), "{mbps} Mbit/s: {rate}");
    }
}

/// Sends so many short messages one after the other over a hop that has lost packets before, and returns how long each was
/// on its way, milliseconds, and what the sender has counted.
fn messages(repeat: bool, loss: f64, messages: u16) -> (Vec<u64>, Statistics) {
    let mut world = world(Config { repeat, ..known() }, [loss, loss]);
    open(&mut world, 1, 1_000_000);
    world.run(world.now + millis(5000));
    assert_eq!(read(&world, 1), 1_000_000);
    let before = world.association(0).statistics();
    let mut times = Vec::new();
    for connection in 2..2 + messages {
        let began = world.now;
        open(&mut world, connection, 500);
        while read(&world, connection) < 500 {
            world.run(world.now + millis(1));
        }
        times.push(world.now.since(began).as_nanos() / 1_000_000);
        world.run(world.now + millis(2000));
    }
    let after = world.association(0).statistics();
    let statistics = Statistics {
        timeouts: after.timeouts - before.timeouts,
        repetitions: after.repetitions - before.repetitions,
        ..after
    };
    times.sort_unstable();
    (times, statistics)
}

#[test]
fn where_packets_are_lost_short_messages_are_sent_twice_and_wait_for_no_timeout() {
    let (once, of_once) = messages(false, 0.1, 300);
    let (twice, of_twice) = messages(true, 0.1, 300);
    // An opening and its data are two segments, and the end of the stream may be a third.
    assert_eq!(of_once.repetitions, 0);
    assert!((500..1000).contains(&of_twice.repetitions), "{of_twice:?}");
    assert!(of_twice.timeouts * 4 < of_once.timeouts, "{} {}", of_twice.timeouts, of_once.timeouts);
    // A fifth has lost one of both segments; twice in a row, two of a hundred.
    let last_tenth = |times: &[u64]| times[times.len() * 9 / 10];
    assert!(last_tenth(&once) > 150 && last_tenth(&twice) < 65, "{once:?}\n{twice:?}");
}

#[test]
fn where_hardly_any_packet_is_lost_nothing_is_sent_twice() {
    let (_, statistics) = messages(true, 0.001, 300);
    assert!(statistics.repetitions < 30, "{statistics:?}");
}

#[test]
fn what_is_sent_twice_takes_an_eighth_of_the_rate_and_ends() {
    let mut world = world(Config { repeat: true, ..known() }, [0.05, 0.05]);
    open(&mut world, 1, 1_000_000);
    world.run(world.now + millis(3000));
    let before = world.association(0).statistics().repetitions;
    // 5 Mbit/s, in bursts with pauses.
    for connection in 2..202 {
        open(&mut world, connection, 25_000);
        world.run(world.now + millis(40));
    }
    let repeated = world.association(0).statistics().repetitions - before;
    // In 8 s, 1.25 Mbit/s are 850 segments, besides an allowance of 48 KiB.
    assert!((300..900).contains(&repeated), "{repeated}");
    world.run(world.now + millis(3000));
    let sent = |world: &mut World| {
        let statistics = world.association(0).statistics();
        (statistics.repetitions, statistics.probes)
    };
    let quiet = sent(&mut world);
    world.run(world.now + millis(10_000));
    assert_eq!(sent(&mut world), quiet, "there is nothing more to say");
}
