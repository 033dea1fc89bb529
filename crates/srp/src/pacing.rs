//! When the next segment may be sent, and how much may be in flight.

mod measured;
mod shared;

use crate::config::Config;
use crate::rtt::Rtt;
use base::{Duration, Rate, Time};
use measured::Measured;
use serde::{Deserialize, Serialize};
use shared::Shared;

/// How the rate is found.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Source {
    Known(Rate),
    Measured(Box<Measured>),
    Shared(Shared),
}

/// The pacer of an association. All sizes are bytes of IP packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pacing {
    source: Source,
    /// The size of a full segment.
    segment: u64,
    /// The most at which the hop may be used, whatever the source says.
    most: Option<Rate>,
    /// When what was sent has left at the present pace.
    next: Time,
    /// Nothing but that time holds a segment back.
    #[serde(skip)]
    waits: bool,
    /// Bytes that may be in flight in addition, because the timeout has passed.
    extra: u64,
}

/// What is to be remembered of a copy that is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tag(u32);

/// A copy that has arrived or is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) size: u64,
    pub(crate) order: u64,
    pub(crate) tag: Tag,
}

impl Pacing {
    /// Segments that may be in flight although the round trip is short.
    const LEAST_FLIGHT: u64 = 24;
    /// Segments and time without transmission that are made up for.
    const BURST: u64 = 8;
    const LONGEST_BURST: Duration = Duration::from_millis(5);
    /// The same while a segment waited: a busy machine wakes a process as late as this.
    const LATE: Duration = Duration::from_millis(10);
    /// Segments that may follow the probe of a timeout (RFC 9002 §6.2.4).
    const WITH_PROBE: u64 = 2;

    pub(crate) fn new(config: &Config, header: u32) -> Pacing {
        let segment = u64::from(config.segment_size + config.overhead + header);
        let source = match (config.share, config.rate) {
            (true, _) => Source::Shared(Shared::new(segment)),
            (false, Some(rate)) => Source::Known(rate),
            (false, None) => Source::Measured(Box::new(Measured::new(segment))),
        };
        Pacing { source, segment, most: config.rate, next: Time::ZERO, waits: false, extra: 0 }
    }

    /// Another hop has other settings. What was measured of the last one is where measuring begins, and the window of
    /// the last one is that of the next.
    pub(crate) fn set_hop(&mut self, config: &Config, header: u32) {
        let new = Pacing::new(config, header);
        let source = match (&mut self.source, new.source) {
            (Source::Measured(old), Source::Measured(_)) => {
                old.set_segment(new.segment);
                None
            }
            (Source::Shared(old), Source::Shared(_)) => {
                old.set_segment(new.segment);
                None
            }
            (_, source) => Some(source),
        };
        if let Some(source) = source {
            self.source = source;
        }
        (self.segment, self.most) = (new.segment, new.most);
    }

