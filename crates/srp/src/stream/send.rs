//! The sending half of a stream: the identity of every byte to be sent, no bytes.

use base::{LowWater, Ring};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::Payload;

/// A run of payload at a place of the stream.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Run {
    start: u64,
    len: u64,
    stream: u32,
    offset: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// Bytes written, sent and acknowledged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SendHalf {
    /// Runs that are not wholly acknowledged. The first has a field of its own: most streams have one.
    front: Run,
    later: VecDeque<Run>,
    written: u64,
    /// Bytes sent at least once.
    sent: u64,
    /// All bytes before are acknowledged.
    acknowledged: u64,
    /// The peer accepts bytes before this.
    limit: u64,
    is_closed: bool,
    is_end_sent: bool,
    /// The segments with data or the end that are not acknowledged, with others between them.
    outstanding: Ring<Outstanding>,
    low_water: Option<LowWater>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Outstanding {
    segment: u64,
    start: u64,
}

/// Data for one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) end: bool,
}

impl SendHalf {
    pub(crate) fn new(limit: u64) -> SendHalf {
        SendHalf {
            front: Run::default(),
            later: VecDeque::new(),
            written: 0,
            sent: 0,
            acknowledged: 0,
            limit,
            is_closed: false,
            is_end_sent: false,
            outstanding: Ring::new(),
            low_water: None,
        }
    }

    pub(crate) fn write(&mut self, stream: u32, offset: u64, len: u64) {
        if self.is_closed || len == 0 {
            return;
        }
        let run = Run { start: self.written, len, stream, offset };
        self.written += len;
        let last = self.later.back_mut().unwrap_or(&mut self.front);
        if last.len == 0 {
            *last = run;
        } else if last.stream == stream && last.offset + last.len == offset {
            last.len += len;
        } else {
            self.later.push_back(run);
        }
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether all that was written has been sent, and the end.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_end_sent
    }

