//! What is known about every octet in flight.
//!
//! One record per transmitted range, holding its latest copy. From the records' states follow
//! the totals that the sender acts on; [`Scoreboard::edit`] is the one place that keeps them true.
//! Sequence numbers here are absolute: 0 is the SYN, 1 the first byte of data, and they never
//! wrap.

use base::{Ring, Time};
use bitflags::bitflags;
use serde::{Deserialize, Serialize};
use wire::CopyId;

bitflags! {
    /// What has become of a range.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) struct State: u8 {
        /// The receiver holds it (RFC 2018).
        const SACKED = 1;
        /// Its copies so far are held to be lost.
        const LOST = 1 << 1;
        /// A copy sent since is in flight, in addition or instead.
        const RESENT = 1 << 2;
        /// More than one copy was sent (Karn), or over another path: no round-trip sample.
        const AMBIGUOUS = 1 << 3;
        /// Its loss was reported and excused, it gives no reason to slow down.
        const EXCUSED = 1 << 4;
    }
}

impl State {
    /// Waits for retransmission.
    fn is_pending(self) -> bool {
        self & (State::LOST | State::RESENT | State::SACKED) == State::LOST
    }
}

/// A range of sequence numbers in flight and its latest copy.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// The latest copy.
    pub(crate) copy: CopyId,
    pub(crate) sent: Sent,
    pub(crate) state: State,
}

/// The circumstances in which a copy was sent: what had been delivered by then, and since when
/// (draft-cheng-iccrg-delivery-rate-estimation §3.1).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Bytes delivered.
    pub(crate) delivered: u64,
    /// When the copy was sent.
    pub(crate) at: Time,
    /// When the last of them was delivered.
    pub(crate) delivered_at: Time,
    /// When the copy that delivered it had been sent: the start of the sampling window.
    pub(crate) first_sent_at: Time,
}

/// Delivery so far.
//
// An acknowledgment writes these fields one by one, and the segment that it lets out records them
// at once. No two of them lie side by side as in [`Sent`], or they would be copied as a pair, which
// has to wait until both have left the store buffer.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Delivered {
    /// When the last was delivered.
    pub(crate) at: Time,
    /// Bytes delivered.
    pub(crate) bytes: u64,
    /// When the copy that delivered the last had been sent.
    pub(crate) first_sent_at: Time,
}

impl Delivered {
    /// A copy is sent now.
    #[inline]
    pub(crate) fn sent(&self, now: Time) -> Sent {
        Sent {
            delivered: self.bytes,
            at: now,
            delivered_at: self.at,
            first_sent_at: self.first_sent_at,
        }
    }
}

impl Record {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    /// Waits for retransmission.
    pub(crate) fn is_pending(&self) -> bool {
        self.state.is_pending()
    }
}

/// What a cumulative acknowledgment removed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Advanced {
    /// Octets acknowledged.
    pub(crate) acked: u64,
    /// Octets among them that were not known to be delivered before.
    pub(crate) delivered: u64,
    /// The length of the first record: of the hole that was filled, if there was one.
    pub(crate) filled: u32,
    /// What had become of the first record.
    pub(crate) state: State,
    /// When its latest copy had been sent.
    pub(crate) sent_at: Time,
    /// How the last record had been sent.
    pub(crate) last: Sent,
    /// A record was acknowledged whole, and none of them was sent twice or known to have arrived:
    /// that makes a round-trip sample (Karn).
    pub(crate) timed: bool,
}

const HERE: &str = "a number stands for a record as long as that is outstanding";

/// All records between SND.UNA and SND.NXT, in order and without gaps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Scoreboard {
    records: Ring<Record>,
    una: u64,
    nxt: u64,
    sacked: u64,
    lost: u64,
    resent: u64,
    pending: u32,
    excused: u32,
    /// Records lost to congestion, as far as anybody knows.
    blamed: u32,
    /// No record before this number is pending.
    pending_from: u64,
    /// No record from this number on is SACKed.
    sacked_until: u64,
    /// All records between this number and `sacked_until` are SACKed.
    sacked_from: u64,
    /// All holes before this number have been found by [`Scoreboard::next_sack_loss`].
    losses_until: u64,
    /// The blocks of the last ACK: their records need no second visit.
    seen: [Seen; wire::SackBlocks::MAX],
}

