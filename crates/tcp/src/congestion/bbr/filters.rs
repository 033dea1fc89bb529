//! What BBR remembers of the path: the highest bandwidth, the degree of aggregation, and losses.

use base::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// BBR.max_bw_filter (§5.5.3): the highest rate of this probing cycle and the last, octets a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct MaxBandwidth {
    last: f64,
    current: f64,
}

impl MaxBandwidth {
    /// BBR.max_bw
    pub(super) fn get(&self) -> f64 {
        self.last.max(self.current)
    }

    /// Adds a sample, unless the application limited it and it is no higher (§5.5.4).
    pub(super) fn add(&mut self, rate: f64, app_limited: bool) {
        if rate >= self.get() || !app_limited {
            self.current = self.current.max(rate);
        }
    }

    /// AdvanceMaxBwFilter (§5.5.6). A cycle without samples is none (Linux).
    pub(super) fn advance(&mut self) {
        if self.current > 0.0 {
            self.last = core::mem::take(&mut self.current);
        }
    }
}

/// BBR.ExtraAckedFilterLen, rounds.
const AGGREGATION_ROUNDS: u64 = 10;

/// BBR.extra_acked (§5.5.9): octets acknowledged beyond those expected at the bandwidth. Its filter
/// has two halves, as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Aggregation {
    /// BBR.extra_acked_interval_start
    since: Time,
    /// BBR.extra_acked_delivered
    delivered: u64,
    halves: [u64; 2],
    half_began: u64,
}

impl Aggregation {
    /// The highest of the last rounds.
    pub(super) fn extra(&self) -> u64 {
        self.halves[0].max(self.halves[1])
    }

    /// Starts another interval.
    pub(super) fn restart(&mut self, now: Time) {
        self.since = now;
        self.delivered = 0;
    }

    /// UpdateACKAggregation: `octets` more were delivered. In Startup, one round is remembered.
    pub(super) fn add(
        &mut self,
        now: Time,
        bw: f64,
        octets: u64,
        window: u64,
        in_startup: bool,
        round: u64,
    ) {
        let mut expected = (bw * now.since(self.since).as_secs_f64()) as u64;
        if self.delivered <= expected {
            self.restart(now);
            expected = 0;
        }
        self.delivered += octets;
        let extra = self.delivered.saturating_sub(expected).min(window);
        let length = if in_startup { 1 } else { AGGREGATION_ROUNDS / 2 };
        if round - self.half_began >= length {
            self.half_began = round;
            self.halves = [self.halves[1], 0];
        }
        self.halves[1] = self.halves[1].max(extra);
    }
}

/// C.lost, and what it was when less had been delivered. Losses are found as acknowledgments are
/// processed, so P.lost of a packet follows from its P.delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LostBefore {
    total: u64,
    /// C.delivered at losses, and C.lost before the first of them, oldest first.
    events: VecDeque<(u64, u64)>,
}

impl LostBefore {
    /// Counts a loss when `delivered` octets had been delivered.
    pub(super) fn add(&mut self, delivered: u64, octets: u64) {
        if self.events.back().is_none_or(|&(at, _)| at < delivered) {
            self.events.push_back((delivered, self.total));
        }
        self.total += octets;
    }

    /// Octets lost since a packet was sent, when `delivered` had been delivered.
    pub(super) fn since(&self, delivered: u64) -> u64 {
        let after = self.events.partition_point(|&(at, _)| at <= delivered);
        self.events.get(after).map_or(0, |&(_, before)| self.total - before)
    }

    /// Forgets what no packet sent later needs.
    pub(super) fn forget_until(&mut self, delivered: u64) {
        while self.events.front().is_some_and(|&(at, _)| at <= delivered) {
            self.events.pop_front();
        }
    }
}
