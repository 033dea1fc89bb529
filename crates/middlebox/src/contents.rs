//! The bytes of what boxes write themselves.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::Payload;

/// Appends the bytes of a payload; returns false if there are none.
type Read = dyn Fn(Payload, &mut Vec<u8>) -> bool + Send + Sync;

/// The bytes of streams that boxes write themselves, shared by all boxes of a world. Packets are
/// structs, whose payload has an identity and no bytes: a box adds bytes here, sends the payload that it is
/// given, and the box that receives this payload reads the bytes. On real packets, a payload that arrives has another
/// identity, and its bytes are where packets are kept ([`Contents::beside`]).
#[derive(Clone, Default)]
pub struct Contents {
    own: Arc<Mutex<Streams>>,
    arrived: Option<Arc<Read>>,
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents").field("own", &self.own).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Streams {
    bytes: BTreeMap<u32, Vec<u8>>,
    added: u32,
}

impl Contents {
    /// The first stream that is not an application's.
    const FIRST: u32 = 0xc000_0000;
    /// Streams before they are used again.
    const STREAMS: u32 = 1 << 29;

    /// Those of a world in which `arrived` appends the bytes of payloads that have arrived.
    #[must_use]
    pub fn beside(
        arrived: impl Fn(Payload, &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Contents {
        Contents { own: Arc::default(), arrived: Some(Arc::new(arrived)) }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes, at most 4 GiB; returns the payload that stands for them.
    pub fn add(&self, bytes: Vec<u8>) -> Payload {
        let mut streams = self.streams();
        let stream = Contents::FIRST + streams.added % Contents::STREAMS;
        streams.added = streams.added.wrapping_add(1);
        let payload = Payload { stream, offset: 0, len: bytes.len() as u32 };
        streams.bytes.insert(stream, bytes);
        payload
    }

    /// Appends the bytes of a payload to `out`; returns false if nothing was added that it stands for.
    pub fn read(&self, payload: Payload, out: &mut Vec<u8>) -> bool {
        self.lend(payload, |bytes| out.extend_from_slice(bytes))
            || self.arrived.as_ref().is_some_and(|arrived| arrived(payload, out))
    }

    /// Calls `take` with the bytes of a payload that was added here; returns false if it was not.
    pub fn lend(&self, payload: Payload, take: impl FnOnce(&[u8])) -> bool {
        if payload.stream < Contents::FIRST {
            return false;
        }
        let streams = self.streams();
        let range = payload.offset as usize..payload.end() as usize;
        let bytes = streams.bytes.get(&payload.stream).and_then(|bytes| bytes.get(range));
        bytes.map(take).is_some()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.streams().bytes.is_empty()
    }

    /// Forgets the bytes of a payload's stream.
    pub fn remove(&self, payload: Payload) {
        self.streams().bytes.remove(&payload.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_any_part_are_read_until_they_are_removed() {
        let contents = Contents::default();
        let first = contents.add(b"abcdef".to_vec());
        let second = contents.add(b"xyz".to_vec());
        let mut out = Vec::new();
        assert!(contents.read(first.skip(2).take(3), &mut out));
        assert!(contents.clone().read(second, &mut out));
        assert_eq!(out, b"cdexyz");
        assert!(!contents.read(Payload { len: 7, ..first }, &mut out));
        contents.remove(first);
        assert!(!contents.read(first, &mut out));
        assert_eq!(out, b"cdexyz");
    }

    #[test]
    fn the_bytes_of_what_has_arrived_are_read_where_it_is_kept() {
        let kept = Payload { stream: 7, offset: 3, len: 2 };
        let contents = Contents::beside(move |payload, out| {
            out.extend_from_slice(b"ab");
            payload == kept
        });
        let own = contents.add(b"xyz".to_vec());
        let mut out = Vec::new();
        assert!(contents.read(own, &mut out) && contents.read(kept, &mut out));
        assert_eq!(out, b"xyzab");
        assert!(!contents.lend(kept, |_| unreachable!()));
    }
}
