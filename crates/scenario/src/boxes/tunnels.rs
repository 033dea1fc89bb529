//! The gateways of tunnels, and the boxes that notify them of corruption.

use crate::flow::{Flow, IpVersion, Report};
use crate::placement::{Placement, port};
use crate::routes::Routes;
use crate::scenario::Scenario;
use crate::tunnels::{Tunnel, TunnelNotices};
use base::Seed;
use middlebox::{Association, Egress, Ends, Ingress, Reading, Reporter, fec};
use std::collections::BTreeMap;

/// The tunnels of a scenario.
pub(super) struct Tunnels<'a> {
    scenario: &'a Scenario,
    routes: Routes,
    directions: Vec<Direction<'a>>,
}

/// One direction of a tunnel.
struct Direction<'a> {
    tunnel: &'a Tunnel,
    /// The gateways.
    way: (usize, usize),
    association: Association,
}

impl<'a> Tunnels<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        placement: &impl Placement,
        seed: Seed,
    ) -> Tunnels<'a> {
        let direction = |(tunnel, way): (&'a Tunnel, (usize, usize))| {
            let name = |node: usize| &scenario.nodes[node];
            let mut random = seed.stream(&format!("tunnel.{}->{}", name(way.0), name(way.1)));
            let ends = Ends {
                source: placement.own(way.0, tunnel.ip),
                destination: placement.own(way.1, tunnel.ip),
                // RFC 4303 §2.1: numbers below 256 are reserved.
                spi: random.bits() as u32 | 1 << 31,
                key: random.bits(),
            };
            Direction { tunnel, way, association: Association::new(ends) }
        };
        let tunnels = scenario.tunnels.iter();
        let directions = tunnels.flat_map(|tunnel| tunnel.directions().map(|way| (tunnel, way)));
        let directions = directions.map(direction).collect();
        // Without tunnels, routes are not needed.
        let routes = match scenario.tunnels.as_slice() {
            [] => Routes::over(0, &[]),
            _ => scenario.routes(),
        };
        Tunnels { scenario, routes, directions }
    }

    /// Associations of which nodes inside read the packets.
    pub(super) fn readable(&self) -> impl Iterator<Item = &Association> {
        let directions = self.directions.iter();
        let readable = directions.filter(|at| at.tunnel.notices == TunnelNotices::Readable);
        readable.map(|direction| &direction.association)
    }

    /// The associations through which the data of flows pass, by the flow.
    pub(super) fn inside(&self, flows: &BTreeMap<&str, fec::Flow>) -> Vec<(fec::Flow, Ends)> {
        let links = &self.scenario.links;
        let passes = self.directions.iter().flat_map(|at| {
            let inside = self.scenario.flows.iter();
            let inside = inside.filter(|flow| flow.passes(at.way, &self.routes, links));
            inside.filter_map(|flow| Some((*flows.get(flow.name.as_str())?, at.association.ends())))
        });
        passes.collect()
    }

    /// All directions.
    pub(super) fn associations(&self) -> Vec<Association> {
        self.directions.iter().map(|direction| direction.association.clone()).collect()
    }

    /// The flows with notices by packets whose data take this way, by their index.
    fn registered(&self, way: (usize, usize)) -> impl Iterator<Item = (usize, &'a Flow)> {
        let links = &self.scenario.links;
        let flows = self.scenario.flows.iter().enumerate();
        flows.filter(move |(_, flow)| {
            flow.report == Report::Backward && flow.passes(way, &self.routes, links)
        })
    }

    /// Lets the nodes behind an ingress, up to the egress, notify it of corruption.
    pub(super) fn install_reporters(&self, placement: &mut impl Placement) {
        for Direction { tunnel, way, association } in &self.directions {
            let resolve = tunnel.notices == TunnelNotices::Resolve;
            if !resolve || self.registered(*way).next().is_none() {
                continue;
            }
            for node in self.routes.nodes(&self.scenario.links, way.0, way.1).split_off(1) {
                let own = placement.own(node, tunnel.ip);
                let mut reporter = Reporter::new(own, tunnel.notice_size, Reading::Whole);
                reporter.register_tunnel(association.ends());
                placement.add_box(node, Box::new(reporter));
            }
        }
    }

    /// Where packets leave.
    pub(super) fn install_egresses(&self, placement: &mut impl Placement) {
        for Direction { tunnel, way, association } in &self.directions {
            let egress = Egress::new(association.clone());
            let egress = if tunnel.copy_fields { egress.copying_fields() } else { egress };
            placement.add_box(way.1, Box::new(egress));
        }
    }

    /// Where packets enter: behind all other boxes of their node.
    pub(super) fn install_ingresses(&self, placement: &mut impl Placement) {
        for Direction { tunnel, way, association } in &self.directions {
            let protected = (0..self.scenario.nodes.len()).filter(|&node| {
                node != way.0
                    && self.routes.nodes(&self.scenario.links, way.0, node).contains(&way.1)
            });
            let protected = protected.flat_map(|node| placement.addresses(node));
            let mut ingress = Ingress::new(association.clone(), protected.collect());
            if tunnel.copy_fields {
                ingress = ingress.copying_fields();
            }
            if tunnel.notices == TunnelNotices::Resolve {
                let own = [IpVersion::V4, IpVersion::V6].map(|ip| placement.own(way.0, ip));
                ingress = ingress.resolves(own, tunnel.remembers);
                for (index, flow) in self.registered(*way) {
                    let [from, to] =
                        [flow.from, flow.to].map(|node| placement.address(index, node));
                    ingress.register(from, to, port(index), flow.notice_size);
                }
            }
            placement.add_box(way.0, Box::new(ingress));
        }
    }
}
