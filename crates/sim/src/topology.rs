//! The topology: nodes and links.

use crate::{World, address};
use base::{Duration, Seed};
use core::net::IpAddr;
use host::Application;
use link::{Attachments, Intervals, Names, OutageProcess, Outages, Switches, WhenDown};

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

    /// An address of the node of IPv4 and one of IPv6; those with number 0 are
    /// [`NodeId::address`] and [`NodeId::address_v6`]. Packets to any lead to the node, whose host is
    /// to be given those that it uses.
    #[must_use]
    pub fn addresses(self, number: usize) -> [IpAddr; 2] {
        address::further(self.0, number)
    }

    /// All addresses of the node.
    pub fn all_addresses(self) -> impl Iterator<Item = IpAddr> {
        (0..address::ADDRESSES).flat_map(move |number| self.addresses(number))
    }

    /// Its place in the order of declaration.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }

    /// The node's address in IPv6.
    #[must_use]
    pub fn address_v6(self) -> IpAddr {
        address::v6_of(self.0)
    }
}

/// A topology. Every node routes and is a host.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Names of the nodes.
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<Direction>,
    names: Names,
    /// Links, by their index, and when they are down.
    outages: Vec<(usize, Outages)>,
    /// Nodes that move.
    attachments: Vec<Attachments>,
}

/// A node that moves: it is attached by one link at a time, or by none.
#[derive(Clone, Debug)]
pub struct Roaming {
    /// The node.
    pub node: NodeId,
    /// The links by which it is attached, and when; each is named by either of its directions.
    pub when: Intervals<LinkId>,
    /// The nodes whose hosts get an indication when the node is attached anew, and a warning if
    /// there is one: the node itself for all its connections, another for those with the node.
    pub notifies: Vec<NodeId>,
    /// The time of the warning before the node is detached, or when it is attached, if that is
    /// later. `None`: no warning.
    pub warning: Option<Duration>,
}

impl Roaming {
    /// A node that moves; it gets the indication itself, without a warning.
    #[must_use]
    pub fn new(node: NodeId, when: Intervals<LinkId>) -> Roaming {
        Roaming { node, when, notifies: vec![node], warning: None }
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The name of its random streams.
    pub(crate) name: String,
    pub(crate) config: link::Config,
}

impl Topology {
    /// An empty topology.
    #[must_use]
    pub fn new() -> Topology {
        Topology::default()
    }

    /// Adds a node. The random streams of the node and of its links are called by its name.
    pub fn add_node(&mut self, name: impl Into<String>) -> NodeId {
        self.nodes.push(name.into());
        NodeId(self.nodes.len() - 1)
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
        for (from, to, config) in [(a.0, b.0, forward), (b.0, a.0, backward)] {
            let name = self.names.name(&self.nodes[from], &self.nodes[to]);
            self.links.push(Direction { from, to, name, config });
        }
        (LinkId(first), LinkId(first + 1))
    }

    /// Adds outages to a link, named by either of its directions: both are down at once. Packets
    /// are treated by the link's settings, by default as in [`WhenDown::KEEP`]. Routes do not
    /// change. A link with several outages is up when none of them holds it down.
    pub fn add_outages(&mut self, link: LinkId, outages: Outages) {
        self.make_switched(link, WhenDown::KEEP);
        self.outages.push((link.0 / 2, outages));
    }

    /// Lets a node move. All links that it is ever attached by are its points of attachment, and
    /// all but the present one are down; packets there are treated by the link's settings, by
    /// default as in [`WhenDown::DROP`]. Routes change as soon as the node is attached anew; until
    /// then, they lead to the last point of attachment. Hosts are notified after the change of
    /// routes.
    pub fn add_roaming(&mut self, roaming: Roaming) {
        for &link in roaming.when.values() {
            self.make_switched(link, WhenDown::DROP);
        }
        self.attachments.push(Attachments {
            node: roaming.node.0,
            links: roaming.when.map(|link| link.0 / 2),
            notifies: roaming.notifies.iter().map(|node| node.0).collect(),
            warning: roaming.warning,
        });
    }

    /// What switches its links.
    pub(crate) fn switches(&self, seed: Seed) -> Switches {
        let outages = self.outages.iter().map(|(link, outages)| {
            let random = seed.stream(&format!("{}.outages", self.links[2 * link].name));
            (*link, OutageProcess::new(outages, random))
        });
        Switches::new(self.links.len() / 2, outages, self.attachments.iter().cloned())
    }

    fn make_switched(&mut self, link: LinkId, unless: WhenDown) {
        let first = link.0 / 2 * 2;
        for direction in &mut self.links[first..first + 2] {
            direction.config.when_down.get_or_insert(unless);
        }
    }

    /// Puts the network into a world at time zero.
    #[must_use]
    pub fn build<A: Application>(&self, seed: Seed) -> World<A> {
        World::new(self, seed)
    }
}
