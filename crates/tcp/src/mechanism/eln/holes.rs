//! The holes of the reassembly queue, each with the cause of its loss.

use super::super::Arrival;
use crate::indication::{LossCause, PeerLosses};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Missing octets that have one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hole {
    /// The first octet.
    pub(super) start: u64,
    /// The octet after the last.
    pub(super) end: u64,
    cause: LossCause,
}

/// Missing octets by rising sequence number. What was sent in one segment is one entry, whose cause is
/// renewed when its retransmission is lost, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Holes {
    holes: VecDeque<Hole>,
    /// The octet after the highest that has arrived, if there are holes.
    highest: u64,
    /// Bytes of the largest segment so far.
    segment_size: u64,
}

impl Holes {
    /// The most entries. Beyond, the highest octets are not known to be missing, and no report names them.
    const MOST: usize = 1024;

    /// Notes a segment that is out of order, arrives again, or fills a gap, and the packets that are missing before
    /// it. In order, they carried the segments of the gap that it leaves; the rest are retransmissions of
    /// the lowest holes.
    pub(super) fn on_arrival(&mut self, arrival: &Arrival, losses: &PeerLosses) {
        let &Arrival { start, end, nxt, .. } = arrival;
        self.segment_size = self.segment_size.max(end - start);
        self.remove(0, nxt);
        self.highest = if self.holes.is_empty() { nxt } else { self.highest.max(nxt) };
        let gap = self.highest..start;
        self.remove(start, end);
        let mut causes = losses.iter();
        let known = self.holes.len();
        let mut from = gap.start;
        while from < gap.end && self.holes.len() < Holes::MOST {
            let until = gap.end.min(from + self.segment_size.max(1));
            // Without a cause: the packet was not missing when its successor arrived.
            let cause = causes.next().unwrap_or(LossCause::Congestion);
            self.holes.push_back(Hole { start: from, end: until, cause });
            from = until;
        }
        // Only a queue without room for more entries stops before the gap's end.
        self.highest = if from < gap.end { from } else { self.highest.max(end) };
        for (hole, cause) in self.holes.iter_mut().take(known).zip(causes) {
            hole.cause = cause;
        }
    }

    /// Removes octets that have arrived.
    fn remove(&mut self, start: u64, end: u64) {
        let first = self.holes.partition_point(|hole| hole.end <= start);
        let last = self.holes.partition_point(|hole| hole.start < end);
        if first >= last {
            return;
        }
        let (low, high) = (self.holes[first], self.holes[last - 1]);
        self.holes.drain(first..last);
        if high.end > end {
            self.holes.insert(first, Hole { start: end, ..high });
        }
        if low.start < start {
            self.holes.insert(first, Hole { end: start, ..low });
        }
    }

    /// Whether any hole was lost to corruption.
    pub(super) fn has_corrupted(&self) -> bool {
        self.holes.iter().any(|hole| hole.cause == LossCause::Corruption)
    }

    /// Whether the first missing segment was lost to corruption.
    pub(super) fn is_first_corrupted(&self) -> bool {
        self.holes.front().is_some_and(|hole| hole.cause == LossCause::Corruption)
    }

