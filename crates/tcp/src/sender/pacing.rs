//! Pacing: segments leave at a rate, not in bursts as acknowledgments come in (RFC 9002 §7.7).
//!
//! The rate is the controller's or, if it has none, a multiple of the window per round trip: as in
//! Linux (`tcp_update_pacing_rate`), 2 in slow start up to half of its threshold, so that the
//! window can double in a round trip, then 1.2.

use super::Sender;
use base::{Duration, Rate, Time};
use serde::{Deserialize, Serialize};

/// Several segments may leave as a unit (segmentation offload) if they last no longer than this at
/// the rate (Linux: `tcp_tso_autosize`).
const UNIT: Duration = Duration::from_millis(1);

/// Where segments leave in units, timers are those of a real machine, which may be late. Of what
/// was held back, so much is caught up: the wait for a unit, and what a busy machine may delay.
const LATE: Duration = Duration::from_millis(10);

/// The times of transmission of a paced sender. Without pacing, nothing is ever held back.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// By so much a segment may leave before its time.
    tolerance: Duration,
    /// For [`Config::prompt_start`](crate::Config::prompt_start).
    train: Option<Box<Train>>,
}

/// The acknowledgments of a round trip, which come at the rate of the path, as long as they come one after the
/// other (the ack train of HyStart: Ha, Rhee, Computer Networks 55 (9), 2011). To send at that rate fills no queue.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Train {
    /// The round trip ends with the acknowledgment of what is sent when so many octets are delivered.
    ends_at: u64,
    began_at: Time,
    /// Octets delivered after its first acknowledgment.
    octets: u64,
    /// Their rate, or that of the train before.
    rate: Option<Rate>,
}

impl Train {
    /// Octets without which the time says nothing: four large segments.
    const LEAST: u64 = 4 * 1460;

    /// `octets` are delivered, the last of which were sent when `before` were delivered; now it is `delivered`.
    fn on_delivered(&mut self, now: Time, octets: u64, delivered: u64, before: u64) {
        if before >= self.ends_at {
            *self = Train { ends_at: delivered, began_at: now, octets: 0, rate: self.rate };
            return;
        }
        self.octets += octets;
        let nanos = now.since(self.began_at).as_nanos();
        if self.octets >= Train::LEAST && nanos > 0 {
            let bits = u128::from(self.octets) * 8_000_000_000 / u128::from(nanos);
            self.rate = Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX));
        }
    }
}

impl Pacer {
    pub(super) fn new(is_paced: bool, starts_promptly: bool) -> Pacer {
        Pacer {
            is_paced,
            sends_units: false,
            holds_unit: false,
            next_at: Time::ZERO,
            wake_at: Time::NEVER,
            tolerance: Duration::ZERO,
            train: (is_paced && starts_promptly).then(Box::default),
        }
    }

    /// Whether the next segment has to wait.
    #[inline(always)]
    fn holds(&self, now: Time) -> bool {
        now + self.tolerance < self.next_at
    }

    /// Sets the tolerance, which is the time of the same octets at the present rate. If that is higher than before,
    /// those that were sent early are made up for in less time, too.
    fn set_tolerance(&mut self, now: Time, tolerance: Duration) {
        if tolerance < self.tolerance {
            let early = u128::from(self.next_at.since(now).as_nanos());
            let scaled =
                early * u128::from(tolerance.as_nanos()) / u128::from(self.tolerance.as_nanos());
            self.next_at = self.next_at.min(now + Duration::from_nanos(scaled as u64));
        }
        self.tolerance = tolerance;
    }

    /// Notes what was delivered, as [`Train::on_delivered`].
    #[inline(always)]
    pub(super) fn on_delivered(&mut self, now: Time, octets: u64, delivered: u64, before: u64) {
        if let Some(train) = &mut self.train {
            train.on_delivered(now, octets, delivered, before);
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
        self.next_at <= now + self.tolerance.max(UNIT)
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
        self.wake_at = (self.next_at - self.tolerance).max(least);
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
        self.pacer.holds(now) && self.hold(now)
    }

    #[inline(never)]
    fn hold(&mut self, now: Time) -> bool {
        if self.board.in_network() == 0 {
            // It makes no burst.
            self.pacer.next_at = now;
            return false;
        }
        self.update_tolerance(now);
        if !self.pacer.holds(now) {
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
        // Most senders have no rate but that of the window.
        if self.controller.models_path() || self.pacer.train.is_some() {
            return self.pace_by_any_rate(now, octets);
        }
        if let Some(interval) = self.interval_of_window(octets) {
            self.pacer.on_sent(now, interval);
        }
    }

    #[inline(never)]
    fn pace_by_any_rate(&mut self, now: Time, octets: u32) {
        let Some(interval) = self.pacing_interval(octets) else { return };
        self.update_tolerance(now);
        self.pacer.on_sent(now, interval);
    }

    /// With a prompt start, the initial window may leave at once.
    fn update_tolerance(&mut self, now: Time) {
        if self.pacer.train.is_some() {
            let initial = self.config.initial_window.bytes(self.mss);
            let others = u32::try_from(initial).unwrap_or(u32::MAX).saturating_sub(self.mss);
            self.pacer.set_tolerance(now, self.pacing_interval(others).unwrap_or_default());
        }
    }

    /// The time that `octets` take at the rate; `None` in the initial window, for which there is
    /// no rate yet.
    fn pacing_interval(&self, octets: u32) -> Option<Duration> {
        let interval = match self.controller.pacing() {
            Some(rate) => rate.time_for(u64::from(octets)),
            None => self.interval_of_window(octets)?,
        };
        let train = self.pacer.train.as_ref().filter(|_| self.controller.is_in_slow_start());
        let of_train = train.and_then(|train| train.rate);
        Some(of_train.map_or(interval, |rate| interval.min(rate.time_for(u64::from(octets)))))
    }

    /// [`Sender::pacing_interval`] with no rate but that of the window.
    #[inline(always)]
    fn interval_of_window(&self, octets: u32) -> Option<Duration> {
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
