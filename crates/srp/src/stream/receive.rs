//! The receiving half of a stream: reassembly by offset, and what is not read yet.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::Payload;

/// Bytes that have arrived.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReceiveHalf {
    /// All bytes before have arrived.
    next: u64,
    /// Bytes that the owner has read.
    read: u64,
    /// Runs in order that are not read. The first has a field of its own: most streams have one.
    front: Payload,
    later: VecDeque<Payload>,
    /// Runs beyond a gap, with their places in the stream, in order and apart from each other.
    beyond: VecDeque<(u64, Payload)>,
    /// Bytes of the whole stream, once its end has arrived.
    end: Option<u64>,
    window: u64,
    /// The limit that the peer was told by a segment.
    told: u64,
    /// The end is not reported as received.
    pub(crate) holds_end: bool,
}

impl ReceiveHalf {
    pub(crate) fn new(window: u64) -> ReceiveHalf {
        ReceiveHalf {
            next: 0,
            read: 0,
            front: Payload::default(),
            later: VecDeque::new(),
            beyond: VecDeque::new(),
            end: None,
            window,
            told: window,
            holds_end: false,
        }
    }

    /// Bytes of the stream that the peer may send.
    pub(crate) fn limit(&self) -> u64 {
        self.read + self.window
    }

    /// The limit to be sent in a segment.
    pub(crate) fn tell_limit(&mut self) -> u32 {
        self.told = self.limit();
        self.told as u32
    }

    /// Whether the peer is to be told of room: a quarter of the window is new to it.
    pub(crate) fn needs_credit(&self) -> bool {
        self.end.is_none() && self.limit() - self.told >= (self.window / 4).max(1)
    }

    /// The place of a byte, of which the wire has 32 bits; `None` if its segment of `len` bytes lies
    /// beyond the limit.
    pub(crate) fn place(&self, offset: u32, len: u32) -> Option<u64> {
        // The window is less than 2^31.
        let ahead = offset.wrapping_sub(self.next as u32) as i32;
        let place = self.next.checked_add_signed(ahead.into())?;
        (place + u64::from(len) <= self.limit()).then_some(place)
    }

    /// Takes bytes. Those that have arrived before or contradict others are ignored: no honest peer sends
    /// them, for every segment has a number. Returns whether there are new bytes in order, or the end.
    pub(crate) fn take(&mut self, place: u64, payload: Payload, end: bool) -> bool {
        let last = place + u64::from(payload.len);
        if self.end.is_some_and(|end| last > end) {
            return false;
        }
        let furthest = self.beyond.back().map_or(self.next, |(at, run)| at + u64::from(run.len));
        if end {
            if last < furthest || self.end.is_some_and(|end| last < end) {
                return false;
            }
            self.end = Some(last);
        }
        let was_whole = self.next;
        if payload.len > 0 && place == self.next {
            let first = self.beyond.front().map_or(u64::MAX, |(at, _)| *at);
            if last > first {
                return false;
            }
            self.push(payload);
            while let Some((at, run)) = self.beyond.front().copied()
                && at == self.next
            {
                self.push(run);
                self.beyond.pop_front();
            }
        } else if payload.len > 0 && place > self.next {
            self.insert(place, payload);
        }
        self.next > was_whole || (end && self.is_whole())
    }

    fn insert(&mut self, place: u64, payload: Payload) {
        let end = |(at, run): &(u64, Payload)| at + u64::from(run.len);
        let index = self.beyond.partition_point(|run| run.0 < place);
        let is_free = (index == 0 || end(&self.beyond[index - 1]) <= place)
            && self.beyond.get(index).is_none_or(|run| place + u64::from(payload.len) <= run.0);
        if !is_free {
            return;
        }
        if index > 0
            && let before = &mut self.beyond[index - 1]
            && end(before) == place
            && before.1.continues(&payload)
            && let Some(len) = before.1.len.checked_add(payload.len)
        {
            before.1.len = len;
            self.join(index - 1);
        } else {
            self.beyond.insert(index, (place, payload));
            self.join(index);
        }
    }

