//! The bytes of a stream that are still needed, in buffers one after the other.

use bytes::Bytes;
use std::collections::VecDeque;

/// A buffer of a [`Chain`].
#[derive(Debug)]
struct Link {
    /// The place of its first byte in the stream.
    place: u64,
    bytes: Bytes,
    /// The memory that it keeps, bytes.
    memory: usize,
}

/// A queue of bytes: buffers that were handed over, and copies. Bytes that are no longer needed keep
/// no memory, except for less than a buffer at the front.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    links: VecDeque<Link>,
    /// The last buffer, which takes copies until its capacity is used.
    tail: Vec<u8>,
    /// The place of the first byte that is needed.
    start: u64,
    /// The place after the last byte.
    end: u64,
    /// The memory of `links`, bytes.
    memory: usize,
}

impl Chain {
    /// The smallest buffer for copies, which an empty chain may keep.
    const LEAST: usize = 4096;
    /// The largest buffer for copies.
    const MOST: usize = 64 << 10;

    /// The place after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The memory that the chain keeps, bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.tail.capacity()
    }

    fn tail_place(&self) -> u64 {
        self.end - self.tail.len() as u64
    }

    /// Appends a copy of `bytes`.
    pub(crate) fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.tail.len() == self.tail.capacity() {
                self.close_tail();
                let content = (self.end - self.start) as usize;
                let capacity = content.max(bytes.len()).clamp(Chain::LEAST, Chain::MOST);
                self.tail = Vec::with_capacity(capacity);
            }
            let room = self.tail.capacity() - self.tail.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.tail.extend_from_slice(now);
            self.end += now.len() as u64;
            bytes = later;
        }
    }

    /// Appends a buffer, which keeps `memory` bytes of memory.
    pub(crate) fn push(&mut self, bytes: Bytes, memory: usize) {
        if !bytes.is_empty() {
            self.close_tail();
            let place = self.end;
            self.end += bytes.len() as u64;
            self.memory += memory;
            self.links.push_back(Link { place, bytes, memory });
        }
    }

    /// Makes the tail a buffer like the others.
    fn close_tail(&mut self) {
        let place = self.tail_place();
        let bytes = Bytes::from(std::mem::take(&mut self.tail).into_boxed_slice());
        if !bytes.is_empty() {
            let memory = bytes.len();
            self.memory += memory;
            self.links.push_back(Link { place, bytes, memory });
        }
    }

    /// Bytes before `place` are no longer needed.
    pub(crate) fn advance(&mut self, place: u64) {
        self.start = place.clamp(self.start, self.end);
        while let Some(first) = self.links.front()
            && first.place + first.bytes.len() as u64 <= self.start
        {
            self.memory -= first.memory;
            self.links.pop_front();
        }
        if self.start == self.end {
            self.tail.clear();
            if self.tail.capacity() > Chain::LEAST {
                self.tail = Vec::new();
            }
            if self.links.capacity() > Chain::MOST / size_of::<Link>() {
                self.links = VecDeque::new();
            }
        }
    }

    /// The first bytes, as many as lie in one piece; empty only if there are none.
    pub(crate) fn first(&self) -> &[u8] {
        match self.links.front() {
            Some(link) => &link.bytes[(self.start - link.place) as usize..],
            None => &self.tail[(self.start - self.tail_place()) as usize..],
        }
    }

    /// Takes the first bytes, as many as lie in one piece and at most `most`, without a copy.
    pub(crate) fn take_first(&mut self, most: usize) -> Bytes {
        if self.links.is_empty() {
            self.close_tail();
        }
        let Some(link) = self.links.front() else { return Bytes::new() };
        let from = (self.start - link.place) as usize;
        let bytes = link.bytes.slice(from..link.bytes.len().min(from.saturating_add(most)));
        self.advance(self.start + bytes.len() as u64);
        bytes
    }

    /// Calls `piece` with each piece of the `len` bytes from `place` on, which must be there.
    pub(crate) fn pieces<'a>(&'a self, place: u64, len: usize, piece: &mut dyn FnMut(&'a [u8])) {
        let mut left = len;
        let mut next = |begin: u64, bytes: &'a [u8]| {
            let bytes = &bytes[place.saturating_sub(begin) as usize..];
            let bytes = &bytes[..left.min(bytes.len())];
            left -= bytes.len();
            if !bytes.is_empty() {
                piece(bytes);
            }
            left > 0
        };
        let first = self.links.partition_point(|link| link.place <= place).saturating_sub(1);
        for link in self.links.range(first..) {
            if link.place + (link.bytes.len() as u64) > place && !next(link.place, &link.bytes) {
                return;
            }
        }
        next(self.tail_place(), &self.tail);
    }

    /// An empty chain continues at `place`.
    pub(crate) fn skip(&mut self, place: u64) {
        debug_assert!(self.start == self.end, "there are bytes before {place}");
        self.start = place;
        self.end = place;
    }

    /// Gives all memory back; no byte is needed.
    pub(crate) fn free(&mut self) {
        *self = Chain { start: self.end, end: self.end, ..Chain::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(from: u64, to: u64) -> Vec<u8> {
        (from..to).map(|place| (place * 7 + place / 251) as u8).collect()
    }

    fn content(chain: &Chain, from: u64, to: u64) -> Vec<u8> {
        let mut all = Vec::new();
        chain.pieces(from, (to - from) as usize, &mut |piece| all.extend_from_slice(piece));
        all
    }

    /// Appends `len` bytes of the pattern.
    fn grow(chain: &mut Chain, len: u64, handed_over: bool) {
        let bytes = pattern(chain.end(), chain.end() + len);
        match handed_over {
            true => chain.push(bytes.into(), len as usize),
            false => chain.append(&bytes),
        }
    }

    #[test]
    fn bytes_keep_their_places_whatever_lies_before_them() {
        let mut chain = Chain::default();
        let steps = [1000, 3000, 90, 5000, 20_000, 1, 160_000, 3, 4096, 70_000, 2];
        for (n, step) in steps.into_iter().cycle().take(60).enumerate() {
            grow(&mut chain, step, n % 3 == 1);
            let (start, end) = (chain.start, chain.end());
            assert_eq!(content(&chain, start, end), pattern(start, end));
            let middle = (start + end) / 2;
            assert_eq!(content(&chain, middle, end), pattern(middle, end));
            assert_eq!(content(&chain, middle, middle + 1), pattern(middle, middle + 1));
            let first = chain.first();
            assert_eq!(first, pattern(start, start + first.len() as u64));
            assert!(!first.is_empty());
            chain.advance(start + (end - start) * 2 / 3);
        }
    }

    #[test]
    fn bytes_are_taken_from_the_front_without_a_copy() {
        let mut chain = Chain::default();
        let given = Bytes::from(pattern(0, 10_000));
        chain.push(given.clone(), 10_000);
        grow(&mut chain, 300, false);
        let taken = chain.take_first(4000);
        assert_eq!((taken.as_ptr(), taken.len()), (given.as_ptr(), 4000));
        assert_eq!(chain.take_first(usize::MAX), pattern(4000, 10_000));
        assert_eq!(chain.take_first(100), pattern(10_000, 10_100));
        grow(&mut chain, 50, false);
        assert_eq!(chain.take_first(usize::MAX), pattern(10_100, 10_300));
        assert_eq!(chain.take_first(usize::MAX), pattern(10_300, 10_350));
        assert!(chain.take_first(1).is_empty() && chain.first().is_empty());
    }

    #[test]
    fn memory_follows_the_content() {
        let mut chain = Chain::default();
        for n in 0..100 {
            grow(&mut chain, 30_000, n % 2 == 0);
            let content = (chain.end() - chain.start) as usize;
            assert!((content..content + Chain::MOST).contains(&chain.memory()));
        }
        chain.advance(chain.end() - 1000);
        assert!(chain.memory() <= 30_000 + Chain::MOST, "{}", chain.memory());
        chain.advance(chain.end());
        assert_eq!(chain.memory(), 0);
        // A little may stay for a little more.
        grow(&mut chain, 10, false);
        chain.advance(chain.end());
        assert_eq!(chain.memory(), Chain::LEAST);
        chain.free();
        assert_eq!((chain.memory(), chain.start), (0, chain.end()));
    }
}
