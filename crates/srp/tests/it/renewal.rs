//! An association that is made anew at a handoff.

use crate::hop::{Hop, Loss};
use crate::world::{TOKEN, User, World};
use base::{Duration, Events, Rate, Seed};
use srp::{Association, Config, StreamId};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A hop of 10 Mbit/s and a round trip of 100 ms, with an open association.
fn world(loss: f64) -> World {
    let hop = |name| {
        Hop::new(Rate::from_bps(10_000_000), millis(50), Loss::Uniform(loss), Seed(3).stream(name))
    };
    let config = Config { rate: Rate::from_bps(10_000_000), ..Config::default() };
    let mut world = World::new([config.clone(), config], [hop("there"), hop("back")]);
    world.is_on_wire = true;
    world.settle(0);
    world.run(world.now + millis(200));
    world
}

fn open(world: &mut World, connection: u16, [up, down]: [u64; 2]) -> StreamId {
    let user = User { connection, reads: u32::MAX, ..User::default() };
    let users = [up, down].map(|to_write| User { to_write, ..user.clone() });
    world.open(0, users).expect("there is room")
}

/// The hop is down for 300 ms, and the other end continues at another station, which waits for the opener.
fn hand_off(world: &mut World, renews: bool) {
    let now = world.local(0);
    world.association(0).suspend(now);
    world.is_down = true;
    world.run(world.now + millis(300));
    world.is_down = false;
    let now = world.local(1);
    let adopted = Association::adopt(world.association(1).snapshot(now), now);
    world.ends[1].association = Some(adopted.expect("it is of this version"));
    let (there, here) = (world.local(1), world.local(0));
    match renews {
        true => {
            world.association(1).await_renewal(there);
            world.settle(1);
            world.association(0).renew(here);
        }
        false => {
            world.association(1).resume(there);
            world.settle(1);
            world.association(0).resume(here);
        }
    }
    world.settle(0);
}

/// Whether a connection has all of both directions, and both ends were told so.
fn assert_whole(world: &World, connection: u16) {
    let users = world.ends.each_ref().map(|end| {
        let user = end.users.values().find(|user| user.connection == connection);
        user.expect("it was opened")
    });
    for (user, peer) in [(users[0], users[1]), (users[1], users[0])] {
        assert_eq!(user.read, peer.to_write);
        let all = Events::PEER_CLOSED | Events::FINISHED | Events::CLOSED;
        assert!(user.events.contains(all) && !user.events.contains(Events::RESET), "{user:?}");
    }
}

#[test]
fn its_streams_go_on_and_its_estimates_begin_again() {
    let mut world = world(0.05);
    open(&mut world, 1, [2_000_000, 1_000_000]);
    world.run(world.now + millis(800));
    let known = |world: &mut World, end| {
        let association = world.association(end);
        (association.rtt().is_some(), association.loss().is_some())
    };
    assert_eq!(known(&mut world, 0), (true, true));
    hand_off(&mut world, true);
    assert_eq!(known(&mut world, 0), (false, false));
    assert_eq!((world.association(0).token(), world.association(1).token()), (TOKEN + 1, TOKEN));
    assert!(!world.association(0).is_open() && !world.association(1).is_open());
    world.run(world.now + millis(400));
    assert_eq!([0, 1].map(|end| world.association(end).token()), [TOKEN + 1; 2]);
    assert_eq!([0, 1].map(|end| known(&mut world, end)), [(true, true); 2]);
    world.run(world.now + millis(10_000));
    assert_whole(&world, 1);
}

/// Nothing that is in order at the other end is sent again, and all the rest is.
#[test]
fn what_the_other_end_has_is_not_sent_again() {
    let mut world = world(0.0);
    open(&mut world, 1, [1_000_000, 0]);
    world.run(world.now + millis(400));
    hand_off(&mut world, true);
    let received = |world: &mut World| world.association(1).statistics().received;
    let before = received(&mut world);
    world.run(world.now + millis(10_000));
    assert_whole(&world, 1);
    let segments = 1_000_000_u64.div_ceil(1436);
    // Without loss, all that has arrived was in order. Opening, acceptance, ends and continuation are segments, too.
    let arrived = received(&mut world);
    assert!((segments..segments + 10).contains(&arrived), "{segments} {before} {arrived}");
    assert_eq!(world.association(1).statistics().duplicates, 0);
}

