//! The order in which components wake.

use crate::Time;
use core::hint::select_unpredictable;

/// A priority queue of components, each with at most one wake, ordered by (time, component id).
///
/// Every component (a link, a host, a connection) knows its own next event; the schedule holds
/// only *when* each wants to be asked, so it stays as small as the topology. Ties go to the lower
/// id, which is fixed by the order of declaration: adding a component permutes nothing among the
/// others.
///
/// It is a tournament tree of blocks of four. Components are the leaves; each block holds the
/// earliest of each of the four blocks below. A change replays one path to the root, without moving
/// another entry and without a branch that depends on the times. The four entries of a block are
/// adjacent in memory.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// 0 is the root, the blocks below n are 4 n + 1 and the three that follow.
    blocks: Vec<Block>,
    /// The first block of the lowest layer, whose entries are the components.
    lowest: u32,
    components: u32,
    /// The winner of the root.
    first: (Time, u32),
}

/// Four components, or the winners of four blocks, in the order of their ids.
#[derive(Clone, Copy, Debug)]
struct Block {
    wakes: [Time; 4],
    ids: [u32; 4],
}

impl Block {
    const EMPTY: Block = Block { wakes: [Time::NEVER; 4], ids: [0; 4] };

    #[inline]
    fn first(&self) -> (Time, u32) {
        let [a, b, c, d] = self.wakes;
        let (low, high) = (a.min(b), c.min(d));
        let place = select_unpredictable(high < low, 2 + usize::from(d < c), usize::from(b < a));
        (low.min(high), self.ids[place])
    }
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { blocks: vec![Block::EMPTY], lowest: 0, components: 0, first: (Time::NEVER, 0) }
    }
}

impl Schedule {
    /// An empty schedule.
    #[must_use]
    pub fn new() -> Schedule {
        Schedule::default()
    }

    /// Adds a component that wakes [`Time::NEVER`] and returns its id: 0, 1, 2, ...
    pub fn add(&mut self) -> u32 {
        let id = self.components;
        self.components += 1;
        let room = 4 * (self.blocks.len() as u32 - self.lowest);
        if id == room {
            self.grow();
        }
        self.set(id, Time::NEVER);
        id
    }

    /// Puts a layer four times as wide below the lowest.
    fn grow(&mut self) {
        let old = self.blocks.split_off(self.lowest as usize);
        let width = old.len();
        self.blocks.resize(self.lowest as usize + width, Block::EMPTY);
        self.lowest = self.blocks.len() as u32;
        self.blocks.extend(old);
        self.blocks.resize(self.lowest as usize + 4 * width, Block::EMPTY);
        // The layers above are replayed, too, because their blocks have other children now.
        for block in self.lowest..self.blocks.len() as u32 {
            let Block { wakes, ids } = self.blocks[block as usize];
            self.replay(block, 0, (wakes[0], ids[0]));
        }
    }

    /// The earliest wake and its component; `(Time::NEVER, _)` if there is none.
    #[must_use]
    #[inline]
    pub fn first(&self) -> (Time, u32) {
        self.first
    }

    /// When `id` wakes.
    #[inline]
    #[must_use]
    pub fn wake(&self, id: u32) -> Time {
        self.blocks[(self.lowest + id / 4) as usize].wakes[(id % 4) as usize]
    }

    /// Whether `id`, which wakes until `time`, is the only one that does.
    #[inline]
    #[must_use]
    pub fn is_only_until(&self, id: u32, time: Time) -> bool {
        let mut block = self.lowest + id / 4;
        loop {
            let wakes = &self.blocks[block as usize].wakes;
            // On the way up, each block has `id` or its winner.
            if wakes.iter().map(|&wake| u32::from(wake <= time)).sum::<u32>() != 1 {
                return false;
            }
            if block == 0 {
                return true;
            }
            block = (block - 1) / 4;
        }
    }

    /// Wakes `id` at `time` instead of whenever it was to wake.
    ///
    /// # Panics
    /// If `id` was not returned by [`Schedule::add`].
    #[inline]
    pub fn set(&mut self, id: u32, time: Time) {
        self.replay(self.lowest + id / 4, id % 4, (time, id));
    }

    /// Wakes `id` at `time` if that is earlier than its present wake.
    ///
    /// A component whose deadline moved *later* need not say so: it is woken early, finds nothing
    /// due and calls [`Schedule::set`] then. That makes restarting a timer free.
    #[inline]
    pub fn bring_forward(&mut self, id: u32, time: Time) {
        if time < self.blocks[(self.lowest + id / 4) as usize].wakes[(id % 4) as usize] {
            self.set(id, time);
        }
    }

    /// Replays the matches from `block` up, in which an entry is now another.
    #[inline]
    fn replay(&mut self, mut block: u32, mut entry: u32, mut wake: (Time, u32)) {
        loop {
            let four = &mut self.blocks[block as usize];
            (four.wakes[entry as usize], four.ids[entry as usize]) = wake;
            wake = four.first();
            if block == 0 {
                self.first = wake;
                return;
            }
            (block, entry) = ((block - 1) / 4, (block - 1) % 4);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_component_declared_first() {
        let mut schedule = Schedule::new();
        let ids: Vec<u32> = (0..5).map(|_| schedule.add()).collect();
        for &id in ids.iter().rev() {
            schedule.set(id, Time::from_nanos(7));
        }
        for &id in &ids {
            assert_eq!(schedule.first(), (Time::from_nanos(7), id));
            schedule.set(id, Time::NEVER);
        }
        assert_eq!(schedule.first().0, Time::NEVER);
    }

    #[test]
    fn components_may_be_added_while_others_wait() {
        for count in 1..300 {
            let mut schedule = Schedule::new();
            for time in 0..count {
                let id = schedule.add();
                schedule.set(id, Time::from_nanos(time));
            }
            for id in 0..count {
                assert_eq!(schedule.first(), (Time::from_nanos(id), id as u32));
                schedule.set(id as u32, Time::NEVER);
            }
            assert_eq!(schedule.first().0, Time::NEVER, "{count}");
        }
    }

    proptest! {
        #[test]
        fn the_first_is_always_the_least(
            operations in prop::collection::vec((0u32..20, 0u64..50, any::<bool>()), 1..300)
        ) {
            let mut schedule = Schedule::new();
            let mut model = [Time::NEVER; 20];
            for _ in 0..20 {
                schedule.add();
            }
            for (id, nanos, only_earlier) in operations {
                let time = Time::from_nanos(nanos);
                if only_earlier {
                    schedule.bring_forward(id, time);
                    model[id as usize] = model[id as usize].min(time);
                } else {
                    schedule.set(id, time);
                    model[id as usize] = time;
                }
                let least = model.iter().enumerate().map(|(id, &t)| (t, id as u32)).min();
                prop_assert_eq!(Some(schedule.first()), least);
                let until = model[id as usize];
                let others = model.iter().filter(|&&wake| wake <= until).count() - 1;
                prop_assert_eq!(schedule.is_only_until(id, until), others == 0);
            }
        }
    }
}
