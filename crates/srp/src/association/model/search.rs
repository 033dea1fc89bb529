//! The search is breadth-first, so that a failure is reported with a shortest way to it.

use super::bound::Bound;
use super::world::{Move, World};
use std::collections::{HashSet, VecDeque};

/// The result of a search.
pub(super) struct Found {
    pub(super) states: usize,
    /// Moves to the state that is farthest away.
    pub(super) depth: usize,
    /// States in which nothing more can happen.
    pub(super) at_rest: usize,
}

/// The states seen so far, by 128 bits of hash, and the last move to each.
pub(super) struct Search<'a> {
    bound: &'a Bound,
    seen: HashSet<u128>,
    ways: Vec<(usize, Option<Move>)>,
    queue: VecDeque<(usize, usize, World)>,
    found: Found,
}

impl Search<'_> {
    /// Visits all states within a bound.
    ///
    /// # Panics
    /// If a state is not as it has to be.
    pub(super) fn run(bound: &Bound) -> Found {
        let found = Found { states: 0, depth: 0, at_rest: 0 };
        let mut search = Search {
            bound,
            seen: HashSet::default(),
            ways: Vec::new(),
            queue: VecDeque::new(),
            found,
        };
        let world = World::new(bound).unwrap_or_else(|error| panic!("{error}"));
        search.meet((0, None), 0, world);
        while let Some((way, depth, world)) = search.queue.pop_front() {
            search.found.depth = depth;
            let moves = world.moves();
            search.found.at_rest += usize::from(moves.is_empty());
            if depth == bound.depth {
                continue;
            }
            for it in moves {
                let mut next = world.clone();
                match next.apply(it) {
                    Ok(()) => search.meet((way, Some(it)), depth + 1, next),
                    Err(error) => search.fail((way, Some(it)), &error),
                }
            }
        }
        search.found.states = search.ways.len();
        search.found
    }

    /// A state that may be new.
    fn meet(&mut self, from: (usize, Option<Move>), depth: usize, world: World) {
        let fingerprint = world.fingerprint();
        if !self.seen.insert(fingerprint) {
            return;
        }
        // As long as a PDU is in flight, one of the states that follow is that in which it has arrived. Some are
        // run all the same, so that a circle of such states is noticed.
        let is_run =
            world.is_quiet() || depth == self.bound.depth || fingerprint.is_multiple_of(16);
        if is_run && let Err(error) = world.clone().settles() {
            self.fail(from, &error);
        }
        self.queue.push_back((self.ways.len(), depth, world));
        self.ways.push(from);
    }

    /// Reports a failure with the moves that lead to it.
    fn fail(&self, (mut from, mut it): (usize, Option<Move>), error: &str) -> ! {
        let mut moves = Vec::new();
        while let Some(step) = it {
            moves.push(step);
            (from, it) = self.ways[from];
        }
        let mut text = String::new();
        if let Ok(mut world) = World::new(self.bound) {
            for step in moves.into_iter().rev() {
                text += &format!("  {}\n", world.describe(step));
                if world.apply(step).is_err() {
                    break;
                }
            }
        }
        panic!("{error}\n{text}");
    }
}
