//! The reassembly queue: out-of-order segments (RFC 9293 §3.10.7.4, seventh).
//!
//! A segment costs a bounded number of look-ups in ordered maps, whatever the size of the queue;
//! one that extends the most recent run costs none.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::{Payload, SackBlocks};

/// Out-of-order octets, by absolute sequence number.
///
/// Its entries are bounded as well as its octets: tiny segments would otherwise need many times the
/// memory of the window. At the bound, segments that need a new entry are refused, and the queue
/// keeps its content: that may have been SACKed, and dropping it would be reneging (RFC 2018 §8),
/// which Linux does when memory runs out.
//
// Whether there are runs is read for each segment: they come first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Reassembly {
    /// Runs of octets without a gap, by their start. No two of them touch.
    runs: BTreeMap<u64, Run>,
    /// The starts of the runs by the time of their last growth.
    recent: BTreeMap<u64, u64>,
    /// Pieces of contiguous payload identity, by their start. Nearly every run has one.
    pieces: BTreeMap<u64, Payload>,
    /// The most recently extended runs, the latest first. The first may be longer than its map
    /// entry says.
    newest: [(u64, u64); SackBlocks::MAX],
    newest_len: u8,
    /// The last piece of the first of these runs, at its true length; empty if the run is gone.
    tail: Payload,
    /// The start of the next run above that one.
    next: u64,
    /// Octets in all pieces.
    octets: u64,
    /// The number of the last extension recorded in the maps.
    stamp: u64,
    /// The largest number of pieces.
    limit: usize,
    /// Counts visits to map entries.
    #[cfg(test)]
    #[serde(skip)]
    steps: u64,
}

/// Octets without a gap.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run {
    end: u64,
    /// The number of its last extension.
    stamp: u64,
}

/// The result of [`Reassembly::keep`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The octets of the segment, from its start on, that are in the queue now.
    pub(crate) len: u32,
    /// Its first range that was in the queue before.
    pub(crate) duplicate: Option<(u64, u64)>,
}

impl Reassembly {
    /// Octets of the receive window per allowed entry: about the memory of an entry, so that
    /// entries and octets together take at most twice the window.
    const OCTETS_PER_ENTRY: u64 = 128;
    /// The smallest limit on entries, for small windows.
    const FEWEST: u64 = 64;

    /// An empty queue for a receive window of `window` bytes.
    pub(crate) fn new(window: u64) -> Reassembly {
        Reassembly {
            runs: BTreeMap::new(),
            recent: BTreeMap::new(),
            pieces: BTreeMap::new(),
            newest: Default::default(),
            newest_len: 0,
            tail: Payload::default(),
            next: u64::MAX,
            octets: 0,
            stamp: 0,
            limit: Reassembly::limit_for(window),
            #[cfg(test)]
            steps: 0,
        }
    }

    fn limit_for(window: u64) -> usize {
        (window / Self::OCTETS_PER_ENTRY).max(Self::FEWEST) as usize
    }

    /// The receive window has grown to `window` bytes.
    pub(crate) fn grow(&mut self, window: u64) {
        self.limit = Reassembly::limit_for(window);
    }

    /// Memory of the queue, bytes, its octets included.
    pub(crate) fn memory(&self) -> u64 {
        self.octets + self.pieces.len() as u64 * Self::OCTETS_PER_ENTRY
    }

    /// Whether there is no gap.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The most recently extended runs, the latest first, at most as many as SACK blocks fit into a
    /// segment (RFC 2018 §4). Octets of different payload identities form one run (§3).
    #[inline]
    pub(crate) fn newest(&self) -> &[(u64, u64)] {
        &self.newest[..usize::from(self.newest_len)]
    }

