//! Which links packets take.

use super::core::Core;
use super::nodes::Nodes;
use super::{End, edit};
use core::net::IpAddr;
use link::Routes;
use std::collections::BTreeMap;

/// The routes between nodes as they are now.
pub(super) struct Routing {
    /// The nodes at which directions begin and end.
    directions: Vec<(usize, usize)>,
    /// Which node has an address.
    owners: BTreeMap<IpAddr, usize>,
    /// The node beyond which all other addresses are.
    default_gateway: Option<usize>,
    /// How many nodes there are.
    nodes: usize,
    routes: Routes,
    /// Routes never change, and are those of the kernels.
    fixed: bool,
}

impl Routing {
    pub(super) fn new(core: &Core, ends: &[End], nodes: &Nodes) -> Routing {
        let directions: Vec<_> =
            (0..ends.len()).map(|near| (ends[near].node, ends[near ^ 1].node)).collect();
        let count = ends.iter().map(|end| end.node + 1).fold(nodes.len(), usize::max);
        Routing {
            routes: core.routes(count, directions.iter().copied()),
            directions,
            owners: nodes.owners(),
            default_gateway: nodes.default_gateway,
            nodes: count,
            fixed: !core.change_routes(),
        }
    }

    /// Routes have changed.
    pub(super) fn update(&mut self, core: &Core) {
        self.routes = core.routes(self.nodes, self.directions.iter().copied());
    }

    /// The direction by which a node sends to an address; `None` if there is no route.
    pub(super) fn next(&self, node: usize, destination: IpAddr) -> Option<usize> {
        let to = self.owners.get(&destination).copied().or(self.default_gateway)?;
        let direction = self.routes.next(node, to)?;
        Some(direction as usize)
    }

    /// Whether packets from a node to an address leave the network there.
    pub(super) fn leave_at(&self, node: usize, destination: IpAddr) -> bool {
        self.default_gateway == Some(node) && !self.owners.contains_key(&destination)
    }

    /// The direction that a packet takes which a kernel sent by the device where `direction` begins:
    /// that one, or where nodes move the one of its route. `None` if there is no route.
    pub(super) fn taken(&self, direction: usize, packet: &[u8]) -> Option<usize> {
        if self.fixed {
            return Some(direction);
        }
        self.next(self.directions[direction].0, edit::destination(packet)?)
    }
}
