//! Handshakes that pass the box.

use crate::left_alone::{Left, LeftAlone, is_syn, reason};
use base::{Duration, Time};
use host::{FourTuple, Port};
use relay::{ByUser, Side};
use std::collections::{HashMap, VecDeque};
use tcp::Handshake;
use wire::{Flags, Packet, Segment};

/// Handshakes that are not complete, by the connection as its client names it.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    pending: HashMap<FourTuple, Pending, rustc_hash::FxBuildHasher>,
    /// In the order in which they began, for expiry; those of completed ones are skipped.
    ages: VecDeque<(Time, FourTuple)>,
    /// Those that are pending, by the client.
    users: ByUser,
    /// Connections that are left alone.
    pub(super) left: LeftAlone,
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

impl Handshakes {
    /// The most that are kept. Then the oldest is forgotten: SYNs with forged addresses must not keep out others.
    const MOST: usize = 65_536;
    /// The most of one user that are kept.
    const MOST_OF_ONE: usize = 4096;
    /// How long one is kept: a client retransmits its SYN for three minutes (RFC 9293 §3.8.3).
    const LIFETIME: Duration = Duration::from_secs(240);

    /// Handshakes that take memory, pending or not.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.ages.len()
    }

    /// Whether a segment to this receiver may be of a handshake that is not complete.
    pub(super) fn knows(&self, to: &FourTuple) -> bool {
        !self.pending.is_empty()
            && (self.pending.contains_key(to) || self.pending.contains_key(&to.reversed()))
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
            self.on_reset(to, segment);
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
            return self.left.count(why);
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
            return self.left.count(Left::Overflow);
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
            return self.left.count(Left::Unseen);
        };
        if segment.ack != pending.syn.seq + 1 {
            return;
        }
        if let Some(why) = reason(packet) {
            self.forget(&client);
            return self.left.count(why);
        }
        pending.is_repeated |= pending.syn_ack.is_some();
        pending.syn_ack = Some((*segment, now));
        pending.ports[Side::Server as usize] = from;
    }

    /// Forgets a handshake that one of its ends resets. Others do not know its numbers, and their resets pass, for the
    /// ends to ignore (RFC 9293 §3.10.7.3, RFC 5961 §3).
    fn on_reset(&mut self, to: FourTuple, reset: &Segment) {
        let client = to.reversed();
        if let Some(pending) = self.pending.get(&client)
            && reset.seq == pending.syn.seq + 1
        {
            self.forget(&client);
        }
        if let Some(pending) = self.pending.get(&to)
            && (reset.flags.contains(Flags::ACK) && reset.ack == pending.syn.seq + 1
                || pending.syn_ack.is_some_and(|(syn_ack, _)| reset.seq == syn_ack.seq + 1))
        {
            self.forget(&to);
        }
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
                    self.left.count(Left::Overflow);
                }
            }
        }
    }

    fn forget(&mut self, client: &FourTuple) {
        if self.pending.remove(client).is_some() {
            self.users.remove(client.local);
        }
    }
}
