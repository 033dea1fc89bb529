//! Loss events, and how often they occur (RFC 5348 §5).

use base::{Duration, Time};
use tcp::{LossCause, PeerLosses};

/// The weights of the intervals between loss events, the latest first (RFC 5348 §5.4, n = 8).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// A packet is lost when so many later ones have arrived (RFC 5348 §5.1, `NDUPACK`).
const LATER: u32 = 3;

/// The loss events of a flow. Packets have consecutive numbers.
#[derive(Clone, Debug, Default)]
pub struct LossHistory {
    /// The highest number that has arrived, and when.
    highest: Option<(u64, Time)>,
    /// Missing packets that are not yet lost, by rising number.
    gaps: Vec<Gap>,
    /// The first lost packet of the latest event, and when it would have arrived.
    event: Option<(u64, Time)>,
    /// Packets from the start of an event to that of the next, the latest first; those of the first event
    /// are a guess (RFC 5348 §6.3.1).
    intervals: [f64; WEIGHTS.len()],
    /// How many of them there are.
    known: usize,
    counts: LossCounts,
}

/// What a [`LossHistory`] has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounts {
    /// Lost packets that count.
    pub lost: u64,
    /// Packets that were lost to corruption, as far as that is known; they do not count.
    pub corrupted: u64,
    /// Loss events.
    pub events: u64,
}

/// Consecutive missing packets.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: u64,
    /// The number after the last.
    end: u64,
    /// The packets that arrived before and behind the missing ones, when they were first missed.
    before: (u64, Time),
    after: (u64, Time),
    /// Packets with higher numbers that have arrived since.
    later: u32,
}

impl Gap {
    /// From one packet to the next, if they had arrived (RFC 5348 §5.2).
    fn spacing(&self) -> f64 {
        let span = self.after.1.since(self.before.1).as_nanos() as f64;
        span / (self.after.0 - self.before.0) as f64
    }

    /// When a packet would have arrived: interpolated (RFC 5348 §5.2, `T_loss`).
    fn time_of(&self, number: u64) -> Time {
        let packets = (number - self.before.0) as f64;
        self.before.1 + Duration::from_nanos((packets * self.spacing()) as u64)
    }
}

impl LossHistory {
    /// Notes the arrival of a packet, and the causes of the packets that are missing before it, as far as they
    /// are known. `round_trip` is the sender's estimate; losses within one round-trip time from the first are
    /// one event (RFC 5348 §5.2). `first_interval` gives the interval before the first event.
    ///
    /// A packet that was lost to corruption counts as one that has arrived: it is part of an interval, and
    /// starts no event. Returns whether a loss event has begun.
    pub fn arrive(
        &mut self,
        now: Time,
        number: u64,
        causes: &PeerLosses,
        round_trip: Duration,
        first_interval: impl FnOnce() -> f64,
    ) -> bool {
        let Some(highest) = self.highest else {
            self.highest = Some((number, now));
            return false;
        };
        if number > highest.0 {
            self.miss(highest, (number, now), causes);
            self.highest = Some((number, now));
        } else {
            self.fill(number);
        }
        let before = self.counts.events;
        let mut first_interval = Some(first_interval);
        // A gap with lower numbers has been missing for longer.
        while let Some(&gap) = self.gaps.first()
            && gap.later >= LATER
        {
            self.gaps.remove(0);
            self.lose(&gap, round_trip, &mut first_interval);
        }
        self.counts.events > before
    }

    /// Notes the gap before a packet, less what was lost to corruption.
    fn miss(&mut self, before: (u64, Time), after: (u64, Time), causes: &PeerLosses) {
        self.gaps.iter_mut().for_each(|gap| gap.later += 1);
        let (mut first, last) = (before.0 + 1, after.0);
        let unknown = (LossCause::Congestion, u32::MAX);
        for (cause, count) in causes.runs().chain([unknown]) {
            // Numbers are of 32 bits on the wire: a gap is no longer than that.
            let end = last.min(first + u64::from(count));
            match cause {
                LossCause::Corruption => self.counts.corrupted += end - first,
                LossCause::Congestion if first < end => {
                    self.gaps.push(Gap { first, end, before, after, later: 1 });
                }
                LossCause::Congestion => {}
            }
            first = end;
        }
    }

    /// Notes the arrival of a packet out of order. One that arrives again, or after it was lost, is ignored.
    fn fill(&mut self, number: u64) {
        let holds = |gap: &Gap| (gap.first..gap.end).contains(&number);
        let Some(place) = self.gaps.iter().position(holds) else { return };
        let gap = self.gaps[place];
        self.gaps[..place].iter_mut().for_each(|gap| gap.later += 1);
        let below = Gap { end: number, later: gap.later + 1, ..gap };
        let above = Gap { first: number + 1, ..gap };
        let parts = [below, above].into_iter().filter(|gap| gap.first < gap.end);
        self.gaps.splice(place..=place, parts);
    }

    /// Notes that missing packets are lost.
    fn lose(
        &mut self,
        gap: &Gap,
        round_trip: Duration,
        first_interval: &mut Option<impl FnOnce() -> f64>,
    ) {
        self.counts.lost += gap.end - gap.first;
        let spacing = gap.spacing().max(1e-3);
        // The packets of an event: all whose time is at most a round-trip time from the first.
        let per_event = (round_trip.as_nanos() as f64 / spacing) as u64 + 1;
        let mut number = gap.first;
        if let Some((_, start)) = self.event
            && let end = start + round_trip
            && gap.time_of(number) <= end
        {
            let rest = end.since(gap.time_of(number)).as_nanos() as f64;
            number = number.saturating_add((rest / spacing) as u64 + 1);
        }
        // Events that no weight is left for are not looked at one by one.
        let most = per_event.saturating_mul(WEIGHTS.len() as u64 + 1);
        if let Some(skipped) = gap.end.checked_sub(number.saturating_add(most)) {
            number += skipped / per_event * per_event;
        }
        while number < gap.end {
            let interval = match self.event {
                Some((start, _)) => (number - start) as f64,
                None => first_interval.take().map_or(1.0, |interval| interval()),
            };
            self.intervals.rotate_right(1);
            self.intervals[0] = interval;
            self.known = (self.known + 1).min(WEIGHTS.len());
            self.event = Some((number, gap.time_of(number)));
            self.counts.events += 1;
            number = number.saturating_add(per_event);
        }
    }

    /// The loss event rate, from 0 to 1: the inverse of the weighted mean of the intervals, the present one
    /// included if that raises it (RFC 5348 §5.4).
    #[must_use]
    pub fn loss_event_rate(&self) -> f64 {
        let (Some((start, _)), Some((highest, _))) = (self.event, self.highest) else {
            return 0.0;
        };
        let open = (highest + 1 - start) as f64;
        let closed = &self.intervals[..self.known];
        let weighted = |intervals: &mut dyn Iterator<Item = f64>| -> f64 {
            intervals.zip(WEIGHTS).map(|(interval, weight)| interval * weight).sum()
        };
        let with = weighted(&mut [open].into_iter().chain(closed.iter().copied()).take(self.known));
        let without = weighted(&mut closed.iter().copied());
        let weights: f64 = WEIGHTS[..self.known].iter().sum();
        (weights / with.max(without)).min(1.0)
    }

    /// The highest number that has arrived.
    #[must_use]
    pub fn highest(&self) -> Option<u64> {
        self.highest.map(|(number, _)| number)
    }

    /// What it has seen.
    #[must_use]
    pub fn counts(&self) -> LossCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
