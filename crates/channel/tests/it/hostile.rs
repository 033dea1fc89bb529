//! Datagrams that are replayed, forged or garbled change nothing.

use crate::world::{World, address, config, millis, secs};
use channel::{Config, Event, Statistics};
use proptest::prelude::*;

fn world(seed: u64) -> World {
    let mut world = World::connected(seed, [config(0), Config { address: None, ..config(1) }]);
    world.exchange(millis(100), secs(150));
    world.clear_events();
    world
}

fn statistics(world: &World, end: usize) -> Statistics {
    world.ends[end].channel.statistics()
}

/// Nothing has happened to either end, and the channel works as before.
fn check_undisturbed(world: &mut World) {
    for end in [0, 1] {
        assert_eq!(world.events(end), []);
        assert_eq!(world.ends[end].channel.address(), Some(address(1 - end, 0)));
    }
    assert_eq!(world.exchange(millis(100), secs(150)), [(1500, 1500); 2]);
    assert_eq!([world.events(0), world.events(1)], [[], []]);
}

#[test]
fn replays_change_nothing() {
    let mut world = world(1);
    let before = [0, 1].map(|end| statistics(&world, end));
    let attacker = address(9, 9);
    let recorded = world.recorded.clone();
    for (end, _, bytes) in recorded.iter().rev().chain(&recorded) {
        assert!(!world.deliver(*end, attacker, bytes.clone()));
        // Sent back to where it came from, too.
        assert!(!world.deliver(1 - *end, attacker, bytes.clone()));
    }
    for end in [0, 1] {
        let now = statistics(&world, end);
        assert_eq!((now.responses, now.sessions), (before[end].responses, before[end].sessions));
        assert!(now.replayed > 1000, "{end}: {now:?}");
    }
    // Its own initiations.
    assert!(statistics(&world, 0).forged >= 2);
    check_undisturbed(&mut world);
}

#[test]
fn an_initiation_that_is_replayed_after_a_restart_costs_one_response() {
    let mut world = world(2);
    let recorded = world.recorded.clone();
    let initiations = recorded.iter().filter(|(end, _, bytes)| *end == 1 && bytes[1] == 1);
    let initiations: Vec<_> = initiations.map(|(_, _, bytes)| bytes.clone()).collect();
    assert!(initiations.len() >= 2);
    world.network.loss = 1.0;
    world.restart(1, 0);
    for _ in 0..10 {
        for bytes in &initiations {
            assert!(!world.deliver(1, address(9, 9), bytes.clone()));
            world.run(millis(100));
        }
    }
    let now = statistics(&world, 1);
    assert_eq!((now.responses, now.sessions), (initiations.len() as u64, 0));
    assert_eq!((world.events(1), world.ends[1].channel.address()), (vec![], None));
    world.network.loss = 0.0;
    world.run(secs(25));
    assert_eq!(world.events(1), [Event::Connected]);
    assert_eq!(world.events(0), [Event::PeerRestarted]);
    check_undisturbed(&mut world);
}

#[test]
fn initiations_are_answered_at_a_bounded_rate() {
    let mut world = world(3);
    let recorded = world.recorded.clone();
    world.network.loss = 1.0;
    world.restart(1, 0);
    let initiations = recorded.iter().filter(|(end, _, bytes)| *end == 1 && bytes[1] == 1);
    let count = initiations.map(|(_, from, bytes)| world.deliver(1, *from, bytes.clone())).count();
    let now = statistics(&world, 1);
    assert_eq!((now.responses, now.limited), (1, count as u64 - 1));
}

/// The initiator of a session that runs: an attacker holds its initiation back and sends it later.
#[test]
fn an_initiation_that_was_held_back_replaces_no_session() {
    let mut world = World::connected(4, [config(0), Config { address: None, ..config(1) }]);
    world.clear_events();
    // The rekeying's first initiation is lost; a second one follows.
    world.run(secs(115));
    world.network.loss = 1.0;
    world.run(millis(700));
    world.network.loss = 0.0;
    world.run(secs(30));
    let held = world.recorded.iter().filter(|(end, _, bytes)| *end == 1 && bytes[1] == 1);
    let held = held.map(|(_, _, bytes)| bytes.clone()).nth(1).unwrap();
    assert!(!world.deliver(1, address(9, 9), held));
    assert_eq!(statistics(&world, 1).stale, 1);
    check_undisturbed(&mut world);
}

