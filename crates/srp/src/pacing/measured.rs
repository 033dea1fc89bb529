//! The rate of a dedicated hop, measured.

use super::{Copy, Pacing, Tag, rate_of, rate_over, twice_the_pipe};
use crate::rtt::Rtt;
use base::{Duration, Rate, Time};
use serde::{Deserialize, Serialize};

/// The rate at which the hop carries packets: that at which they are delivered, divided by the share that
/// is not lost on it.
///
/// What is sent is divided into phases. A phase lasts a round trip, or longer if that is too short for a
/// good sample. Each copy has the number of its phase, so that what is delivered is attributed to
/// the pace at which it was sent. After the start, phases repeat in a cycle of eight: a probe sends a
/// quarter more than the rate, then less is sent until the queue of the probe is gone; the next sends a little
/// less than the rate; the others send at the rate (as in BBR, draft-ietf-ccwg-bbr §4.3.3).
///
/// Losses count only in phases that cannot have overrun the queue of the hop: those that sent a little
/// less than the rate, and those in which no round trip shows a queue. Counted in all phases, they would include
/// the overflow, and the rate divided by the share delivered would be the present pace, whatever that is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    segment: u64,
    kind: Kind,
    /// The present phase.
    phase: u32,
    began: Option<Time>,
    /// Phases of the cycle at the rate that have begun, and those that drain.
    cruises: u32,
    drains: u32,
    /// The last probe has delivered more: probes are short and follow each other.
    rises: bool,
    phases: [Phase; Measured::KEPT as usize],
    /// The phase whose copies are being delivered, since when, and what was delivered then.
    delivering: u32,
    since: Time,
    delivered_before: u64,
    delivered: u64,
    /// In the start: bytes that may be in flight, and samples that were not larger than those before.
    window: u64,
    stalled: u32,
    /// Delivery rates, bits per second: the largest of the start; averages of phases at the rate, and
    /// of probes.
    best: u64,
    cruise: u64,
    probe: u64,
    /// Copies of phases that count for the loss.
    arrived: u64,
    lost: u64,
}

/// What a phase does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Doubles what is sent.
    #[default]
    Start,
    Probe,
    /// Sends much less than the rate, while there is a queue.
    Drain,
    /// Sends a little less than the rate: what is lost is not lost by overflow.
    Measure,
    Cruise,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Phase {
    number: u32,
    kind: Kind,
    /// Less was sent at some time than the pace allowed.
    is_limited: bool,
    /// A round trip shows a queue.
    is_queued: bool,
    /// A round trip shows that there is none.
    is_free: bool,
    arrived: u64,
    lost: u64,
}

impl Measured {
    /// Segments that may be in flight at the start (RFC 6928, a little more).
    const INITIAL: u64 = 16;
    /// The round trip that is assumed before one is known.
    const ASSUMED: Duration = Duration::from_millis(50);
    /// Phases whose copies are not all known to have arrived or to be lost.
    const KEPT: u32 = 8;
    /// Phases at the rate between two probes, and those that drain, at most.
    const CRUISES: u32 = 6;
    const DRAINS: u32 = 2;
    /// Segments for a good sample, and the time after which a sample is good enough.
    const SEGMENTS: u64 = 256;
    const LONGEST: Duration = Duration::from_secs(1);
    /// Segments of a sample while the rate rises.
    const FEW: u64 = 64;
    /// Segments of a sample that chance hardly changes.
    const MANY: u64 = 512;
    /// Copies of which the loss is the average.
    const COPIES: u64 = 4096;

    pub(super) fn new(segment: u64) -> Measured {
        Measured {
            segment,
            kind: Kind::Start,
            phase: 0,
            began: None,
            cruises: 0,
            drains: 0,
            rises: false,
            phases: [Phase::default(); Measured::KEPT as usize],
            delivering: 0,
            since: Time::ZERO,
            delivered_before: 0,
            delivered: 0,
            window: Measured::INITIAL * segment,
            stalled: 0,
            best: 0,
            cruise: 0,
            probe: 0,
            arrived: 0,
            lost: 0,
        }
    }

    pub(super) fn set_segment(&mut self, bytes: u64) {
        self.segment = bytes;
    }

    /// The rate at which the hop delivers.
    fn delivery(&self) -> u64 {
        self.cruise.max(self.probe)
    }

    /// Bits per second that the hop carries.
    fn carried(&self) -> u64 {
        let (arrived, all) = (u128::from(self.arrived), u128::from(self.arrived + self.lost));
        if all < 64 {
            return self.delivery();
        }
        // More than half of all is never taken for loss.
        let carried = u128::from(self.delivery()) * all / arrived.max(all.div_ceil(2));
        u64::try_from(carried).unwrap_or(u64::MAX)
    }

    /// The rate, once the start is over.
    pub(super) fn rate(&self) -> Option<Rate> {
        (self.kind != Kind::Start).then(|| rate_of(self.carried()))
    }