    /// The rate that is known of the hop.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match &self.source {
            Source::Known(rate) => Some(*rate),
            Source::Measured(measured) => measured.rate(),
            Source::Shared(_) => None,
        }
    }

    /// How many full segments the rate lets pass in a time; 0 if it is not known.
    pub(crate) fn segments_in(&self, time: Duration) -> u64 {
        let bps = self.rate().map_or(0, Rate::as_bps);
        let bytes = u128::from(bps) * u128::from(time.as_nanos()) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX) / self.segment
    }

    /// The rate at which to send now; without a limit if `None`.
    fn pace(&self, rtt: &Rtt) -> Option<Rate> {
        let pace = match &self.source {
            Source::Known(rate) => Some(*rate),
            Source::Measured(measured) => measured.pace(rtt),
            Source::Shared(shared) => shared.pace(rtt),
        };
        match (pace, self.most) {
            (Some(pace), Some(most)) => Some(pace.min(most)),
            (pace, most) => pace.or(most),
        }
    }

    /// Whether a segment of `size` may be added to the data in flight.
    pub(crate) fn allows(&self, flight: u64, size: u64, rtt: &Rtt) -> bool {
        let least = Pacing::LEAST_FLIGHT * self.segment;
        let limit = match &self.source {
            Source::Known(rate) => twice_the_pipe(*rate, rtt).saturating_add(least),
            Source::Measured(measured) => measured.limit(rtt, least),
            Source::Shared(shared) => shared.limit(),
        };
        flight == 0 || flight + size <= limit.saturating_add(self.extra)
    }

    /// When the next segment may be sent.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Whether nothing but that time holds a segment back.
    pub(crate) fn set_waits(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// A packet of `size` is sent. Those that are no segments are counted and not delayed.
    pub(crate) fn on_sent(&mut self, now: Time, size: u64, rtt: &Rtt) {
        let Some(pace) = self.pace(rtt) else { return };
        let burst = match self.waits {
            true => Pacing::LATE,
            false => pace.time_for(Pacing::BURST * self.segment).min(Pacing::LONGEST_BURST),
        };
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(burst.as_nanos()));
        self.next = self.next.max(earliest) + pace.time_for(size);
    }

    /// The tag of a segment that is sent now.
    pub(crate) fn tag(&mut self, now: Time, flight: u64, rtt: &Rtt) -> Tag {
        match &mut self.source {
            Source::Measured(measured) => measured.tag(now, flight, rtt),
            Source::Known(_) | Source::Shared(_) => Tag::default(),
        }
    }

    /// There is nothing to send, although it might be sent.
    pub(crate) fn on_idle(&mut self) {
        self.waits = false;
        if let Source::Measured(measured) = &mut self.source {
            measured.on_idle();
        }
    }

    /// A copy has arrived.
    pub(crate) fn on_arrived(&mut self, copy: Copy) {
        match &mut self.source {
            Source::Known(_) => {}
            Source::Measured(measured) => measured.on_arrived(copy),
            Source::Shared(shared) => shared.on_arrived(copy),
        }
    }

    /// A copy is lost; `sent` is the order of the next transmission.
    pub(crate) fn on_lost(&mut self, copy: Copy, sent: u64) {
        match &mut self.source {
            Source::Known(_) => {}
            Source::Measured(measured) => measured.on_lost(copy),
            Source::Shared(shared) => shared.on_lost(copy, sent),
        }
    }

    /// A SACK names a copy as the latest that has arrived.
    pub(crate) fn on_latest(&mut self, now: Time, tag: Tag, rtt: &Rtt) {
        if let Source::Measured(measured) = &mut self.source {
            measured.on_latest(now, tag, rtt);
        }
    }

    /// All that was in flight is lost, as a probe shows after a timeout.
    pub(crate) fn on_outage(&mut self) {
        if let Source::Shared(shared) = &mut self.source {
            shared.on_outage();
        }
    }

    /// The timeout has passed: what is in flight may be lost, and a burst of losses may last as long as
    /// nothing is sent.
    pub(crate) fn on_timeout(&mut self) {
        self.extra += Pacing::WITH_PROBE * self.segment;
    }

    /// The peer has answered.
    pub(crate) fn on_answer(&mut self) {
        self.extra = 0;
    }

    /// The path has changed.
    pub(crate) fn on_path_change(&mut self, now: Time) {
        self.next = now;
        match &mut self.source {
            Source::Known(_) => {}
            Source::Measured(measured) => measured.on_path_change(),
            Source::Shared(shared) => *shared = Shared::new(self.segment),
        }
    }
}

/// Twice what is on the way at this rate without a queue: so a deep queue does not fill.
fn twice_the_pipe(rate: Rate, rtt: &Rtt) -> u64 {
    let Some(shortest) = rtt.shortest() else { return 0 };
    let bits = u128::from(rate.as_bps()) * u128::from(shortest.as_nanos()) / 1_000_000_000;
    u64::try_from(bits / 4).unwrap_or(u64::MAX)
}

/// A rate of so many bits per second, at least one.
fn rate_of(bps: u64) -> Rate {
    Rate::from_bps(bps).unwrap_or(Rate::MIN)
}

/// Bytes in a time, as a rate.
fn rate_over(bytes: u64, span: Duration) -> u64 {
    let bits = u128::from(bytes) * 8_000_000_000 / u128::from(span.as_nanos().max(1));
    u64::try_from(bits).unwrap_or(u64::MAX)
}
