//! The scoreboard: the state of every octet in flight.
//!
//! One record per transmitted range, holding its latest copy. From the records' states follow
//! the totals that the sender acts on; [`Scoreboard::edit`] is the one place that keeps them true.
//! Sequence numbers here are absolute: 0 is the SYN, 1 the first byte of data, and they never
//! wrap.

mod lost;
mod record;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use record::{Delivered, Delivery, Flight, Record, SendOrder, Sent, State};

use base::{Ring, Time};
use serde::{Deserialize, Serialize};
use wire::CopyId;

/// The result of a cumulative acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Advanced {
    /// Octets acknowledged.
    pub(crate) acked: u64,
    /// Octets of them that had not been SACKed.
    pub(crate) delivered: u64,
    /// The length of the first record: of the filled hole, if there was one.
    pub(crate) filled: u32,
    /// The state of the first record.
    pub(crate) state: State,
    /// When its latest copy had been sent.
    pub(crate) sent_at: Time,
    /// How the last record had been sent.
    pub(crate) last: Sent,
    /// A record was acknowledged as a whole, and none of them was retransmitted or SACKed: the
    /// acknowledgment gives a round-trip sample (Karn).
    pub(crate) timed: bool,
    /// What was delivered that had not been SACKed.
    pub(crate) delivery: Delivery,
}

/// What SACK blocks have newly reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sacked {
    /// Octets newly SACKed.
    pub(crate) octets: u64,
    /// How the latest copy among them was sent.
    pub(crate) latest: Option<Sent>,
    /// What was delivered.
    pub(crate) delivery: Delivery,
}

/// What a cumulative acknowledgment removed where nothing had befallen it: [`Advanced`], in short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeRecords {
    /// Octets acknowledged.
    pub(crate) acked: u64,
    /// When the first record had been sent.
    pub(crate) sent_at: Time,
    /// How the last record had been sent.
    pub(crate) last: Sent,
}

const LIVE_INDEX: &str = "a number stands for a record as long as that is outstanding";

/// All records between SND.UNA and SND.NXT, in order and without gaps.
//
// What a segment on the fast path reads comes first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Scoreboard {
    una: u64,
    nxt: u64,
    records: Ring<Record>,
    sacked: u64,
    lost: u64,
    resent: u64,
    sacked_records: u32,
    pending: u32,
    corruption_losses: u32,
    /// Records that count as lost to congestion.
    congestion_losses: u32,
    /// No record before this number is pending.
    pending_from: u64,
    /// No record from this number on is SACKed.
    sacked_until: u64,
    /// All records between this number and `sacked_until` are SACKed.
    sacked_from: u64,
    /// All lost holes before this number have been returned by [`Scoreboard::next_sack_loss`], or
    /// those of ranges sent once by [`Scoreboard::next_loss_by_time`].
    losses_until: u64,
    /// The SACK blocks of the last ACK, whose records need no second visit.
    last_blocks: Box<[ProcessedBlock; wire::SackBlocks::MAX]>,
}

/// A SACK block.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct ProcessedBlock {
    start: u64,
    end: u64,
    /// All records from the block's start to this number are SACKed.
    next: u64,
}

impl Scoreboard {
    /// SND.UNA: the first octet not acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// Whether no record is SACKed, lost or retransmitted.
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

    /// Octets estimated to be in the network (RFC 6675 §4, SetPipe).
    pub(crate) fn in_network(&self) -> u64 {
        self.outstanding() + self.resent - self.sacked - self.lost
    }

    /// Ranges that are SACKed.
    pub(crate) fn sacked_records(&self) -> u32 {
        self.sacked_records
    }

    /// The end of the highest octets delivered (RFC 8985 §5.3, RACK.fack).
    pub(crate) fn fack(&self) -> u64 {
        if self.sacked_until > self.records.begin() {
            self.get(self.sacked_until - 1).end()
        } else {
            self.una
        }
    }

    /// Octets that are SACKed.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Octets whose first copies count as lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether a hole of a corruption loss is still open.
    pub(crate) fn has_corruption_loss(&self) -> bool {
        self.corruption_losses > 0
    }

    /// Whether a hole of a congestion loss is still open.
    pub(crate) fn has_congestion_loss(&self) -> bool {
        self.congestion_losses > 0
    }

    /// Bytes of memory for the records.
    pub(crate) fn memory(&self) -> u64 {
        self.records.len() * size_of::<Record>() as u64
    }

    pub(crate) fn first(&self) -> Option<&Record> {
        self.records.first()
    }

