//! The nodes at the ends of links: the boxes in each, which see packets before its kernel does and
//! after.

use crate::Copies;
use crate::payloads::Payloads;
use base::Time;
use core::net::IpAddr;
use host::{Boxes, DropReason, HostIndication, LinkEvent, Outbox, Port, Verdict};
use link::{Move, Movement};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tcp::Connectivity;
use wire::{Body, EspKeys, Packet, Payload};

/// What a node does besides what its kernel does.
#[derive(Default)]
pub struct Node {
    /// All of the node's addresses: a packet from one of them starts at the node, and routes to each
    /// of them lead there.
    pub addresses: Vec<IpAddr>,
    /// The boxes, which see what arrives by a link before the kernel gets it, and what starts at the
    /// node as it leaves by a link.
    pub boxes: Boxes,
}

/// Where indications go.
pub trait Surroundings: Send {
    /// A box indicates something to the host of our stack at a node, or a node that moves does.
    fn indicate(&mut self, node: usize, indication: HostIndication);
}

/// A network without hosts.
pub(super) struct Nowhere;

impl Surroundings for Nowhere {
    fn indicate(&mut self, _: usize, _: HostIndication) {}
}

/// The bytes of packets that boxes have seen, which boxes may read.
#[derive(Clone, Default)]
pub struct Bytes(Arc<Mutex<Payloads>>);

impl Bytes {
    /// Appends the bytes of a payload to `out`; returns false if they are not there.
    #[must_use]
    pub fn read(&self, payload: Payload, out: &mut Vec<u8>) -> bool {
        let payloads = self.payloads();
        payloads.has(payload) && payloads.lend(payload, &mut |piece| out.extend_from_slice(piece))
    }

    fn payloads(&self) -> MutexGuard<'_, Payloads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the bytes of a payload that a box has sent; returns false if they are not its own.
pub(super) type Own = dyn Fn(Payload, &mut [u8]) -> bool + Send;

/// The nodes, and the bytes of packets that boxes have seen.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// The node beyond which the addresses of no node are.
    pub(super) default_gateway: Option<usize>,
    pub(super) surroundings: Box<dyn Surroundings>,
    pub(super) bytes: Bytes,
    pub(super) own: Box<Own>,
    /// Those of all security associations.
    keys: EspKeys,
    /// A packet that is being decrypted.
    decrypted: Vec<u8>,
    pub(super) copies: Copies,
    /// Packets that were dropped because there were no bytes for them, or no memory.
    pub(super) without_bytes: u64,
}

/// What boxes make of a packet's bytes.
#[derive(Debug, PartialEq)]
pub(super) enum Passed {
    /// It goes on unchanged.
    AsItIs,
    /// It goes on as the bytes that were written.
    Changed,
    /// It does not go on.
    Gone,
}

impl Nodes {
    pub(super) fn new() -> Nodes {
        Nodes {
            nodes: Vec::new(),
            default_gateway: None,
            surroundings: Box::new(Nowhere),
            bytes: Bytes::default(),
            own: Box::new(|_, _| false),
            keys: EspKeys::of_lab(),
            decrypted: Vec::new(),
            copies: Copies::default(),
            without_bytes: 0,
        }
    }

    /// Puts a node beside those that are there, which may be none yet.
    pub(super) fn set(&mut self, index: usize, node: Node) {
        if index >= self.nodes.len() {
            self.nodes.resize_with(index + 1, Node::default);
        }
        self.nodes[index] = node;
    }

    /// The packets that boxes dropped, by node and reason.
    pub(super) fn box_drops(&self) -> Vec<(usize, DropReason, u64)> {
        let nodes = self.nodes.iter().enumerate();
        let drops = nodes.flat_map(|(index, node)| {
            node.boxes.drops().map(move |(reason, packets)| (index, reason, packets))
        });
        drops.collect()
    }

    /// What the boxes counted, by node.
    pub(super) fn box_counts(&self) -> Vec<(usize, &'static str, u64)> {
        let nodes = self.nodes.iter().enumerate();
        let counts = nodes.flat_map(|(index, node)| {
            node.boxes.counts().into_iter().map(move |(name, count)| (index, name, count))
        });
        counts.collect()
    }

