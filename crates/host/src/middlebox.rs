//! Boxes on the path.

use base::Time;
use core::net::IpAddr;
use wire::Packet;

/// One direction of a link that begins or ends at a node, by a number that its world gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

/// What becomes of a packet that a box has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It goes on.
    Forward,
    /// It ends here: the box keeps it, or the network loses it.
    Drop,
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

/// What a box may do besides changing the packet before it.
pub struct Context<'a> {
    /// Packets that leave the node, as routed.
    pub send: &'a mut Vec<Packet>,
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
    ) -> Passage {
        let _ = (now, from, packet, cx);
        Passage::Forward
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
