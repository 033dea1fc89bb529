//! When the peer is asked for an answer, and when it counts as silent or lost.

use crate::Config;
use base::{Duration, Time};

/// After a probe, an answer is expected within this time. Round trips may be as long.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
/// Until then, the probe is repeated after this time.
const REPEAT: Duration = Duration::from_nanos(ANSWER.as_nanos() / 3);

/// When packets were sent and received.
pub(crate) struct Liveness {
    keep_alive: Option<Duration>,
    lost_after: Duration,
    heard: Time,
    sent: Time,
    /// When the first packet after the last that has arrived was sent, other than answers.
    waiting: Option<Time>,
    /// When the first and the last probe after the last packet that has arrived were sent.
    probes: Option<[Time; 2]>,
    pub(crate) is_lost: bool,
}

impl Liveness {
    pub(crate) fn new(now: Time, config: &Config) -> Liveness {
        Liveness {
            keep_alive: config.keep_alive,
            lost_after: config.lost_after,
            heard: now,
            sent: now,
            waiting: None,
            probes: None,
            is_lost: false,
        }
    }

    /// A packet was sent that the peer is to answer, with a packet of its own at the latest when asked.
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.sent = now;
        self.waiting.get_or_insert(now);
    }

    /// The answer to a probe was sent, which ends the exchange.
    pub(crate) fn on_answer(&mut self, now: Time) {
        self.sent = now;
    }

    pub(crate) fn on_probe(&mut self, now: Time) {
        self.on_sent(now);
        self.probes = Some([self.probes.map_or(now, |[first, _]| first), now]);
    }

    /// An authentic packet has arrived that is no replay.
    pub(crate) fn on_heard(&mut self, now: Time) {
        self.heard = now;
        self.waiting = None;
        self.probes = None;
    }

    /// When an authentic packet has arrived last.
    pub(crate) fn heard(&self) -> Time {
        self.heard
    }

    /// When the next probe is due. Once the peer is silent, handshakes take the place of probes.
    pub(crate) fn probe_at(&self) -> Time {
        match (self.probes, self.keep_alive) {
            (Some([first, last]), _) if last < first + ANSWER => last + REPEAT,
            (Some(_), _) => Time::NEVER,
            (None, Some(every)) => self.heard.min(self.sent) + every,
            (None, None) => self.waiting.map_or(Time::NEVER, |since| since + Config::UNANSWERED),
        }
    }

    /// From when on the peer is silent: it may have lost its sessions.
    pub(crate) fn silent_at(&self) -> Time {
        self.probes.map_or(Time::NEVER, |[first, _]| first + ANSWER)
    }

    /// When the peer counts as lost.
    pub(crate) fn lost_at(&self) -> Time {
        match self.waiting {
            Some(since) if !self.is_lost => since + self.lost_after,
            _ => Time::NEVER,
        }
    }
}
