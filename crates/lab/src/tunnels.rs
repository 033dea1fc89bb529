//! Tunnels in a world.

use crate::scenario::{Flow, IpVersion, Report, Routes, Scenario, Tunnel, TunnelNotices};
use crate::stage::{End, port};
use base::Seed;
use core::net::IpAddr;
use middlebox::{Association, Egress, Ends, Ingress, Reading, Reporter};
use sim::{NodeId, World};

/// The tunnels of a scenario.
pub(crate) struct Tunnels<'a> {
    scenario: &'a Scenario,
    nodes: &'a [NodeId],
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

fn address(node: NodeId, ip: IpVersion) -> IpAddr {
    match ip {
        IpVersion::V4 => node.address(),
        IpVersion::V6 => node.address_v6(),
    }
}

impl<'a> Tunnels<'a> {
    pub(crate) fn new(scenario: &'a Scenario, nodes: &'a [NodeId], seed: Seed) -> Tunnels<'a> {
        let direction = |(tunnel, way): (&'a Tunnel, (usize, usize))| {
            let name = |node: usize| &scenario.nodes[node];
            let mut random = seed.stream(&format!("tunnel.{}->{}", name(way.0), name(way.1)));
            let ends = Ends {
                source: address(nodes[way.0], tunnel.ip),
                destination: address(nodes[way.1], tunnel.ip),
                // RFC 4303 §2.1: numbers below 256 are reserved.
                spi: random.bits() as u32 | 1 << 31,
                key: random.bits(),
            };
            Direction { tunnel, way, association: Association::new(ends) }
        };
        let tunnels = scenario.tunnels.iter();
        let directions = tunnels.flat_map(|tunnel| tunnel.directions().map(|way| (tunnel, way)));
        let directions = directions.map(direction).collect();
        // Without tunnels, nobody asks for them.
        let routes = match scenario.tunnels.as_slice() {
            [] => Routes::over(0, &[]),
            _ => scenario.routes(),
        };
        Tunnels { scenario, nodes, routes, directions }
    }

    /// Associations of which nodes inside read the packets.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &Association> {
        let directions = self.directions.iter();
        let readable = directions.filter(|at| at.tunnel.notices == TunnelNotices::Readable);
        readable.map(|direction| &direction.association)
    }

    /// The associations through which a flow's data pass, with an attacker's address of their version
    /// of IP.
    pub(crate) fn tapped(&self, flow: &Flow, attacker: NodeId) -> Vec<(IpAddr, Ends)> {
        let links = &self.scenario.links;
        let directions = self.directions.iter();
        let passed = directions.filter(|at| flow.passes(at.way, &self.routes, links));
        passed.map(|at| (address(attacker, at.tunnel.ip), at.association.ends())).collect()
    }

    /// Lets the oracle see what is inside.
    pub(crate) fn show_inside(&self, world: &mut World<End>) {
        for Direction { association, .. } in &self.directions {
            let association = association.clone();
            world.see_inside(move |packet| association.inside(packet));
        }
    }

    /// The flows with notices by packets whose data take this way, by their index.
    fn registered(&self, way: (usize, usize)) -> impl Iterator<Item = (usize, &'a Flow)> {
        let links = &self.scenario.links;
        let flows = self.scenario.flows.iter().enumerate();
        flows.filter(move |(_, flow)| {
            flow.report == Report::Backward && flow.passes(way, &self.routes, links)
        })
    }

    /// Lets the nodes behind an ingress, up to the egress, tell it of corruption.
    pub(crate) fn add_reporters(&self, world: &mut World<End>) {
        for Direction { tunnel, way, association } in &self.directions {
            let resolve = tunnel.notices == TunnelNotices::Resolve;
            if !resolve || self.registered(*way).next().is_none() {
                continue;
            }
            for node in self.routes.nodes(&self.scenario.links, way.0, way.1).split_off(1) {
                let own = address(self.nodes[node], tunnel.ip);
                let mut reporter = Reporter::new(own, tunnel.notice_size, Reading::Whole);
                reporter.register_tunnel(association.ends());
                world.add_box(self.nodes[node], reporter);
            }
        }
    }

    /// Where packets leave.
    pub(crate) fn add_egresses(&self, world: &mut World<End>) {
        for Direction { tunnel, way, association } in &self.directions {
            let egress = Egress::new(association.clone());
            let egress = if tunnel.copy_fields { egress.copying_fields() } else { egress };
            world.add_box(self.nodes[way.1], egress);
        }
    }

    /// Where packets enter: behind all other boxes of their node.
    pub(crate) fn add_ingresses(&self, world: &mut World<End>) {
        for Direction { tunnel, way, association } in &self.directions {
            let protected = (0..self.nodes.len()).filter(|&node| {
                node != way.0
                    && self.routes.nodes(&self.scenario.links, way.0, node).contains(&way.1)
            });
            let protected = protected
                .flat_map(|node| [self.nodes[node].address(), self.nodes[node].address_v6()]);
            let mut ingress = Ingress::new(association.clone(), protected.collect());
            if tunnel.copy_fields {
                ingress = ingress.copying_fields();
            }
            if tunnel.notices == TunnelNotices::Resolve {
                let own = self.nodes[way.0];
                ingress = ingress.resolves([own.address(), own.address_v6()], tunnel.remembers);
                for (index, flow) in self.registered(*way) {
                    let [from, to] =
                        [flow.from, flow.to].map(|node| address(self.nodes[node], flow.ip));
                    ingress.register(from, to, port(index), flow.notice_size);
                }
            }
            world.add_box(self.nodes[way.0], ingress);
        }
    }
}
