//! A queue in an array, for entries that are pushed and popped once per packet.

use serde::{Deserialize, Serialize};

/// A first-in, first-out queue. Its entries have the numbers 0, 1, 2, ... in the order of pushing.
///
/// Its room is a power of two and the numbers never wrap, so that finding an entry is a mask: that
/// makes it leaner than the standard library's ring. An entry is written field by field, without a
/// copy that would have to wait for the store buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "(u64, Vec<T>)", from = "(u64, Vec<T>)")]
#[serde(bound(
    serialize = "T: Copy + Default + Serialize",
    deserialize = "T: Copy + Default + Deserialize<'de>"
))]
pub struct Ring<T> {
    entries: Vec<T>,
    begin: u64,
    end: u64,
}

impl<T: Copy + Default> Ring<T> {
    /// An empty queue, which has room for nothing.
    #[must_use]
    pub const fn new() -> Ring<T> {
        Ring { entries: Vec::new(), begin: 0, end: 0 }
    }

    /// The number of the first entry.
    #[must_use]
    #[inline]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The number of the next entry to be pushed.
    #[must_use]
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The number of entries.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u64 {
        self.end - self.begin
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.end == self.begin
    }

    /// The entry with this number, if it is in the queue.
    #[must_use]
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        if number < self.begin || number >= self.end {
            return None;
        }
        self.entries.get(self.place(number))
    }

    /// The same, to be changed.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        if number < self.begin || number >= self.end {
            return None;
        }
        let place = self.place(number);
        self.entries.get_mut(place)
    }

    /// The first entry.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        self.entries.get(self.place(self.begin))
    }

    /// All entries, the first first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (begin, end) = (self.place(self.begin), self.place(self.end));
        let (first, second) = match self.len() {
            0 => (0..0, 0..0),
            _ if begin < end => (begin..end, 0..0),
            _ => (begin..self.entries.len(), 0..end),
        };
        self.entries[first].iter().chain(&self.entries[second])
    }

    /// The number of the first entry for which `is_before` does not hold. It must hold for all
    /// before that entry and for none after it.
    #[must_use]
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> u64 {
        let (mut low, mut high) = (self.begin, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(&self.entries[self.place(middle)]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Whether there are entries, and room for another.
    #[must_use]
    #[inline]
    pub fn is_in_use(&self) -> bool {
        let room = self.entries.len() as u64;
        self.len().wrapping_sub(1) < room.wrapping_sub(1)
    }

    /// Whether it has to grow before there is room for another.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.entries.len() as u64
    }

    /// Makes sure that there is room for another.
    #[inline]
    pub fn make_room(&mut self) {
        if self.is_full() {
            self.grow();
        }
    }

    /// Adds an entry, for which there must be room.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        debug_assert!(!self.is_full());
        let place = self.place(self.end);
        self.entries[place] = entry;
        self.end += 1;
    }

    /// Takes out the first entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let first = *self.first()?;
        self.begin += 1;
        Some(first)
    }

    /// Removes the first `count` entries; there must be as many.
    #[inline(always)]
    pub fn discard(&mut self, count: u64) {
        debug_assert!(count <= self.len());
        self.begin += count;
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & self.entries.len().wrapping_sub(1)
    }

    /// Doubles the room.
    #[cold]
    fn grow(&mut self) {
        let mut entries = vec![T::default(); (2 * self.entries.len()).max(4)];
        let mask = entries.len() - 1;
        for number in self.begin..self.end {
            entries[number as usize & mask] = self.entries[self.place(number)];
        }
        self.entries = entries;
    }
}

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring::new()
    }
}

/// The number of the first entry, and all entries.
impl<T: Copy + Default> From<Ring<T>> for (u64, Vec<T>) {
    fn from(ring: Ring<T>) -> (u64, Vec<T>) {
        (ring.begin, ring.iter().copied().collect())
    }
}

impl<T: Copy + Default> From<(u64, Vec<T>)> for Ring<T> {
    fn from((begin, entries): (u64, Vec<T>)) -> Ring<T> {
        let mut ring = Ring { begin, end: begin, ..Ring::new() };
        for entry in entries {
            ring.make_room();
            ring.push(entry);
        }
        ring
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(pushes in prop::collection::vec(any::<bool>(), 0..300)) {
            let mut ring = Ring::new();
            let mut model = VecDeque::new();
            for (n, push) in pushes.into_iter().enumerate() {
                if push {
                    ring.make_room();
                    ring.push(n);
                    model.push_back(n);
                } else {
                    prop_assert_eq!(ring.pop(), model.pop_front());
                }
                let entries = (ring.begin()..ring.end()).map(|number| ring.get(number).copied());
                prop_assert_eq!(entries.collect::<Option<VecDeque<_>>>(), Some(model.clone()));
                prop_assert_eq!(ring.iter().copied().collect::<VecDeque<_>>(), model.clone());
                prop_assert_eq!(ring.first(), model.front());
                prop_assert_eq!(ring.is_in_use(), !ring.is_empty() && !ring.is_full());
                prop_assert_eq!(ring.get(ring.end()), None);
                prop_assert_eq!(ring.begin().checked_sub(1).and_then(|gone| ring.get(gone)), None);
                let index = model.partition_point(|&entry| entry < n / 2);
                let number = ring.partition_point(|&entry| entry < n / 2);
                prop_assert_eq!(number, ring.begin() + index as u64);
            }
            let copy = Ring::from(<(u64, Vec<usize>)>::from(ring.clone()));
            prop_assert_eq!((copy.begin(), copy.end()), (ring.begin(), ring.end()));
            prop_assert_eq!(copy.iter().copied().collect::<VecDeque<_>>(), model);
        }
    }
}
