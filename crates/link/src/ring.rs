//! A queue in an array, for what is pushed and popped once per packet.

/// A first-in, first-out queue whose entries are numbered 0, 1, 2, ... for good as they come.
///
/// Its room is a power of two and the numbers never wrap, so that finding an entry is a mask: that
/// makes it leaner than the standard library's ring.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    entries: Vec<T>,
    begin: u64,
    end: u64,
}

impl<T: Copy + Default> Ring<T> {
    pub(crate) const fn new() -> Ring<T> {
        Ring { entries: Vec::new(), begin: 0, end: 0 }
    }

    /// The number of the first entry.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// The number of the next to come.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.end - self.begin
    }

    /// The entry with this number, if it is in the queue.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        if number >= self.end {
            return None;
        }
        self.entries.get(self.place(number))
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.get(self.begin)
    }

    /// Whether it has to grow before there is room for another.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.entries.len() as u64
    }

    /// Makes sure that there is room for another.
    #[inline]
    pub(crate) fn make_room(&mut self) {
        if self.is_full() {
            self.grow();
        }
    }

    /// Adds an entry, for which there must be room.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        debug_assert!(!self.is_full());
        let place = self.place(self.end);
        self.entries[place] = entry;
        self.end += 1;
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = *self.first()?;
        self.begin += 1;
        Some(first)
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
                prop_assert_eq!(ring.get(ring.end()), None);
            }
        }
    }
}
