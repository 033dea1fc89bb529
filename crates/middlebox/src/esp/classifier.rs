//! Which packets of a flow were lost, and why: the mobile host's part of SPEP (`obanaik2003` §4.2.3).

use std::collections::VecDeque;
use tcp::{LossCause, PeerLosses};
use wire::Spep;

/// What is known of a missing packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The base station received it: the hop damaged it.
    Corruption,
    /// The base station received packets around it, but not this one.
    Congestion,
    /// The base station has reported later runs than it has blocks for.
    Forgotten,
    /// It precedes what the base station knows of the flow, because the host has moved there or the
    /// flow was idle or evicted.
    BeforeStation,
}

impl Finding {
    /// What is not known counts as congestion.
    fn cause(self) -> LossCause {
        match self {
            Finding::Corruption => LossCause::Corruption,
            Finding::Congestion | Finding::Forgotten | Finding::BeforeStation => {
                LossCause::Congestion
            }
        }
    }
}

/// Consecutive missing packets of which the same is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The place of the first, counted from the number that was expected.
    start: u32,
    count: u32,
    finding: Finding,
}

/// Packets that were found missing, by what was found; and what they truly were, if the link tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) corruption: u64,
    pub(super) congestion: u64,
    pub(super) forgotten: u64,
    pub(super) before_station: u64,
    /// Packets that arrived after a later one.
    pub(super) late: u64,
    /// Of those that the hop damaged, as far as the link has told: by what was found.
    pub(super) damaged_as_corruption: u64,
    pub(super) damaged_as_congestion: u64,
    pub(super) damaged_as_forgotten: u64,
    pub(super) damaged_as_before_station: u64,
    /// Of those that it damaged: the ones that were late, and counted as missing before.
    pub(super) damaged_late: u64,
}

impl Counts {
    fn of(&mut self, finding: Finding) -> &mut u64 {
        match finding {
            Finding::Corruption => &mut self.corruption,
            Finding::Congestion => &mut self.congestion,
            Finding::Forgotten => &mut self.forgotten,
            Finding::BeforeStation => &mut self.before_station,
        }
    }

    /// Calls `count` with the name of each in results, and its value.
    pub(super) fn each(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("lost_to_corruption", self.corruption);
        count("lost_to_congestion", self.congestion);
        count("lost_and_forgotten", self.forgotten);
        count("lost_before_station", self.before_station);
        count("late", self.late);
        count("damaged_as_corruption", self.damaged_as_corruption);
        count("damaged_as_congestion", self.damaged_as_congestion);
        count("damaged_as_forgotten", self.damaged_as_forgotten);
        count("damaged_as_before_station", self.damaged_as_before_station);
        count("damaged_late", self.damaged_late);
    }

    fn damaged_as(&mut self, finding: Finding) -> &mut u64 {
        match finding {
            Finding::Corruption => &mut self.damaged_as_corruption,
            Finding::Congestion => &mut self.damaged_as_congestion,
            Finding::Forgotten => &mut self.damaged_as_forgotten,
            Finding::BeforeStation => &mut self.damaged_as_before_station,
        }
    }
}

/// Finds the missing packets of one direction of a security association.
#[derive(Clone, Debug, Default)]
pub(super) struct Classifier {
    /// The number that follows the highest that has arrived.
    expected: Option<u32>,
    /// Numbers of packets that arrived damaged, of the most recent.
    damaged: VecDeque<u32>,
}

impl Classifier {
    /// The most damaged packets that are remembered.
    const MOST_DAMAGED: usize = 4096;

    /// A packet arrived damaged at the host's own end of the hop.
    pub(super) fn damaged(&mut self, sequence: u32, counts: &mut Counts) {
        let is_late = |expected: u32| sequence.wrapping_sub(expected) > i32::MAX as u32;
        if self.expected.is_some_and(is_late) {
            counts.damaged_late += 1;
            return;
        }
        if self.damaged.len() == Classifier::MOST_DAMAGED {
            self.damaged.pop_front();
        }
        self.damaged.push_back(sequence);
    }

