//! Handshakes that pass the box, and connections that it leaves alone.

use base::{Duration, Time};
use host::{FourTuple, Port};
use relay::{ByUser, Side};
use std::collections::{HashMap, VecDeque};
use tcp::Handshake;
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
pub(super) enum Left {
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
}

impl Left {
    /// Every reason.
    pub(super) const ALL: [Left; 8] = [
        Left::Authenticated,
        Left::Multipath,
        Left::FastOpen,
        Left::Unseen,
        Left::Overflow,
        Left::Full,
        Left::FullUser,
        Left::Memory,
    ];

    /// The name of the count of connections that are left alone for this reason.
    pub(super) fn name(self) -> &'static str {
        match self {
            Left::Authenticated => "connections not split: authenticated",
            Left::Multipath => "connections not split: Multipath TCP",
            Left::FastOpen => "connections not split: data in the SYN",
            Left::Unseen => "connections not split: SYN not seen",
            Left::Overflow => "connections not split: too many handshakes",
            Left::Full => "connections not split: too many connections",
            Left::FullUser => "connections not split: too many connections of a user",
            Left::Memory => "connections not split: no memory",
        }
    }
}

/// Handshakes that are not complete, by the connection as its client names it.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    pending: HashMap<FourTuple, Pending, rustc_hash::FxBuildHasher>,
    /// In the order in which they began, for expiry; those of completed ones are skipped.
    ages: VecDeque<(Time, FourTuple)>,
    /// Those that are pending, by the client.
    users: ByUser,
    left: [u64; Left::ALL.len()],
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    began: Time,
    syn: Segment,
    syn_at: Time,
    syn_ack: Option<(Segment, Time)>,
    is_repeated: bool,
    /// By [`Side`], where the last segment of that end came from.
    ports: [Option<Port>; 2],
}

/// A complete handshake, and where the segments of its ends came from, by [`Side`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Complete {
    pub(super) handshake: Handshake,
    pub(super) ports: [Option<Port>; 2],
}

/// Whether a segment is a SYN that opens a connection.
pub(super) fn is_syn(segment: &Segment) -> bool {
    segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
}

impl Handshakes {
    /// The most that are kept. Then the oldest is forgotten: SYNs with forged addresses must not keep out others.
    const MOST: usize = 65_536;
    /// The most of one user that are kept.
    const MOST_OF_ONE: usize = 4096;
    /// How long one is kept: a client retransmits its SYN for three minutes (RFC 9293 §3.8.3).
    const LIFETIME: Duration = Duration::from_secs(240);

    /// How many connections were left alone for a reason; of [`Left::Unseen`], SYN-ACKs that passed.
    pub(super) fn left(&self, why: Left) -> u64 {
        self.left[why as usize]
    }

    /// Handshakes that take memory, pending or not.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.ages.len()
    }

    /// Takes note of a segment of a connection that is not split. `to` names it as the segment's
    /// receiver does. Returns the handshake that the segment completes: then the connection can be split,
    /// and the segment is its first.
    pub(super) fn see(
        &mut self,
        now: Time,
        to: FourTuple,
        (from, packet): (Option<Port>, &Packet),
        segment: &Segment,
    ) -> Option<Complete> {
        let flags = segment.flags;
        if flags.contains(Flags::RST) {
            self.forget(&to);
            self.forget(&to.reversed());
        } else if is_syn(segment) {
            self.on_syn(now, to.reversed(), (from, packet), segment);
        } else if flags.contains(Flags::SYN) {
            self.on_syn_ack(now, to, (from, packet), segment);
        } else {
            return self.complete(to.reversed(), segment);
        }
        None
    }

    fn on_syn(
        &mut self,
        now: Time,
        client: FourTuple,
        (from, packet): (Option<Port>, &Packet),
        segment: &Segment,
    ) {
        if let Some(why) = reason(packet) {
            self.forget(&client);
            return self.count(why);
        }
        if let Some(pending) = self.pending.get_mut(&client)
            && pending.syn.seq == segment.seq
        {
            (pending.syn, pending.syn_at) = (*segment, now);
            pending.is_repeated = true;
            pending.ports[Side::Client as usize] = from;
            return;
        }
        self.forget(&client);
        if self.users.of(client.local) >= Handshakes::MOST_OF_ONE {
            return self.count(Left::Overflow);
        }
        self.make_room(now);
        let pending = Pending {
            began: now,
            syn: *segment,
            syn_at: now,
            syn_ack: None,
            is_repeated: false,
            ports: [from, None],
        };
        self.pending.insert(client, pending);
        self.users.add(client.local);
        if self.ages.len() >= 2 * Handshakes::MOST {
            // One that lasts keeps those behind it in the list, which are complete or reset.
            let pending = &self.pending;
            self.ages.retain(|(began, client)| {
                pending.get(client).is_some_and(|pending| pending.began == *began)
            });
        }
        self.ages.push_back((now, client));
    }

    fn on_syn_ack(
        &mut self,
        now: Time,
        client: FourTuple,
        (from, packet): (Option<Port>, &Packet),
        segment: &Segment,
    ) {
        let Some(pending) = self.pending.get_mut(&client) else {
            return self.count(Left::Unseen);
        };
        if segment.ack != pending.syn.seq + 1 {
            return;
        }
        if let Some(why) = reason(packet) {
            self.forget(&client);
            return self.count(why);
        }
        pending.is_repeated |= pending.syn_ack.is_some();
        pending.syn_ack = Some((*segment, now));
        pending.ports[Side::Server as usize] = from;
    }

    /// The handshake that a segment of the client completes.
    fn complete(&mut self, client: FourTuple, segment: &Segment) -> Option<Complete> {
        let Pending { syn, syn_at, syn_ack, is_repeated, ports, .. } =
            *self.pending.get(&client)?;
        let (syn_ack, syn_ack_at) = syn_ack?;
        // The first segment after the SYN, perhaps with data; later ones may overtake it.
        let acknowledges = segment.flags.contains(Flags::ACK) && segment.ack == syn_ack.seq + 1;
        if !acknowledges {
            return None;
        }
        self.forget(&client);
        let handshake = Handshake { syn, syn_at, syn_ack, syn_ack_at, is_repeated };
        Some(Complete { handshake, ports })
    }

    /// Forgets handshakes that have lasted too long, and others if there are too many.
    fn make_room(&mut self, now: Time) {
        while let Some(&(began, client)) = self.ages.front() {
            let is_pending =
                self.pending.get(&client).is_some_and(|pending| pending.began == began);
            let is_old = now.since(began) >= Handshakes::LIFETIME;
            if is_pending && !is_old && self.pending.len() < Handshakes::MOST {
                return;
            }
            self.ages.pop_front();
            if is_pending {
                self.forget(&client);
                if !is_old {
                    self.count(Left::Overflow);
                }
            }
        }
    }

    fn forget(&mut self, client: &FourTuple) {
        if self.pending.remove(client).is_some() {
            self.users.remove(client.local);
        }
    }

    /// Counts a connection that is left alone.
    pub(super) fn count(&mut self, why: Left) {
        self.left[why as usize] += 1;
    }
}

/// Why a connection with this SYN or SYN-ACK is left alone.
pub(super) fn reason(packet: &Packet) -> Option<Left> {
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