    pub(crate) fn unacknowledged(&self) -> u64 {
        self.written - self.acknowledged
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    pub(crate) fn notify_at(&mut self, low_water: LowWater) {
        self.low_water = Some(low_water);
    }

    /// Whether the owner is to be told now that more may be written, for which it has asked once.
    pub(crate) fn takes_low_water(&mut self) -> bool {
        let is_reached =
            |low_water: LowWater| low_water.is_reached(self.unacknowledged(), self.unsent());
        let is_due = self.low_water.is_some_and(is_reached);
        if is_due {
            self.low_water = None;
        }
        is_due
    }

    /// The peer's limit, modulo 2^32, which never falls.
    pub(crate) fn raise_limit(&mut self, limit: u32) {
        let ahead = limit.wrapping_sub(self.limit as u32);
        if ahead < 1 << 31 {
            self.limit += u64::from(ahead);
        }
    }

    pub(crate) fn has_segment(&self) -> bool {
        (self.sent < self.written && self.sent < self.limit)
            || (self.is_closed && !self.is_end_sent && self.sent == self.written)
    }

    /// Takes the next piece to be sent, at most `most` bytes, as the segment with this number; of several runs if
    /// `gathers`.
    pub(crate) fn take(&mut self, segment: u64, most: u32, gathers: bool) -> Option<Piece> {
        if !self.has_segment() {
            return None;
        }
        let start = self.sent;
        let run = match gathers {
            true => self.written,
            false => self.run(start).map_or(start, Run::end),
        };
        let len = u64::from(most).min(run - start).min(self.limit - start.min(self.limit));
        self.sent += len;
        let end = self.is_closed && self.sent == self.written;
        self.is_end_sent |= end;
        self.outstanding.make_room();
        self.outstanding.push(Outstanding { segment, start });
        // At most `most`.
        Some(Piece { offset: start, len: len as u32, end })
    }

    /// The run that holds a byte.
    fn run(&self, at: u64) -> Option<&Run> {
        if at < self.front.end() {
            return Some(&self.front);
        }
        self.later.get(self.later.partition_point(|run| run.end() <= at))
    }

    /// The payload of a piece that was taken and not acknowledged. One of several runs is
    /// [`Payload::GATHERED`], and has its place in the stream for offset.
    pub(crate) fn payload(&self, offset: u64, len: u32) -> Payload {
        match self.run(offset) {
            Some(run) if offset >= run.start && offset + u64::from(len) > run.end() => {
                Payload { stream: Payload::GATHERED, offset, len }
            }
            Some(run) if offset >= run.start => {
                Payload { stream: run.stream, offset: run.offset + (offset - run.start), len }
            }
            _ => Payload::default(),
        }
    }

    /// Forgets the segments at the front that are acknowledged.
    pub(crate) fn on_acknowledged(&mut self, is_acknowledged: impl Fn(u64) -> bool) {
        while let Some(first) = self.outstanding.first()
            && is_acknowledged(first.segment)
        {
            self.outstanding.pop();
        }
        self.acknowledged = self.outstanding.first().map_or(self.sent, |first| first.start);
        self.release();
    }

    /// Forgets runs that are wholly acknowledged.
    fn release(&mut self) {
        while self.front.end() <= self.acknowledged
            && let Some(next) = self.later.pop_front()
        {
            self.front = next;
        }
    }

    /// The segments that were sent do not count any more; [`SendHalf::settle`] follows.
    pub(crate) fn forget_sent(&mut self) {
        self.outstanding = Ring::new();
    }

    /// The peer has so many bytes, modulo 2^32, and perhaps the end: what follows is sent next.
    pub(crate) fn settle(&mut self, received: u32, has_end: bool) {
        let ahead = u64::from(received.wrapping_sub(self.acknowledged as u32));
        self.sent = self.sent.min(self.acknowledged + ahead);
        self.acknowledged = self.sent;
        self.is_end_sent &= has_end && self.sent == self.written;
        self.release();
    }

    /// The peer has all, and the end.
    pub(crate) fn settle_all(&mut self) {
        self.settle(self.sent as u32, true);
    }

    pub(crate) fn has_none_outstanding(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// What is written and not acknowledged, in order.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = Payload> {
        self.payloads_from(self.acknowledged)
    }

    /// What a gathered payload consists of, in order.
    pub(crate) fn gathered(&self, payload: Payload) -> impl Iterator<Item = Payload> {
        let mut left = payload.len;
        self.payloads_from(payload.offset).map_while(move |run| {
            let part = run.take(left);
            left -= part.len;
            (part.len > 0).then_some(part)
        })
    }

    /// What is written behind a place that is not acknowledged, in order.
    fn payloads_from(&self, from: u64) -> impl Iterator<Item = Payload> {
        let first = self.later.partition_point(|run| run.end() <= from);
        let runs = core::iter::once(&self.front).chain(self.later.range(first..));
        runs.flat_map(move |run| {
            let start = from.clamp(run.start, run.end());
            // A run may be longer than a payload.
            (start..run.end()).step_by(u32::MAX as usize).map(|start| Payload {
                stream: run.stream,
                offset: run.offset + (start - run.start),
                len: u32::try_from(run.end() - start).unwrap_or(u32::MAX),
            })
        })
    }

    /// Discards all data. Segments that were sent stay outstanding.
    pub(crate) fn stop(&mut self) {
        self.front = Run::default();
        self.later.clear();
        (self.written, self.acknowledged) = (self.sent, self.sent);
        (self.is_closed, self.is_end_sent) = (true, true);
        self.low_water = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half() -> SendHalf {
        let mut half = SendHalf::new(150);
        half.write(1, 500, 100);
        half.write(2, 0, 100);
        half
    }

    #[test]
    fn a_piece_ends_where_the_identity_changes_and_at_the_limit() {
        let mut half = half();
        let pieces: Vec<_> =
            (0..).map_while(|n| half.take(n, 80, false)).map(|p| (p.offset, p.len)).collect();
        assert_eq!(pieces, [(0, 80), (80, 20), (100, 50)]);
        half.raise_limit(149);
        assert!(!half.has_segment());
        half.raise_limit(200);
        half.close();
        assert_eq!(half.take(3, 80, false), Some(Piece { offset: 150, len: 50, end: true }));
        assert_eq!(half.take(4, 80, false), None);
        assert_eq!(half.payload(150, 50), Payload { stream: 2, offset: 50, len: 50 });
    }

    #[test]
    fn a_gathered_piece_has_what_was_written_in_order() {
        let mut half = half();
        half.write(3, 7, 30);
        half.raise_limit(230);
        let pieces: Vec<_> =
            (0..).map_while(|n| half.take(n, 90, true)).map(|p| (p.offset, p.len)).collect();
        assert_eq!(pieces, [(0, 90), (90, 90), (180, 50)]);
        let gathered = |(offset, len)| {
            let payload = half.payload(offset, len);
            let is_gathered = payload.stream == Payload::GATHERED;
            let parts = half.gathered(payload).map(|part| (part.stream, part.offset, part.len));
            is_gathered.then(|| parts.collect::<Vec<_>>())
        };
        assert_eq!(half.payload(0, 90), Payload { stream: 1, offset: 500, len: 90 });
        assert_eq!(gathered((90, 90)), Some(vec![(1, 590, 10), (2, 0, 80)]));
        assert_eq!(gathered((180, 50)), Some(vec![(2, 80, 20), (3, 7, 30)]));
        // The same once what precedes is acknowledged.
        half.on_acknowledged(|segment| segment < 2);
        let parts: Vec<_> = half.gathered(half.payload(180, 50)).map(|part| part.len).collect();
        assert_eq!(parts, [20, 30]);
    }

    #[test]
    fn bytes_are_released_in_order() {
        let mut half = half();
        while half.take(half.outstanding.end(), 80, false).is_some() {}
        half.notify_at(LowWater::Unacknowledged(120));
        half.on_acknowledged(|segment| segment == 1);
        assert_eq!(half.unacknowledged(), 200);
        assert!(!half.takes_low_water());
        half.on_acknowledged(|segment| segment < 2);
        assert_eq!(half.unacknowledged(), 100);
        assert!(half.takes_low_water() && !half.takes_low_water());
        assert_eq!(
            half.payloads().collect::<Vec<_>>(),
            [Payload { stream: 2, offset: 0, len: 100 }]
        );
    }

    #[test]
    fn little_may_wait_although_nothing_is_released() {
        let mut half = half();
        half.notify_at(LowWater::Unsent(120));
        assert!(!half.takes_low_water());
        while half.take(half.outstanding.end(), 80, false).is_some() {}
        half.on_acknowledged(|segment| segment == 1);
        assert_eq!((half.unacknowledged(), half.unsent()), (200, 50));
        assert!(half.takes_low_water() && !half.takes_low_water());
    }

    #[test]
    fn an_end_without_data_takes_a_segment() {
        let mut half = SendHalf::new(0);
        half.close();
        assert_eq!(half.take(7, 80, false), Some(Piece { offset: 0, len: 0, end: true }));
        assert!(!half.has_segment() && !half.has_none_outstanding());
    }
}
