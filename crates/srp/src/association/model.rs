//! A bounded model check of two ends, breadth-first over everything that a hop and the users of streams
//! may do within a bound: PDUs arrive in any order, are lost and duplicated; deadlines pass early or late; a
//! stream is reset, an end is suspended, an association is renewed or ended, or an end loses its memory.
//!
//! It drives associations themselves. Time stands still, so that states differ by what is known and not by
//! when it was learnt: a deadline passes when the search chooses so. The hop is fast and of known rate.
//!
//! In every state, what is read is in order and each byte once, nothing follows the end of a stream, and a SACK
//! that arrives again changes nothing. From every state, if the hop loses nothing from then on, each stream ends
//! at both ends, with all its data or with a reset, and no end holds anything afterwards.

mod bound;
mod outcome;
mod search;
mod user;
mod world;

use bound::{Bound, Budget};
use search::{Found, Search};

/// Nothing goes wrong.
const NONE: Budget = Budget {
    losses: 0,
    duplicates: 0,
    deadlines: 0,
    resets: 0,
    suspensions: 0,
    renewals: 0,
    aborts: 0,
    crashes: 0,
};

/// A stream of the opener, with a segment of data in each direction, over an open association.
const ONE: Bound = Bound {
    streams: &[(0, [1, 1])],
    is_open: true,
    refuses: false,
    holds: false,
    window: 2,
    reordered: 2,
    budget: NONE,
    depth: 100,
};

/// A stream over an association that is being opened.
const OPENING: Bound = Bound { is_open: false, ..ONE };

/// A stream of each end.
const BOTH: Bound = Bound { streams: &[(0, [1, 0]), (1, [1, 0])], ..ONE };

/// A stream with more data than its window.
const LONG: Bound = Bound { streams: &[(0, [4, 0])], ..ONE };

/// Searches within a bound; the count of states is printed. A search without a limit of its depth ends where
/// nothing can happen any more.
fn search(name: &str, bound: &Bound) {
    let Found { states, depth, at_rest } = Search::run(bound);
    println!("{name}: {states} states, {depth} moves deep, {at_rest} at rest");
    assert!(at_rest > 0 || depth == bound.depth, "{name}");
}

#[test]
fn a_stream_is_whole_in_whatever_order_pdus_arrive() {
    search("opening", &Bound { streams: &[(0, [2, 1])], reordered: 3, depth: 12, ..OPENING });
    search("one", &Bound { streams: &[(0, [2, 1])], ..ONE });
    search("both", &Bound { depth: 9, ..BOTH });
    search("long", &Bound { depth: 14, ..LONG });
    search("held ends", &Bound { holds: true, ..ONE });
}

#[test]
fn losses_duplicates_and_timeouts_change_no_outcome() {
    let lost = Budget { losses: 1, deadlines: 1, ..NONE };
    search("lost", &Bound { budget: lost, depth: 10, ..ONE });
    // Nothing is lost, and in order: nothing is sent again, however early timeouts come.
    let early = Budget { deadlines: 3, ..NONE };
    search("early", &Bound { reordered: 1, budget: early, ..ONE });
    search("duplicated", &Bound { budget: Budget { duplicates: 1, ..NONE }, ..ONE });
    let all = Budget { losses: 1, duplicates: 1, deadlines: 1, ..NONE };
    search("opening", &Bound { budget: all, depth: 8, ..OPENING });
}

#[test]
fn a_reset_reaches_the_other_end() {
    let reset = Budget { resets: 1, ..NONE };
    search("reset", &Bound { budget: reset, ..ONE });
    search("reset of a held end", &Bound { budget: reset, holds: true, depth: 12, ..ONE });
    search("refused", &Bound { budget: reset, refuses: true, ..ONE });
    let aborted = Budget { aborts: 1, losses: 1, ..NONE };
    search("aborted", &Bound { budget: aborted, ..ONE });
    let late = Budget { deadlines: 1, ..aborted };
    search("aborted while opening", &Bound { budget: late, depth: 10, ..OPENING });
}