    /// The octet after the highest queued one.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.runs.last_key_value().map(|(&start, run)| self.end(start, run))
    }

    /// The end of the run that holds `seq`, if one does.
    pub(crate) fn end_of_run(&self, seq: u64) -> Option<u64> {
        let (&start, run) = self.runs.range(..=seq).next_back()?;
        Some(self.end(start, run)).filter(|&end| end > seq)
    }

    /// The end of a run of the maps.
    fn end(&self, start: u64, run: &Run) -> u64 {
        match self.newest().first() {
            Some(&(latest, end)) if latest == start => end,
            _ => run.end,
        }
    }

    /// Queues the new octets of `payload`, which starts at `start`; octets that are queued already
    /// win.
    #[inline]
    pub(crate) fn keep(&mut self, start: u64, payload: Payload) -> Kept {
        let end = start + u64::from(payload.len);
        // Segments above a gap mostly arrive in order.
        if self.tail.len > 0
            && start == self.newest[0].1
            && end < self.next
            && self.tail.continues(&payload)
        {
            self.newest[0].1 = end;
            self.tail.len += payload.len;
            self.octets += u64::from(payload.len);
            return Kept { len: payload.len, duplicate: None };
        }
        if payload.len == 0 { Kept::default() } else { self.merge(start, payload) }
    }

    /// Queues any segment with data.
    #[inline(never)]
    fn merge(&mut self, start: u64, payload: Payload) -> Kept {
        self.sync_newest();
        let end = start + u64::from(payload.len);
        let mut duplicate = None;
        // The extended run reaches from `low` to `high`.
        let (mut low, mut high) = (start, start);
        let left = self.runs.range(..=start).next_back().map(|(&from, run)| (from, run.end));
        if let Some((from, until)) = left.filter(|left| left.1 >= start) {
            if until > start {
                duplicate = Some((start, until.min(end)));
            }
            self.remove(from);
            (low, high) = (from, until);
        }
        loop {
            self.step();
            let right = self.runs.range(high..).next().map(|(&from, run)| (from, run.end));
            if let Some((from, until)) = right.filter(|right| right.0 == high) {
                if from < end {
                    duplicate = duplicate.or(Some((from, until.min(end))));
                }
                self.remove(from);
                high = until;
                continue;
            }
            let until = right.map_or(end, |right| right.0.min(end));
            if high >= until {
                break;
            }
            let piece = payload.skip((high - start) as u32).take((until - high) as u32);
            if !self.insert(high, piece) {
                break;
            }
            high = until;
        }
        if high > low {
            self.stamp += 1;
            self.runs.insert(low, Run { end: high, stamp: self.stamp });
            self.recent.insert(self.stamp, low);
        }
        self.update_newest();
        Kept { len: (high.min(end) - start) as u32, duplicate }
    }

    /// Inserts octets into a gap, joined to either neighbour where the payload identity continues.
    /// False if they need an entry beyond the limit.
    fn insert(&mut self, start: u64, payload: Payload) -> bool {
        self.step();
        let end = start + u64::from(payload.len);
        let right = self.pieces.get(&end).copied().filter(|right| payload.continues(right));
        let is_full = self.pieces.len() >= self.limit;
        let left = self.pieces.range_mut(..start).next_back();
        let left = left.filter(|(from, left)| {
            **from + u64::from(left.len) == start && left.continues(&payload)
        });
        if left.is_none() && right.is_none() && is_full {
            return false;
        }
        self.octets += u64::from(payload.len);
        let len = payload.len + right.map_or(0, |right| right.len);
        match left {
            Some((_, left)) => left.len += len,
            None => {
                self.pieces.insert(start, Payload { len, ..payload });
            }
        }
        if right.is_some() {
            self.pieces.remove(&end);
        }
        true
    }

    /// All pieces; one may be listed twice.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = Payload> {
        // The map has the last piece of the most recent run at its earlier length.
        let last = Some(self.tail).filter(|tail| tail.len > 0);
        self.pieces.values().copied().chain(last)
    }

    /// Takes out the first run if it begins at or before `nxt`; returns its start and end. The
    /// caller takes its pieces by [`Reassembly::take_piece`] at once.
    pub(crate) fn take_run(&mut self, nxt: u64) -> Option<(u64, u64)> {
        self.step();
        let start = *self.runs.first_key_value()?.0;
        if start > nxt {
            return None;
        }
        self.sync_newest();
        let end = self.remove(start)?;
        self.update_newest();
        Some((start, end))
    }

    /// Takes out the first piece if it begins before `end`.
    pub(crate) fn take_piece(&mut self, end: u64) -> Option<(u64, Payload)> {
        self.step();
        let first = self.pieces.first_entry().filter(|first| *first.key() < end)?;
        let (start, piece) = first.remove_entry();
        self.octets -= u64::from(piece.len);
        Some((start, piece))
    }

    /// Removes a run, but not its pieces; returns its end.
    fn remove(&mut self, start: u64) -> Option<u64> {
        self.step();
        let run = self.runs.remove(&start)?;
        self.recent.remove(&run.stamp);
        Some(run.end)
    }

    /// Writes the length of the most recent run back to the maps.
    fn sync_newest(&mut self) {
        if self.tail.len == 0 {
            return;
        }
        let (start, end) = self.newest[0];
        if let Some(run) = self.runs.get_mut(&start) {
            run.end = end;
        }
        if let Some(piece) = self.pieces.get_mut(&(end - u64::from(self.tail.len))) {
            *piece = self.tail;
        }
    }

    /// Looks up the most recently extended runs. The maps must be up to date.
    fn update_newest(&mut self) {
        self.newest_len = 0;
        for (place, start) in self.newest.iter_mut().zip(self.recent.values().rev()) {
            let end = self.runs.get(start).map_or(*start, |run| run.end);
            *place = (*start, end);
            self.newest_len += 1;
        }
        self.tail = Payload::default();
        if let Some(&(_, end)) = self.newest().first() {
            let last = self.pieces.range(..end).next_back();
            self.tail = last.map(|(_, piece)| *piece).unwrap_or_default();
            self.next = self.runs.range(end..).next().map_or(u64::MAX, |(&start, _)| start);
        }
    }

    /// Counts a visit to a map entry, for a test.
    #[inline]
    fn step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }
}

#[cfg(test)]
mod tests;