    /// Joins a run with the one behind it, if that continues it.
    fn join(&mut self, index: usize) {
        let Some((next_at, next)) = self.beyond.get(index + 1).copied() else { return };
        let (at, run) = &mut self.beyond[index];
        if *at + u64::from(run.len) == next_at
            && run.continues(&next)
            && let Some(len) = run.len.checked_add(next.len)
        {
            run.len = len;
            self.beyond.remove(index + 1);
        }
    }

    fn push(&mut self, payload: Payload) {
        self.next += u64::from(payload.len);
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

    pub(crate) fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        if self.front.len == 0 || bytes == 0 {
            return None;
        }
        let payload = self.front.take(bytes);
        self.read += u64::from(payload.len);
        self.front = self.front.skip(payload.len);
        if self.front.len == 0 {
            self.front = self.later.pop_front().unwrap_or_default();
        }
        Some(payload)
    }

    pub(crate) fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// Bytes that have arrived in order, modulo 2^32.
    pub(crate) fn next(&self) -> u32 {
        self.next as u32
    }

    /// Forgets what has arrived out of order: the peer will send it again.
    pub(crate) fn forget_beyond(&mut self) {
        self.beyond.clear();
        self.end = self.end.filter(|&end| end == self.next);
    }

    /// Whether all bytes have arrived, and the end.
    pub(crate) fn is_whole(&self) -> bool {
        self.end == Some(self.next)
    }

    /// All that is held, in order.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = Payload> {
        let front = Some(self.front).filter(|front| front.len > 0);
        let queued = front.into_iter().chain(self.later.iter().copied());
        queued.chain(self.beyond.iter().map(|(_, run)| *run))
    }

    /// Discards all.
    pub(crate) fn stop(&mut self) {
        self.front = Payload::default();
        self.later.clear();
        self.beyond.clear();
        self.read = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(offset: u64, len: u32) -> Payload {
        Payload { stream: 1, offset, len }
    }

    #[test]
    fn a_segment_beyond_the_limit_has_no_place() {
        let mut half = ReceiveHalf::new(100);
        assert_eq!(half.place(60, 40), Some(60));
        assert_eq!(half.place(60, 41), None);
        half.take(0, payload(0, 50), false);
        assert_eq!(half.place(60, 41), None, "nothing is read yet");
        half.read_up_to(20);
        assert_eq!(half.place(60, 60), Some(60));
        assert!(!half.needs_credit());
        half.read_up_to(5);
        assert!(half.needs_credit());
        assert_eq!((half.tell_limit(), half.needs_credit()), (125, false));
    }

    #[test]
    fn the_first_end_counts() {
        let mut half = ReceiveHalf::new(100);
        half.take(50, payload(50, 10), false);
        assert!(!half.take(20, payload(20, 10), true), "there is data behind it");
        assert!(!half.take(60, payload(60, 5), true));
        assert!(half.take(0, payload(0, 50), false) && half.is_whole());
        assert!(!half.take(65, payload(65, 5), false));
        assert_eq!(half.readable(), 65);
    }

    proptest! {
        /// Pieces in any order, some twice or overlapping, give the stream.
        #[test]
        fn bytes_are_read_in_order_and_once(
            order in prop::collection::vec((0u64..40, 1u32..40), 0..60),
        ) {
            let mut half = ReceiveHalf::new(10_000);
            let honest = (0..40).map(|n| (n, 10));
            let mut read = 0;
            for (n, len) in order.into_iter().map(|(n, len)| (n, len / 4 * 10)).chain(honest) {
                half.take(10 * n, payload(10 * n, len), false);
                while let Some(run) = half.read_up_to(7) {
                    prop_assert_eq!((run.stream, run.offset), (1, read));
                    read += u64::from(run.len);
                }
                let ends: Vec<_> = half.beyond.iter().map(|(at, p)| (*at, at + u64::from(p.len))).collect();
                prop_assert!(ends.is_sorted_by(|a, b| a.1 <= b.0), "{:?}", ends);
            }
            prop_assert!(read >= 400 || !half.beyond.is_empty());
        }
    }
}
