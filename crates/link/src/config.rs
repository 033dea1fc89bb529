//! The settings of a link.

use crate::{DeliveryTrace, Discipline, ErrorModel, Impairments, Intervals, Queue};
use base::{Duration, Rate, Time};

/// The settings of one direction. The default is infinitely fast, without delay or limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Transmission rate; `None` is infinitely fast.
    pub rate: Option<Rate>,
    /// When it may transmit; replaces `rate` and its variations.
    pub trace: Option<DeliveryTrace>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// The limit for packets waiting or in transmission.
    pub queue: Queue,
    /// Which packets the queue drops or marks, and which it sends next.
    pub discipline: Discipline,
    /// The errors that damage packets.
    pub errors: ErrorModel,
    /// Reordering, duplication and jitter.
    pub impairments: Impairments,
    /// When rate and delay have other values. The rest of a packet in transmission is sent at the
    /// new rate. A packet in flight keeps its delay and is not overtaken.
    pub variations: Intervals<Variation>,
    /// The treatment of packets when the link goes down; `None` if it never does.
    pub when_down: Option<WhenDown>,
}

/// Another rate or delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variation {
    /// The rate; `None` for the link's own.
    pub rate: Option<Rate>,
    /// The delay; `None` for the link's own.
    pub delay: Option<Duration>,
}

/// The treatment of packets when a link goes down, and while it is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhenDown {
    /// Packets in the queue wait until the link is up; the one in transmission is then sent from
    /// its beginning. Otherwise they are dropped.
    pub keep_queued: bool,
    /// Packets that have been transmitted arrive. Otherwise they are dropped.
    pub keep_flying: bool,
    /// The queue takes packets while the link is down, as long as there is room. Otherwise they are
    /// dropped.
    pub accept: bool,
}

impl WhenDown {
    /// Only packets that the queue has no room for are lost: a pause.
    pub const KEEP: WhenDown = WhenDown { keep_queued: true, keep_flying: true, accept: true };
    /// Everything is lost: a cut.
    pub const DROP: WhenDown = WhenDown { keep_queued: false, keep_flying: false, accept: false };
}

impl Config {
    /// The propagation delay at time zero.
    #[must_use]
    pub fn initial_delay(&self) -> Duration {
        self.initial().delay.unwrap_or(self.delay)
    }

    /// The rate at time zero, or the mean rate of a trace; `None` is infinitely fast.
    #[must_use]
    pub fn initial_rate(&self) -> Option<Rate> {
        let recorded = self.trace.as_ref().map(DeliveryTrace::mean_rate);
        recorded.or(self.initial().rate).or(self.rate)
    }

    fn initial(&self) -> Variation {
        self.variations.at(Time::ZERO).0.copied().unwrap_or_default()
    }

    /// Whether a packet's departure and arrival are known when it is accepted, and arrivals are in
    /// the order of departures.
    pub(crate) fn has_no_dequeue_events(&self) -> bool {
        self.trace.is_none()
            && self.impairments == Impairments::default()
            && self.variations.values().next().is_none()
            && self.when_down.is_none()
            && matches!(self.discipline, Discipline::DropTail | Discipline::Red(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    #[test]
    fn the_rate_is_that_of_the_start_or_the_mean_of_a_recording() {
        let bps = |config: &Config| config.initial_rate().map(Rate::as_bps);
        let plain = Config { rate: Rate::from_bps(1_000_000), ..Config::default() };
        assert_eq!(bps(&plain), Some(1_000_000));
        // 1500 bytes every two milliseconds.
        let trace = Some(DeliveryTrace::parse("2\n").unwrap());
        assert_eq!(bps(&Config { trace, ..plain.clone() }), Some(6_000_000));
        let slow = Variation { rate: Rate::from_bps(5000), delay: None };
        let span = Interval { start: Duration::ZERO, end: Duration::MAX, value: slow };
        let variations = Intervals::new([span], None).unwrap();
        assert_eq!(bps(&Config { variations, ..plain }), Some(5000));
    }
}