    pub(super) fn pace(&self, rtt: &Rtt) -> Option<Rate> {
        let carried = self.carried();
        let bps = match self.kind {
            Kind::Start => {
                let span = rtt.smoothed().unwrap_or(Measured::ASSUMED);
                rate_over(2 * self.window, span)
            }
            Kind::Probe if self.rises => carried.saturating_add(carried / 2),
            Kind::Probe => carried.saturating_add(carried / 4),
            Kind::Drain if self.drains < Measured::DRAINS => carried / 4 * 3,
            Kind::Drain => carried / 2,
            Kind::Measure => carried - carried / 20,
            Kind::Cruise => carried,
        };
        Some(rate_of(bps))
    }

    pub(super) fn limit(&self, rtt: &Rtt, least: u64) -> u64 {
        match self.kind {
            Kind::Start => self.window,
            _ => twice_the_pipe(rate_of(self.carried()), rtt).saturating_add(least),
        }
    }

    /// Whether the latest round trip is longer than the shortest by some segments and a share of itself.
    fn shows_queue(&self, rtt: &Rtt, share: u64) -> bool {
        let Some(shortest) = rtt.shortest() else { return false };
        let some = rate_of(self.carried()).time_for(8 * self.segment);
        rtt.latest() > shortest + some + shortest / share
    }

    /// How long a phase lasts.
    fn span(&self, rtt: &Rtt) -> Duration {
        let smoothed = rtt.smoothed().unwrap_or(Measured::ASSUMED);
        match self.kind {
            Kind::Start => smoothed,
            _ => {
                let segments = if self.rises { Measured::FEW } else { Measured::SEGMENTS };
                let good = rate_of(self.carried()).time_for(segments * self.segment);
                smoothed.max(good.min(Measured::LONGEST))
            }
        }
    }

    fn present(&mut self) -> &mut Phase {
        let (phase, kind) = (self.phase, self.kind);
        let entry = &mut self.phases[(phase % Measured::KEPT) as usize];
        if entry.number != phase {
            *entry = Phase { number: phase, kind, ..Phase::default() };
        }
        entry
    }

    /// The entry of a phase, if it is kept.
    fn entry(&mut self, tag: Tag) -> Option<&mut Phase> {
        let entry = &mut self.phases[(tag.0 % Measured::KEPT) as usize];
        (entry.number == tag.0).then_some(entry)
    }

    /// The tag of a copy that is sent now, when so many bytes are in flight.
    pub(super) fn tag(&mut self, now: Time, flight: u64, rtt: &Rtt) -> Tag {
        let began = *self.began.get_or_insert(now);
        let is_over = now.since(began) >= self.span(rtt);
        let kind = self.next_kind(is_over, flight, rtt);
        if is_over || kind != self.kind {
            (self.phase, self.began) = (self.phase.wrapping_add(1), Some(now));
            self.enter(kind);
        }
        self.present();
        Tag(self.phase)
    }

    /// What comes now, if the present phase has lasted long enough, or not.
    fn next_kind(&self, is_over: bool, flight: u64, rtt: &Rtt) -> Kind {
        // The round trip shows a queue that was; less in flight than the pipe holds leaves none.
        let pipe = twice_the_pipe(rate_of(self.carried()), rtt) / 2;
        let is_queued = self.shows_queue(rtt, 16) && flight > pipe + 4 * self.segment;
        match self.kind {
            Kind::Drain if !is_queued => Kind::Measure,
            Kind::Measure if is_queued && self.drains < Measured::DRAINS => Kind::Drain,
            present if !is_over => present,
            Kind::Start => Kind::Start,
            Kind::Drain if self.drains < Measured::DRAINS => Kind::Drain,
            Kind::Probe if is_queued => Kind::Drain,
            Kind::Probe | Kind::Drain => Kind::Measure,
            // Another hop, or a slower one.
            Kind::Cruise if is_queued && self.shows_queue(rtt, 4) => Kind::Drain,
            Kind::Cruise if self.cruises >= Measured::CRUISES => Kind::Probe,
            Kind::Measure | Kind::Cruise => Kind::Cruise,
        }
    }

    fn enter(&mut self, kind: Kind) {
        match kind {
            Kind::Probe => (self.cruises, self.drains) = (0, 0),
            Kind::Drain => {
                self.drains = if self.kind == Kind::Cruise { 1 } else { self.drains + 1 };
            }
            Kind::Cruise => self.cruises += 1,
            Kind::Start | Kind::Measure => {}
        }
        self.kind = kind;
    }

    pub(super) fn on_idle(&mut self) {
        self.present().is_limited = true;
    }

    pub(super) fn on_arrived(&mut self, copy: Copy) {
        self.delivered += copy.size;
        if self.kind == Kind::Start && self.stalled == 0 {
            self.window += copy.size;
        }
        if let Some(phase) = self.entry(copy.tag) {
            phase.arrived += 1;
        }
    }

