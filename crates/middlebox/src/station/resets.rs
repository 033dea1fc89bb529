//! Fixed hosts whose connection's state is lost.

use base::{Duration, Random, Time};
use core::net::IpAddr;
use host::{Context, FourTuple};
use std::collections::BTreeMap;
use wire::{Flags, Ip, Packet, Segment, SeqNumber};

/// The ends of connections whose state is lost. The base station does not know their sequence numbers: it
/// sends a segment that cannot be acceptable, which makes the end show them (RFC 5961 §4, RFC 9293
/// §3.10.7.4), and the answer is answered with a reset that is exact.
#[derive(Debug)]
pub(super) struct Resets {
    /// By the connection, as its mobile host names it.
    pending: BTreeMap<Key, Pending>,
    random: Random,
}

type Key = (IpAddr, u16, IpAddr, u16);

#[derive(Clone, Copy, Debug)]
struct Pending {
    tries: u32,
    next: Time,
}

impl Resets {
    /// How often a fixed host is made to answer.
    const TRIES: u32 = 6;
    /// The time until the second try; it doubles.
    const WAIT: Duration = Duration::from_millis(500);
    /// The most at once.
    const MOST: usize = 65_536;

    pub(super) fn new(random: Random) -> Resets {
        Resets { pending: BTreeMap::new(), random }
    }

    /// The other end of a connection is to be reset that its mobile host names so.
    pub(super) fn add(&mut self, now: Time, connection: FourTuple) {
        if self.pending.len() < Resets::MOST {
            self.pending.entry(key(&connection)).or_insert(Pending { tries: 0, next: now });
        }
    }

    /// A segment has arrived; `to` names its connection as its receiver does. Returns whether it is
    /// of an end that is to be reset.
    pub(super) fn take(&mut self, to: &FourTuple) -> bool {
        self.pending.remove(&key(to)).is_some()
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.pending.values().map(|pending| pending.next).min().unwrap_or(Time::NEVER)
    }

    /// Sends what is due.
    pub(super) fn send(&mut self, now: Time, cx: &mut Context<'_>) {
        let random = &mut self.random;
        self.pending.retain(|key, pending| {
            if pending.next > now {
                return true;
            }
            if pending.tries == Resets::TRIES {
                return false;
            }
            cx.send(unacceptable(key, random.bits()));
            pending.next = now + Resets::WAIT * (1 << pending.tries);
            pending.tries += 1;
            true
        });
    }
}

/// Orders the connections.
fn key(connection: &FourTuple) -> Key {
    let FourTuple { local, local_port, remote, remote_port } = *connection;
    (local, local_port, remote, remote_port)
}

/// A segment from the mobile end of a connection to the other one with random numbers.
fn unacceptable(&(local, local_port, remote, remote_port): &Key, bits: u64) -> Packet {
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
