//! Boxes on the path.

use base::Time;
use core::net::IpAddr;
use tcp::Connectivity;
use wire::{CorruptionNotice, Packet};

/// One direction of a link that begins or ends at a node, by a number that its world gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

/// What a box decides about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on, as the box left it.
    Forward,
    /// The box has taken the packet: it keeps it, has sent it on, or was its destination.
    Consume,
    /// The network loses the packet.
    Drop(DropReason),
}

/// Why a box dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Its hop limit is used up (RFC 4301 §5.1.2.1).
    HopLimit,
    /// The security association has no sequence number left (RFC 4303 §3.3.3).
    SequenceExhausted,
    /// It came twice, or too late for the anti-replay window (RFC 4303 §3.4.3).
    Replay,
    /// It experienced congestion inside a tunnel and cannot carry the mark (RFC 6040 §4.2).
    Congestion,
    /// The box models a device that loses packets.
    Loss,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [DropReason; 5] = [
        DropReason::HopLimit,
        DropReason::SequenceExhausted,
        DropReason::Replay,
        DropReason::Congestion,
        DropReason::Loss,
    ];

    /// The reason's name, as in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DropReason::HopLimit => "hop-limit",
            DropReason::SequenceExhausted => "sequence-exhausted",
            DropReason::Replay => "replay",
            DropReason::Congestion => "congestion",
            DropReason::Loss => "loss",
        }
    }
}

/// What a box is told of a link that begins or ends at its node.
#[derive(Clone, Copy, Debug)]
pub enum LinkEvent<'a> {
    /// A packet arrived damaged at the link's end. It has used the link and goes no further.
    Corrupted(&'a Packet),
    /// A packet arrived with wrong bytes, and its own code has corrected them. It comes to
    /// [`Middlebox::packet`] next, as any other.
    Corrected(&'a Packet),
    /// A packet that was to go out found no room in the link's queue, or the queue that had taken it
    /// dropped it as its turn came. Told to boxes that inspect packets.
    Dropped(&'a Packet),
    /// The link to this node is up again.
    Up {
        /// The address of the node at its other end.
        peer: IpAddr,
    },
    /// The link to this node is down.
    Down {
        /// The address of the node at its other end.
        peer: IpAddr,
    },
}

/// What a box indicates to the host of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostIndication {
    /// A packet of one of the host's connections was corrupted.
    Corruption(CorruptionNotice),
    /// The connectivity of the host changes.
    Connectivity {
        /// How.
        change: Connectivity,
        /// Only connections with these addresses are concerned; all if there is none.
        peers: Vec<IpAddr>,
    },
}

/// What a box may do besides changing the packet before it.
pub struct Context<'a> {
    outbox: &'a mut Outbox,
}

impl Context<'_> {
    /// Sends a packet from the node, as routed; to the node's own host, if that is its destination.
    /// It leaves before the packet that the box sees.
    pub fn send(&mut self, packet: Packet) {
        self.outbox.packets.push(packet);
    }

    /// Indicates something to the node's host, which hears of it before what was sent leaves.
    pub fn indicate(&mut self, indication: HostIndication) {
        self.outbox.indications.push(indication);
    }
}

/// What boxes want to be done, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// Packets that leave the node, as routed.
    pub packets: Vec<Packet>,
    /// What the node's host is to hear.
    pub indications: Vec<HostIndication>,
}

impl Outbox {
    /// The way for a box to put something in.
    pub fn context(&mut self) -> Context<'_> {
        Context { outbox: self }
    }

    /// Whether there is nothing to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.indications.is_empty()
    }
}

/// A box in a node: a router's feature, or a bump in a host's own stack.
pub trait Middlebox {
    /// Whether [`Middlebox::packet`] and [`Middlebox::queued`] are to be asked. A box that only
    /// watches links need not slow down what passes.
    fn inspects_packets(&self) -> bool {
        true
    }

    /// Whether the box shares state with boxes of other nodes. A simulator deals with such nodes in the
    /// order of time; others it may deal with for a while at once.
    fn shares_state(&self) -> bool {
        true
    }

    /// A packet passes the node, or starts or ends there. It may be edited in place. `from` is the
    /// link by which it came; what starts here came by none.
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        let _ = (now, from, packet, cx);
        Verdict::Forward
    }

    /// The queue of a link that begins at the node has taken a packet. It may be edited in place,
    /// but keeps its length.
    fn queued(&mut self, now: Time, to: Port, packet: &mut Packet, cx: &mut Context<'_>) {
        let _ = (now, to, packet, cx);
    }

    /// When the box wants to be woken; [`Time::NEVER`] if it waits for nothing. Asked after whatever
    /// the box was told, if it inspects packets.
    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// It is [`Middlebox::next_wake`], which then must be later.
    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        let _ = (now, cx);
    }

    /// Something happened on a link that begins or ends at the node.
    fn link(&mut self, now: Time, port: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        let _ = (now, port, event, cx);
    }
}
