//! Handshakes: when this end initiates one, and how it answers the peer's.

use crate::Channel;
use crate::noise::{Contents, Initiator};
use crate::packet::{MAC, NOISE, Packet};
use crate::session::Session;
use base::{Duration, Time};
use std::net::SocketAddr;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// An initiation that is not answered is followed by another after this time, and then after twice as long
/// each, up to the second. Up to a quarter of it is added at random.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// The least time between initiations that are answered. It bounds what replays cost after a restart.
const SPACING: Duration = Duration::from_millis(50);

/// The handshake of this end, and what it owes to that of the peer.
#[derive(Default)]
pub(crate) struct Handshake {
    /// An initiation is to be sent.
    is_due: bool,
    /// Initiations since a handshake became necessary, and when the next follows.
    attempt: Option<(u32, Time)>,
    /// The latest initiation, which waits for its response.
    waiting: Option<Waiting>,
    /// The timestamp of the next initiation is at least this.
    next_timestamp: u64,
    /// The greatest timestamp of the peer's initiations.
    newest: Option<u64>,
    /// When the peer's next initiation may be answered.
    answers_from: Time,
    response: Option<(SocketAddr, u32, [u8; NOISE])>,
    /// A replay, or the peer's clock is behind.
    stale: Option<(SocketAddr, [u8; MAC], u64)>,
}

struct Waiting {
    initiator: Initiator,
    index: u32,
    timestamp: u64,
    code: [u8; MAC],
}

impl Handshake {
    /// There is a new session.
    pub(crate) fn stop(&mut self) {
        self.is_due = false;
        self.attempt = None;
        self.waiting = None;
    }

    /// The next initiation need not wait any longer, if there was one before.
    pub(crate) fn hurry(&mut self) {
        if let Some((tries, next)) = &mut self.attempt {
            (*tries, *next) = (0, Time::ZERO);
        }
    }

    /// The time of the next initiation has come, if it is still necessary.
    pub(crate) fn start_or_stop(&mut self, is_necessary: bool) {
        if is_necessary {
            self.is_due = true;
        } else {
            self.stop();
        }
    }
}

impl Channel {
    /// From when on a new session is necessary.
    pub(crate) fn handshake_needed_at(&self) -> Time {
        if self.address.is_none() {
            return Time::NEVER;
        }
        let Some(session) = self.sessions.latest() else { return Time::ZERO };
        // The responder waits, so that both seldom initiate at once.
        let patience = u64::from(!session.is_initiator);
        let packets = self.config.rekey_after_packets;
        if u64::from(session.sent) >= packets.saturating_add(packets / 6 * patience) {
            return Time::ZERO;
        }
        let age = self.config.rekey_after;
        (session.created + age + age / 6 * patience).min(self.liveness.silent_at())
    }

    /// When this end sends the next initiation.
    pub(crate) fn handshake_at(&self) -> Time {
        match self.handshake.attempt {
            _ if self.handshake.is_due => Time::NEVER,
            Some((_, next)) => next,
            None => self.handshake_needed_at(),
        }
    }

    /// The next message of a handshake, and where it goes.
    pub(crate) fn poll_handshake(&mut self, now: Time, out: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((to, receiver, noise)) = self.handshake.response.take() {
            Packet::Response { receiver, noise: &noise }.emit(out);
            self.identity.authenticate(out);
            return Some(to);
        }
        if let Some((to, echo, newest)) = self.handshake.stale.take() {
            Packet::Stale { echo: &echo, newest }.emit(out);
            self.identity.authenticate(out);
            return Some(to);
        }
        if !std::mem::take(&mut self.handshake.is_due) {
            return None;
        }
        let tries = self.handshake.attempt.map_or(0, |(tries, _)| tries);
        let [first, longest] = RETRY;
        let wait = first.doubled(tries).min(longest);
        // Without randomness, neither.
        self.handshake.attempt = Some((tries + 1, now + wait));
        let (ephemeral, [jitter, index @ ..]) = self.draw()?;
        let jitter = Duration::from_nanos(wait.as_nanos() / 4 / 255 * u64::from(jitter));
        self.handshake.attempt = Some((tries + 1, now + wait + jitter));
        self.initiate(now, &ephemeral, u32::from_be_bytes(index), out)?;
        self.statistics.initiations += 1;
        self.liveness.on_sent(now);
        // An attacker on the path, or a move of both ends, may have led us astray.
        let configured = self.config.address.filter(|_| tries % 2 == 1);
        configured.or(self.address)
    }

