//! The longest datagram that reaches the peer (DPLPMTUD, RFC 8899).
//!
//! A probe is a datagram of the length in question that no router may fragment; the peer answers with that length. A
//! search begins with the longest that may be possible, and goes on by halves. What was found is confirmed now and
//! then; if that fails, the path is another one, and the search begins again below. The names in comments are the
//! RFC's.

use crate::config::Config;
use base::{Duration, Time};
use core::ops::RangeInclusive;

/// The lengths of datagrams, bytes of UDP payload.
pub(crate) struct PathMtu {
    /// BASE_PLPMTU and MAX_PLPMTU; the search is off if they are one.
    range: RangeInclusive<u16>,
    /// Datagrams of this length arrive, or are to be fragmented (PLPMTU).
    known: u16,
    /// Those of this length or more do not arrive.
    refused: Option<u16>,
    probe: Option<Probe>,
    /// The round trip of the last probe that was answered at once.
    rtt: Option<Duration>,
    /// When the next probe is sent, if none is outstanding.
    next: Time,
    /// When longer ones than those that are known are tried again.
    raise: Time,
}

#[derive(Clone, Copy)]
struct Probe {
    len: u16,
    /// When it was sent last.
    sent: Time,
    /// Copies that count as lost.
    lost: u8,
}

impl PathMtu {
    /// Copies of a probe that are lost before its length counts as too long (MAX_PROBES).
    const COPIES: u8 = 3;
    /// A copy counts as lost after four round trips, if the peer was heard meanwhile; at least after the first of
    /// these times and, also if no round trip is known, at most after the second (PROBE_TIMER).
    const ANSWER: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1500)];
    /// The time between confirmations (CONFIRMATION_TIMER).
    const CONFIRM: Duration = Duration::from_secs(15);
    /// The time until a search begins again (PMTU_RAISE_TIMER).
    const RAISE: Duration = Duration::from_secs(600);
    /// A search ends when it is this close.
    const STEP: u16 = 4;

    /// Nothing is probed before [`PathMtu::begin`].
    pub(crate) fn new(config: &Config) -> PathMtu {
        let range = config.datagrams.clone();
        PathMtu {
            known: *range.start(),
            range,
            refused: None,
            probe: None,
            rtt: None,
            next: Time::NEVER,
            raise: Time::NEVER,
        }
    }

    /// Datagrams of this length reach the peer.
    pub(crate) fn known(&self) -> u16 {
        self.known
    }

    /// The path may be another one: the search begins again.
    pub(crate) fn begin(&mut self, now: Time) {
        if self.range.start() < self.range.end() {
            self.known = *self.range.start();
            (self.refused, self.probe) = (None, None);
            (self.next, self.raise) = (now, Time::NEVER);
        }
    }

    /// The path may be another one, but need not: what is known is confirmed.
    pub(crate) fn confirm(&mut self, now: Time) {
        if self.next < Time::NEVER {
            self.next = now;
        }
    }

    /// When [`PathMtu::poll`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.probe.map_or(self.next, |probe| self.lost_at(&probe))
    }

    /// Looks at what is due; returns the length of the probe to be sent now. `heard` is when the peer was heard last:
    /// where nothing arrives, a probe that is lost says nothing of its length.
    pub(crate) fn poll(&mut self, now: Time, heard: Time) -> Option<u16> {
        if self.poll_timeout() > now {
            return None;
        }
        if let Some(probe) = &mut self.probe {
            probe.lost += u8::from(heard > probe.sent);
            if probe.lost == PathMtu::COPIES {
                let len = probe.len;
                self.on_refused(now, len);
            }
        }
        if self.raise <= now {
            (self.refused, self.raise) = (None, Time::NEVER);
        }
        let len = match (self.probe, self.candidate()) {
            (Some(probe), _) => probe.len,
            (None, Some(len)) => len,
            // The base is not known to arrive: longer ones are fragmented.
            (None, None) if self.known == *self.range.start() => {
                self.next = self.raise;
                return None;
            }
            (None, None) => self.known,
        };
        let lost = self.probe.map_or(0, |probe| probe.lost);
        self.probe = Some(Probe { len, sent: now, lost });
        Some(len)
    }

    /// Whether the outstanding probe was lost at least once: another sign of the peer is wanted.
    pub(crate) fn is_doubtful(&self, now: Time) -> bool {
        self.probe.is_some_and(|probe| self.lost_at(&probe) <= now)
    }

    fn lost_at(&self, probe: &Probe) -> Time {
        let [least, most] = PathMtu::ANSWER;
        probe.sent + self.rtt.map_or(most, |rtt| (rtt * 4).max(least).min(most))
    }

    /// The peer has got a probe of this length.
    pub(crate) fn on_answer(&mut self, now: Time, len: u16) {
        if !self.range.contains(&len) {
            return;
        }
        if let Some(probe) = self.probe.take_if(|probe| probe.len <= len)
            && probe.lost == 0
        {
            self.rtt = Some(now.since(probe.sent));
        }
        self.known = self.known.max(len);
        // It came late.
        self.refused = self.refused.filter(|&refused| refused > len);
        self.rest(now);
    }

    /// Datagrams of this length are too long.
    fn on_refused(&mut self, now: Time, len: u16) {
        (self.refused, self.probe) = (Some(len), None);
        if len <= self.known {
            self.known = *self.range.start();
        }
        self.rest(now);
    }

    /// The next probe is due, at once or when the search is over.
    fn rest(&mut self, now: Time) {
        let is_over = self.candidate().is_none();
        self.next = if is_over { now + PathMtu::CONFIRM } else { now };
        self.raise = match is_over && self.known < *self.range.end() {
            true => self.raise.min(now + PathMtu::RAISE),
            false => Time::NEVER,
        };
    }

    /// The next length that the search tries.
    fn candidate(&self) -> Option<u16> {
        match self.refused {
            None => Some(*self.range.end()).filter(|&longest| longest > self.known),
            Some(refused) => {
                let gap = refused.saturating_sub(self.known);
                (gap > PathMtu::STEP).then(|| self.known + gap / 2)
            }
        }
    }
}
