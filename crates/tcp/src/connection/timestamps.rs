//! Timestamps and protection against old segments (RFC 7323).

use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// The state of the timestamps option.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct TimestampState {
    /// Our timestamp at time zero.
    offset: u32,
    /// TS.Recent: the peer's timestamp to be echoed.
    pub(super) recent: u32,
    /// When TS.Recent was set.
    recent_at: Time,
    /// Last.ACK.sent, as an absolute sequence number.
    pub(super) acknowledged: u64,
    flight: Flight,
}

/// The earliest time at which outstanding data was first sent. An ACK that advances SND.UNA cannot
/// echo an older timestamp, since the peer has been waiting for nothing older.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Flight {
    /// No outstanding data was sent before this time.
    since: Time,
    /// No octet at or beyond `next.0` was sent before `next.1`.
    next: (u64, Time),
    /// No data is outstanding, or none was when this state began.
    is_new: bool,
}

impl TimestampState {
    /// One tick of our clock (RFC 7323 §5.4: 1 ms to 1 s).
    const TICK: Duration = Duration::from_millis(1);
    /// How long TS.Recent can be trusted (RFC 7323 §5.5).
    const LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

    pub(super) fn new(offset: u32) -> TimestampState {
        let flight = Flight { since: Time::ZERO, next: (0, Time::ZERO), is_new: true };
        TimestampState { offset, recent: 0, recent_at: Time::ZERO, acknowledged: 0, flight }
    }

    /// Our timestamp.
    #[inline]
    pub(super) fn value(&self, now: Time) -> u32 {
        self.offset.wrapping_add((now.as_nanos() / Self::TICK.as_nanos()) as u32)
    }

    /// Advances our clock by one tick: later timestamps differ from all before.
    pub(super) fn bump(&mut self) {
        self.offset = self.offset.wrapping_add(1);
    }

    /// Notes that an ACK arrives while `una..nxt` is outstanding. `since` is the time of the last
    /// acknowledgment, or of the first transmission.
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

    /// The age of our timestamp `echo`; `None` if it lies in the future, or before outstanding data
    /// was sent, which would be no round trip.
    pub(super) fn since(&self, now: Time, echo: u32) -> Option<Duration> {
        let since = self.age_of_echo(now, echo)?;
        // One tick for the clock's granularity, one for a [`TimestampState::bump`].
        (since <= now.since(self.flight.since) + Self::TICK * 2).then_some(since)
    }

    /// The age of our timestamp `echo`; `None` if it lies in the future.
    pub(super) fn age_of_echo(&self, now: Time, echo: u32) -> Option<Duration> {
        let ticks = self.value(now).wrapping_sub(echo) as i32;
        // A round trip within one tick counts as one tick.
        u64::try_from(ticks).ok().map(|ticks| Self::TICK * ticks.max(1))
    }

    /// Takes the peer's first timestamp.
    pub(super) fn begin(&mut self, now: Time, value: u32) {
        self.recent = value;
        self.recent_at = now;
    }

    /// Whether a timestamp is old (PAWS, R1).
    #[inline]
    pub(super) fn is_old(&self, now: Time, value: u32) -> bool {
        self.age(value) < 0 && now.since(self.recent_at) < Self::LIFETIME
    }

    /// Updates TS.Recent by an acceptable segment that starts at `start` (RFC 7323 §4.3, R3).
    #[inline]
    pub(super) fn update(&mut self, now: Time, value: u32, start: u64) {
        if start <= self.acknowledged {
            self.recent = value;
            self.recent_at = now;
        }
    }

    /// The ticks by which a timestamp of the peer is later than TS.Recent.
    #[inline]
    pub(super) fn age(&self, value: u32) -> i32 {
        value.wrapping_sub(self.recent) as i32
    }
}
