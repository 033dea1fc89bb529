//! Whatever the hop does, each stream arrives whole, in order and once, or both ends learn that it failed.

use crate::hop::{Hop, Loss};
use crate::world::{User, World};
use base::{Duration, Events, Rate, Seed, Time};
use proptest::prelude::*;
use srp::{Association, Config, Snapshot};

#[derive(Clone, Debug)]
enum Action {
    Open {
        end: usize,
        up: u64,
        down: u64,
        reads: u32,
        refuses: bool,
        holds: bool,
    },
    Abort {
        end: usize,
        which: usize,
    },
    Read {
        end: usize,
    },
    Outage(u64),
    /// A handoff: both ends are told, or one.
    Handoff {
        millis: u64,
        one: Option<usize>,
    },
    /// The opener makes the association anew, and the other end has moved and waits for that, or has not.
    Renew {
        has_moved: bool,
    },
    /// The end moves to a machine whose clock is ahead by so many seconds.
    Move {
        end: usize,
        ahead: u64,
    },
    /// New segments of the end have so many bytes from now on.
    SegmentSize {
        end: usize,
        bytes: u32,
    },
}

fn action() -> impl Strategy<Value = Action> {
    let end = || 0usize..2;
    let bytes = || prop_oneof![Just(0u64), 1u64..3000, 1u64..200_000];
    let reads = prop_oneof![3 => Just(u32::MAX), 1 => 1u32..1000];
    prop_oneof![
        4 => (end(), bytes(), bytes(), reads, prop::bool::weighted(0.1), prop::bool::weighted(0.2))
            .prop_map(|(end, up, down, reads, refuses, holds)| {
                Action::Open { end, up, down, reads, refuses, holds }
            }),
        1 => (end(), 0usize..8).prop_map(|(end, which)| Action::Abort { end, which }),
        1 => end().prop_map(|end| Action::Read { end }),
        1 => (0u64..5000).prop_map(Action::Outage),
        1 => (0u64..90_000, prop::option::of(end()))
            .prop_map(|(millis, one)| Action::Handoff { millis, one }),
        1 => any::<bool>().prop_map(|has_moved| Action::Renew { has_moved }),
        1 => (end(), 0u64..1_000_000).prop_map(|(end, ahead)| Action::Move { end, ahead }),
        1 => (end(), 200u32..2000).prop_map(|(end, bytes)| Action::SegmentSize { end, bytes }),
    ]
}

#[derive(Clone, Debug)]
struct Setting {
    seed: u64,
    rate: Option<u64>,
    delay: u64,
    loss: [f64; 2],
    burst: Option<f64>,
    duplication: f64,
    jitter: u64,
    queue: usize,
    known: bool,
    share: bool,
    repeat: bool,
    window: u64,
    segments: u16,
}

fn setting() -> impl Strategy<Value = Setting> {
    let loss = || prop_oneof![Just(0.0), 0.0..0.3];
    let hop = (
        any::<u64>(),
        prop::option::of(100_000u64..20_000_000),
        0u64..300,
        [loss(), loss()],
        prop::option::of(1.0..8.0),
        prop_oneof![Just(0.0), 0.0..0.2],
        prop_oneof![Just(0u64), 0u64..100],
        prop_oneof![Just(usize::MAX), 20usize..200],
    );
    let ends =
        (any::<bool>(), prop::bool::weighted(0.2), any::<bool>(), 2000u64..200_000, 64u16..300);
    (hop, ends).prop_map(|(hop, (known, share, repeat, window, segments))| {
        let (seed, rate, delay, loss, burst, duplication, jitter, queue) = hop;
        Setting {
            seed,
            rate,
            delay,
            loss,
            burst,
            duplication,
            jitter,
            queue,
            known,
            share,
            repeat,
            window,
            segments,
        }
    })
}

