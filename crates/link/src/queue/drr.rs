//! Deficit round robin.

use super::{Backlog, ETHERNET_MTU, Queue, Waiting};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use wire::FlowKey;

/// Deficit round robin (Shreedhar and Varghese 1996): each class of packets has a queue, and in
/// every round a queue may send a quantum of bytes and what it has left of the last round.
///
/// If an arriving packet finds no room, packets are dropped at the tail of the longest queue, in
/// bytes. It is the arriving packet if no other queue is longer than its own would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drr {
    /// Bytes that a queue may send in a round.
    pub quantum: u32,
    /// What is a class.
    pub isolation: Isolation,
}

impl Default for Drr {
    /// A queue for each flow, and a quantum of 1514 bytes.
    fn default() -> Drr {
        Drr { quantum: ETHERNET_MTU, isolation: Isolation::Flows }
    }
}

/// Which packets share a queue. The words are CAKE's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Those with the same addresses, protocol and ports.
    #[default]
    Flows,
    /// Those with the same source address.
    SourceHost,
    /// Those with the same destination address.
    DestinationHost,
}

impl Isolation {
    /// The fields of a packet's flow that its class has in common.
    fn class(self, flow: FlowKey) -> FlowKey {
        match self {
            Isolation::Flows => flow,
            Isolation::SourceHost => FlowKey { source: flow.source, ..FlowKey::UNKNOWN },
            Isolation::DestinationHost => {
                FlowKey { destination: flow.destination, ..FlowKey::UNKNOWN }
            }
        }
    }
}

/// A class with packets.
#[derive(Clone, Debug)]
struct Class<P> {
    key: FlowKey,
    backlog: Backlog<P>,
    /// Bytes that it may send in this round.
    deficit: u64,
}

/// The state of deficit round robin.
#[derive(Clone, Debug)]
pub(crate) struct RoundRobin<P> {
    drr: Drr,
    classes: Vec<Class<P>>,
    /// The classes that have packets, in the order of their turns.
    active: VecDeque<usize>,
    /// The same by their keys. Its order is of no consequence.
    by_key: HashMap<FlowKey, usize, BuildHasherDefault<DefaultHasher>>,
    /// The other ones.
    free: Vec<usize>,
    packets: usize,
    bytes: u64,
}

impl<P: Copy> RoundRobin<P> {
    pub(crate) fn new(drr: Drr) -> RoundRobin<P> {
        RoundRobin {
            drr,
            classes: Vec::new(),
            active: VecDeque::new(),
            by_key: HashMap::default(),
            free: Vec::new(),
            packets: 0,
            bytes: 0,
        }
    }

    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    /// Takes a packet, for which others may be dropped, and returns whether it was accepted.
    /// `besides` is the number of packets and bytes elsewhere that count for the limit.
    pub(crate) fn enqueue(
        &mut self,
        packet: Waiting<P>,
        flow: FlowKey,
        (limit, besides): (Queue, (usize, u64)),
        mut drop: impl FnMut(P),
    ) -> bool {
        let key = self.drr.isolation.class(flow);
        let own = self.by_key.get(&key).map_or(0, |&index| self.classes[index].backlog.bytes());
        while !limit.has_room(self.packets + besides.0, self.bytes + besides.1, packet.len) {
            let Some((place, bytes)) = self.longest() else { return false };
            if bytes <= own + u64::from(packet.len) {
                return false;
            }
            self.drop_last(place, &mut drop);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.len);
        let index = self.class(key);
        self.classes[index].backlog.push(packet);
        true
    }

    /// The packet to be transmitted next.
    pub(crate) fn dequeue(&mut self) -> Option<Waiting<P>> {
        loop {
            let class = &mut self.classes[*self.active.front()?];
            if let Some(packet) = class.backlog.pop_within(class.deficit) {
                class.deficit -= u64::from(packet.len);
                self.packets -= 1;
                self.bytes -= u64::from(packet.len);
                if class.backlog.packets() == 0 {
                    self.remove(0);
                }
                return Some(packet);
            }
            // The quantum of its next turn: during a turn no state is needed.
            class.deficit += u64::from(self.drr.quantum);
            self.active.rotate_left(1);
        }
    }

    /// The class with this key, at the end of the round if it had no packets.
    fn class(&mut self, key: FlowKey) -> usize {
        if let Some(&index) = self.by_key.get(&key) {
            return index;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.classes.push(Class { key, backlog: Backlog::new(), deficit: 0 });
            self.classes.len() - 1
        });
        let class = &mut self.classes[index];
        (class.key, class.deficit) = (key, u64::from(self.drr.quantum));
        self.by_key.insert(key, index);
        self.active.push_back(index);
        index
    }

    /// Of the active classes, the place of the one with the most bytes, and these.
    fn longest(&self) -> Option<(usize, u64)> {
        let bytes = self.active.iter().map(|&index| self.classes[index].backlog.bytes());
        bytes.enumerate().max_by_key(|&(_, bytes)| bytes)
    }

    /// Drops the last packet of an active class.
    fn drop_last(&mut self, place: usize, drop: &mut impl FnMut(P)) {
        let backlog = &mut self.classes[self.active[place]].backlog;
        if let Some(packet) = backlog.pop_last() {
            self.packets -= 1;
            self.bytes -= u64::from(packet.len);
            drop(packet.packet);
        }
        if backlog.packets() == 0 {
            self.remove(place);
        }
    }

    /// Ends the activity of a class that has no packets left.
    fn remove(&mut self, place: usize) {
        if let Some(index) = self.active.remove(place) {
            self.by_key.remove(&self.classes[index].key);
            self.free.push(index);
        }
    }
}
