//! Bytes of a stream by their places in it, gaps or not.

use std::ops::Range;

/// A ring of bytes. Its size is the most bytes needed at once, rounded up to a power of two.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// Byte `place` of the stream is at `place` modulo the length. The length is 0 or a power of two.
    bytes: Vec<u8>,
}

impl Ring {
    /// The size of the smallest ring that is not empty.
    const LEAST: usize = 4096;

    /// The index of a byte.
    fn index(&self, place: u64) -> usize {
        place as usize & self.bytes.len().wrapping_sub(1)
    }

    /// Makes room for `len` bytes at once. Of those that are there, `live` are kept.
    pub(crate) fn reserve(&mut self, len: usize, live: Range<u64>) {
        if len <= self.bytes.len() {
            return;
        }
        let larger = vec![0; len.next_power_of_two().max(Ring::LEAST)];
        let smaller = Ring { bytes: std::mem::replace(&mut self.bytes, larger) };
        if !live.is_empty() {
            let [one, other] = smaller.get(live.start, (live.end - live.start) as usize);
            self.put(live.start, one);
            self.put(live.start + one.len() as u64, other);
        }
    }

    /// `len` bytes from `place` on, in two pieces; there must be as many.
    pub(crate) fn get(&self, place: u64, len: usize) -> [&[u8]; 2] {
        if len == 0 {
            return [&[], &[]];
        }
        let start = self.index(place);
        let first = len.min(self.bytes.len() - start);
        [&self.bytes[start..start + first], &self.bytes[..len - first]]
    }

    /// Puts bytes at `place`, for which there must be room.
    pub(crate) fn put(&mut self, place: u64, bytes: &[u8]) {
        let start = self.index(place);
        let first = bytes.len().min(self.bytes.len() - start);
        self.bytes[start..start + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
    }

    /// The memory that it takes, bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// Gives the memory back.
    pub(crate) fn free(&mut self) {
        self.bytes = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(range: Range<u64>) -> Vec<u8> {
        range.map(|place| (place * 7 + place / 251) as u8).collect()
    }

    #[test]
    fn bytes_keep_their_places_when_the_ring_grows_and_goes_round() {
        let mut ring = Ring::default();
        let (mut start, mut end) = (0, 0);
        for step in [1000, 3000, 90, 5000, 20_000, 1, 60_000, 3, 4096] {
            ring.reserve((end + step - start) as usize, start..end);
            ring.put(end, &pattern(end..end + step));
            end += step;
            assert_eq!(ring.get(start, (end - start) as usize).concat(), pattern(start..end));
            start += (end - start) * 2 / 3;
        }
    }

    #[test]
    fn a_ring_that_was_never_used_has_nothing() {
        let ring = Ring::default();
        assert_eq!(ring.get(12, 0), [&[][..], &[]]);
    }
}
