//! The receive queue: in-order data that the application has not read.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::Payload;

/// Runs of in-order payload. An application that reads at once leaves one run at most, so the first
/// has a field of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct ReceiveQueue {
    bytes: u64,
    front: Payload,
    later: VecDeque<Payload>,
}

impl ReceiveQueue {
    /// Unread bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All runs in order.
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

    /// Takes the first run, at most `most` bytes of it.
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

    /// Takes a part of the queue.
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
