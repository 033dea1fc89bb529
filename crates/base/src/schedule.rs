//! The order in which components wake.

use crate::Time;

/// A priority queue of components, each with at most one wake, ordered by (time, component id).
///
/// Every component (a link, a host, a connection) knows its own next event; the schedule holds
/// only *when* each wants to be asked, so it stays as small as the topology and an event's
/// successor replaces the top in place. Ties go to the lower id, which is fixed by the order of
/// declaration: adding a component permutes nothing among the others.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    heap: Vec<Entry>,
    /// Where each component stands in `heap`.
    position: Vec<u32>,
}

type Entry = (Time, u32);

impl Schedule {
    /// An empty schedule.
    #[must_use]
    pub fn new() -> Schedule {
        Schedule::default()
    }

    /// Adds a component that wakes [`Time::NEVER`] and returns its id: 0, 1, 2, ...
    pub fn add(&mut self) -> u32 {
        let id = u32::try_from(self.position.len()).expect("fewer than 2^32 components");
        self.position.push(id);
        self.heap.push((Time::NEVER, id));
        id
    }

    /// The earliest wake and whose it is; `(Time::NEVER, _)` if nobody wants to wake.
    #[must_use]
    #[inline]
    pub fn first(&self) -> (Time, u32) {
        self.heap.first().copied().unwrap_or((Time::NEVER, u32::MAX))
    }

    /// Wakes `id` at `time` instead of whenever it was to wake.
    ///
    /// # Panics
    /// If `id` was not returned by [`Schedule::add`].
    #[inline]
    pub fn set(&mut self, id: u32, time: Time) {
        let at = self.position[id as usize] as usize;
        let old = self.heap[at].0;
        if time < old {
            self.sift_up(at, (time, id));
        } else if time > old {
            self.sift_down(at, (time, id));
        }
    }

    /// Wakes `id` at `time` if that is earlier than its present wake.
    ///
    /// A component whose deadline moved *later* need not say so: it is woken early, finds nothing
    /// due and calls [`Schedule::set`] then. That makes restarting a timer free.
    #[inline]
    pub fn bring_forward(&mut self, id: u32, time: Time) {
        let at = self.position[id as usize] as usize;
        if time < self.heap[at].0 {
            self.sift_up(at, (time, id));
        }
    }

    fn sift_up(&mut self, mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= entry {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    fn sift_down(&mut self, mut at: usize, entry: Entry) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if entry <= self.heap[child] {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    #[inline]
    fn place(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.position[entry.1 as usize] = at as u32;
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
