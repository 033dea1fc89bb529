//! A model check of the agreement between two ends, breadth-first over everything that a network may do
//! to their segments within a bound. It drives the rules themselves, by their hooks.
//!
//! Ends are quiet, and send only what the rules ask for, or chatty, and send whenever they like. A
//! segment of either may have the timestamp of the one before, or a later one. Timestamps count by their
//! order alone, so that the states are finite.

mod search;
mod world;

use search::{Found, Search};
use world::{Bound, Hole, World};

/// Two indications at each end, two losses, one segment doubled, any order.
const BOUND: Bound = Bound {
    strict: false,
    chatty: false,
    equal_stamps: true,
    indications: 2,
    losses: 2,
    doubles: 1,
    flying: 2,
};

/// What is found within a bound; the count of states is printed.
fn search(bound: Bound) -> Found {
    let found = Search::run(bound);
    println!("{bound:?}: {} states, {} at rest", found.states, found.at_rest);
    found
}

#[test]
fn mended_quiet_ends_agree_on_every_indication() {
    let found = search(BOUND);
    assert!(found.at_rest > 0);
    assert_eq!(found.holes(), [], "{:?}", found.witnesses);
}

#[test]
fn mended_chatty_ends_agree_on_every_indication() {
    assert!(search(Bound { chatty: true, indications: 1, ..BOUND }).states > 1000);
}

#[test]
fn strict_ends_that_keep_sending_agree_on_what_they_have_accepted() {
    // Asserted of every state.
    assert!(search(Bound { strict: true, chatty: true, ..BOUND }).states > 1000);
}

#[test]
fn strict_quiet_ends_have_three_holes_and_no_other() {
    let found = search(Bound { strict: true, equal_stamps: false, ..BOUND });
    assert_eq!(found.holes(), [Hole::Lost, Hole::Idle, Hole::Flapped]);
    let witness = |hole| found.witnesses[&hole].join(", ");
    // (a) The pure ACK that carries it is lost, and nothing more is sent.
    assert_eq!(witness(Hole::Lost), "first is told, first's segment 0 is lost");
    // (b) The echo waits for a segment to be acknowledged by; the next indication is ignored.
    assert_eq!(
        witness(Hole::Idle),
        "first is told, first's segment 0 arrives, second's segment 0 arrives, first is told"
    );
    // (c) The link flaps before the echo is there: the second indication is ignored.
    assert_eq!(
        witness(Hole::Flapped),
        "first is told, first is told, first's segment 0 arrives, second's segment 0 arrives"
    );
}

#[test]
fn without_losses_only_a_loss_is_no_hole() {
    let found = search(Bound { strict: true, equal_stamps: false, losses: 0, ..BOUND });
    assert_eq!(found.holes(), [Hole::Idle, Hole::Flapped]);
}

/// Minutes: `make soak`.
#[test]
#[ignore = "takes minutes"]
fn the_same_within_larger_bounds() {
    let larger = Bound { losses: 3, doubles: 2, flying: 3, ..BOUND };
    let three = Bound { indications: 3, ..BOUND };
    for bound in [larger, three, Bound { chatty: true, ..BOUND }] {
        assert_eq!(search(bound).holes(), []);
    }
    let strict = Bound { strict: true, equal_stamps: false, ..three };
    assert_eq!(search(strict).holes(), [Hole::Lost, Hole::Idle, Hole::Flapped]);
    search(Bound { chatty: true, ..strict });
}

#[test]
#[ignore = "measure"]
fn measure() {
    for (strict, chatty, equal_stamps, indications, losses, doubles, flying) in [
        (true, false, false, 2, 2, 1, 2),
        (true, false, true, 2, 2, 1, 2),
        (false, false, false, 1, 1, 1, 2),
        (false, false, true, 1, 1, 1, 2),
        (false, false, false, 1, 2, 1, 2),
        (true, true, false, 1, 1, 0, 1),
        (false, true, false, 1, 1, 0, 1),
        (true, true, false, 1, 1, 1, 2),
        (false, true, false, 1, 1, 1, 2),
        (false, false, false, 2, 1, 0, 2),
        (false, false, false, 2, 1, 1, 2),
        (true, true, false, 2, 1, 1, 2),
    ] {
        search(Bound { strict, chatty, equal_stamps, indications, losses, doubles, flying });
    }
}
