//! What has arrived in order and waits to be read.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::Payload;

/// Runs of payload in order. Whoever reads at once never has more than one, so the first has a
/// place of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ready {
    front: Payload,
    later: VecDeque<Payload>,
    bytes: u64,
}

impl Ready {
    /// Bytes waiting.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All runs, the first first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Payload> {
        let front = Some(self.front).filter(|front| front.len > 0);
        front.into_iter().chain(self.later.iter().copied())
    }

    #[inline]
    pub(crate) fn push(&mut self, payload: Payload) {
        self.bytes += u64::from(payload.len);
        if self.front.len == 0 {
            self.front = payload;
            return;
        }
        let last = self.later.back_mut().unwrap_or(&mut self.front);
        if last.continues(&payload) && last.len.checked_add(payload.len).is_some() {
            last.len += payload.len;
        } else {
            self.later.push_back(payload);
        }
    }

    /// The first run, or its first `most` bytes.
    #[inline]
    pub(crate) fn pop(&mut self, most: u32) -> Option<Payload> {
        if self.front.len == 0 || most == 0 {
            return None;
        }
        if most < self.front.len || self.bytes > u64::from(self.front.len) {
            return Some(self.pop_part(most));
        }
        // Field by field, as it was written a moment ago: a copy would wait for the store buffer.
        let payload = Payload {
            stream: self.front.stream,
            offset: self.front.offset,
            len: self.bytes as u32,
        };
        self.bytes = 0;
        self.front.len = 0;
        Some(payload)
    }

    /// What leaves something behind.
    #[inline(never)]
    fn pop_part(&mut self, most: u32) -> Payload {
        let payload = self.front.take(most);
        self.bytes -= u64::from(payload.len);
        self.front = self.front.skip(payload.len);
        if self.front.len == 0 {
            self.front = self.later.pop_front().unwrap_or_default();
        }
        payload
    }
}
