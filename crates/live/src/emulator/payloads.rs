//! The bytes of payloads that boxes have seen.

use std::collections::VecDeque;
use wire::Payload;

/// The bytes of payloads, for as long as a box holds a packet with them. Boxes have packets without
/// bytes; the payload of such a packet is the place of its bytes here, instead of in a stream.
///
/// Bytes are in chunks. Once there are many, the boxes are asked which payloads they hold, and all other
/// chunks are freed: at the cost of one look at each packet that is held, whenever as many bytes were
/// added as are held.
pub(super) struct Payloads {
    /// The last is being filled. Those that no payload needs are gone.
    chunks: VecDeque<Option<Box<[u8]>>>,
    /// The number of chunks before `chunks`.
    first: u64,
    /// Bytes that were ever kept.
    end: u64,
    /// Chunks that are there.
    used: usize,
    /// Chunks without content.
    spare: Vec<Box<[u8]>>,
    /// There are many chunks from this number on.
    many: usize,
    /// The most chunks.
    most: usize,
}

impl Default for Payloads {
    fn default() -> Payloads {
        Payloads::new(Payloads::MOST)
    }
}

impl Payloads {
    /// The stream of such places, which no box's own packets have.
    const STREAM: u32 = u32::MAX - 1;
    /// The size of a chunk, bytes.
    const CHUNK: usize = 1 << 16;
    /// Chunks that are no reason to ask boxes: 16 MiB.
    const FEW: usize = 1 << 8;
    /// The most chunks: 1 GiB.
    const MOST: usize = 1 << 14;

    fn new(most: usize) -> Payloads {
        Payloads {
            chunks: VecDeque::new(),
            first: 0,
            end: 0,
            used: 0,
            spare: Vec::new(),
            many: Payloads::FEW,
            most,
        }
    }