/// A SACK block.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Seen {
    start: u64,
    end: u64,
    /// From the block's start to this number, the receiver holds all records.
    next: u64,
}

impl Scoreboard {
    /// SND.UNA: the first octet not acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// Whether every record is in flight for the first time, as far as anybody knows.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.sacked | self.lost | self.resent == 0
    }

    /// SND.NXT, which is SND.MAX: retransmissions do not move it.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Octets sent and not cumulatively acknowledged (RFC 5681's FlightSize).
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Octets held to be in the network (RFC 6675 §4, SetPipe).
    pub(crate) fn in_network(&self) -> u64 {
        self.outstanding() + self.resent - self.sacked - self.lost
    }

    /// Octets whose first copies are held to be lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether a hole's loss was excused and the hole is still open.
    pub(crate) fn has_excused(&self) -> bool {
        self.excused > 0
    }

    /// Whether a hole was lost to congestion, as far as anybody knows, and is still open.
    pub(crate) fn has_blamed(&self) -> bool {
        self.blamed > 0
    }

    /// Bytes of memory for the records.
    pub(crate) fn memory(&self) -> u64 {
        self.records.len() * size_of::<Record>() as u64
    }

    pub(crate) fn first(&self) -> Option<&Record> {
        self.records.first()
    }

    /// The number of the first record.
    pub(crate) fn head(&self) -> u64 {
        self.records.begin()
    }

    pub(crate) fn get(&self, index: u64) -> &Record {
        self.records.get(index).expect(HERE)
    }

    /// The record that holds `seq`.
    pub(crate) fn find(&self, seq: u64) -> Option<u64> {
        if seq < self.una || seq >= self.nxt {
            return None;
        }
        Some(self.records.partition_point(|record| record.end() <= seq))
    }

    /// Adds a range that was sent for the first time.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: Record) {
        debug_assert_eq!(record.start, self.nxt);
        self.nxt = record.end();
        self.records.make_room();
        self.records.push(record);
    }

    /// Removes the first record, if `ack` covers just that and nothing befell it; returns its length
    /// and how it was sent.
    #[inline(always)]
    pub(crate) fn advance_one(&mut self, ack: u64) -> Option<(u64, Sent)> {
        let first = self.records.first()?;
        if first.end() != ack || !first.state.is_empty() {
            return None;
        }
        let result = (ack - self.una, first.sent);
        self.records.pop();
        self.una = ack;
        Some(result)
    }

    /// Removes everything below `ack`, which is above SND.UNA.
    #[inline]
    pub(crate) fn advance(&mut self, ack: u64) -> Advanced {
        debug_assert!(self.una < ack && ack <= self.nxt);
        let mut result = Advanced { acked: ack - self.una, ..Advanced::default() };
        if let Some(first) = self.records.first() {
            result.filled = first.len;
            result.state = first.state;
            result.sent_at = first.sent.at;
            result.last = first.sent;
            result.timed = first.end() <= ack;
        }
        self.una = ack;
        result.delivered = result.acked;
        while let Some(record) = self.records.first() {
            let whole = record.end() <= ack;
            if !record.state.is_empty() {
                let known = self.uncount(ack);
                result.delivered -= known;
                result.timed = false;
            }
            if !whole {
                self.cut(ack);
                break;
            }
            if let Some(record) = self.records.pop() {
                result.last = record.sent;
            }
        }
        result
    }

    /// Takes the first record's state out of the totals, as far as `ack` covers it; returns the
    /// octets of it that were known to be delivered.
    fn uncount(&mut self, ack: u64) -> u64 {
        let Some(&record) = self.records.first() else { return 0 };
        if record.start >= ack {
            return 0;
        }
        let covered = ack.min(record.end()) - record.start;
        self.count::<false>(record.len, record.state);
        if covered < u64::from(record.len) {
            self.count::<true>(record.len - covered as u32, record.state);
        }
        if record.state.contains(State::SACKED) { covered } else { 0 }
    }

    /// Shortens the first record, if `ack` covers a part of it. The rest keeps its state.
    fn cut(&mut self, ack: u64) {
        if let Some(record) = self.records.get_mut(self.records.begin())
            && record.start < ack
        {
            record.len -= (ack - record.start) as u32;
            record.start = ack;
        }
    }

    /// Whether a block names something outstanding, and was not among the last ones.
    pub(crate) fn is_news(&self, block: (u64, u64)) -> bool {
        let (start, end) = block;
        self.una <= start
            && start < end
            && end <= self.nxt
            && !self.seen.iter().any(|seen| (seen.start, seen.end) == block)
    }

    /// Marks the records inside the blocks as held by the receiver; returns the octets that this
    /// told us and the latest copy among them.
    pub(crate) fn sack(&mut self, blocks: &[(u64, u64)]) -> (u64, Option<Sent>) {
        let mut news = (0, None);
        let mut seen = [Seen::default(); wire::SackBlocks::MAX];
        for (seen, &(start, end)) in seen.iter_mut().zip(blocks) {
            // No octet was sent elsewhere.
            if start < end && end <= self.nxt {
                let next = self.sack_one((start, end), &mut news);
                *seen = Seen { start, end, next };
            }
        }
        self.seen = seen;
        news
    }

    /// The same for one block; returns the number up to which the receiver holds all records from its
    /// start on.
    #[inline(never)]
    fn sack_one(&mut self, (start, end): (u64, u64), news: &mut (u64, Option<Sent>)) -> u64 {
        let (told, latest) = news;
        let mut index = self.first_unseen(start);
        while let Some(record) = self.records.get(index) {
            if record.end() > end {
                break;
            }
            if record.state.contains(State::SACKED) {
                let within = |seen: &&Seen| seen.start <= record.start && index < seen.next;
                index = self.seen.iter().find(within).map_or(index + 1, |seen| seen.next);
                continue;
            }
            *told += u64::from(record.len);
            if latest.is_none_or(|known| known.at <= record.sent.at) {
                *latest = Some(record.sent);
            }
            self.edit(index, |record| record.state |= State::SACKED);
            if index > self.sacked_until {
                self.sacked_from = index;
            }
            index += 1;
            self.sacked_until = self.sacked_until.max(index);
        }
        index
    }

    /// The number of the first record that starts at `start` or behind it, or of a later one if the
    /// receiver is known to hold those between.
    fn first_unseen(&self, start: u64) -> u64 {
        match self.seen.iter().find(|seen| seen.start <= start && start < seen.end) {
            // What was seen may be acknowledged by now.
            Some(seen) => seen.next.max(self.records.begin()),
            None => self.records.partition_point(|record| record.start < start),
        }
    }

    /// The lowest hole that has become lost since the last call: three discontiguous SACKed runs,
    /// or more than `(3 - 1) * mss` SACKed octets, lie above it (RFC 6675 §4, IsLost).
    ///
    /// Whether a hole is lost depends only on what lies above, so all holes below a lost one are
    /// lost too, and an edge that only rises finds each hole once.
    pub(crate) fn next_sack_loss(&mut self, mss: u32) -> Option<u64> {
        // Most SACKs tell of one more behind the last.
        if self.sacked == 0 || self.losses_until >= self.sacked_from {
            return None;
        }
        let edge = self.lost_until(mss);
        for index in self.losses_until.max(self.records.begin())..edge {
            self.losses_until = index + 1;
            if !self.get(index).state.intersects(State::SACKED | State::LOST) {
                return Some(index);
            }
        }
        None
    }

    /// The number of the record below which every hole is lost.
    fn lost_until(&self, mss: u32) -> u64 {
        const DUP_THRESH: u32 = 3;
        let (mut runs, mut octets, mut in_run) = (0, 0, false);
        for index in (self.records.begin()..self.sacked_until).rev() {
            let record = self.get(index);
            if record.state.contains(State::SACKED) {
                octets += record.len;
                runs += u32::from(!in_run);
                in_run = true;
                if runs >= DUP_THRESH || octets > (DUP_THRESH - 1) * mss {
                    return index;
                }
            } else {
                in_run = false;
                if index < self.losses_until {
                    break;
                }
            }
        }
        0
    }

    /// Holds the record's copies so far for lost; `excused` if that gives no reason to slow down.
    pub(crate) fn lose(&mut self, index: u64, excused: bool) {
        self.edit(index, |record| {
            record.state |= State::LOST;
            record.state.set(State::EXCUSED, excused);
        });
        self.pending_from = self.pending_from.min(index);
    }

    /// Holds the record's latest copy for lost, too.
    pub(crate) fn lose_latest_copy(&mut self, index: u64, excused: bool) {
        self.edit(index, |record| record.state -= State::RESENT);
        self.lose(index, excused);
    }

    /// Holds everything for lost that the receiver does not hold, after a timeout.
    pub(crate) fn lose_everything(&mut self) {
        self.forget_reneged();
        for index in self.records.begin()..self.records.end() {
            self.edit(index, |record| {
                record.state -= State::RESENT | State::EXCUSED;
                record.state |= State::LOST;
            });
        }
        self.pending_from = self.records.begin();
    }

    /// A timeout finds the first record SACKed: the receiver has discarded it, and perhaps others, so
    /// all that it has SACKed is forgotten (RFC 2018 §8).
    pub(crate) fn forget_reneged(&mut self) {
        if !self.first().is_some_and(|record| record.state.contains(State::SACKED)) {
            return;
        }
        for index in self.records.begin()..self.records.end() {
            self.edit(index, |record| record.state -= State::SACKED);
        }
        self.pending_from = self.records.begin();
        self.sacked_until = 0;
        self.sacked_from = 0;
        self.losses_until = 0;
        self.seen = [Seen::default(); wire::SackBlocks::MAX];
    }

    /// What is outstanding measures no round trip.
    pub(crate) fn forget_times(&mut self) {
        for index in self.records.begin()..self.records.end() {
            self.edit(index, |record| record.state |= State::AMBIGUOUS);
        }
    }

    /// The lowest record that waits for retransmission.
    pub(crate) fn next_pending(&mut self) -> Option<u64> {
        if self.pending == 0 {
            return None;
        }
        let from = self.pending_from.max(self.records.begin());
        let index = (from..self.records.end()).find(|&i| self.get(i).is_pending())?;
        self.pending_from = index;
        Some(index)
    }

    /// The lowest hole from `from` on and below the highest SACKed octet (RFC 6675 §4, NextSeg 3).
    pub(crate) fn next_hole(&self, from: u64) -> Option<u64> {
        let start = self.find(from.max(self.una))?;
        (start..self.sacked_until).find(|&i| !self.get(i).state.contains(State::SACKED))
    }

    /// The highest record that the receiver has not told of (RFC 6675 §4, NextSeg 4).
    pub(crate) fn highest_unsacked(&self) -> Option<u64> {
        (self.records.begin()..self.records.end())
            .rev()
            .find(|&i| !self.get(i).state.contains(State::SACKED))
    }

    /// Records that a new copy of a range was sent.
    pub(crate) fn resend(&mut self, index: u64, copy: CopyId, sent: Sent) {
        self.edit(index, |record| {
            record.state |= State::RESENT | State::AMBIGUOUS;
            record.copy = copy;
            record.sent = sent;
        });
    }

    /// Changes one record and the totals with it.
    fn edit(&mut self, index: u64, change: impl FnOnce(&mut Record)) {
        let record = self.records.get_mut(index).expect(HERE);
        let (len, old) = (record.len, record.state);
        change(record);
        let new = record.state;
        self.count::<false>(len, old);
        self.count::<true>(len, new);
    }

    /// Takes `len` octets in a state into the totals, or out of them.
    fn count<const ADD: bool>(&mut self, len: u32, state: State) {
        let octets = |total: &mut u64| {
            let len = u64::from(len);
            *total = if ADD { *total + len } else { *total - len };
        };
        let one = |total: &mut u32| *total = if ADD { *total + 1 } else { *total - 1 };
        if state.contains(State::SACKED) {
            octets(&mut self.sacked);
            return;
        }
        if state.contains(State::LOST) {
            octets(&mut self.lost);
        }
        if state.contains(State::RESENT) {
            octets(&mut self.resent);
        }
        if state.is_pending() {
            one(&mut self.pending);
        }
        if state.contains(State::EXCUSED) {
            one(&mut self.excused);
        } else if state.contains(State::LOST) {
            one(&mut self.blamed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..segments {
            board.push(Record {
                start: i * 100,
                len: 100,
                copy: CopyId(i as u32 + 1),
                sent: Sent::default(),
                state: State::empty(),
            });
        }
        board
    }

    #[test]
    fn three_sacked_segments_above_make_a_hole_lost_and_two_do_not() {
        let mut board = board(6);
        board.sack(&[(100, 300)]);
        assert_eq!(board.next_sack_loss(100), None);
        board.sack(&[(100, 400)]);
        assert_eq!(board.next_sack_loss(100), Some(0));
        board.lose(0, false);
        assert_eq!(board.next_sack_loss(100), None);
    }

    #[test]
    fn three_short_sacked_runs_above_make_every_hole_below_lost() {
        // Runs shorter than a segment: the octet rule alone (2 * 1000) would not see them.
        let mut board = board(8);
        board.sack(&[(100, 200), (300, 400), (500, 600)]);
        assert_eq!(board.next_sack_loss(1000), Some(0));
        assert_eq!(board.next_sack_loss(1000), None);
    }

    #[test]
    fn pipe_counts_each_copy_that_is_held_to_be_in_the_network() {
        let mut board = board(5);
        assert_eq!(board.in_network(), 500);
        board.sack(&[(100, 400)]);
        assert_eq!(board.in_network(), 200);
        board.lose(0, false);
        assert_eq!(board.in_network(), 100);
        board.resend(0, CopyId(9), Sent::default());
        assert_eq!(board.in_network(), 200);
        assert_eq!(board.next_pending(), None);
        board.lose_latest_copy(0, true);
        assert!(board.next_pending() == Some(0) && board.has_excused());
        board.advance(400);
        assert_eq!(board.in_network(), 100);
        assert!(board.next_pending().is_none() && !board.has_excused());
    }

    #[test]
    fn a_partial_acknowledgment_splits_a_record() {
        let mut board = board(2);
        let advanced = board.advance(30);
        assert_eq!((advanced.acked, advanced.delivered), (30, 30));
        assert_eq!((board.first().unwrap().start, board.first().unwrap().len), (30, 70));
    }

    /// RFC 6675 §4, IsLost, hole by hole.
    fn lowest_lost(board: &Scoreboard, mss: u32) -> Option<u64> {
        let sacked = |&i: &u64| board.get(i).state.contains(State::SACKED);
        let end = board.records.end();
        let is_lost = |&hole: &u64| {
            let above: Vec<u64> = (hole + 1..end).filter(sacked).collect();
            let octets: u32 = above.iter().map(|&i| board.get(i).len).sum();
            let runs = above.iter().filter(|&&i| !sacked(&(i - 1))).count();
            runs >= 3 || octets > 2 * mss
        };
        let open = |&i: &u64| !board.get(i).state.intersects(State::SACKED | State::LOST);
        (board.records.begin()..end).filter(open).find(is_lost)
    }

    proptest! {
        /// However they come about, one after the other.
        #[test]
        fn a_hole_is_lost_as_soon_as_enough_is_sacked_above(
            operations in prop::collection::vec((0u8..5, 0u64..16, 1u64..4), 1..40)
        ) {
            let mut board = board(16);
            for (operation, at, n) in operations {
                let start = at * 100;
                match operation {
                    0 if start > board.una() => {
                        board.advance(start);
                    }
                    1 if at + n == 16 => board.lose_everything(),
                    2 => if let Some(i) = board.find(start) { board.lose(i, true) },
                    _ => {
                        board.sack(&[(start, start + n * 100)]);
                    }
                }
                while let Some(hole) = lowest_lost(&board, 100) {
                    prop_assert_eq!(board.next_sack_loss(100), Some(hole));
                    board.lose(hole, false);
                }
                prop_assert_eq!(board.next_sack_loss(100), None);
            }
        }

        /// RFC 2018 §8: a receiver that has thrown all away is one that never had it.
        #[test]
        fn what_the_receiver_has_thrown_away_is_forgotten_without_a_trace(
            before in prop::collection::vec((0u64..16, 1u64..5), 0..12),
            after in prop::collection::vec((prop::collection::vec((0u64..16, 1u64..5), 1..4), 0u64..3), 1..20),
        ) {
            let (mut reneged, mut fresh) = (board(16), board(16));
            for (at, n) in before {
                reneged.sack(&[(at * 100, (at + n) * 100)]);
                reneged.next_sack_loss(100);
            }
            reneged.sack(&[(0, 100)]);
            reneged.forget_reneged();
            for (blocks, advance) in after {
                let mut both = [&mut reneged, &mut fresh].map(|board| {
                    let blocks: Vec<_> = blocks.iter().map(|&(at, n)| (at * 100, (at + n) * 100)).collect();
                    let new: Vec<_> = blocks.iter().map(|&block| board.is_news(block)).collect();
                    let (told, _) = board.sack(&blocks);
                    let losses: Vec<_> = core::iter::from_fn(|| board.next_sack_loss(100)).collect();
                    let una = board.una() + 100 * advance;
                    if una > board.una() && una <= board.nxt() {
                        board.advance(una);
                    }
                    (new, told, losses, board.in_network())
                });
                let [reneged, fresh] = both.each_mut();
                prop_assert_eq!(reneged, fresh);
            }
        }

        /// Whatever happens, the totals are those that counting from scratch gives.
        #[test]
        fn totals_follow_the_records(
            operations in prop::collection::vec((0u8..6, 0u64..40, 1u64..6), 1..120)
        ) {
            let mut board = board(40);
            for (operation, at, n) in operations {
                let start = at * 100;
                match operation {
                    0 if start > board.una() && start <= board.nxt() => {
                        board.advance(start);
                    }
                    1 => {
                        board.sack(&[(start, start + n * 100)]);
                    }
                    2 => if let Some(i) = board.find(start) { board.lose(i, n == 1) },
                    3 => if let Some(i) = board.find(start) {
                        board.resend(i, CopyId(n as u32), Sent::default());
                    },
                    4 => if let Some(i) = board.next_sack_loss(100) { board.lose(i, false) },
                    5 if n == 5 => board.lose_everything(),
                    _ => {}
                }
                let mut fresh = Scoreboard { una: board.una, nxt: board.nxt, ..Scoreboard::default() };
                for record in board.records.iter() {
                    fresh.count::<true>(record.len, record.state);
                }
                prop_assert_eq!(fresh.in_network(), board.in_network());
                prop_assert_eq!(fresh.pending, board.pending);
                prop_assert_eq!(fresh.excused, board.excused);
                let scan = (board.records.begin()..board.records.end()).find(|&i| board.get(i).is_pending());
                prop_assert_eq!(board.next_pending(), scan);
            }
        }
    }
}
