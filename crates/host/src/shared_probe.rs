//! One probe of a new path for all connections of a host with outstanding data.
//!
//! Connections that all resume at once overshoot the capacity of an unknown path. Here they share
//! measurements, as the ensembles of RFC 9040 do. Until the first round trip R is measured, one
//! connection alone probes, with its initial window. Then the others start from one segment each, R
//! / n after one another. When one of them meets the limit of the path, slow start ends for all.

use base::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use tcp::Connectivity;

/// The congestion state of a connection, as far as the probe uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CongestionState {
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
    /// Data is outstanding.
    pub(crate) outstanding: bool,
    /// It is closed.
    pub(crate) closed: bool,
}

/// The connections that share a probe, named by `K`.
///
/// Its owner indicates to a connection what [`SharedProbe::poll`] returns, reports the result of a
/// start by [`SharedProbe::started`], and calls [`SharedProbe::observe`] after every step of a
/// connection.
#[derive(Clone, Debug)]
pub(crate) struct SharedProbe<K> {
    /// Connections that are to start, in this order.
    waiting: VecDeque<K>,
    /// Connections that have started and are in slow start.
    probing: BTreeMap<K, Prober>,
    /// Connections that are to leave slow start now.
    full: Vec<K>,
    /// The number of connections that share the probe.
    members: u32,
    /// The connection whose round trip is awaited.
    leader: Option<K>,
    /// The initial window was sent.
    is_out: bool,
    /// The first round trip on the new path.
    round_trip: Option<Duration>,
    /// When the next starts.
    next: Time,
    rounds: Rounds,
    /// A member's share of the path's capacity, bytes, once that is known.
    share: Option<u64>,
    /// When the probe ends at the latest.
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
    /// The round-trip sample since the last call, recovered from the change of SRTT: RFC 6298 §2.3
    /// solved for R'.
    fn sample(&mut self, srtt: Option<Duration>) -> Option<Duration> {
        let mean = srtt?;
        let last = self.srtt.replace(mean);
        let Some(last) = last else { return srtt };
        let nanos = (8 * mean.as_nanos()).saturating_sub(7 * last.as_nanos());
        (mean != last).then_some(Duration::from_nanos(nanos))
    }
}

impl<K: Copy + Ord> SharedProbe<K> {
    /// Round trips after the last start in which every slow start has ended: a window that grows by
    /// half in each has grown by 2^37 then.
    const ROUND_TRIPS: u64 = 64;

    /// A probe of a path that changed at `now` by the connections `waiting`, the longest-stalled first.
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

    /// Removes those of `keys` that have not started.
    pub(crate) fn withdraw(&mut self, keys: &[K]) {
        self.waiting.retain(|key| !keys.contains(key));
        self.members = (self.probing.len() + self.waiting.len()).max(1) as u32;
    }

    /// The connections that have not started.
    pub(crate) fn into_waiting(self) -> VecDeque<K> {
        self.waiting
    }

    /// The next deadline for [`SharedProbe::poll`].
    pub(crate) fn wake(&self) -> Time {
        if self.waiting.is_empty() { self.ends } else { self.next }
    }

    /// Whether the probe has ended.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.waiting.is_empty()
            && self.full.is_empty()
            && (self.probing.is_empty() || self.ends <= now)
    }

    /// The next indication that is due, and its connection. To be called until there is none; each
    /// [`Connectivity::Changed`] is to be followed by [`SharedProbe::started`] before the next call.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(K, Connectivity)> {
        if let Some(key) = self.full.pop() {
            return Some((key, Connectivity::Full));
        }
        if self.next > now {
            return None;
        }
        // A successor starts with the loss window, one segment (RFC 5681 §3.1).
        let window = (self.is_out || self.round_trip.is_some()).then_some(1);
        Some((self.waiting.pop_front()?, Connectivity::Changed { window }))
    }

    /// Reports the result of a start: the connection's state, or `None` if it does not probe.
    pub(crate) fn started(&mut self, now: Time, key: K, state: Option<CongestionState>) {
        let Some(CongestionState { window, losses, srtt, rto, .. }) = state else {
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

    /// Updates the probe after a step of a connection.
    pub(crate) fn observe(&mut self, now: Time, key: K, state: &CongestionState) {
        let Some(prober) = self.probing.get_mut(&key) else { return };
        let lost = state.losses > prober.losses;
        prober.losses = state.losses;
        prober.window = state.window;
        if let Some(sample) = prober.sample(state.srtt) {
            if self.round_trip.is_none() {
                self.round_trip = Some(sample);
                self.next = now + sample / u64::from(self.members);
            }
            if self.rounds.rises(now, sample) {
                self.meet_limit();
            }
        }
        if self.round_trip.is_none() {
            // No acknowledgment has come over the new path yet.
            if self.leader == Some(key) && (lost || state.closed || !state.outstanding) {
                self.next = now;
            }
            if state.closed || !state.outstanding {
                self.probing.remove(&key);
                // All was acknowledged, but none of it in answer to the initial window.
                self.is_out &= state.closed || !self.probing.is_empty();
            }
            return;
        }
        let left = state.window >= state.ssthresh || !state.outstanding || state.closed;
        if lost || left {
            self.probing.remove(&key);
        }
        if lost {
            self.meet_limit();
        } else if !left
            && self.share.is_some_and(|share| state.window >= share)
            // It may be full already: by its own sample, which met the limit.
            && self.probing.remove(&key).is_some()
        {
            self.full.push(key);
        }
    }

    /// Handles that a connection has met the limit of the path: every connection with its share
    /// leaves slow start.
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

/// Rounds of slow start for the delay criterion of HyStart++ (RFC 9406 §4.2). The connections share
/// the path and so its rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// When the present round ends.
    end: Time,
    samples: u32,
    /// The least round trip of the present round, and of the last.
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

    /// Takes a round-trip sample; returns whether the delay has risen as by a filling queue.
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