    pub(super) fn on_lost(&mut self, copy: Copy) {
        if let Some(phase) = self.entry(copy.tag) {
            phase.lost += 1;
        }
    }

    /// The first copy of a phase to arrive ends the sample of the phase before.
    pub(super) fn on_latest(&mut self, now: Time, tag: Tag, rtt: &Rtt) {
        // Also a short queue may overflow, on a hop with a long round trip: there is no allowance.
        let (is_queued, is_free) = (self.shows_queue(rtt, u64::MAX), !self.shows_queue(rtt, 16));
        if let Some(phase) = self.entry(tag) {
            phase.is_queued |= is_queued;
            phase.is_free |= is_free;
        }
        let ahead = tag.0.wrapping_sub(self.delivering);
        if ahead == 0 || ahead > u32::MAX / 2 {
            return;
        }
        let (bytes, elapsed) = (self.delivered - self.delivered_before, now.since(self.since));
        let ended = Tag(core::mem::replace(&mut self.delivering, tag.0));
        (self.since, self.delivered_before) = (now, self.delivered);
        // Losses of the phase before the last are known.
        let known = Tag(ended.0.wrapping_sub(1));
        if let Some(phase) = self.entry(known).copied() {
            self.count(phase);
        }
        if let Some(phase) = self.entry(ended).copied()
            && ended.0 > 0
            && elapsed >= self.span(rtt) / 2
        {
            self.on_sample(phase, rate_over(bytes, elapsed), bytes / self.segment, rtt);
        }
    }

    /// Counts the losses of a phase, if none of them can be overflow.
    fn count(&mut self, phase: Phase) {
        let counts = match phase.kind {
            Kind::Start | Kind::Probe | Kind::Drain => false,
            Kind::Measure => true,
            Kind::Cruise => !phase.is_queued,
        };
        if counts {
            (self.arrived, self.lost) = (self.arrived + phase.arrived, self.lost + phase.lost);
        }
        while self.arrived + self.lost > Measured::COPIES {
            (self.arrived, self.lost) = (self.arrived / 2, self.lost / 2);
        }
    }

    fn on_sample(&mut self, phase: Phase, sample: u64, segments: u64, rtt: &Rtt) {
        if self.kind == Kind::Start {
            return self.on_start_sample(phase, sample, rtt);
        }
        let known = self.delivery();
        let average = |old: u64, weight: u64| (old - old / weight) + sample / weight;
        // The hop was never idle: that is its rate.
        if phase.kind == Kind::Drain && !phase.is_free {
            let weight = (Measured::MANY / segments.max(1)).clamp(1, 8);
            (self.cruise, self.probe) = (average(known, weight), average(known, weight));
            return;
        }
        if phase.is_limited && sample <= known {
            return;
        }
        // More is probed at once. If few segments were sent, chance may have lost fewer: the second such probe
        // counts.
        let is_more = sample > known + known / 8;
        if is_more && (segments >= Measured::MANY || (self.rises && phase.kind == Kind::Probe)) {
            (self.cruise, self.probe) = (sample, sample);
        }
        if is_more && (segments >= Measured::MANY || phase.kind == Kind::Probe) {
            (self.cruises, self.rises) = (Measured::CRUISES, true);
            return;
        }
        self.rises &= phase.kind != Kind::Probe;
        match phase.kind {
            Kind::Probe => {
                let weight = if segments >= Measured::MANY { 2 } else { 4 };
                self.probe = average(self.probe, weight);
            }
            Kind::Cruise => self.cruise = average(self.cruise, 8),
            Kind::Start | Kind::Drain | Kind::Measure => {}
        }
    }

    /// The start is over when more in flight delivers no more.
    fn on_start_sample(&mut self, phase: Phase, sample: u64, rtt: &Rtt) {
        if sample > self.best + self.best / 4 {
            (self.best, self.stalled) = (sample, 0);
            return;
        }
        self.best = self.best.max(sample);
        if phase.is_limited {
            return;
        }
        self.stalled += 1;
        (self.cruise, self.probe) = (self.best, self.best);
        if self.stalled > 1 || self.shows_queue(rtt, 4) {
            self.phase = self.phase.wrapping_add(1);
            self.began = None;
            self.enter(Kind::Drain);
        }
    }

    /// Another hop may be faster or slower: its rate is found from the present one on.
    pub(super) fn on_path_change(&mut self) {
        let least = Pacing::LEAST_FLIGHT * self.segment;
        let window = match self.kind {
            Kind::Start => least,
            _ => rate_of(self.carried()).as_bps() / 8 / 20,
        };
        let (arrived, lost) = (self.arrived / 8, self.lost / 8);
        let (phase, delivered) = (self.phase.wrapping_add(1), self.delivered);
        *self =
            Measured { arrived, lost, window: window.max(least), ..Measured::new(self.segment) };
        (self.phase, self.delivering) = (phase, phase.wrapping_sub(1));
        (self.delivered, self.delivered_before) = (delivered, delivered);
    }
}
