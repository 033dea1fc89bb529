//! One probe of a new path for all connections of a host that have data for it.
//!
//! Connections that resume all at once overshoot a path that none of them knows. Here they share
//! what they learn, as the ensembles of RFC 9040 do: until the first round trip R is measured, one
//! alone probes, with its initial window; then the others start from one segment each, R / n after
//! one another; and what shows one of them the limits of the path ends slow start for all.

use base::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use tcp::Connectivity;

/// What is looked at of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    /// The congestion window, bytes.
    pub(crate) window: u64,
    /// The slow-start threshold, bytes.
    pub(crate) ssthresh: u64,
    /// The smoothed round trip on the present path.
    pub(crate) srtt: Option<Duration>,
    /// The retransmission timeout.
    pub(crate) rto: Duration,
    /// Reductions of the window and timeouts so far.
    pub(crate) losses: u64,
    /// There is something outstanding.
    pub(crate) waits: bool,
    /// It is over.
    pub(crate) over: bool,
}

/// The connections that share a probe, named by `K`.
///
/// Whoever owns it tells a connection what [`SharedProbe::poll`] says, reports by
/// [`SharedProbe::started`] what came of a start, and shows it by [`SharedProbe::observe`] every
/// connection that something happened to.
#[derive(Clone, Debug)]
pub(crate) struct SharedProbe<K> {
    /// Those that are to start, in that order.
    waiting: VecDeque<K>,
    /// Those that have started and are in slow start.
    probing: BTreeMap<K, Prober>,
    /// Those that are to leave it now.
    full: Vec<K>,
    /// How many share the probe.
    members: u32,
    /// Whose round trip is waited for.
    leader: Option<K>,
    /// The initial window is out.
    is_out: bool,
    /// The first round trip on the new path.
    round_trip: Option<Duration>,
    /// When the next starts.
    next: Time,
    rounds: Rounds,
    /// A member's part of what the path can take, bytes, once that is known.
    share: Option<u64>,
    /// When all is over at the latest.
    ends: Time,
}

/// A connection in slow start.
#[derive(Clone, Copy, Debug)]
struct Prober {
    window: u64,
    losses: u64,
    srtt: Option<Duration>,
}

impl Prober {
    /// The round trip that was measured since the last look, if the mean shows one:
    /// RFC 6298 §2.3, solved for R'.
    fn sample(&mut self, srtt: Option<Duration>) -> Option<Duration> {
        let mean = srtt?;
        let last = self.srtt.replace(mean);
        let Some(last) = last else { return srtt };
        let nanos = (8 * mean.as_nanos()).saturating_sub(7 * last.as_nanos());
        (mean != last).then_some(Duration::from_nanos(nanos))
    }
}

impl<K: Copy + Ord> SharedProbe<K> {
    /// Round trips after the last start in which every slow start that ends of itself has ended: a
    /// window that grows by half in each is 2^37 as large then.
    const ROUND_TRIPS: u64 = 64;

    /// A probe of a path that has changed just now: `waiting` wait for it, the longest-stalled
    /// first.
    pub(crate) fn new(now: Time, waiting: VecDeque<K>) -> SharedProbe<K> {
        SharedProbe {
            members: waiting.len() as u32,
            waiting,
            probing: BTreeMap::new(),
            full: Vec::new(),
            leader: None,
            is_out: false,
            round_trip: None,
            next: now,
            rounds: Rounds::default(),
            share: None,
            ends: Time::NEVER,
        }
    }

    /// Those of `keys` that have not started will not.
    pub(crate) fn withdraw(&mut self, keys: &[K]) {
        self.waiting.retain(|key| !keys.contains(key));
        self.members = (self.probing.len() + self.waiting.len()).max(1) as u32;
    }

    /// Those that have not started.
    pub(crate) fn into_waiting(self) -> VecDeque<K> {
        self.waiting
    }

    /// When [`SharedProbe::poll`] is worth calling, if nothing happens before.
    pub(crate) fn wake(&self) -> Time {
        if self.waiting.is_empty() { self.ends } else { self.next }
    }

