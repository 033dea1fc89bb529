//! Boxes on the path.

use base::Time;
use core::net::IpAddr;
use wire::Packet;

/// What becomes of a packet that a box has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It goes on.
    Forward,
    /// It ends here: the box keeps it, or the network loses it.
    Drop,
}

/// What a box is told of a link that ends at its node.
#[derive(Clone, Copy, Debug)]
pub enum LinkEvent<'a> {
    /// A packet arrived damaged. It has used the link and goes no further.
    Corrupted(&'a Packet),
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
    /// Whether [`Middlebox::packet`] is to be asked. A box that only watches links need not slow
    /// down what passes.
    fn inspects_packets(&self) -> bool {
        true
    }

    /// A packet passes the node, or starts or ends there. It may be edited in place.
    fn packet(&mut self, now: Time, packet: &mut Packet, cx: &mut Context<'_>) -> Passage {
        let _ = (now, packet, cx);
        Passage::Forward
    }

    /// Something happened on a link that ends at the node.
    fn link(&mut self, now: Time, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        let _ = (now, event, cx);
    }
}
