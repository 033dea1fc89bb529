//! The identity of payload bytes.

use serde::{Deserialize, Serialize};

/// Which bytes a packet carries: `len` bytes of stream `stream`, from `offset` on.
///
/// The source application sets it and the sink checks it, so that a byte lost, doubled or moved
/// is noticed although no byte is ever copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Payload {
    /// The stream, unique in a run.
    pub stream: u32,
    /// Bytes.
    pub len: u32,
    /// The first byte's place in the stream.
    pub offset: u64,
}

impl Payload {
    /// The stream of payloads that are several, one behind the other, where bytes have other identities than
    /// places in a stream: the sender of the packet says which.
    pub const GATHERED: u32 = u32::MAX - 2;

    /// The byte after the last.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// This payload without its first `bytes` bytes.
    #[must_use]
    #[inline]
    pub fn skip(self, bytes: u32) -> Payload {
        let bytes = bytes.min(self.len);
        Payload { offset: self.offset + u64::from(bytes), len: self.len - bytes, ..self }
    }

    /// The first `bytes` bytes of this payload.
    #[must_use]
    #[inline]
    pub fn take(self, bytes: u32) -> Payload {
        Payload { len: self.len.min(bytes), ..self }
    }

    /// Whether `next` continues this payload.
    #[must_use]
    #[inline]
    pub fn continues(&self, next: &Payload) -> bool {
        self.stream == next.stream && self.end() == next.offset
    }

    /// Writes the bytes of this payload into `out`, which is as long: a pattern that differs, but
    /// for chance, from that of any other place in any stream.
    pub fn render(self, out: &mut [u8]) {
        let stream = self.stream;
        let mut index = self.offset / 8;
        let skip = (self.offset % 8) as usize;
        let head = out.len().min((8 - skip) % 8);
        let (head, rest) = out.split_at_mut(head);
        if !head.is_empty() {
            head.copy_from_slice(&word(stream, index)[skip..skip + head.len()]);
            index += 1;
        }
        let (words, tail) = rest.as_chunks_mut();
        for out in words {
            *out = word(stream, index);
            index += 1;
        }
        tail.copy_from_slice(&word(stream, index)[..tail.len()]);
    }

    /// The number of `bytes` that differ from those that [`Payload::render`] writes.
    #[must_use]
    pub fn count_wrong(self, bytes: &[u8]) -> u64 {
        let mut pattern = [0; 1024];
        let (mut left, mut wrong) = (self, 0);
        for bytes in bytes.chunks(pattern.len()) {
            let pattern = &mut pattern[..bytes.len()];
            left.render(pattern);
            left = left.skip(bytes.len() as u32);
            if bytes != pattern {
                wrong += bytes.iter().zip(pattern).filter(|(a, b)| *a != *b).count() as u64;
            }
        }
        wrong
    }
}

/// Eight bytes of the pattern.
#[inline]
fn word(stream: u32, index: u64) -> [u8; 8] {
    // SplitMix64's finaliser over stream and place.
    let mut word = (index ^ u64::from(stream) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ word >> 31).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(stream: u32, offset: u64, len: u32) -> Vec<u8> {
        let mut out = vec![0; len as usize];
        Payload { stream, offset, len }.render(&mut out);
        out
    }

    #[test]
    fn slices_of_a_stream_have_the_bytes_of_the_whole() {
        let whole = bytes(3, 0, 100);
        for offset in 0..50 {
            for len in 0..50 {
                let slice = &whole[offset..offset + len];
                assert_eq!(bytes(3, offset as u64, len as u32), slice);
            }
        }
        assert_ne!(bytes(4, 0, 100), whole);
        assert_ne!(bytes(3, 8, 100), whole);
    }

    #[test]
    fn the_pattern_is_as_good_as_random() {
        let ones: u32 = bytes(1, 1 << 33, 100_000).iter().map(|byte| byte.count_ones()).sum();
        assert!(ones.abs_diff(400_000) < 2_000, "{ones}");
    }

    #[test]
    fn wrong_bytes_are_counted() {
        let whole = Payload { stream: 3, offset: 13, len: 4000 };
        let mut bytes = bytes(3, 13, 4000);
        assert_eq!(whole.count_wrong(&bytes), 0);
        bytes[1700] ^= 1;
        assert_eq!(whole.count_wrong(&bytes), 1);
        assert!(Payload { stream: 4, ..whole }.count_wrong(&bytes) > 3900);
    }

    #[test]
    fn slices_of_a_payload_keep_its_identity() {
        let whole = Payload { stream: 3, offset: 100, len: 50 };
        let (head, tail) = (whole.take(20), whole.skip(20));
        assert!(head.continues(&tail));
        assert_eq!(tail.end(), whole.end());
        assert_eq!(whole.skip(90).len, 0);
    }
}
