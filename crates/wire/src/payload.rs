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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_payload_keep_its_identity() {
        let whole = Payload { stream: 3, offset: 100, len: 50 };
        let (head, tail) = (whole.take(20), whole.skip(20));
        assert!(head.continues(&tail));
        assert_eq!(tail.end(), whole.end());
        assert_eq!(whole.skip(90).len, 0);
    }
}