/// A round trip shows what the other end has, and half of one brings it data. A new association costs the end that has
/// not opened it half a round trip more.
#[test]
fn data_goes_on_after_a_round_trip_and_a_half_or_two() {
    for (renews, most) in [(false, [160, 160]), (true, [160, 210])] {
        for (up, most) in [([4_000_000, 0], most[0]), ([0, 4_000_000], most[1])] {
            let mut world = world(0.0);
            open(&mut world, 1, up);
            world.run(world.now + millis(800));
            hand_off(&mut world, renews);
            let read = |world: &World| {
                world
                    .ends
                    .iter()
                    .flat_map(|end| end.users.values())
                    .map(|user| user.read)
                    .sum::<u64>()
            };
            let (began, before) = (world.now, read(&world));
            while read(&world) == before {
                assert!(world.now < began + millis(1000), "{renews} {up:?}");
                world.run(world.now + millis(1));
            }
            let took = world.now.since(began);
            assert!(took <= millis(most), "{renews} {up:?}: {took}");
        }
    }
}

/// The opening, the end and the reset of a stream are under way, and everything is lost.
#[test]
fn what_was_under_way_is_settled() {
    for before in [0, 60, 110, 160, 210, 260] {
        let mut world = world(0.0);
        open(&mut world, 1, [100, 100]);
        let reset = open(&mut world, 2, [3_000_000, 0]);
        world.run(world.now + millis(before));
        world.abort(0, reset);
        open(&mut world, 3, [0, 0]);
        hand_off(&mut world, true);
        world.run(world.now + millis(5000));
        assert_whole(&world, 1);
        assert_whole(&world, 3);
        let resets = world.ends[1].users.values().filter(|user| user.connection == 2);
        assert!(resets.clone().all(|user| user.events.contains(Events::RESET)), "{before}");
        assert_eq!([0, 1].map(|end| world.association(end).held_streams()), [0; 2], "{before}");
    }
}

/// It was renewed where the opener is now, and nothing of that has arrived; the next renewal counts.
#[test]
fn a_later_renewal_supersedes_an_earlier_one() {
    let mut world = world(0.0);
    open(&mut world, 1, [1_000_000, 1_000_000]);
    world.run(world.now + millis(400));
    hand_off(&mut world, true);
    world.run(world.now + millis(20));
    hand_off(&mut world, true);
    world.run(world.now + millis(60));
    hand_off(&mut world, true);
    assert_eq!(world.association(0).token(), TOKEN + 3);
    world.run(world.now + millis(10_000));
    assert_eq!(world.association(1).token(), TOKEN + 3);
    assert_whole(&world, 1);
}

#[test]
fn an_end_that_waits_for_a_renewal_goes_on_with_a_peer_that_resumes() {
    let mut world = world(0.0);
    open(&mut world, 1, [1_000_000, 1_000_000]);
    world.run(world.now + millis(400));
    let now = world.local(1);
    world.association(1).await_renewal(now);
    assert_eq!(world.association(1).poll_transmit(now), None);
    let now = world.local(0);
    world.association(0).resume(now);
    world.settle(0);
    world.run(world.now + millis(10_000));
    assert_eq!(world.association(1).token(), TOKEN);
    assert_whole(&world, 1);
}

/// Its owner has thought better of it.
#[test]
fn an_end_that_waits_for_a_renewal_goes_on_when_it_is_resumed() {
    let mut world = world(0.0);
    open(&mut world, 1, [1_000_000, 1_000_000]);
    world.run(world.now + millis(400));
    let now = world.local(1);
    world.association(1).await_renewal(now);
    world.association(1).suspend(now);
    world.association(1).resume(now);
    assert!(world.association(1).is_open());
    world.settle(1);
    world.run(world.now + millis(10_000));
    assert_whole(&world, 1);
}
