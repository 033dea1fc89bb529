//! What has arrived of the association's segments, and when the peer is told.

use crate::bits::Bits;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};
use wire::srp::Sack;

/// The receiving half of an association: segment numbers, whatever they bring.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Receiver {
    /// Segments received; the first of the range is the next expected in sequence.
    received: Bits,
    /// The number after the highest received.
    end: u64,
    /// Segments accepted beyond the first that is missing.
    limit: u64,
    latest: u64,
    latest_copy: u8,
    latest_at: Time,
    probe: u16,
    probe_at: Time,
    /// Arrivals since the last SACK.
    pending: u32,
    /// When a SACK is due.
    due: Time,
    /// The first segment of the next bitmap.
    shown: u64,
}

/// What a segment's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is new.
    New(u64),
    /// It has arrived before.
    Duplicate,
    /// It is beyond what is accepted.
    Beyond,
}

impl Receiver {
    /// A SACK tells a round trip if it is sent this soon after what it names has arrived.
    const PROMPT: Duration = Duration::from_micros(500);

    pub(crate) fn new(limit: u16) -> Receiver {
        Receiver {
            received: Bits::default(),
            end: 0,
            limit: limit.into(),
            latest: 0,
            latest_copy: 0,
            latest_at: Time::ZERO,
            probe: 0,
            probe_at: Time::ZERO,
            pending: 0,
            due: Time::NEVER,
            shown: 0,
        }
    }

    /// The next segment expected in sequence.
    pub(crate) fn cumulative(&self) -> u64 {
        self.received.begin()
    }

    /// Says what a number on the wire is.
    pub(crate) fn classify(&self, number: u32) -> Arrival {
        let cumulative = self.cumulative();
        let ahead = number.wrapping_sub(cumulative as u32);
        // Numbers behind are as many as those ahead.
        if ahead >= 1 << 31 {
            return Arrival::Duplicate;
        }
        let number = cumulative + u64::from(ahead);
        match number {
            _ if u64::from(ahead) >= self.limit => Arrival::Beyond,
            _ if self.received.contains(number) => Arrival::Duplicate,
            _ => Arrival::New(number),
        }
    }

    /// Takes note of a new segment.
    pub(crate) fn on_new(&mut self, now: Time, number: u64, copy: u8, every: u32, delay: Duration) {
        self.received.insert(number);
        let shows_gap = number > self.end;
        self.end = self.end.max(number + 1);
        if number == self.cumulative() {
            self.received.advance(self.received.first_absent(number));
        }
        (self.latest, self.latest_copy, self.latest_at) = (number, copy, now);
        self.pending += 1;
        let at = if shows_gap || self.pending >= every { now } else { now + delay };
        self.due = self.due.min(at);
    }

    /// A segment has arrived again: the peer may not know that it has arrived.
    pub(crate) fn on_duplicate(&mut self, now: Time) {
        self.due = self.due.min(now);
    }

    /// A probe has arrived.
    pub(crate) fn on_probe(&mut self, now: Time, number: u16) {
        (self.probe, self.probe_at, self.due) = (number, now, self.due.min(now));
    }

    /// Requests a SACK at once.
    pub(crate) fn request_sack(&mut self, now: Time) {
        self.due = self.due.min(now);
    }

    /// When a SACK is due.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Ends all activity.
    pub(crate) fn stop(&mut self) {
        self.due = Time::NEVER;
    }

    /// The SACK to be sent, with the credit of a stream.
    pub(crate) fn sack(&mut self, now: Time, (stream, limit): (u16, u32)) -> Sack {
        (self.pending, self.due) = (0, Time::NEVER);
        let cumulative = self.cumulative();
        let start = self.shown.max(cumulative);
        let count = (self.end.max(start) - start).min(Sack::MOST_SEGMENTS.into());
        // After the highest, the first that is missing is the next.
        self.shown = if start + count < self.end { start + count } else { 0 };
        let mut bitmap = [0; Sack::MOST_BYTES / 4];
        for (word, first) in bitmap.iter_mut().zip((0..count).step_by(32)) {
            let known = (count - first).min(32);
            *word = !self.received.bits(start + first) & (u64::MAX >> (64 - known)) as u32;
        }
        let is_prompt = |at: Time| now.since(at) <= Receiver::PROMPT;
        Sack {
            cumulative: cumulative as u32,
            latest: self.latest as u32,
            limit,
            // The limit is at most 2^15.
            span: (self.end - cumulative.min(self.end)) as u16,
            start: (start - cumulative) as u16,
            probe: self.probe,
            stream,
            copy: self.latest_copy,
            length: count.div_ceil(8) as u8,
            is_prompt: self.latest_copy > 0 && is_prompt(self.latest_at),
            is_probe_prompt: self.probe > 0 && is_prompt(self.probe_at),
            bitmap,
        }
    }
}