fn world(setting: &Setting) -> World {
    let rate = setting.rate.and_then(Rate::from_bps);
    let hop = |end: usize| {
        let loss = match setting.burst {
            Some(length) => Loss::Bursts(setting.loss[end], length),
            None => Loss::Uniform(setting.loss[end]),
        };
        let random = Seed(setting.seed).stream(if end == 0 { "there" } else { "back" });
        let mut hop = Hop::new(rate, Duration::from_millis(setting.delay), loss, random);
        hop.duplication = setting.duplication;
        hop.jitter = Duration::from_millis(setting.jitter);
        hop.queue = setting.queue;
        hop
    };
    let config = Config {
        segment_size: 1000,
        window: setting.window,
        segments: setting.segments,
        rate: rate.filter(|_| setting.known),
        share: setting.share,
        repeat: setting.repeat,
        keep_alive: None,
        give_up: Duration::from_secs(300),
        ..Config::default()
    };
    let mut world = World::new([config.clone(), config], [hop(0), hop(1)]);
    world.is_on_wire = true;
    world
}

/// All users of an end read, also those that read little at a time.
fn read_all(world: &mut World, end: usize) {
    let ids: Vec<_> = world.ends[end].users.keys().copied().collect();
    for id in ids {
        world.read(end, id);
    }
    world.settle(end);
}

fn wait(world: &mut World, millis: u64) {
    let until = world.now + Duration::from_millis(millis);
    world.run(until);
}

fn act(world: &mut World, action: &Action, connection: u16) {
    match action.clone() {
        Action::Open { end, up, down, reads, refuses, holds } => {
            if world.ends[end].association.is_none() {
                return;
            }
            let client = User { connection, to_write: up, reads, holds, ..User::default() };
            let server = User { to_write: down, refuses, ..client.clone() };
            world.open(end, [client, server]);
        }
        Action::Abort { end, which } => {
            if let Some(id) = world.ends[end].users.keys().copied().nth(which)
                && !world.ends[end].users[&id].events.contains(Events::CLOSED)
            {
                world.abort(end, id);
            }
        }
        Action::Read { end } if world.ends[end].association.is_some() => read_all(world, end),
        Action::Read { .. } => {}
        Action::Outage(millis) => {
            world.is_down = true;
            wait(world, millis);
            world.is_down = false;
        }
        Action::Handoff { millis, one } => {
            let told: Vec<_> = (0..2)
                .filter(|end| one.is_none_or(|one| one == *end))
                .filter(|end| world.ends[*end].association.is_some())
                .collect();
            for end in &told {
                let now = world.local(*end);
                world.association(*end).suspend(now);
                world.settle(*end);
            }
            world.is_down = true;
            wait(world, millis);
            world.is_down = false;
            for end in &told {
                let now = world.local(*end);
                world.association(*end).resume(now);
                world.settle(*end);
            }
        }
        Action::Renew { has_moved } => {
            if has_moved && world.ends[1].association.is_some() {
                act(world, &Action::Move { end: 1, ahead: 1000 }, connection);
                let now = world.local(1);
                world.association(1).await_renewal(now);
                world.settle(1);
            }
            let now = world.local(0);
            world.association(0).renew(now);
            world.settle(0);
        }
        Action::Move { end, ahead } => {
            let now = world.local(end);
            let Some(association) = &world.ends[end].association else { return };
            let text = serde_json::to_string(&association.snapshot(now)).expect("it is plain data");
            let snapshot: Snapshot = serde_json::from_str(&text).expect("it was just written");
            world.ends[end].ahead = Duration::from_secs(ahead);
            let now = world.local(end);
            world.ends[end].association = Some(Association::adopt(snapshot, now).expect("ours"));
        }
        Action::SegmentSize { end, bytes } => {
            let config = Config { segment_size: bytes, ..world.config.clone() };
            if let Some(association) = &mut world.ends[end].association {
                association.set_hop(&config);
            }
            world.settle(end);
        }
    }
}

