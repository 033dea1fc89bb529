//! Connections that a box leaves alone, and why.

use core::net::IpAddr;
use relay::Relays;
use wire::{Flags, Packet, Segment};

/// Kinds of TCP options: a connection that has one of them in its handshake cannot be split.
mod kind {
    /// The MD5 signature (RFC 2385): segments carry a digest with a key.
    pub(super) const MD5: u8 = 19;
    /// The authentication option (RFC 5925).
    pub(super) const AO: u8 = 29;
    /// Multipath TCP (RFC 8684): data has numbers of its own, and several paths.
    pub(super) const MPTCP: u8 = 30;
}

/// Why a connection is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Left {
    /// Its segments are authenticated (RFC 2385, RFC 5925).
    Authenticated,
    /// It is of Multipath TCP (RFC 8684).
    Multipath,
    /// Its SYN carries data (RFC 7413).
    FastOpen,
    /// Its SYN or its SYN-ACK did not pass here.
    Unseen,
    /// Too many handshakes were pending.
    Overflow,
    /// Too many connections were split.
    Full,
    /// Its user had as many as he may.
    FullUser,
    /// There was no memory left.
    Memory,
    /// There was no association with the other gateway.
    NoPeer,
}

impl Left {
    pub(super) const ALL: [Left; 9] = [
        Left::Authenticated,
        Left::Multipath,
        Left::FastOpen,
        Left::Unseen,
        Left::Overflow,
        Left::Full,
        Left::FullUser,
        Left::Memory,
        Left::NoPeer,
    ];

    /// The name of the count of connections that are left alone for this reason.
    fn name(self) -> &'static str {
        match self {
            Left::Authenticated => "connections not split: authenticated",
            Left::Multipath => "connections not split: Multipath TCP",
            Left::FastOpen => "connections not split: data in the SYN",
            Left::Unseen => "connections not split: SYN not seen",
            Left::Overflow => "connections not split: too many handshakes",
            Left::Full => "connections not split: too many connections",
            Left::FullUser => "connections not split: too many connections of a user",
            Left::Memory => "connections not split: no memory",
            Left::NoPeer => "connections not split: no other gateway",
        }
    }
}

/// How many connections were left alone, by reason.
#[derive(Debug, Default)]
pub(crate) struct LeftAlone([u64; Left::ALL.len()]);

impl LeftAlone {
    /// Counts a connection; of [`Left::Unseen`], a SYN-ACK that passed.
    pub(crate) fn count(&mut self, why: Left) {
        self.0[why as usize] += 1;
    }

    /// Names the counts.
    pub(crate) fn report(&self, count: &mut dyn FnMut(&'static str, u64)) {
        Left::ALL.into_iter().zip(self.0).for_each(|(why, left)| count(why.name(), left));
    }
}

/// Whether a segment is a SYN that opens a connection.
pub(crate) fn is_syn(segment: &Segment) -> bool {
    segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
}

/// Why a connection with this SYN or SYN-ACK is left alone.
pub(crate) fn reason(packet: &Packet) -> Option<Left> {
    let mut options = packet.unparsed.tcp_options();
    while let [kind, len, ..] = options {
        match *kind {
            kind::MD5 | kind::AO => return Some(Left::Authenticated),
            kind::MPTCP => return Some(Left::Multipath),
            _ => {}
        }
        options = options.get(usize::from(*len)..)?;
    }
    (packet.payload.len > 0).then_some(Left::FastOpen)
}

/// Why one more connection of a user is left alone, besides those that are split; `limit` is their most.
pub(crate) fn want_of_room(relays: &Relays, limit: u32, user: IpAddr) -> Option<Left> {
    if relays.open_connections() >= limit as usize {
        Some(Left::Full)
    } else if relays.is_full(user) {
        Some(Left::FullUser)
    } else if relays.is_memory_used_up() {
        Some(Left::Memory)
    } else {
        None
    }
}