#[test]
fn a_handoff_changes_no_outcome() {
    let suspended = Budget { suspensions: 1, ..NONE };
    search("suspended", &Bound { budget: suspended, depth: 11, ..ONE });
}

#[test]
fn an_association_that_is_made_anew_carries_its_streams_on() {
    let renewed = Budget { renewals: 1, ..NONE };
    search("renewed", &Bound { budget: renewed, depth: 9, ..ONE });
    search("renewed, longer", &Bound { budget: renewed, depth: 7, ..LONG });
    search("renewed, both", &Bound { budget: renewed, depth: 7, ..BOTH });
    search("renewed, held ends", &Bound { budget: renewed, holds: true, depth: 8, ..ONE });
    search("renewed while opening", &Bound { budget: renewed, depth: 9, ..OPENING });
    let lost = Budget { losses: 1, deadlines: 1, ..renewed };
    search("renewed, lost", &Bound { budget: lost, depth: 6, ..ONE });
    let again = Budget { renewals: 2, ..NONE };
    search("renewed twice", &Bound { budget: again, depth: 7, ..ONE });
    let reset = Budget { resets: 1, ..renewed };
    search("renewed, reset", &Bound { budget: reset, depth: 7, ..ONE });
    search("renewed, refused", &Bound { budget: reset, refuses: true, depth: 7, ..ONE });
    let crashed = Budget { crashes: 1, ..renewed };
    search("renewed, crashed", &Bound { budget: crashed, depth: 6, ..ONE });
}

/// A late OPEN must not be in flight to the acceptor: one end of an association would then be older than the
/// other. The owner sees to it, if it may restart: MHP's base stations have an incarnation.
#[test]
fn an_end_whose_peer_has_lost_its_memory_is_reset() {
    let crashed = Budget { crashes: 1, losses: 1, ..NONE };
    search("crashed", &Bound { budget: crashed, ..ONE });
    search("crashed while opening", &Bound { budget: Budget { crashes: 1, ..NONE }, ..OPENING });
}

/// Minutes: `make soak`.
#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn the_same_within_larger_bounds() {
    let lost = Budget { losses: 1, deadlines: 1, ..NONE };
    let long = Bound { streams: &[(0, [2, 1])], ..ONE };
    search("lost", &Bound { budget: lost, ..ONE });
    search("lost, longer", &Bound { budget: lost, depth: 13, ..long });
    let all = Budget { losses: 2, duplicates: 1, deadlines: 2, ..NONE };
    search("all", &Bound { budget: all, depth: 9, ..OPENING });
    search("reordered", &Bound { streams: &[(0, [2, 1])], reordered: 4, ..ONE });
    search("both", &Bound { depth: 14, ..BOTH });
    let reset = Budget { resets: 2, losses: 1, ..NONE };
    search("reset", &Bound { budget: reset, depth: 12, ..ONE });
    let suspended = Budget { suspensions: 2, losses: 1, ..NONE };
    search("suspended", &Bound { budget: suspended, depth: 11, ..ONE });
    let renewed = Budget { renewals: 2, losses: 1, duplicates: 1, ..NONE };
    search("renewed", &Bound { budget: renewed, depth: 9, ..ONE });
    search("renewed, both", &Bound { budget: renewed, depth: 9, ..BOTH });
    let reset = Budget { renewals: 1, resets: 2, losses: 1, ..NONE };
    search("renewed, reset", &Bound { budget: reset, depth: 9, ..ONE });
    let aborted = Budget { aborts: 1, losses: 1, deadlines: 1, ..NONE };
    search("aborted", &Bound { budget: aborted, depth: 13, ..OPENING });
    let crashed = Budget { crashes: 1, losses: 1, deadlines: 1, ..NONE };
    search("crashed", &Bound { budget: crashed, depth: 13, ..ONE });
}
