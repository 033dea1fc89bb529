//! The longest datagrams that reach the peer. The network's round trip is 600 ms.

use crate::world::{World, config, secs};
use channel::Config;

/// Two ends with an interface whose MTU is 1500 bytes, over IPv4.
fn world(longest: usize) -> World {
    let configs = [0, 1].map(|end| Config { datagrams: 1252..=1472, ..config(end) });
    let mut world = World::new(7, configs);
    world.network.longest = longest;
    world
}

/// What the first end has learned meanwhile.
fn learned(world: &mut World) -> Vec<u16> {
    std::mem::take(&mut world.ends[0].longest)
}

#[test]
fn where_the_interface_decides_it_takes_one_round_trip() {
    let mut world = world(1472);
    world.run(secs(2));
    assert_eq!(learned(&mut world), [1472]);
    // And it stays.
    world.exchange(secs(1), secs(300));
    assert_eq!(learned(&mut world), []);
}

#[test]
fn a_narrower_path_is_found_by_halves() {
    let mut world = world(1464);
    world.run(secs(40));
    assert_eq!(learned(&mut world), [1362, 1417, 1444, 1458, 1461]);
}

#[test]
fn a_path_that_becomes_narrower_is_found_to_be() {
    let mut world = world(1472);
    world.run(secs(5));
    learned(&mut world);
    world.network.longest = 1400;
    // A confirmation each 15 s, which is lost three times.
    world.exchange(secs(1), secs(25));
    assert_eq!(learned(&mut world)[..2], [1252, 1362]);
    world.exchange(secs(1), secs(40));
    assert_eq!(learned(&mut world).last(), Some(&1399));
}

#[test]
fn a_path_that_becomes_wider_is_tried_again_after_ten_minutes() {
    let mut world = world(1400);
    world.run(secs(60));
    assert_eq!(learned(&mut world).last(), Some(&1399));
    world.network.longest = 1500;
    world.run(secs(530));
    assert_eq!(learned(&mut world), []);
    world.run(secs(60));
    assert_eq!(learned(&mut world), [1472]);
}

#[test]
fn what_is_too_long_arrives_in_parts() {
    let mut world = world(1300);
    world.run(secs(60));
    for length in [1200, 1300, 3000, 60_000] {
        assert_eq!(world.send(0, length), Ok(()));
        world.run(secs(1));
    }
    assert_eq!(world.ends[1].opened.len(), 4);
    // One part of many is lost.
    world.network.loss = 0.3;
    assert_eq!(world.send(0, 60_000), Ok(()));
    world.run(secs(1));
    assert_eq!(world.ends[1].opened.len(), 4);
}

#[test]
fn an_outage_says_nothing_of_lengths() {
    let mut world = world(1472);
    world.run(secs(5));
    learned(&mut world);
    for _ in 0..10 {
        world.network.loss = 1.0;
        world.run(secs(21));
        world.network.loss = 0.0;
        world.exchange(secs(1), secs(12));
    }
    assert_eq!(learned(&mut world), []);
}

#[test]
fn where_an_end_moves_the_search_begins_again() {
    let mut world = world(1472);
    world.run(secs(5));
    world.ends[1].longest.clear();
    world.ends[0].place += 1;
    world.network.longest = 1300;
    assert_eq!(world.send(0, 1000), Ok(()));
    world.run(secs(40));
    let [first, .., last] = world.ends[1].longest[..] else { panic!("nothing was learned") };
    assert_eq!((first, (1296..=1300).contains(&last)), (1252, true), "{last}");
}