fn check(world: &World) -> Result<(), TestCaseError> {
    let mut connections = std::collections::BTreeMap::new();
    for end in 0..2 {
        for user in world.ends[end].users.values() {
            connections.entry(user.connection).or_insert([None, None])[end] = Some(user);
        }
    }
    for (connection, users) in connections {
        let failed =
            users.iter().flatten().any(|user| user.aborted || user.events.contains(Events::RESET));
        for end in 0..2 {
            let Some(user) = users[end] else { continue };
            prop_assert!(user.events.contains(Events::CLOSED), "{connection} at {end}: {user:?}");
            prop_assert!(!user.events.intersects(Events::TIMED_OUT | Events::UNREACHABLE));
            if failed {
                continue;
            }
            let Some(peer) = users[1 - end] else {
                return Err(TestCaseError::fail(format!("{connection}: it was not refused")));
            };
            prop_assert_eq!(user.read, peer.to_write, "{} at {}: {:?}", connection, end, user);
            let all = Events::CONNECTED | Events::PEER_CLOSED | Events::FINISHED;
            prop_assert!(user.events.contains(all), "{connection} at {end}: {user:?}");
        }
        if let [Some(one), Some(other)] = users {
            let reset =
                [one, other].map(|user| user.aborted || user.events.contains(Events::RESET));
            let finished = [one, other].map(|user| user.events.contains(Events::FINISHED));
            prop_assert!(reset[0] == reset[1] || finished != [false; 2], "{one:?} {other:?}");
        }
    }
    Ok(())
}

fn cases() -> u32 {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default().cases,
        None => 300,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_stream_arrives_whole_or_both_ends_learn_that_it_failed(
        setting in setting(),
        actions in prop::collection::vec((action(), 0u64..1000), 1..15),
    ) {
        let mut world = world(&setting);
        world.settle(0);
        for ((action, pause), connection) in actions.iter().zip(1..) {
            act(&mut world, action, connection);
            wait(&mut world, *pause);
        }
        // Until all is quiet, with slow users reading.
        for _ in 0..5000 {
            (0..2).filter(|end| world.ends[*end].association.is_some()).collect::<Vec<_>>()
                .into_iter().for_each(|end| read_all(&mut world, end));
            if world.next() >= Time::NEVER {
                break;
            }
            wait(&mut world, 500);
        }
        prop_assert!(world.next() >= Time::NEVER, "it is not quiet: {:?}", world.ends[0].association);
        check(&world)?;
        for end in 0..2 {
            let association = world.association(end);
            prop_assert_eq!((association.held_streams(), association.in_flight()), (0, 0), "{:?}", association);
            prop_assert_eq!(association.held_payloads().count(), 0);
        }
    }

    /// A snapshot that is adopted under another clock makes no difference.
    #[test]
    fn a_shift_of_the_clock_changes_nothing(
        setting in setting(),
        opens in prop::collection::vec((0usize..2, 0u64..100_000, 0u64..100_000), 1..4),
        at in 0u64..3000,
        ahead in [0u64..1_000_000, 0u64..1_000_000],
    ) {
        let run = |moves: bool| {
            let mut world = world(&setting);
            world.settle(0);
            wait(&mut world, 2000);
            for ((end, up, down), connection) in opens.iter().copied().zip(1..) {
                let reads = u32::MAX;
                act(&mut world, &Action::Open { end, up, down, reads, refuses: false, holds: false }, connection);
            }
            wait(&mut world, at);
            for (end, ahead) in ahead.into_iter().enumerate() {
                if moves {
                    act(&mut world, &Action::Move { end, ahead }, 0);
                }
            }
            wait(&mut world, 100_000);
            let ends = world.ends.iter().filter_map(|end| end.association.as_ref());
            let state: Vec<_> = ends.map(|a| (a.statistics(), a.rtt(), a.rate(), a.loss())).collect();
            (state, world.ends[0].users.values().map(|user| user.read).collect::<Vec<_>>())
        };
        prop_assert_eq!(run(false), run(true));
    }
}