    /// The bytes of an ephemeral key, and five more.
    fn draw(&mut self) -> Option<(Zeroizing<[u8; 32]>, [u8; 5])> {
        let drawn = self.entropy.draw().zip(self.entropy.draw());
        self.statistics.no_entropy += u64::from(drawn.is_none());
        let (ephemeral, [a, b, c, d, e, ..]) = drawn?;
        Some((Zeroizing::new(ephemeral), [a, b, c, d, e]))
    }

    /// An index that no session and no handshake of this end has.
    fn free_index(&self, mut index: u32) -> u32 {
        let is_waiting = |index| self.handshake.waiting.as_ref().is_some_and(|w| w.index == index);
        while self.sessions.has(index) || is_waiting(index) {
            index = index.wrapping_add(1);
        }
        index
    }

    fn initiate(
        &mut self,
        now: Time,
        ephemeral: &[u8; 32],
        index: u32,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let index = self.free_index(index);
        let clock = self.config.unix_time.saturating_add(now.since(self.started).as_nanos());
        let timestamp = self.handshake.next_timestamp.max(clock);
        self.handshake.next_timestamp = timestamp.saturating_add(1);
        let contents = Contents { index, instance: self.instance };
        let (initiator, noise) = self.identity.initiate(*ephemeral, timestamp, contents).ok()?;
        Packet::Initiation { timestamp, noise: &noise }.emit(out);
        let code = self.identity.authenticate(out);
        self.handshake.waiting = Some(Waiting { initiator, index, timestamp, code });
        Some(())
    }

    /// Answers the peer's initiation. The session changes nothing until the peer proves to have it: the
    /// initiation may be a replay.
    pub(crate) fn on_initiation(
        &mut self,
        now: Time,
        from: SocketAddr,
        timestamp: u64,
        noise: &[u8; NOISE],
        message: &[u8],
    ) {
        let Some(code) = self.identity.check(message) else {
            self.statistics.forged += 1;
            return;
        };
        if let Some(newest) = self.handshake.newest.filter(|&newest| timestamp <= newest) {
            self.statistics.stale += 1;
            // The same again is a duplicate; its sender's clock is right.
            if timestamp < newest {
                self.handshake.stale = Some((from, code, newest));
            }
            return;
        }
        if now < self.handshake.answers_from {
            self.statistics.limited += 1;
            return;
        }
        let Some((ephemeral, [_, index @ ..])) = self.draw() else { return };
        let index = self.free_index(u32::from_be_bytes(index));
        let contents = Contents { index, instance: self.instance };
        let answer = self.identity.respond(*ephemeral, timestamp, noise, contents);
        let Ok((theirs, noise, keys)) = answer else {
            self.statistics.forged += 1;
            return;
        };
        self.handshake.newest = Some(timestamp);
        self.handshake.answers_from = now + SPACING;
        self.handshake.response = Some((from, theirs.index, noise));
        self.statistics.responses += 1;
        let indices = [index, theirs.index];
        self.sessions.set_pending(Session::new(now, keys, indices, theirs.instance, false));
    }

    /// The session that the peer's response to the latest initiation makes.
    pub(crate) fn on_response(
        &mut self,
        now: Time,
        receiver: u32,
        noise: &[u8; NOISE],
        message: &[u8],
    ) -> Option<Session> {
        let waiting = self.handshake.waiting.as_mut().filter(|waiting| waiting.index == receiver);
        let Some(waiting) = waiting else {
            self.statistics.unknown_session += 1;
            return None;
        };
        let code = self.identity.check(message);
        let Some((theirs, keys)) = code.and_then(|_| waiting.initiator.finish(noise).ok()) else {
            self.statistics.forged += 1;
            return None;
        };
        let indices = [receiver, theirs.index];
        Some(Session::new(now, keys, indices, theirs.instance, true))
    }

    /// The peer has seen an initiation that appears newer than the latest of this end: its clock was ahead,
    /// perhaps before a restart. The next is newer.
    pub(crate) fn on_stale(&mut self, echo: &[u8; MAC], newest: u64, message: &[u8]) {
        let waiting = self.handshake.waiting.as_ref();
        let Some(waiting) = waiting.filter(|waiting| bool::from(waiting.code.ct_eq(echo))) else {
            self.statistics.unknown_session += 1;
            return;
        };
        if self.identity.check(message).is_none() {
            self.statistics.forged += 1;
        } else if newest >= waiting.timestamp {
            self.handshake.next_timestamp = newest.saturating_add(1);
            self.handshake.waiting = None;
            self.handshake.is_due = true;
        }
    }
}
