//! The tail: what is sent last before there is nothing more to send. Nothing that is sent later shows that it was
//! lost. On a hop that loses packets it is sent once more, while the hop would be idle, and a probe follows, whose
//! answer names what was lost all the same (compare the tail loss probe of RFC 8985 §7.2, which is for the timeout).
//!
//! After an interruption of the hop, some of what it may have lost is sent again, too, until the peer has answered.

use super::{Record, Sender, State};
use base::{Duration, Rate, Time};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What repetitions may take: an eighth of the hop's rate, and what has not been used of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Allowance {
    bytes: u64,
    since: Time,
}

impl Allowance {
    /// The most that is kept, bytes: a tail of full segments.
    const MOST: u64 = 48 << 10;
    /// One of so many bytes.
    const SHARE: u64 = 8;

    /// Takes so many bytes of it, if they are there.
    fn take(&mut self, now: Time, rate: Option<Rate>, bytes: u64) -> bool {
        if let Some(rate) = rate {
            let earned = u128::from(rate.as_bps() / 8 / Allowance::SHARE)
                * u128::from(now.since(self.since).as_nanos())
                / 1_000_000_000;
            let earned = u64::try_from(earned).unwrap_or(u64::MAX);
            self.bytes = self.bytes.saturating_add(earned).min(Allowance::MOST);
        }
        self.since = now;
        let is_there = bytes <= self.bytes;
        if is_there {
            self.bytes -= bytes;
        }
        is_there
    }
}

/// What an interruption of the hop may have lost.
#[derive(Clone, Debug)]
pub(super) struct Interruption {
    /// The place of the probe that was sent after it in the order of transmissions.
    pub(super) probe: u64,
    /// The segments that are still to be sent again, by number.
    runs: [Range<u64>; 2],
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { bytes: Allowance::MOST, since: Time::ZERO }
    }
}

impl Sender {
    /// The most segments of a tail that are repeated, or of those before an interruption.
    const TAIL: u64 = 32;
    /// The hop counts as one that loses packets if at least one of so many is lost, and if the fate of fewer is known.
    const LOSSY: u64 = 256;
    /// Fewer losses are chance.
    const SOME: u64 = 8;
    /// Nothing more is sent once so small a part of a round trip has passed: a burst of losses may be over then, too.
    const PAUSE: u64 = 16;

    /// When something is to be sent of the tail, if there is nothing else to be sent until then: its repetition, or
    /// the probe behind it. [`Time::NEVER`] if that was done, or is not needed.
    pub(crate) fn tail_due(&self) -> Time {
        let all = self.copies_arrived + self.copies_lost;
        let has_lost = self.copies_lost >= Sender::SOME && self.copies_lost * Sender::LOSSY >= all;
        let is_lossy = all < Sender::LOSSY || has_lost;
        match is_lossy && self.repeats && self.in_flight > 0 && self.probed < self.order {
            true => self.sent_at + self.rtt.smoothed().unwrap_or(Duration::ZERO) / Sender::PAUSE,
            false => Time::NEVER,
        }
    }

    /// The next segment of the tail to be repeated. `None` if there is none, or too much was repeated of late.
    pub(crate) fn next_repeat(&mut self, now: Time) -> Option<(u64, Record)> {
        let (begin, end) = (self.records.begin(), self.records.end());
        for number in begin.max(end.saturating_sub(Sender::TAIL))..end {
            let Some(record) = self.records.get(number).copied() else { continue };
            if record.state == State::InFlight && !record.is_repeated {
                return self.allows_repeat(now, &record).then_some((number, record));
            }
        }
        None
    }

    fn allows_repeat(&mut self, now: Time, record: &Record) -> bool {
        self.allowance.take(now, self.pacing.rate(), record.size)
    }

    /// The hop is there again, and the peer was last heard before it was interrupted. If it was interrupted at the
    /// peer's end, the first segment that is in flight was lost already; if at this end, all that was sent until then
    /// has arrived. Some from both places on are sent again.
    pub(crate) fn on_interruption(&mut self, heard_at: Time) {
        let run = |begin: u64, since: Time| {
            let first = (begin..self.records.end()).find(|number| {
                self.records.get(*number).is_some_and(|record| {
                    record.state == State::InFlight && record.sent_at >= since
                })
            });
            let first = first.unwrap_or(self.records.end());
            first..first + Sender::TAIL / 2
        };
        let if_at_peer = run(self.records.begin(), Time::ZERO);
        let if_at_own = run(if_at_peer.end, heard_at);
        let interruption = Interruption { probe: self.order + 1, runs: [if_at_peer, if_at_own] };
        self.interruption = self.repeats.then_some(interruption);
    }

    /// Whether something that an interruption may have lost is to be sent again.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interruption.is_some()
    }

    /// The next segment that an interruption may have lost. `None`, also from then on, if none is left, or too much was
    /// repeated of late.
    pub(crate) fn next_interrupted(&mut self, now: Time) -> Option<(u64, Record)> {
        let Interruption { probe, mut runs } = self.interruption.take()?;
        let is_lost = |record: &&Record| record.state == State::InFlight && record.order < probe;
        let (number, record) = runs
            .iter_mut()
            .flatten()
            .find_map(|number| Some((number, *self.records.get(number).filter(is_lost)?)))?;
        if !self.allows_repeat(now, &record) {
            return None;
        }
        self.interruption = Some(Interruption { probe, runs });
        Some((number, record))
    }

    /// A segment is sent again, with so much data, although it may still arrive.
    pub(crate) fn send_repeat(&mut self, now: Time, number: u64, len: u32, extra: u64) {
        let sent_at = self.sent_at;
        if let Some(record) = self.records.get_mut(number) {
            record.len = len;
            self.in_flight -= 1;
            self.in_flight_bytes -= record.size;
        }
        self.sent(now, number, extra);
        if let Some(record) = self.records.get_mut(number) {
            record.is_repeated = true;
        }
        // It is no news that would put off the rest of the tail.
        self.sent_at = sent_at;
    }
}
