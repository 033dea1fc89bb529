//! The search is breadth-first, so that the first witness of a hole is a shortest one.

use super::{Bound, Hole, World};
use crate::mechanism::rlci::model::world::Move;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// The result of a search.
pub(super) struct Found {
    pub(super) states: usize,
    pub(super) at_rest: usize,
    /// For each hole, a shortest sequence of moves into it.
    pub(super) witnesses: BTreeMap<Hole, Vec<String>>,
}

impl Found {
    pub(super) fn holes(&self) -> Vec<Hole> {
        self.witnesses.keys().copied().collect()
    }

    pub(super) fn way(&self, hole: Hole) -> String {
        self.witnesses[&hole].join(", ")
    }
}

/// The states seen so far, by 128 bits of hash, and the last move to each.
pub(super) struct Search {
    bound: Bound,
    seen: HashSet<u128, BuildHasherDefault<DefaultHasher>>,
    ways: Vec<(usize, Option<Move>)>,
    queue: VecDeque<(usize, World)>,
    found: Found,
}

/// Two hashes that differ in what they begin with.
fn fingerprint(world: &World) -> u128 {
    let [high, low] = [0_u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        world.hash(&mut hasher);
        u128::from(hasher.finish())
    });
    high << 64 | low
}

impl Search {
    pub(super) fn run(bound: Bound) -> Found {
        let found = Found { states: 0, at_rest: 0, witnesses: BTreeMap::new() };
        let mut search = Search {
            bound,
            seen: HashSet::default(),
            ways: Vec::new(),
            queue: VecDeque::new(),
            found,
        };
        search.meet(0, None, World::new(&bound));
        while let Some((way, mut world)) = search.queue.pop_front() {
            for it in world.moves(&bound) {
                let mut next = world.clone();
                next.apply(it);
                search.meet(way, Some(it), next);
            }
        }
        search.found.states = search.ways.len();
        search.found
    }

    /// A state that may be new.
    fn meet(&mut self, from: usize, it: Option<Move>, mut world: World) {
        if !self.seen.insert(fingerprint(&world)) {
            return;
        }
        let way = self.ways.len();
        self.ways.push((from, it));
        if !self.bound.chatty && world.is_at_rest() {
            self.found.at_rest += 1;
            if let Some(hole) = world.hole()
                && !self.found.witnesses.contains_key(&hole)
            {
                let witness = self.trace(way);
                self.found.witnesses.insert(hole, witness);
            }
        }
        if self.bound.chatty || !self.bound.strict {
            world.verify_agreement();
        }
        self.queue.push_back((way, world));
    }

    /// The moves that lead to a state.
    fn trace(&self, way: usize) -> Vec<String> {
        let mut moves = Vec::new();
        let (mut from, mut it) = self.ways[way];
        while let Some(step) = it {
            moves.push(step);
            (from, it) = self.ways[from];
        }
        let mut world = World::new(&self.bound);
        let steps = moves.iter().rev().map(|&step| {
            let description = world.describe(step);
            world.apply(step);
            description
        });
        steps.collect()
    }
}
