//! Timestamps and protection against old segments (RFC 7323).

use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// The peer's timestamps, and ours.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Clocks {
    /// Our timestamp at time zero.
    offset: u32,
    /// TS.Recent: the peer's timestamp to be echoed.
    pub(super) recent: u32,
    /// When it came.
    recent_at: Time,
    /// Last.ACK.sent, as an absolute sequence number.
    pub(super) acknowledged: u64,
    flight: Flight,
}

/// What is outstanding: when it was first sent, at the earliest. An ACK that advances SND.UNA cannot echo
/// an older timestamp than that, since the peer has been waiting for nothing older.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Flight {
    /// Nothing outstanding was sent before this.
    since: Time,
    /// Nor what lies at or beyond `next.0` before `next.1`.
    next: (u64, Time),
    /// Nothing is outstanding, or nothing was when it began.
    is_new: bool,
}

impl Clocks {
    /// One tick of our clock (RFC 7323 §5.4: 1 ms to 1 s).
    const TICK: Duration = Duration::from_millis(1);
    /// How long TS.Recent can be trusted (RFC 7323 §5.5).
    const LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

    pub(super) fn new(offset: u32) -> Clocks {
        let flight = Flight { since: Time::ZERO, next: (0, Time::ZERO), is_new: true };
        Clocks { offset, recent: 0, recent_at: Time::ZERO, acknowledged: 0, flight }
    }

    /// Our timestamp.
    #[inline]
    pub(super) fn value(&self, now: Time) -> u32 {
        self.offset.wrapping_add((now.as_nanos() / Self::TICK.as_nanos()) as u32)
    }

    /// From now on our timestamps differ from all before.
    pub(super) fn step(&mut self) {
        self.offset = self.offset.wrapping_add(1);
    }

    /// An ACK has come while `una..nxt` is outstanding. `since` is when something was last
    /// acknowledged, or first outstanding.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, una: u64, nxt: u64, since: Time) {
        if self.flight.is_new {
            self.flight = Flight { since, next: (nxt, now), is_new: false };
        } else if una >= self.flight.next.0 {
            self.flight = Flight { since: self.flight.next.1, next: (nxt, now), is_new: false };
        }
    }

    /// All that was sent is acknowledged.
    #[inline]
    pub(super) fn on_all_acknowledged(&mut self) {
        self.flight.is_new = true;
    }

    /// How long ago our timestamp was `echo`, if that can be: not in the future, and not before what is
    /// outstanding was sent, which would be no round trip.
    pub(super) fn since(&self, now: Time, echo: u32) -> Option<Duration> {
        let ticks = self.value(now).wrapping_sub(echo) as i32;
        // A round trip within one tick took some time, too.
        let since = u64::try_from(ticks).ok().map(|ticks| Self::TICK * ticks.max(1))?;
        // One tick for what the clock does not show, one for a [`Clocks::step`].
        (since <= now.since(self.flight.since) + Self::TICK * 2).then_some(since)
    }

    /// The peer's first timestamp.
    pub(super) fn begin(&mut self, now: Time, value: u32) {
        self.recent = value;
        self.recent_at = now;
    }

    /// PAWS, R1: whether a segment with this timestamp is an old one.
    #[inline]
    pub(super) fn is_old(&self, now: Time, value: u32) -> bool {
        self.age(value) < 0 && now.since(self.recent_at) < Self::LIFETIME
    }

    /// R3 (RFC 7323 §4.3): the timestamp of a segment that starts at `start` and is acceptable.
    #[inline]
    pub(super) fn update(&mut self, now: Time, value: u32, start: u64) {
        if start <= self.acknowledged {
            self.recent = value;
            self.recent_at = now;
        }
    }

    /// By how many ticks a timestamp of the peer's is later than TS.Recent.
    #[inline]
    pub(super) fn age(&self, value: u32) -> i32 {
        value.wrapping_sub(self.recent) as i32
    }
}
