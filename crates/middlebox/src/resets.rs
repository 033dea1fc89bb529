//! Ends of connections whose state is lost.

use base::{Duration, Random, Time};
use host::{Context, FourTuple};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Flags, Ip, Packet, Segment, SeqNumber};

/// The ends of connections whose state is lost. The box does not know their sequence numbers: it
/// sends a segment that cannot be acceptable, which makes the end show them (RFC 5961 §4, RFC 9293
/// §3.10.7.4), and the answer is to be answered with a reset, which is exact.
///
/// The reset can be lost, and what the end sends until it arrives must not reach the other end, which
/// would take it for a part of the stream. So the end is asked again: without a connection, it answers
/// with a reset (RFC 9293 §3.10.7.1), and is one of these no longer.
#[derive(Debug)]
pub struct Resets {
    /// By the connection, as the other end names it.
    pending: BTreeMap<FourTuple, Pending>,
    due: BTreeSet<(Time, FourTuple)>,
    /// No more than [`Resets::BURST`] are sent before.
    not_before: Time,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    tries: u32,
    next: Time,
    /// It has sent a segment, and a reset is on its way to it.
    is_answered: bool,
}

impl Resets {
    /// How often an end is asked.
    const TRIES: u32 = 6;
    /// The time until the second try; it doubles.
    const WAIT: Duration = Duration::from_millis(500);
    /// The most at once: two ends of each of 65,536 connections.
    const MOST: usize = 1 << 17;
    /// The most segments that are sent at once, and the time until the next.
    const BURST: usize = 256;
    const PAUSE: Duration = Duration::from_millis(1);

    /// None. `random` is for the numbers of segments.
    #[must_use]
    pub fn new(random: Random) -> Resets {
        let (pending, due) = (BTreeMap::new(), BTreeSet::new());
        Resets { pending, due, not_before: Time::ZERO, random }
    }

    /// The remote end of a connection is to be reset, whose other end names it so.
    pub fn add(&mut self, now: Time, connection: FourTuple) {
        if self.pending.len() < Resets::MOST && !self.pending.contains_key(&connection) {
            self.pending.insert(connection, Pending { tries: 0, next: now, is_answered: false });
            self.due.insert((now, connection));
        }
    }

    /// A segment of no connection that the box knows; `to` names its connection as its receiver does.
    /// Returns whether it is from one of these ends: it goes no further, and unless it is a reset, it is
    /// to be answered with one.
    pub fn take(&mut self, now: Time, to: &FourTuple, flags: Flags) -> bool {
        if flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN {
            self.forget(to);
            return false;
        }
        if flags.contains(Flags::RST) {
            return self.remove(to);
        }
        let Some(pending) = self.pending.get_mut(to) else { return false };
        if !pending.is_answered {
            pending.is_answered = true;
            pending.tries = pending.tries.min(Resets::TRIES - 1);
            self.due.remove(&(pending.next, *to));
            pending.next = now;
            self.due.insert((now, *to));
        }
        true
    }

    /// Another connection begins between the same ends.
    pub fn forget(&mut self, connection: &FourTuple) {
        self.remove(connection);
        self.remove(&connection.reversed());
    }

    fn remove(&mut self, connection: &FourTuple) -> bool {
        let Some(pending) = self.pending.remove(connection) else { return false };
        self.due.remove(&(pending.next, *connection));
        true
    }

    /// The ends that are still to be reset.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether the remote end of a connection is still to be reset.
    #[must_use]
    pub fn contains(&self, connection: &FourTuple) -> bool {
        self.pending.contains_key(connection)
    }

    /// When [`Resets::send`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |&(at, _)| at.max(self.not_before))
    }

    /// Sends what is due, which is to be after the answers to what was taken. Ends that no longer answer
    /// are passed to `silent`, and given up.
    pub fn send(&mut self, now: Time, cx: &mut Context<'_>, mut silent: impl FnMut(FourTuple)) {
        if self.not_before > now {
            return;
        }
        for _ in 0..Resets::BURST {
            let Some(&(at, connection)) = self.due.first().filter(|(at, _)| *at <= now) else {
                return;
            };
            self.due.remove(&(at, connection));
            let Some(pending) = self.pending.get_mut(&connection) else { continue };
            if pending.tries == Resets::TRIES {
                self.pending.remove(&connection);
                silent(connection);
                continue;
            }
            pending.next = now + Resets::WAIT * (1 << pending.tries);
            pending.tries += 1;
            self.due.insert((pending.next, connection));
            cx.send(unacceptable(&connection, self.random.bits()));
        }
        self.not_before = now + Resets::PAUSE;
    }
}

/// A segment from an end of a connection to the other one with random numbers.
fn unacceptable(connection: &FourTuple, bits: u64) -> Packet {
    let FourTuple { local, local_port, remote, remote_port } = *connection;
    let mut packet = Packet { ip: Ip::new(local, remote), ..Packet::BLANK };
    *packet.make_tcp() = Segment {
        source_port: local_port,
        destination_port: remote_port,
        seq: SeqNumber(bits as u32),
        ack: SeqNumber((bits >> 32) as u32),
        flags: Flags::ACK,
        ..Segment::default()
    };
    packet
}