    /// The first hole behind the first segment that is missing, from `start` on or, if there is none, from
    /// below, that was lost to corruption; with the first octet that is missing.
    pub(super) fn corrupted_behind_first(&self, start: u64) -> Option<(u64, Hole)> {
        let mut corrupted =
            self.holes.iter().skip(1).filter(|hole| hole.cause == LossCause::Corruption);
        let lowest = *corrupted.clone().next()?;
        let next = corrupted.find(|hole| hole.start >= start);
        Some((self.holes.front()?.start, next.copied().unwrap_or(lowest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LossCause::{Congestion, Corruption};
    use base::Time;

    /// Segments of 100 bytes from octet 1 on.
    fn arrival(nxt: u64, segment: u64) -> Arrival {
        let start = 1 + 100 * segment;
        let (duplicate_ack, duplicates, now) = (true, 1, Time::ZERO);
        Arrival { now, start, end: start + 100, nxt: 1 + 100 * nxt, duplicate_ack, duplicates }
    }

    fn losses(causes: &[LossCause]) -> PeerLosses {
        let mut losses = PeerLosses::default();
        causes.iter().for_each(|&cause| losses.push(cause, 1));
        losses
    }

    fn causes(holes: &Holes) -> Vec<(u64, LossCause)> {
        holes.holes.iter().map(|hole| ((hole.start - 1) / 100, hole.cause)).collect()
    }

    #[test]
    fn the_missing_packets_of_a_gap_are_its_segments_in_order() {
        let mut holes = Holes::default();
        holes.on_arrival(&arrival(0, 3), &losses(&[Congestion, Corruption, Corruption]));
        assert_eq!(causes(&holes), [(0, Congestion), (1, Corruption), (2, Corruption)]);
        assert!(!holes.is_first_corrupted() && holes.has_corrupted());
        // The first fills its hole: the next is the first.
        holes.on_arrival(&arrival(0, 0), &losses(&[]));
        assert!(holes.is_first_corrupted());
        // A second gap, above what has arrived.
        holes.on_arrival(&arrival(1, 5), &losses(&[Congestion]));
        assert_eq!(causes(&holes), [(1, Corruption), (2, Corruption), (4, Congestion)]);
    }

    #[test]
    fn surplus_packets_were_retransmissions_of_the_lowest_holes() {
        let mut holes = Holes::default();
        holes.on_arrival(&arrival(0, 3), &losses(&[Congestion, Congestion, Congestion]));
        holes.on_arrival(&arrival(0, 5), &losses(&[Congestion, Corruption, Corruption]));
        let expected = [Corruption, Corruption, Congestion, Congestion];
        assert_eq!(causes(&holes), [0, 1, 2, 4].into_iter().zip(expected).collect::<Vec<_>>());
        // No new gap: all are retransmissions; what arrives now is no hole any more.
        holes.on_arrival(&arrival(0, 1), &losses(&[Congestion, Corruption]));
        assert_eq!(causes(&holes), [(0, Congestion), (2, Corruption), (4, Congestion)]);
    }

    #[test]
    fn a_segment_that_was_not_known_to_be_missing_counts_as_congestion() {
        let mut holes = Holes::default();
        holes.on_arrival(&arrival(0, 2), &losses(&[Corruption]));
        assert_eq!(causes(&holes), [(0, Corruption), (1, Congestion)]);
    }

    #[test]
    fn part_of_a_hole_may_arrive() {
        let mut holes = Holes::default();
        holes.on_arrival(&arrival(0, 2), &losses(&[Corruption, Corruption]));
        let middle = Arrival { start: 51, end: 151, ..arrival(0, 0) };
        holes.on_arrival(&middle, &losses(&[]));
        let parts: Vec<_> = holes.holes.iter().map(|hole| (hole.start, hole.end)).collect();
        assert_eq!(parts, [(1, 51), (151, 201)]);
    }

    #[test]
    fn corrupted_holes_behind_the_first_take_turns() {
        let mut holes = Holes::default();
        holes
            .on_arrival(&arrival(0, 4), &losses(&[Corruption, Corruption, Congestion, Corruption]));
        let mut from = 0;
        let mut next = || {
            let (first, hole) = holes.corrupted_behind_first(from).unwrap();
            from = hole.end;
            (first, (hole.start - 1) / 100)
        };
        assert_eq!([next(), next(), next()], [(1, 1), (1, 3), (1, 1)]);
    }

    #[test]
    fn entries_are_bounded() {
        let mut holes = Holes::default();
        let far = Arrival { start: 1_000_001, end: 1_000_101, ..arrival(0, 0) };
        holes.on_arrival(&far, &losses(&[Corruption]));
        assert_eq!(holes.holes.len(), Holes::MOST);
        assert_eq!(holes.highest, 1 + 100 * Holes::MOST as u64);
        // Once there is room, the rest may become holes, with any cause.
        holes.on_arrival(&arrival(0, 0), &losses(&[]));
        holes.on_arrival(&Arrival { start: 1_000_101, end: 1_000_201, ..far }, &losses(&[]));
        assert_eq!(holes.holes.len(), Holes::MOST);
    }
}