    /// Keeps the bytes of a packet; `None` if there is no memory for them.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Option<Payload> {
        let (offset, len) = (self.end, bytes.len() as u32);
        if len == 0 {
            return Some(Payload::default());
        }
        let mut left = bytes;
        while !left.is_empty() {
            let start = (self.end % Payloads::CHUNK as u64) as usize;
            if start == 0 && !self.add_chunk() {
                return None;
            }
            let (now, later) = left.split_at(left.len().min(Payloads::CHUNK - start));
            let chunk = self.chunks.back_mut()?.as_mut()?;
            chunk[start..start + now.len()].copy_from_slice(now);
            self.end += now.len() as u64;
            left = later;
        }
        Some(Payload { stream: Payloads::STREAM, offset, len })
    }

    fn add_chunk(&mut self) -> bool {
        if self.used == self.most {
            return false;
        }
        let fresh = || vec![0; Payloads::CHUNK].into_boxed_slice();
        self.chunks.push_back(Some(self.spare.pop().unwrap_or_else(fresh)));
        self.used += 1;
        true
    }

    /// Whether it is time for [`Payloads::free_all_but`].
    pub(super) fn has_many(&self) -> bool {
        self.used >= self.many
    }

    /// Frees the memory of payloads, except for those that `held` passes to its argument.
    pub(super) fn free_all_but(&mut self, held: impl FnOnce(&mut dyn FnMut(Payload))) {
        let mut needed = vec![false; self.chunks.len()];
        held(&mut |payload| {
            if payload.stream == Payloads::STREAM && payload.len > 0 {
                let chunk = |place: u64| (place / Payloads::CHUNK as u64).checked_sub(self.first);
                let range = chunk(payload.offset).zip(chunk(payload.end() - 1));
                let range = range.map(|(from, to)| from as usize..=to as usize);
                // What is no longer here is noticed when it is to be sent.
                if let Some(needed) = range.and_then(|range| needed.get_mut(range)) {
                    needed.fill(true);
                }
            }
        });
        if let Some(last) = needed.last_mut()
            && !self.end.is_multiple_of(Payloads::CHUNK as u64)
        {
            *last = true;
        }
        for (chunk, needed) in self.chunks.iter_mut().zip(needed) {
            if !needed {
                self.spare.extend(chunk.take());
            }
        }
        while self.chunks.front().is_some_and(Option::is_none) {
            self.chunks.pop_front();
            self.first += 1;
        }
        self.used = self.chunks.iter().flatten().count();
        self.many = (2 * self.used).max(Payloads::FEW).min(self.most);
        // As many as are used before the next time.
        self.spare.truncate(self.many - self.used);
    }

    /// Writes the bytes of a payload: those that were kept, or for a box's own packet those that its
    /// identity stands for. Returns false if they are no longer there.
    pub(super) fn fetch(&self, payload: Payload, out: &mut [u8]) -> bool {
        if payload.stream != Payloads::STREAM {
            payload.render(out);
            return true;
        }
        let mut place = payload.offset;
        let mut left = out;
        while !left.is_empty() {
            let start = (place % Payloads::CHUNK as u64) as usize;
            let chunk = (place / Payloads::CHUNK as u64).checked_sub(self.first);
            let chunk = chunk.and_then(|chunk| self.chunks.get(chunk as usize)?.as_ref());
            let Some(chunk) = chunk else { return false };
            let most = left.len().min(Payloads::CHUNK - start);
            let (now, later) = left.split_at_mut(most);
            now.copy_from_slice(&chunk[start..start + most]);
            place += most as u64;
            left = later;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 10_007;

    /// The bytes of the n-th packet.
    fn bytes(n: usize) -> Vec<u8> {
        (0..LEN).map(|i| (i * 7 + n * 13) as u8).collect()
    }

    fn fetch(payloads: &Payloads, payload: Payload) -> Option<Vec<u8>> {
        let mut out = vec![0xff; payload.len as usize];
        payloads.fetch(payload, &mut out).then_some(out)
    }

    fn free_all_but(payloads: &mut Payloads, kept: &[Payload]) {
        payloads.free_all_but(|held| kept.iter().for_each(|payload| held(*payload)));
    }

    #[test]
    fn bytes_stay_as_long_as_a_box_holds_them_and_no_others_do() {
        let mut payloads = Payloads::default();
        let mut held: Vec<(usize, Payload)> = Vec::new();
        let mut most = 0;
        for n in 0..60_000 {
            if payloads.has_many() {
                let kept: Vec<_> = held.iter().map(|(_, payload)| *payload).collect();
                free_all_but(&mut payloads, &kept);
            }
            // One in 500 is held until there are 1000, of which the oldest is then let go.
            let payload = payloads.keep(&bytes(n)).unwrap();
            if n % 50 == 0 {
                held.push((n, payload));
            }
            if held.len() > 200 {
                held.remove(0);
            }
            most = most.max(payloads.used + payloads.spare.len());
        }
        for (n, payload) in &held {
            assert!(fetch(&payloads, *payload).is_some_and(|found| found == bytes(*n)), "{n}");
            // Part of a payload is somewhere in the middle.
            let part = payload.skip(3000).take(2000);
            assert!(fetch(&payloads, part).unwrap() == bytes(*n)[3000..5000], "{n}");
        }
        // A held packet keeps two chunks at most, and as many are filled until the next look.
        assert!(most <= 2 * 2 * 201, "{most} chunks for 200 packets");
    }

    #[test]
    fn what_was_freed_is_not_there() {
        let mut payloads = Payloads::default();
        let kept: Vec<_> = (0..100).map(|n| payloads.keep(&bytes(n)).unwrap()).collect();
        free_all_but(&mut payloads, &kept[40..50]);
        for (n, payload) in kept.iter().enumerate() {
            let found = fetch(&payloads, *payload);
            assert!(found.as_ref().is_none_or(|found| *found == bytes(n)), "{n}");
            if (40..50).contains(&n) {
                assert!(found.is_some(), "{n}");
            }
            if n < 30 || (60..90).contains(&n) {
                assert!(found.is_none(), "{n}");
            }
        }
    }

    #[test]
    fn without_memory_nothing_is_kept_until_something_is_freed() {
        let mut payloads = Payloads::new(3);
        let kept = core::iter::from_fn(|| payloads.keep(&bytes(0)));
        let kept: Vec<_> = kept.collect();
        assert_eq!(kept.len(), 3 * Payloads::CHUNK / LEN);
        assert_eq!(payloads.keep(&bytes(0)), None);
        free_all_but(&mut payloads, &kept);
        assert_eq!(payloads.keep(&bytes(0)), None);
        free_all_but(&mut payloads, &kept[kept.len() - 1..]);
        let last = payloads.keep(&bytes(7)).unwrap();
        assert!(fetch(&payloads, last).is_some_and(|found| found == bytes(7)));
    }

    #[test]
    fn packets_of_boxes_have_the_bytes_that_they_stand_for() {
        let payload = Payload { stream: 3, offset: 5, len: 100 };
        let mut expected = vec![0; 100];
        payload.render(&mut expected);
        assert_eq!(fetch(&Payloads::default(), payload), Some(expected));
    }
}
