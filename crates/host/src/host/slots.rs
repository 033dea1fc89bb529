//! The table of a host's connections.

use super::Slot;
use core::ops::{Index, IndexMut};
use serde::{Deserialize, Serialize};

/// The id of a connection of a host; it is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId {
    /// The slot.
    pub(super) index: u32,
    /// The number of earlier connections of the slot.
    pub(super) generation: u32,
}

/// Connections by number. Numbers, unlike ids, are used again.
#[derive(Debug)]
pub(super) struct Slots<A> {
    slots: Vec<Option<Slot<A>>>,
    /// Ids for future connections, the last first.
    vacant: Vec<ConnectionId>,
}

impl<A> Slots<A> {
    pub(super) fn new() -> Slots<A> {
        Slots { slots: Vec::new(), vacant: Vec::new() }
    }

    /// A table of `count` slots, of which only the `vacant` ones will be used.
    pub(super) fn restored(count: usize, vacant: Vec<ConnectionId>) -> Slots<A> {
        Slots { slots: (0..count).map(|_| None).collect(), vacant }
    }

    /// The id of the next connection to be put in.
    pub(super) fn next_id(&self) -> ConnectionId {
        let fresh = ConnectionId { index: self.slots.len() as u32, generation: 0 };
        self.vacant.last().copied().unwrap_or(fresh)
    }

    /// Puts in the connection that has been given [`Slots::next_id`].
    pub(super) fn add(&mut self, slot: Slot<A>) {
        self.vacant.pop();
        self.put(slot);
    }

    /// Puts in a connection where its id says.
    pub(super) fn put(&mut self, slot: Slot<A>) {
        let index = slot.id.index as usize;
        if index == self.slots.len() {
            self.slots.push(Some(slot));
        } else {
            self.slots[index] = Some(slot);
        }
    }

    /// Takes a connection out; its slot is free for another.
    pub(super) fn remove(&mut self, index: u32) -> Option<Slot<A>> {
        let slot = self.slots.get_mut(index as usize)?.take()?;
        self.vacant.push(ConnectionId { generation: slot.id.generation.wrapping_add(1), index });
        Some(slot)
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Slot<A>> {
        self.slots.get(index)?.as_ref()
    }

    /// The connection with this id, if it still exists.
    pub(super) fn find(&self, id: ConnectionId) -> Option<&Slot<A>> {
        self.get(id.index as usize).filter(|slot| slot.id == id)
    }

    pub(super) fn find_mut(&mut self, id: ConnectionId) -> Option<&mut Slot<A>> {
        self.slots.get_mut(id.index as usize)?.as_mut().filter(|slot| slot.id == id)
    }

    /// Two different connections, if both still exist.
    pub(super) fn find_both(&mut self, ids: [ConnectionId; 2]) -> Option<[&mut Slot<A>; 2]> {
        let [first, second] = self.slots.get_disjoint_mut(ids.map(|id| id.index as usize)).ok()?;
        let both = [first.as_mut()?, second.as_mut()?];
        (both[0].id == ids[0] && both[1].id == ids[1]).then_some(both)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<A>> {
        self.slots.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<A>> {
        self.slots.iter_mut().flatten()
    }

    /// The number of slots, the empty ones included.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn vacant(&self) -> &[ConnectionId] {
        &self.vacant
    }
}

const EMPTY: &str = "a number stands for a connection as long as it is in use";

impl<A> Index<usize> for Slots<A> {
    type Output = Slot<A>;

    #[inline]
    fn index(&self, index: usize) -> &Slot<A> {
        self.slots[index].as_ref().expect(EMPTY)
    }
}

impl<A> IndexMut<usize> for Slots<A> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Slot<A> {
        self.slots[index].as_mut().expect(EMPTY)
    }
}