#[test]
fn unknown_versions_and_types_are_counted() {
    let mut world = world(5);
    let before = statistics(&world, 1);
    for bytes in [&[1, 4, 0][..], &[2, 9, 0], &[2, 0], &[2], &[], &[2, 4, 0, 0, 0, 0, 0]] {
        assert!(!world.deliver(1, address(9, 9), bytes.to_vec()));
    }
    let now = statistics(&world, 1);
    assert_eq!(now.unknown_version - before.unknown_version, 1);
    assert_eq!(now.unknown_type - before.unknown_type, 2);
    assert_eq!(now.malformed - before.malformed, 3);
    check_undisturbed(&mut world);
}

#[test]
fn no_part_of_a_header_can_be_changed() {
    let mut world = world(6);
    world.network.loss = 1.0;
    world.send(0, 0).unwrap();
    world.network.loss = 0.0;
    let bytes = world.recorded.last().unwrap().2.clone();
    for bit in 0..14 * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!world.deliver(1, address(9, 9), bytes), "bit {bit}");
    }
    assert!(world.deliver(1, address(0, 0), bytes));
    check_undisturbed(&mut world);
}

#[derive(Clone, Debug)]
enum Forgery {
    /// Bits of a recorded datagram are changed.
    Changed(usize, Vec<usize>),
    /// It is cut, or something is added.
    Length(usize, usize),
    /// The beginning of one and the end of another.
    Joined(usize, usize, usize),
    Garbage(Vec<u8>),
}

fn forgery() -> impl Strategy<Value = Forgery> {
    let index = any::<usize>;
    prop_oneof![
        4 => (index(), prop::collection::vec(index(), 1..4))
            .prop_map(|(at, bits)| Forgery::Changed(at, bits)),
        2 => (index(), index()).prop_map(|(at, length)| Forgery::Length(at, length)),
        2 => (index(), index(), 1usize..90).prop_map(|(a, b, cut)| Forgery::Joined(a, b, cut)),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Forgery::Garbage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// An attacker that sees everything and has no key: no payload is opened, no event, no new
    /// address, and what the ends send each other arrives.
    #[test]
    fn forgeries_change_nothing(
        seed in any::<u64>(),
        forgeries in prop::collection::vec((forgery(), 0usize..2), 1..300),
    ) {
        let mut world = World::connected(seed, [config(0), config(1)]);
        world.clear_events();
        for (forgery, end) in forgeries {
            let _ = world.send(end, 10);
            let recorded = |at: usize| world.recorded[at % world.recorded.len()].2.clone();
            let bytes = match forgery {
                Forgery::Changed(at, bits) => {
                    let mut bytes = recorded(at);
                    let original = bytes.clone();
                    for bit in bits {
                        let bit = bit % (bytes.len() * 8);
                        bytes[bit / 8] ^= 1 << (bit % 8);
                    }
                    if bytes == original { continue }
                    bytes
                }
                Forgery::Length(at, length) => {
                    let mut bytes = recorded(at);
                    let length = length % (2 * bytes.len());
                    if length == bytes.len() { continue }
                    bytes.resize(length, 0);
                    bytes
                }
                Forgery::Joined(a, b, cut) => {
                    let (a, b) = (recorded(a), recorded(b));
                    let joined = [&a[..cut.min(a.len())], &b[cut.min(b.len())..]].concat();
                    if joined == a || joined == b { continue }
                    joined
                }
                Forgery::Garbage(bytes) => bytes,
            };
            prop_assert!(!world.deliver(end, address(9, 9), bytes));
            world.run(millis(10));
        }
        world.run(millis(300));
        for end in [0, 1] {
            let sealed = world.ends[end].sealed;
            prop_assert_eq!(world.ends[1 - end].opened.len() as u64, sealed);
            prop_assert_eq!(world.events(end), []);
            prop_assert_eq!(world.ends[end].channel.address(), Some(address(1 - end, 0)));
        }
    }
}
