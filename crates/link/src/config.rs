//! What can be chosen of a link.

use crate::{DeliveryTrace, Discipline, ErrorModel, Impairments, Intervals, Queue};
use base::{Duration, Rate};

/// The settings of one direction. The default is infinitely fast, without delay or limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Transmission rate; `None` is infinitely fast.
    pub rate: Option<Rate>,
    /// When it may transmit; this takes the place of `rate` and all its variations.
    pub trace: Option<DeliveryTrace>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What may wait or be in transmission.
    pub queue: Queue,
    /// What the queue does before it is full.
    pub discipline: Discipline,
    /// What damages packets on their way.
    pub errors: ErrorModel,
    /// What else happens to them there.
    pub impairments: Impairments,
    /// When rate and delay are others. What is in transmission goes on at the new rate; what is
    /// flying keeps the delay that it was sent with, and is not overtaken.
    pub variations: Intervals<Variation>,
    /// What becomes of packets when the link goes down; `None` if it never does.
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

/// What becomes of packets when a link goes down, and while it is down.
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
    /// Nothing is lost but what the queue has no room for: a pause.
    pub const KEEP: WhenDown = WhenDown { keep_queued: true, keep_flying: true, accept: true };
    /// Everything is lost: a cut.
    pub const DROP: WhenDown = WhenDown { keep_queued: false, keep_flying: false, accept: false };
}

impl Config {
    /// Whether a packet's departure and arrival are known when it is accepted, and arrivals are in
    /// the order of departures.
    pub(crate) fn is_settled_at_the_tail(&self) -> bool {
        self.trace.is_none()
            && self.impairments == Impairments::default()
            && self.variations.values().next().is_none()
            && self.when_down.is_none()
            && !matches!(self.discipline, Discipline::CoDel(_))
    }
}