    /// Whether nothing is left to be shared.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.waiting.is_empty()
            && self.full.is_empty()
            && (self.probing.is_empty() || self.ends <= now)
    }

    /// Who is to be told what now. To be called until it is nobody; whoever is told that the path
    /// has changed is to be reported by [`SharedProbe::started`] before the next call.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(K, Connectivity)> {
        if let Some(key) = self.full.pop() {
            return Some((key, Connectivity::Full));
        }
        if self.next > now {
            return None;
        }
        // A successor takes over what a timeout leaves: one segment (RFC 5681 §3.1).
        let window = (self.is_out || self.round_trip.is_some()).then_some(1);
        Some((self.waiting.pop_front()?, Connectivity::Changed { window }))
    }

    /// A connection has heard that the path has changed: how it stands now, or `None` if it made
    /// nothing of that.
    pub(crate) fn started(&mut self, now: Time, key: K, glance: Option<Glance>) {
        let Some(Glance { window, losses, srtt, rto, .. }) = glance else {
            self.members -= 1;
            return;
        };
        self.probing.insert(key, Prober { window, losses, srtt });
        self.next = match self.round_trip {
            Some(round_trip) => now + round_trip / u64::from(self.members),
            None => {
                self.leader = Some(key);
                self.is_out = true;
                now + rto
            }
        };
        self.ends = now + self.round_trip.unwrap_or(rto) * Self::ROUND_TRIPS;
    }

    /// Something has happened to a connection.
    pub(crate) fn observe(&mut self, now: Time, key: K, glance: &Glance) {
        let Some(prober) = self.probing.get_mut(&key) else { return };
        let lost = glance.losses > prober.losses;
        prober.losses = glance.losses;
        prober.window = glance.window;
        if let Some(sample) = prober.sample(glance.srtt) {
            if self.round_trip.is_none() {
                self.round_trip = Some(sample);
                self.next = now + sample / u64::from(self.members);
            }
            if self.rounds.rises(now, sample) {
                self.meet_limit();
            }
        }
        if self.round_trip.is_none() {
            // Whether there is a path at all is still the question.
            if self.leader == Some(key) && (lost || glance.over || !glance.waits) {
                self.next = now;
            }
            if glance.over || !glance.waits {
                self.probing.remove(&key);
                // All was acknowledged, though nothing by an answer to what was sent just now.
                self.is_out &= glance.over || !self.probing.is_empty();
            }
            return;
        }
        let left = glance.window >= glance.ssthresh || !glance.waits || glance.over;
        if lost || left {
            self.probing.remove(&key);
        }
        if lost {
            self.meet_limit();
        } else if !left && self.share.is_some_and(|share| glance.window >= share) {
            self.probing.remove(&key);
            self.full.push(key);
        }
    }

    /// One of them has met the limits of the path: whoever has its share of it leaves slow start.
    fn meet_limit(&mut self) {
        if self.share.is_some() {
            return;
        }
        let windows: u64 = self.probing.values().map(|prober| prober.window).sum();
        let share = windows / (self.probing.len() + self.waiting.len()).max(1) as u64;
        self.share = Some(share);
        let full = &mut self.full;
        self.probing.retain(|&key, prober| {
            let has_share = prober.window >= share;
            if has_share {
                full.push(key);
            }
            !has_share
        });
    }
}

/// Rounds of slow start, by which the delay is watched (HyStart++, RFC 9406 §4.2); as the
/// connections share the path, they share its rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// When the present one ends.
    end: Time,
    samples: u32,
    /// The least round trip of the present one, and of the last.
    least: Option<Duration>,
    last: Option<Duration>,
}

impl Rounds {
    /// N_RTT_SAMPLE
    const SAMPLES: u32 = 8;
    /// MIN_RTT_THRESH
    const LEAST_RISE: Duration = Duration::from_millis(4);
    /// MAX_RTT_THRESH
    const MOST_RISE: Duration = Duration::from_millis(16);
    /// MIN_RTT_DIVISOR
    const DIVISOR: u64 = 8;

    /// Takes in a round trip; says whether delays have risen as a queue that fills makes them.
    fn rises(&mut self, now: Time, sample: Duration) -> bool {
        if now >= self.end {
            self.last = self.least.take().or(self.last);
            self.samples = 0;
            self.end = now + sample;
        }
        self.samples += 1;
        let least = self.least.map_or(sample, |least| least.min(sample));
        self.least = Some(least);
        self.samples >= Rounds::SAMPLES
            && self.last.is_some_and(|last| {
                let rise = last / Rounds::DIVISOR;
                least >= last + rise.clamp(Rounds::LEAST_RISE, Rounds::MOST_RISE)
            })
    }
}

#[cfg(test)]
mod tests;