    /// Whether boxes of a node want to see packets.
    pub(super) fn inspect(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.boxes.inspect_packets())
    }

    /// The node that has an address, by all addresses.
    pub(super) fn owners(&self) -> BTreeMap<IpAddr, usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(index, node)| node.addresses.iter().map(move |&of| (of, index))).collect()
    }

    /// Whether an address is one of a node's.
    pub(super) fn owns(&self, node: usize, address: IpAddr) -> bool {
        self.nodes.get(node).is_some_and(|node| node.addresses.contains(&address))
    }

    /// The first address of a node, by which others know it.
    pub(super) fn address(&self, node: usize) -> Option<IpAddr> {
        self.nodes.get(node)?.addresses.first().copied()
    }

    /// Passes a packet to the boxes of a node. It arrived by `from`, or starts at the node. The packet that the
    /// boxes forward is written into `out` if they changed it. A packet that cannot be parsed is forwarded.
    ///
    /// What ESP hides is encrypted on links and in kernels. Boxes at its destination see it decrypted, unless it is
    /// not authentic; boxes elsewhere do not.
    pub(super) fn pass(
        &mut self,
        now: Time,
        node: usize,
        from: Option<Port>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Passed {
        let Ok((mut packet, place)) = Packet::parse(bytes) else { return Passed::AsItIs };
        // The boxes have seen a packet that the kernel forwards as it arrived.
        if from.is_none() && !self.owns(node, packet.ip.source) {
            return Passed::AsItIs;
        }
        let is_at_end = from.is_some() && self.owns(node, packet.ip.destination);
        let has_memory = match packet.body {
            Body::Esp(_) if is_at_end => self.decrypt(&mut packet, &bytes[place]),
            _ => self.complete(&mut packet, &bytes[place]),
        };
        if !has_memory {
            return Passed::Gone;
        }
        let before = packet;
        if self.nodes[node].boxes.packet(now, from, &mut packet) != Verdict::Forward {
            return Passed::Gone;
        }
        self.changed(&before, &packet, out)
    }

    /// Asks the boxes of a node about a packet that is to take a link; returns whether it goes on.
    pub(super) fn leaving(&mut self, now: Time, node: usize, to: Port, bytes: &[u8]) -> bool {
        let Some(packet) = self.read(bytes) else { return true };
        self.nodes[node].boxes.leaving(now, to, &packet)
    }

    /// Shows the boxes of a node a packet that the queue of a link has taken, or not.
    pub(super) fn queued(
        &mut self,
        now: Time,
        node: usize,
        (to, accepted): (Port, bool),
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Passed {
        let Some(mut packet) = self.read(bytes) else { return Passed::AsItIs };
        let before = packet;
        let boxes = &mut self.nodes[node].boxes;
        if !accepted {
            boxes.link(now, to, LinkEvent::Dropped(&packet));
            return Passed::Gone;
        }
        boxes.queued(now, to, &mut packet);
        self.changed(&before, &packet, out)
    }

    /// Indicates to the boxes of a node that a packet arrived damaged, or was dropped by a queue.
    pub(super) fn indicate(
        &mut self,
        now: Time,
        node: usize,
        port: Port,
        bytes: &[u8],
        event: fn(&Packet) -> LinkEvent<'_>,
    ) {
        if self.nodes.get(node).is_some_and(|node| !node.boxes.is_empty())
            && let Some(packet) = self.read(bytes)
        {
            self.nodes[node].boxes.link(now, port, event(&packet));
        }
    }

    /// Indicates to the boxes of a node that one of its links went down or came up.
    pub(super) fn turned(&mut self, now: Time, node: usize, port: Port, peer: usize, up: bool) {
        let (Some(peer), Some(node)) = (self.address(peer), self.nodes.get_mut(node)) else {
            return;
        };
        let event = if up { LinkEvent::Up { peer } } else { LinkEvent::Down { peer } };
        node.boxes.link(now, port, event);
    }

    /// Notifies the hosts that `notifies` names of a node that moves.
    pub(super) fn moved(&mut self, Move { node: moving, notifies, movement }: Move) {
        let change = match movement {
            Movement::Attached => Connectivity::Changed { window: None },
            Movement::Leaving => Connectivity::Ending,
        };
        for node in notifies {
            // Its own connections are all concerned, those of others if they are with it.
            let peers = match self.nodes.get(moving) {
                Some(moving_node) if node != moving => moving_node.addresses.clone(),
                _ => Vec::new(),
            };
            self.surroundings.indicate(node, HostIndication::Connectivity { change, peers });
        }
    }

    /// When a box wants to be woken.
    pub(super) fn next_wake(&self) -> Time {
        let wakes = self.nodes.iter().map(|node| node.boxes.next_wake());
        wakes.fold(Time::NEVER, Time::min)
    }

    /// Wakes the boxes of a node that want it.
    pub(super) fn wake(&mut self, now: Time, node: usize) {
        self.nodes[node].boxes.wake(now);
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What the boxes of a node want to be done, unless it is nothing.
    pub(super) fn outbox(&mut self, node: usize) -> Option<Outbox> {
        let outbox = &mut self.nodes.get_mut(node)?.boxes.outbox;
        (!outbox.is_empty()).then(|| core::mem::take(outbox))
    }

    /// Writes a packet of a box's. Says whether it can be written.
    fn write(&mut self, packet: &Packet, out: &mut Vec<u8>) -> bool {
        self.write_payloads(packet, core::iter::once(packet.payload), out)
    }

    /// Writes a packet that a box has put into its outbox. Says whether it can be written.
    pub(super) fn write_sent(
        &mut self,
        packet: &Packet,
        outbox: &Outbox,
        out: &mut Vec<u8>,
    ) -> bool {
        self.write_payloads(packet, outbox.payloads(packet.payload), out)
    }

    /// Writes a packet that has these payloads.
    fn write_payloads(
        &mut self,
        packet: &Packet,
        payloads: impl Iterator<Item = Payload>,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut bytes = vec![0; packet.payload.len as usize];
        let mut left = &mut bytes[..];
        let kept = self.bytes.payloads();
        for payload in payloads {
            let (part, later) = left.split_at_mut(left.len().min(payload.len as usize));
            left = later;
            let is_whole = part.len() == payload.len as usize;
            if !is_whole || !((self.own)(payload, part) || kept.fetch(payload, part)) {
                self.without_bytes += 1;
                return false;
            }
        }
        drop(kept);
        out.clear();
        self.keys.emit(packet, &bytes, out).is_ok()
    }

    /// Frees bytes that no box holds, if there are many. To be called when no packet is between boxes
    /// and links.
    pub(super) fn free_payloads(&mut self) {
        let mut payloads = self.bytes.payloads();
        if payloads.has_many() {
            let nodes = &self.nodes;
            payloads.free_all_but(|held| {
                nodes.iter().for_each(|node| node.boxes.held_payloads(held));
            });
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Option<Packet> {
        let (mut packet, payload) = Packet::parse(bytes).ok()?;
        self.complete(&mut packet, &bytes[payload]).then_some(packet)
    }

    /// [`Nodes::complete`] for a packet whose payload is encrypted, which it decrypts if it is authentic.
    fn decrypt(&mut self, packet: &mut Packet, sealed: &[u8]) -> bool {
        let mut bytes = core::mem::take(&mut self.decrypted);
        bytes.clear();
        bytes.extend_from_slice(sealed);
        let opened = self.keys.open(packet, 0, &mut bytes);
        let has_memory = match opened {
            Ok((opened, place)) => {
                *packet = opened;
                self.complete(packet, &bytes[place])
            }
            Err(_) => self.complete(packet, sealed),
        };
        self.decrypted = bytes;
        has_memory
    }

    /// Adds what the bytes of a packet do not say: where its payload is kept, and which copy it is.
    /// Returns false if there is no memory for its payload.
    fn complete(&mut self, packet: &mut Packet, payload: &[u8]) -> bool {
        let Some(kept) = self.bytes.payloads().keep(payload) else {
            self.without_bytes += 1;
            return false;
        };
        packet.payload = kept;
        self.copies.mark(packet);
        true
    }

    fn changed(&mut self, before: &Packet, after: &Packet, out: &mut Vec<u8>) -> Passed {
        if before == after {
            Passed::AsItIs
        } else if self.write(after, out) {
            Passed::Changed
        } else {
            Passed::Gone
        }
    }
}
