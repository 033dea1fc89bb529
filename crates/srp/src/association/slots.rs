//! The streams of an association.

use crate::stream::{Flags, StreamId, StreamState};
use base::Events;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use wire::srp::Reason;

/// Streams by slot and by their number on the wire, and those of which something is to be done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_number: BTreeMap<u16, u32>,
    /// The next number that we try for a stream of ours, half of it.
    next: u16,
    ours: u32,
    theirs: u32,
    active: Active,
    eventful: VecDeque<StreamId>,
    pub(super) incoming: VecDeque<StreamId>,
    /// Those that are over for their owner.
    closing: Vec<u32>,
}

/// The streams that have something to send. Users take turns, and so do the streams of each. On a fast hop a turn has
/// several segments, which the machines of both ends handle faster than segments of different streams.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Active {
    /// By user. Some may be empty, so that one that comes back needs no memory.
    streams: BTreeMap<u128, VecDeque<u32>>,
    /// The users whose queues are not empty, in turn.
    turn: VecDeque<u128>,
    /// The slot of the stream whose turn it is, and how many segments more it may send.
    #[serde(skip)]
    current: Option<(u32, u64)>,
}

impl Active {
    /// Empty queues that are kept, besides as many as there are others.
    const SPARE: usize = 64;
    /// The most segments of a turn.
    const TURN: u64 = 8;

    /// The user of a stream: the address of the client. Streams whose ends are not known yet have one together.
    fn user(stream: &StreamState) -> u128 {
        stream.ends.map_or(0, |ends| match ends.client {
            IpAddr::V4(client) => client.to_ipv6_mapped().to_bits(),
            IpAddr::V6(client) => client.to_bits(),
        })
    }

    fn push(&mut self, user: u128, slot: u32) {
        if self.streams.len() > 2 * self.turn.len() + Active::SPARE {
            self.streams.retain(|_, streams| !streams.is_empty());
        }
        let streams = self.streams.entry(user).or_default();
        if streams.is_empty() {
            self.turn.push_back(user);
        }
        streams.push_back(slot);
    }

    /// Takes out the next stream, and its user.
    fn pop(&mut self) -> Option<(u128, u32)> {
        let user = self.turn.pop_front()?;
        let streams = self.streams.get_mut(&user)?;
        let slot = streams.pop_front()?;
        if !streams.is_empty() {
            self.turn.push_back(user);
        }
        Some((user, slot))
    }

    /// How many segments a stream of this user may send in its turn, so that about `round` are sent until its next one:
    /// before that, each stream of its user has a turn, and each user as many.
    fn turn_length(&self, user: u128, round: u64) -> u64 {
        let streams = self.streams.get(&user).map_or(1, VecDeque::len);
        (round / (self.turn.len() * streams).max(1) as u64).clamp(1, Active::TURN)
    }

