//! What there is: nodes and links.

use crate::{World, address};
use base::Seed;
use core::net::IpAddr;
use host::Application;

/// A node, by the order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

/// One direction of a link, by the order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) usize);

impl NodeId {
    /// The node's address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        address::of(self.0)
    }
}

/// A topology. Every node routes and is a host.
#[derive(Clone, Debug, Default)]
pub struct Network {
    pub(crate) nodes: usize,
    pub(crate) links: Vec<Direction>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) config: link::Config,
}

impl Network {
    /// No nodes, no links.
    #[must_use]
    pub fn new() -> Network {
        Network::default()
    }

    /// Adds a node.
    pub fn add_node(&mut self) -> NodeId {
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    /// Adds a link in both directions; `forward` is from `a` to `b`.
    pub fn add_link(
        &mut self,
        a: NodeId,
        b: NodeId,
        forward: link::Config,
        backward: link::Config,
    ) -> (LinkId, LinkId) {
        let first = self.links.len();
        self.links.push(Direction { from: a.0, to: b.0, config: forward });
        self.links.push(Direction { from: b.0, to: a.0, config: backward });
        (LinkId(first), LinkId(first + 1))
    }

    /// Puts the network into a world at time zero.
    #[must_use]
    pub fn build<A: Application>(&self, seed: Seed) -> World<A> {
        World::new(self, seed)
    }
}
