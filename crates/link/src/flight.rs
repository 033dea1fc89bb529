//! Packets in flight, in the order in which they will arrive.

use crate::impairments::Treatment;
use crate::{Arrival, Fate, Output};
use base::Time;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Flying<P> {
    arrives: Time,
    packet: P,
    fate: Fate,
    /// A copy of it follows.
    copied: bool,
    /// A packet that was sent later arrives before it.
    overtaken: bool,
}

/// Packets in flight. Most are in the order of sending; the place of the others is searched from
/// the end.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    packets: VecDeque<Flying<P>>,
    /// The arrival of the last packet that keeps its order.
    last: Time,
}

impl<P: Copy> Flight<P> {
    pub(crate) const fn new() -> Flight<P> {
        Flight { packets: VecDeque::new(), last: Time::ZERO }
    }

    /// Sends a packet, to be there at `arrives` if its treatment does not make it later.
    pub(crate) fn push(&mut self, arrives: Time, packet: P, fate: Fate, treatment: Treatment) {
        let mut arrives = arrives + treatment.later;
        if !treatment.loose {
            arrives = arrives.max(self.last);
            self.last = arrives;
        }
        let twice = treatment.twice && fate != Fate::Lost;
        // Behind those of the same instant.
        let mut place = self.packets.len();
        while place > 0 && self.packets[place - 1].arrives > arrives {
            place -= 1;
        }
        if fate != Fate::Lost {
            self.packets.range_mut(place..).for_each(|flying| flying.overtaken = true);
        }
        let flying = Flying { arrives, packet, fate, copied: false, overtaken: false };
        self.packets.insert(place, flying);
        if twice {
            self.packets.insert(place, Flying { copied: true, ..flying });
        }
    }

    /// When the next arrives.
    pub(crate) fn next_arrival(&self) -> Time {
        self.packets.front().map_or(Time::NEVER, |next| next.arrives)
    }

    /// Takes out all packets.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = P> {
        // A copy is none yet.
        self.packets.drain(..).filter(|flying| !flying.copied).map(|flying| flying.packet)
    }

    /// Whether the next arrives after one that was sent later.
    pub(crate) fn next_is_overtaken(&self) -> bool {
        self.packets.front().is_some_and(|next| next.overtaken)
    }

    /// What has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Output<P>> {
        let next = self.packets.front().filter(|next| next.arrives <= now)?;
        let arrival = Arrival { packet: next.packet, fate: next.fate };
        let output = if next.copied { Output::Copied(arrival) } else { Output::Arrived(arrival) };
        self.packets.pop_front();
        Some(output)
    }
}