    fn remove(&mut self, user: u128, slot: u32) {
        self.current.take_if(|(current, _)| *current == slot);
        let Some(streams) = self.streams.get_mut(&user) else { return };
        streams.retain(|active| *active != slot);
        if streams.is_empty() {
            self.turn.retain(|active| *active != user);
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Slot {
    generation: u32,
    stream: Option<Box<StreamState>>,
}

impl Slots {
    pub(super) fn ours(&self) -> u32 {
        self.ours
    }

    pub(super) fn theirs(&self) -> u32 {
        self.theirs
    }

    pub(super) fn get(&self, slot: u32) -> Option<&StreamState> {
        self.slots.get(slot as usize)?.stream.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut StreamState> {
        self.slots.get_mut(slot as usize)?.stream.as_deref_mut()
    }

    pub(super) fn named(&self, id: StreamId) -> Option<&StreamState> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.stream.as_deref().filter(|_| slot.generation == id.generation)
    }

    pub(super) fn named_mut(&mut self, id: StreamId) -> Option<&mut StreamState> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        let is_named = slot.generation == id.generation;
        slot.stream.as_deref_mut().filter(|_| is_named)
    }

    pub(super) fn find(&self, number: u16) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &StreamState)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(index, slot)| Some((index, slot.stream.as_deref()?)))
    }

    pub(super) fn id(&self, slot: u32) -> StreamId {
        let generation = self.slots.get(slot as usize).map_or(0, |slot| slot.generation);
        StreamId { slot, generation }
    }

    fn add(&mut self, stream: StreamState) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        match stream.flags.contains(Flags::OURS) {
            true => self.ours += 1,
            false => self.theirs += 1,
        }
        self.by_number.insert(stream.number, slot);
        self.slots[slot as usize].stream = Some(Box::new(stream));
        slot
    }

    /// Opens a stream of ours, with the credit that the peer gives and the window that we give.
    pub(super) fn open_ours(&mut self, is_opener: bool, sizes: (u64, u64)) -> Option<StreamId> {
        // Numbers are taken in turn, so that one comes again as late as possible.
        let free = (0..1 << 15).find_map(|step| {
            let half = self.next.wrapping_add(step) & 0x7fff;
            let number = half << 1 | u16::from(!is_opener);
            (!self.by_number.contains_key(&number)).then_some((half, number))
        });
        let (half, number) = free?;
        self.next = (half + 1) & 0x7fff;
        let flags = Flags::OURS | Flags::VISIBLE;
        let slot = self.add(StreamState::new(number, flags, sizes.0, sizes.1));
        Some(self.id(slot))
    }

    /// A segment of a stream of the peer's has arrived that is not known yet.
    pub(super) fn open_theirs(&mut self, number: u16, sizes: (u64, u64)) -> u32 {
        self.add(StreamState::new(number, Flags::empty(), sizes.0, sizes.1))
    }

    /// Another stream takes the number of one that has got all that the peer had to send.
    pub(super) fn detach(&mut self, slot: u32) {
        if let Some(number) = self.get(slot).map(|stream| stream.number)
            && self.find(number) == Some(slot)
        {
            self.by_number.remove(&number);
        }
    }

    /// Puts a stream among those that have something to send, if it has.
    pub(super) fn activate(&mut self, slot: u32) {
        let Some(stream) = self.get_mut(slot) else { return };
        if stream.has_segment() && !stream.flags.contains(Flags::ACTIVE) {
            stream.flags |= Flags::ACTIVE;
            let user = Active::user(stream);
            self.active.push(user, slot);
        }
    }

    pub(super) fn has_active(&self) -> bool {
        !self.active.turn.is_empty()
    }

    /// The next stream that has something to send: that whose turn it is, or another one, which goes to the end of its
    /// user's queue. `round`: about how many segments are sent from one turn of a stream to its next.
    pub(super) fn next_active(&mut self, round: impl Fn() -> u64) -> Option<u32> {
        if let Some((slot, left)) = self.active.current.take()
            && left > 0
            && self.get(slot).is_some_and(StreamState::has_segment)
        {
            self.active.current = Some((slot, left - 1));
            return Some(slot);
        }
        while let Some((user, slot)) = self.active.pop() {
            let Some(stream) = self.get_mut(slot) else { continue };
            if stream.has_segment() {
                self.active.push(user, slot);
                self.active.current = Some((slot, self.active.turn_length(user, round()) - 1));
                return Some(slot);
            }
            stream.flags -= Flags::ACTIVE;
        }
        None
    }

    /// Tells the owner of a stream.
    pub(super) fn raise(&mut self, slot: u32, events: Events) {
        let id = self.id(slot);
        let Some(stream) = self.get_mut(slot) else { return };
        // Nothing follows the end.
        if !stream.flags.contains(Flags::OVER) {
            stream.events |= events;
        }
        let is_over = stream.events.contains(Events::CLOSED);
        let knows = stream.flags.contains(Flags::VISIBLE)
            || (is_over && stream.flags.contains(Flags::OFFERED));
        if is_over && !stream.flags.contains(Flags::OVER) {
            stream.flags |= Flags::OVER;
            if !knows {
                // It has no owner that knows it.
                stream.flags |= Flags::REPORTED;
            }
            self.closing.push(slot);
        }
        let Some(stream) = self.get_mut(slot) else { return };
        if knows && !stream.events.is_empty() && !stream.flags.contains(Flags::EVENTFUL) {
            stream.flags |= Flags::EVENTFUL;
            self.eventful.push_back(id);
        }
    }

    pub(super) fn poll_events(&mut self) -> Option<(StreamId, Events)> {
        while let Some(id) = self.eventful.pop_front() {
            let Some(stream) = self.named_mut(id) else { continue };
            stream.flags -= Flags::EVENTFUL;
            let events = core::mem::take(&mut stream.events);
            if events.contains(Events::CLOSED) {
                stream.flags |= Flags::REPORTED;
            }
            if !events.is_empty() {
                return Some((id, events));
            }
        }
        None
    }

    /// Our end resets a stream.
    pub(super) fn abort(&mut self, slot: u32, reason: Reason) {
        let Some(stream) = self.get_mut(slot) else { return };
        if stream.flags.contains(Flags::OVER) {
            stream.receive.stop();
            return;
        }
        let is_unknown_to_peer =
            stream.flags.contains(Flags::OURS) && !stream.flags.contains(Flags::OPENED);
        stream.reset(reason);
        if is_unknown_to_peer {
            stream.control = crate::stream::Control::empty();
            // No peer waits for an answer.
            stream.flags |= Flags::PEER_RESET;
        }
        self.raise(slot, Events::CLOSED);
        self.activate(slot);
    }

    /// The owner wants to hear nothing more of a stream that is over.
    pub(super) fn dismiss(&mut self, slot: u32) {
        if let Some(stream) = self.get_mut(slot) {
            stream.events = Events::empty();
            stream.flags |= Flags::REPORTED;
        }
    }

    /// The association has failed.
    pub(super) fn fail_all(&mut self, events: Events) {
        self.active = Active::default();
        for slot in 0..self.slots.len() as u32 {
            let Some(stream) = self.get_mut(slot) else { continue };
            stream.control = crate::stream::Control::empty();
            stream.send.stop();
            if !stream.flags.contains(Flags::OVER) {
                stream.flags |= Flags::RESET;
                stream.receive.stop();
                self.raise(slot, events);
            }
        }
    }

    pub(super) fn has_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// Removes the streams that are over for their owner and have nothing to be read, if the wire is done
    /// with them.
    pub(super) fn sweep(&mut self, is_done: impl Fn(&StreamState) -> bool) {
        let mut index = 0;
        while let Some(&slot) = self.closing.get(index) {
            let is_removed = self.get(slot).is_none_or(|stream| {
                stream.flags.contains(Flags::REPORTED)
                    && stream.receive.readable() == 0
                    && is_done(stream)
            });
            if !is_removed {
                index += 1;
                continue;
            }
            self.closing.swap_remove(index);
            self.remove(slot);
        }
    }

    fn remove(&mut self, slot: u32) {
        self.detach(slot);
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        let Some(stream) = entry.stream.take() else { return };
        entry.generation = entry.generation.wrapping_add(1);
        match stream.flags.contains(Flags::OURS) {
            true => self.ours -= 1,
            false => self.theirs -= 1,
        }
        if stream.flags.contains(Flags::ACTIVE) {
            // Perhaps its ends were not known yet.
            self.active.remove(Active::user(&stream), slot);
            self.active.remove(0, slot);
        }
        self.free.push(slot);
    }
}
