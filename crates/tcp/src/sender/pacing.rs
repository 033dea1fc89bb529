//! Pacing: segments leave at a rate, not in bursts as acknowledgments come in (RFC 9002 §7.7).
//!
//! The rate is the controller's or, if it has none, a multiple of the window per round trip: as in
//! Linux (`tcp_update_pacing_rate`), 2 in slow start up to half of its threshold, so that the
//! window can double in a round trip, then 1.2.

use super::Sender;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Several segments may leave as a unit (segmentation offload) if they last no longer than this at
/// the rate (Linux: `tcp_tso_autosize`).
const UNIT: Duration = Duration::from_millis(1);

/// Where segments leave in units, timers are those of a real machine, which may be late. Of what
/// was held back, so much is caught up: the wait for a unit, and as much delay of the timer.
const LATE: Duration = Duration::from_millis(2);

/// The times of transmission of a paced sender. Without pacing, nothing is ever held back.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Pacer {
    is_paced: bool,
    /// Several segments may leave as a unit. It is set before each use.
    #[serde(skip)]
    sends_units: bool,
    /// A unit was held back, and has not left yet as far as it is due.
    holds_unit: bool,
    /// When the next segment may leave.
    next_at: Time,
    /// When the sender has to be asked for a segment that was held back.
    wake_at: Time,
}

impl Pacer {
    pub(super) fn new(is_paced: bool) -> Pacer {
        Pacer {
            is_paced,
            sends_units: false,
            holds_unit: false,
            next_at: Time::ZERO,
            wake_at: Time::NEVER,
        }
    }

    /// When a segment is due that was held back.
    #[inline(always)]
    pub(super) fn wake_at(&self) -> Time {
        self.wake_at
    }

    /// Whether another segment may join a unit that leaves now.
    #[inline]
    pub(super) fn extends_unit(&self, now: Time) -> bool {
        self.next_at <= now + UNIT
    }

    /// Notes how many segments may leave as a unit.
    #[inline(always)]
    pub(super) fn set_unit(&mut self, segments: u16) {
        self.sends_units = segments > 1;
    }

    /// Holds the next segment back. While there is a gap, no unit has several segments; those that
    /// are due within the time of a unit leave one after the other.
    fn hold(&mut self, now: Time) {
        self.holds_unit = self.sends_units;
        let least = if self.sends_units { now + UNIT } else { now };
        self.wake_at = self.next_at.max(least);
    }

    /// Ends the wait.
    pub(super) fn stop(&mut self) {
        self.wake_at = Time::NEVER;
    }

    /// A segment leaves that takes `interval` at the rate. What was late is caught up by half of
    /// the interval at most (Linux: `tcp_update_skb_after_send`), so that no burst builds up; of a
    /// unit that was held back, by [`LATE`], so that late timers do not lower the rate.
    fn on_sent(&mut self, now: Time, interval: Duration) {
        let late = if self.holds_unit { LATE } else { interval / 2 };
        self.next_at = self.next_at.max(now - late) + interval;
        self.holds_unit &= self.next_at <= now;
        self.wake_at = Time::NEVER;
    }
}

impl Sender {
    /// Whether the next segment, for which there is room, has to wait for its time. The window
    /// counts as used: without pacing, it would be (RFC 9002 §7.8).
    #[inline(always)]
    pub(super) fn is_held_by_pacing(&mut self, now: Time) -> bool {
        now < self.pacer.next_at && self.hold(now)
    }

    #[inline(never)]
    fn hold(&mut self, now: Time) -> bool {
        if self.board.in_network() == 0 {
            // It makes no burst.
            self.pacer.next_at = now;
            return false;
        }
        self.pacer.hold(now);
        self.window_limited = !self.controller.models_path();
        true
    }

    /// When the segment is due that is held back; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn held_until(&self) -> Time {
        self.pacer.wake_at()
    }

    /// The time of the segment that was held back has come.
    #[inline]
    pub(crate) fn end_hold(&mut self) {
        self.pacer.stop();
    }

    /// Notes the transmission of `octets`.
    #[inline(always)]
    pub(super) fn pace(&mut self, now: Time, octets: u32) {
        if self.pacer.is_paced {
            self.pace_by_rate(now, octets);
        }
    }

    #[inline(never)]
    fn pace_by_rate(&mut self, now: Time, octets: u32) {
        if let Some(interval) = self.pacing_interval(octets) {
            self.pacer.on_sent(now, interval);
        }
    }

    /// The time that `octets` take at the rate; `None` in the initial window, for which there is
    /// no rate yet.
    fn pacing_interval(&self, octets: u32) -> Option<Duration> {
        if let Some(rate) = self.controller.pacing() {
            return Some(rate.time_for(u64::from(octets)));
        }
        let srtt = self.rtt.smoothed().filter(|_| self.delivered.bytes > 1)?;
        // After a stall, the smoothed round trip is too long for many round trips to come.
        let latest = self.delivered.at.since(self.delivered.first_sent_at);
        let rtt = if latest > Duration::ZERO { srtt.min(latest) } else { srtt };
        let window = self.controller.window();
        let fifths = if window < self.controller.ssthresh() / 2 { 10 } else { 6 };
        // A segment is below 2^16 octets, and a round trip below 2^45 ns.
        let nanos = rtt.as_nanos().saturating_mul(u64::from(octets) * 5);
        Some(Duration::from_nanos(nanos / (fifths * window)))
    }
}
