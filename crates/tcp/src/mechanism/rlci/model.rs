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

/// Two indications at each end, a loss, any order.
const BOUND: Bound = Bound {
    strict: false,
    chatty: false,
    equal_stamps: false,
    indications: 2,
    losses: 1,
    doubles: 0,
    flying: 2,
};

/// One indication at each end, but two losses, one duplicated segment, and timestamps that may be
/// equal in consecutive segments.
const COARSE: Bound = Bound { equal_stamps: true, indications: 1, losses: 2, doubles: 1, ..BOUND };

/// What is found within a bound; the count of states is printed.
fn search(bound: Bound) -> Found {
    let found = Search::run(bound);
    println!("{bound:?}: {} states, {} at rest", found.states, found.at_rest);
    found
}

#[test]
fn corrected_quiet_ends_agree_on_every_indication() {
    for bound in [BOUND, COARSE] {
        let found = search(bound);
        assert!(found.at_rest > 0);
        assert_eq!(found.holes(), [], "{:?}", found.witnesses);
    }
}

#[test]
fn strict_ends_that_keep_sending_agree_on_what_they_have_accepted() {
    // Asserted of every state. (Corrected ends send all that by themselves.)
    for bound in [BOUND, Bound { losses: 1, ..COARSE }] {
        assert!(search(Bound { strict: true, chatty: true, ..bound }).states > 1000);
    }
}

#[test]
fn strict_quiet_ends_have_three_holes_and_no_other() {
    let strict = Bound { strict: true, losses: 2, doubles: 1, ..BOUND };
    let found = search(strict);
    assert_eq!(found.holes(), [Hole::Lost, Hole::Idle, Hole::Flapped]);
    // (a) The pure ACK that carries it is lost, and nothing more is sent.
    assert_eq!(found.way(Hole::Lost), "first gets an indication, first's segment 0 is lost");

    let found = search(Bound { losses: 0, ..strict });
    assert_eq!(found.holes(), [Hole::Idle, Hole::Flapped]);
    // (b) The echo waits for a segment to be acknowledged by; the next indication is ignored.
    assert_eq!(
        found.way(Hole::Idle),
        "first gets an indication, first's segment 0 arrives, second's segment 0 arrives, \
         first gets an indication"
    );
    // (c) The link flaps before the echo is there: the second indication is ignored.
    assert_eq!(
        found.way(Hole::Flapped),
        "first gets an indication, first gets an indication, first's segment 0 arrives, \
         second's segment 0 arrives"
    );
}

/// Minutes: `make soak`.
#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn the_same_within_larger_bounds() {
    let losses = Bound { losses: 2, doubles: 1, ..BOUND };
    let coarse = Bound { equal_stamps: true, doubles: 1, ..BOUND };
    let flying = Bound { flying: 3, ..COARSE };
    for bound in [losses, coarse, flying] {
        let found = search(bound);
        assert_eq!(found.holes(), [], "{:?}", found.witnesses);
        search(Bound { chatty: true, strict: true, ..bound });
    }
    let strict = Bound { strict: true, indications: 3, losses: 3, doubles: 2, ..BOUND };
    assert_eq!(search(strict).holes(), [Hole::Lost, Hole::Idle, Hole::Flapped]);
}
