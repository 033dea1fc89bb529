//! The bytes of a connection, on either side of it.

use crate::chain::Chain;
use crate::pool;
use crate::ring::Ring;
use bytes::Bytes;
use std::ops::Range;

/// Bytes that the peer has sent. Those in order lie in a chain: buffers that packets were read into,
/// or copies of small packets. From the first gap on they are copied to a ring, until all of that is
/// read.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    ordered: Chain,
    /// From the end of `ordered` on, unless the program has read further.
    beyond: Ring,
    /// The byte that is read next.
    read: u64,
    /// The byte after the last that has arrived, gaps or not.
    highest: u64,
}

impl Incoming {
    /// Memory that is kept, bytes.
    pub(crate) fn memory(&self) -> usize {
        self.ordered.memory() + self.beyond.memory()
    }

    /// Whether bytes from `place` on follow all that has arrived, with nothing missing before them.
    fn is_next(&self, place: u64) -> bool {
        place == self.ordered.end() && place == self.highest
    }

    /// Where the bytes in the ring begin.
    fn ring_start(&self) -> u64 {
        self.read.max(self.ordered.end())
    }

    /// Stores a copy of bytes.
    pub(crate) fn store(&mut self, place: u64, bytes: &[u8]) {
        if self.is_next(place) {
            self.ordered.append(bytes);
            self.highest = self.ordered.end();
            return;
        }
        let end = place + bytes.len() as u64;
        let start = self.ring_start();
        self.beyond.reserve(end.saturating_sub(start) as usize, start..self.highest);
        self.beyond.put(place, bytes);
        self.highest = self.highest.max(end);
    }

    /// Stores a range of a buffer, and keeps the buffer if the bytes are next and fill most of it.
    /// Otherwise returns it.
    pub(crate) fn keep(
        &mut self,
        place: u64,
        buffer: Vec<u8>,
        range: Range<usize>,
    ) -> Option<Vec<u8>> {
        if !self.is_next(place) || range.len() < buffer.len() / 2 {
            self.store(place, &buffer[range]);
            return Some(buffer);
        }
        let memory = buffer.len();
        self.ordered.push(pool::share(buffer, range), memory);
        self.highest = self.ordered.end();
        None
    }

    /// The next bytes, as many as lie in one piece and at most `most`, which must have arrived.
    pub(crate) fn first(&self, most: usize) -> &[u8] {
        let ordered = self.ordered.first();
        if ordered.is_empty() {
            return self.beyond.get(self.read, most)[0];
        }
        &ordered[..most.min(ordered.len())]
    }

    /// The same, as a buffer of its own and without a copy if they were in order. They are read
    /// then.
    pub(crate) fn take_first(&mut self, most: usize) -> Bytes {
        let bytes = match self.ordered.first() {
            [] => Bytes::copy_from_slice(self.first(most)),
            _ => self.ordered.take_first(most),
        };
        self.advance(self.read + bytes.len() as u64);
        bytes
    }

    /// Bytes before `place` have been read.
    pub(crate) fn advance(&mut self, place: u64) {
        self.read = place;
        self.ordered.advance(place);
        if self.read == self.highest && self.beyond.memory() > 0 {
            // The next bytes are in order again.
            self.beyond.free();
            self.ordered.skip(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    fn pattern(range: Range<u64>) -> Vec<u8> {
        range.map(|place| (place * 7 + place / 251) as u8).collect()
    }

    /// A buffer with the bytes of `range` somewhere in it, and where they are.
    fn buffer(range: Range<u64>) -> (Vec<u8>, Range<usize>) {
        let (mut buffer, bytes) = (pool::take(), pattern(range));
        let range = 50..50 + bytes.len();
        buffer[range.clone()].copy_from_slice(&bytes);
        (buffer, range)
    }

    #[test]
    fn a_buffer_with_the_next_bytes_is_kept_and_read_in_place() {
        let mut incoming = Incoming::default();
        let (large, range) = buffer(0..50_000);
        let at = large[range.clone()].as_ptr();
        assert_eq!(incoming.keep(0, large, range), None);
        assert_eq!(incoming.first(40_000).as_ptr(), at);
        incoming.advance(1000);
        let taken = incoming.take_first(usize::MAX);
        assert_eq!(taken, pattern(1000..50_000));
        assert_eq!(taken.as_ptr(), at.wrapping_add(1000));
        // A small packet is copied, and its buffer can be used again.
        let (small, range) = buffer(50_000..50_100);
        assert!(incoming.keep(50_000, small, range).is_some());
        assert_eq!(incoming.first(99), pattern(50_000..50_099));
        assert!(incoming.memory() < 5000);
    }

    #[test]
    fn buffers_behind_a_gap_are_copied_and_the_next_are_kept_again() {
        let mut incoming = Incoming::default();
        let keep = |incoming: &mut Incoming, range: Range<u64>| {
            let place = range.start;
            let (buffer, range) = buffer(range);
            incoming.keep(place, buffer, range).is_none()
        };
        assert!(keep(&mut incoming, 0..60_000));
        assert!(!keep(&mut incoming, 120_000..180_000));
        assert!(!keep(&mut incoming, 60_000..120_000));
        assert!(!keep(&mut incoming, 180_000..240_000), "what follows is in the ring");
        let mut read = 0;
        while read < 240_000 {
            let bytes = incoming.take_first(240_000 - read as usize);
            assert_eq!(bytes, pattern(read..read + bytes.len() as u64));
            read += bytes.len() as u64;
        }
        assert_eq!(incoming.memory(), 0);
        assert!(keep(&mut incoming, 240_000..300_000));
    }

    #[test]
    fn bytes_that_arrive_in_any_order_are_read_in_theirs() {
        const WINDOW: u64 = 200_000;
        let mut random = Seed(1).stream("arrivals");
        let mut incoming = Incoming::default();
        // Runs that have arrived beyond `ordered`, the byte after those in order.
        let (mut read, mut ordered, mut beyond) = (0, 0, Vec::<Range<u64>>::new());
        let mut below = |most: u64| random.bits() % most.max(1);
        for _ in 0..5000 {
            let gap = if below(3) == 0 { below(read + WINDOW - ordered) } else { 0 };
            let start = ordered + gap;
            let most = if below(2) == 0 { 60_000 } else { 3000 };
            let end = (start + 1 + below(most)).min(read + WINDOW);
            if start < end {
                let (buffer, range) = buffer(start..end);
                incoming.keep(start, buffer, range);
                beyond.push(start..end);
                beyond.sort_by_key(|run| run.start);
                for run in &beyond {
                    if run.start <= ordered {
                        ordered = ordered.max(run.end);
                    }
                }
                beyond.retain(|run| run.end > ordered);
            }
            for _ in 0..below(4) {
                let most = (ordered - read) as usize;
                let len = if below(2) == 0 {
                    let bytes = incoming.take_first(most);
                    assert_eq!(bytes, pattern(read..read + bytes.len() as u64));
                    bytes.len()
                } else {
                    let bytes = incoming.first(most);
                    assert_eq!(bytes, pattern(read..read + bytes.len() as u64));
                    let len = below(bytes.len() as u64 + 1);
                    incoming.advance(read + len);
                    len as usize
                };
                read += len as u64;
            }
            if read == ordered && beyond.is_empty() {
                assert!(incoming.memory() <= 4096, "{}", incoming.memory());
            }
        }
        assert!(read > 10_000_000, "{read}");
    }
}