    /// The records, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        (self.records.begin()..self.records.end()).map(|index| self.get(index))
    }

    /// The number of the first record.
    pub(crate) fn head(&self) -> u64 {
        self.records.begin()
    }

    pub(crate) fn get(&self, index: u64) -> &Record {
        self.records.get(index).expect(LIVE_INDEX)
    }

    /// The record with this number, unless it is acknowledged.
    pub(crate) fn try_get(&self, index: u64) -> Option<&Record> {
        self.records.get(index)
    }

    /// The record that holds `seq`.
    pub(crate) fn find(&self, seq: u64) -> Option<u64> {
        if seq < self.una || seq >= self.nxt {
            return None;
        }
        Some(self.records.partition_point(|record| record.end() <= seq))
    }

    /// The parts of a range that are in flight and not SACKed, record by record.
    pub(crate) fn undelivered(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let (start, end) = (start.max(self.una), end.min(self.nxt));
        let first = self.find(start).filter(|_| start < end);
        let records = first.into_iter().flat_map(|first| first..self.records.end());
        records
            .map(|index| self.get(index))
            .take_while(move |record| record.start < end)
            .filter(|record| !record.state.contains(State::SACKED))
            .map(move |record| (record.start.max(start), record.end().min(end)))
    }

    /// Adds a range that was sent for the first time.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: Record) {
        debug_assert_eq!(record.start, self.nxt);
        self.nxt = record.end();
        self.records.make_room();
        self.records.push(record);
    }

    /// Removes everything below `ack` if that covers whole records whose states are empty: usually
    /// one, or two with delayed acknowledgments.
    #[inline(always)]
    pub(crate) fn advance_whole(&mut self, ack: u64) -> Option<WholeRecords> {
        if ack > self.nxt {
            return None;
        }
        let first = self.records.first()?;
        let (mut last, mut count, mut state) = (first, 1, first.state);
        while last.end() < ack {
            last = self.records.get(self.records.begin() + count)?;
            state |= last.state;
            count += 1;
        }
        if last.end() != ack || !state.is_empty() {
            return None;
        }
        let result =
            WholeRecords { acked: ack - self.una, sent_at: first.sent.at, last: last.sent };
        self.records.discard(count);
        self.una = ack;
        Some(result)
    }

    /// Removes everything below `ack`, which is above SND.UNA. `fack` is [`Scoreboard::fack`]
    /// before the SACK blocks of the same acknowledgment: what it delivers at once shows no
    /// reordering. For `resent_until` see [`Delivery`].
    #[inline]
    pub(crate) fn advance(&mut self, ack: u64, fack: u64, resent_until: Time) -> Advanced {
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
            if let Some(record) = self.records.pop()
                && !record.state.contains(State::SACKED)
            {
                if record.sent.at >= result.last.at {
                    result.last = record.sent;
                }
                result.delivery.add(&record, fack, resent_until);
            }
        }
        result
    }

    /// Takes the first record out of the totals, as far as `ack` covers it; returns its covered
    /// octets that had been SACKed.
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

    /// Whether a block lies within the outstanding octets and was not in the last ACK.
    pub(crate) fn is_new_block(&self, block: (u64, u64)) -> bool {
        let (start, end) = block;
        self.una <= start
            && start < end
            && end <= self.nxt
            && !self.last_blocks.iter().any(|last| (last.start, last.end) == block)
    }

    /// Marks the records inside the blocks as SACKed. For `resent_until` see [`Delivery`].
    pub(crate) fn sack(&mut self, blocks: &[(u64, u64)], resent_until: Time) -> Sacked {
        let (mut sacked, fack) = (Sacked::default(), self.fack());
        let mut processed = [ProcessedBlock::default(); wire::SackBlocks::MAX];
        for (block, &(start, end)) in processed.iter_mut().zip(blocks) {
            // Blocks outside the outstanding octets are ignored.
            if start < end && end <= self.nxt {
                let next = self.sack_one((start, end), fack, resent_until, &mut sacked);
                *block = ProcessedBlock { start, end, next };
            }
        }
        *self.last_blocks = processed;
        sacked
    }

    /// Marks the records inside one block; returns the number up to which all records from its
    /// start are SACKed.
    #[inline(never)]
    fn sack_one(
        &mut self,
        (start, end): (u64, u64),
        fack: u64,
        resent_until: Time,
        sacked: &mut Sacked,
    ) -> u64 {
        let mut index = self.first_unprocessed(start);
        while let Some(record) = self.records.get(index) {
            if record.end() > end {
                break;
            }
            if record.state.contains(State::SACKED) {
                index = self.after_sacked(index, record.start);
                continue;
            }
            sacked.octets += u64::from(record.len);
            if sacked.latest.is_none_or(|known| known.at <= record.sent.at) {
                sacked.latest = Some(record.sent);
            }
            sacked.delivery.add(record, fack, resent_until);
            self.edit(index, |record| record.state |= State::SACKED);
            if index > self.sacked_until {
                self.sacked_from = index;
            }
            index += 1;
            self.sacked_until = self.sacked_until.max(index);
        }
        index
    }

    /// The number of a record after the SACKed one at `start`, with none between that is not SACKed.
    fn after_sacked(&self, index: u64, start: u64) -> u64 {
        let within = |block: &&ProcessedBlock| block.start <= start && index < block.next;
        self.last_blocks.iter().find(within).map_or(index + 1, |block| block.next)
    }

    /// The number of the first record that starts at or after `start`, or of a later one if those
    /// between are SACKed.
    fn first_unprocessed(&self, start: u64) -> u64 {
        match self.last_blocks.iter().find(|block| block.start <= start && start < block.end) {
            // The last block may be acknowledged by now.
            Some(block) => block.next.max(self.records.begin()),
            None => self.records.partition_point(|record| record.start < start),
        }
    }

    /// Marks the record's copies so far as lost; `corrupted` if the cause is corruption, not
    /// congestion.
    pub(crate) fn mark_lost(&mut self, index: u64, corrupted: bool) {
        self.edit(index, |record| {
            record.state |= State::LOST;
            record.state.set(State::CORRUPTED, corrupted);
        });
        self.pending_from = self.pending_from.min(index);
    }

    /// Marks the record's latest copy as lost, too.
    pub(crate) fn mark_latest_copy_lost(&mut self, index: u64, corrupted: bool) {
        self.edit(index, |record| record.state -= State::RESENT);
        self.mark_lost(index, corrupted);
    }

    /// Marks the first record as lost after a timeout, and every other that is not SACKed and was
    /// sent no later than `cutoff`.
    pub(crate) fn mark_all_lost(&mut self, cutoff: Time) {
        self.forget_reneged();
        for index in self.records.begin()..self.records.end() {
            if index > self.records.begin() && self.get(index).sent.at > cutoff {
                continue;
            }
            self.edit(index, |record| {
                record.state -= State::RESENT | State::CORRUPTED;
                record.state |= State::LOST;
            });
        }
        self.pending_from = self.records.begin();
    }

    /// Clears the marks of congestion losses, but for ranges whose retransmission is lost, too: a
    /// timeout was spurious.
    pub(crate) fn clear_congestion_losses(&mut self) {
        for index in self.records.begin()..self.records.end() {
            self.edit(index, |record| {
                let lost_again =
                    record.state & (State::RESENT | State::AMBIGUOUS) == State::AMBIGUOUS;
                if !lost_again && !record.state.contains(State::CORRUPTED) {
                    record.state -= State::LOST;
                }
            });
        }
        self.losses_until = self.records.begin();
    }

    /// Clears all SACK marks if a timeout finds the first record SACKed: the receiver has reneged
    /// (RFC 2018 §8).
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
        *self.last_blocks = Default::default();
    }

    /// Excludes all outstanding records from round-trip samples.
    pub(crate) fn mark_all_ambiguous(&mut self) {
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

    /// The highest record that is not SACKed (RFC 6675 §4, NextSeg 4).
    pub(crate) fn highest_unsacked(&self) -> Option<u64> {
        (self.records.begin()..self.records.end())
            .rev()
            .find(|&i| !self.get(i).state.contains(State::SACKED))
    }

    /// Records the retransmission of a range.
    pub(crate) fn resend(&mut self, index: u64, copy: CopyId, sent: Sent) {
        self.edit(index, |record| {
            record.state |= State::RESENT | State::AMBIGUOUS;
            record.copy = copy;
            record.sent = sent;
        });
    }

    /// Changes one record and the totals with it.
    fn edit(&mut self, index: u64, change: impl FnOnce(&mut Record)) {
        let record = self.records.get_mut(index).expect(LIVE_INDEX);
        let (len, old) = (record.len, record.state);
        change(record);
        let new = record.state;
        self.count::<false>(len, old);
        self.count::<true>(len, new);
    }

    /// Adds `len` octets in a state to the totals, or subtracts them.
    fn count<const ADD: bool>(&mut self, len: u32, state: State) {
        let octets = |total: &mut u64| {
            let len = u64::from(len);
            *total = if ADD { *total + len } else { *total - len };
        };
        let one = |total: &mut u32| *total = if ADD { *total + 1 } else { *total - 1 };
        if state.contains(State::SACKED) {
            octets(&mut self.sacked);
            one(&mut self.sacked_records);
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
        if state.contains(State::CORRUPTED) {
            one(&mut self.corruption_losses);
        } else if state.contains(State::LOST) {
            one(&mut self.congestion_losses);
        }
    }
}
