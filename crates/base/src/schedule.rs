//! The order in which components wake.

use crate::Time;

/// A priority queue of components, each with at most one wake, ordered by (time, component id).
///
/// Every component (a link, a host, a connection) knows its own next event; the schedule holds
/// only *when* each wants to be asked, so it stays as small as the topology. Ties go to the lower
/// id, which is fixed by the order of declaration: adding a component permutes nothing among the
/// others.
///
/// It is a tournament: components are the leaves of a binary tree, and every inner node names the
/// earlier of its two children's winners. A change replays one path to the root, without moving an
/// entry and without a branch that depends on the times.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// When each component wakes; beyond the last, [`Time::NEVER`] up to a power of two.
    wakes: Vec<Time>,
    /// The winner of each inner node: 1 is the root, the children of n are 2 n and 2 n + 1.
    winners: Vec<u32>,
    components: u32,
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
        if self.components as usize > self.wakes.len() {
            let leaves = (self.components as usize).next_power_of_two().max(2);
            self.wakes.resize(leaves, Time::NEVER);
            self.winners = vec![0; leaves];
            for pair in (0..leaves as u32).step_by(2) {
                self.replay(pair);
            }
        }
        id
    }

    /// The earliest wake and whose it is; `(Time::NEVER, _)` if nobody wants to wake.
    #[must_use]
    #[inline]
    pub fn first(&self) -> (Time, u32) {
        match self.winners.get(1) {
            Some(&id) => (self.wakes[id as usize], id),
            None => (Time::NEVER, 0),
        }
    }

    /// Wakes `id` at `time` instead of whenever it was to wake.
    ///
    /// # Panics
    /// If `id` was not returned by [`Schedule::add`].
    #[inline]
    pub fn set(&mut self, id: u32, time: Time) {
        self.wakes[id as usize] = time;
        self.replay(id);
    }

    /// Wakes `id` at `time` if that is earlier than its present wake.
    ///
    /// A component whose deadline moved *later* need not say so: it is woken early, finds nothing
    /// due and calls [`Schedule::set`] then. That makes restarting a timer free.
    #[inline]
    pub fn bring_forward(&mut self, id: u32, time: Time) {
        if time < self.wakes[id as usize] {
            self.set(id, time);
        }
    }

    /// Replays the matches that `id` takes part in.
    #[inline]
    fn replay(&mut self, id: u32) {
        let leaves = self.wakes.len();
        let wakes = self.wakes.as_slice();
        let winners = &mut self.winners[..leaves];
        // The first match is between leaves, which are their own winners.
        let (left, right) = (id & !1, id | 1);
        let earlier = |left: u32, right: u32| {
            if wakes[right as usize] < wakes[left as usize] { right } else { left }
        };
        let mut node = (leaves + id as usize) / 2;
        winners[node] = earlier(left, right);
        while node > 1 {
            node /= 2;
            winners[node] = earlier(winners[2 * node], winners[2 * node + 1]);
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
            }
        }
    }
}