    /// A packet arrives, with the runs that the base station had received. Returns the causes of the packets that
    /// are missing before it.
    pub(super) fn arrive(&mut self, sequence: u32, spep: &Spep, counts: &mut Counts) -> PeerLosses {
        let Some((expected, missing)) = self.missing_before(sequence, counts) else {
            return PeerLosses::default();
        };
        let (runs, used) = from_blocks(expected, missing, spep);
        let runs = &runs[..used];
        self.compare(expected, missing, runs, counts);
        let mut losses = PeerLosses::default();
        for run in runs {
            *counts.of(run.finding) += u64::from(run.count);
            losses.push(run.finding.cause(), run.count);
        }
        losses
    }

    /// A packet arrives at a host that knows which packets its own link has damaged. Returns the causes of the
    /// packets that are missing before it.
    pub(super) fn arrive_knowing(&mut self, sequence: u32, counts: &mut Counts) -> PeerLosses {
        let Some((expected, missing)) = self.missing_before(sequence, counts) else {
            return PeerLosses::default();
        };
        let (mut losses, mut next) = (PeerLosses::default(), 0);
        let places = self.damaged.iter().map(|number| number.wrapping_sub(expected));
        for place in places.filter(|&place| place < missing) {
            losses.push(LossCause::Congestion, place.saturating_sub(next));
            losses.push(LossCause::Corruption, 1);
            next = place + 1;
        }
        losses.push(LossCause::Congestion, missing - next);
        counts.corruption += losses.count(LossCause::Corruption);
        counts.congestion += losses.count(LossCause::Congestion);
        self.forget_before(sequence);
        losses
    }

    /// The number that was expected, and how many are missing; `None` if none is.
    fn missing_before(&mut self, sequence: u32, counts: &mut Counts) -> Option<(u32, u32)> {
        let expected = self.expected.unwrap_or(sequence);
        let missing = sequence.wrapping_sub(expected);
        if missing > i32::MAX as u32 {
            counts.late += 1;
            return None;
        }
        self.expected = Some(sequence.wrapping_add(1));
        (missing > 0).then_some((expected, missing))
    }

    /// Compares what was found with what the link has told.
    fn compare(&mut self, expected: u32, missing: u32, runs: &[Run], counts: &mut Counts) {
        let found = |place: u32| runs.iter().find(|run| place.wrapping_sub(run.start) < run.count);
        let places = self.damaged.iter().map(|number| number.wrapping_sub(expected));
        for run in places.filter(|&place| place < missing).filter_map(found) {
            *counts.damaged_as(run.finding) += 1;
        }
        self.forget_before(expected.wrapping_add(missing));
    }

    fn forget_before(&mut self, sequence: u32) {
        self.damaged.retain(|number| number.wrapping_sub(sequence) <= i32::MAX as u32);
    }
}

/// The most runs: three blocks lie between four gaps.
const MOST_RUNS: usize = 2 * Spep::BLOCKS + 1;

/// What the blocks say of `missing` packets from `expected` on, in order; and the number of runs.
fn from_blocks(expected: u32, missing: u32, spep: &Spep) -> ([Run; MOST_RUNS], usize) {
    let none = Run { start: 0, count: 0, finding: Finding::Congestion };
    let (mut runs, mut used) = ([none; MOST_RUNS], 0);
    // Places relative to the expected number; a block may begin long before it.
    let place = |number: u32| i64::from(number.wrapping_sub(expected).cast_signed());
    let blocks = spep.blocks.iter().filter(|&&block| block != (0, 0));
    let mut ranges = [(i64::MAX, i64::MAX); Spep::BLOCKS];
    let mut count = 0;
    for &(first, last) in blocks {
        ranges[count] = (place(first), place(last) + 1);
        count += 1;
    }
    ranges.sort_unstable();
    let unknown = if count == Spep::BLOCKS { Finding::Forgotten } else { Finding::BeforeStation };
    let missing = i64::from(missing);
    let mut next = 0;
    let mut push = |start: i64, end: i64, finding| {
        if start < end {
            runs[used] = Run { start: start as u32, count: (end - start) as u32, finding };
            used += 1;
        }
    };
    for (index, &(first, end)) in ranges[..count].iter().enumerate() {
        let before = first.clamp(next, missing);
        push(next, before, if index == 0 { unknown } else { Finding::Congestion });
        next = end.clamp(before, missing);
        push(before, next, Finding::Corruption);
    }
    push(next, missing, if count == 0 { unknown } else { Finding::Congestion });
    (runs, used)
}

#[cfg(test)]
mod tests;
