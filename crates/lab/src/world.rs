//! From a scenario to a world.

use base::Seed;
use core::net::IpAddr;
use host::{Host, Middlebox};
use middlebox::fec::SideChannel;
use scenario::{
    End, Endpoint, Installed, IpVersion, Placement, Report, Scenario, address_number, install,
    install_boxes, port,
};
use sim::{LinkId, NodeId, Roaming, Topology, World};

/// A world, and the scenario's parts in it.
pub(crate) struct Built {
    pub(crate) world: World<End>,
    /// By the index of the node.
    pub(crate) nodes: Vec<NodeId>,
    /// Forward and backward, by the index of the link.
    pub(crate) links: Vec<(LinkId, LinkId)>,
    /// The side channels of coded flows, by the index of the flow.
    pub(crate) codings: Vec<Option<SideChannel>>,
}

/// Builds the world of a scenario at time zero, its flows waiting for their start.
pub(crate) fn build(scenario: &Scenario, seed: u64) -> Built {
    let mut topology = Topology::new();
    let nodes: Vec<NodeId> = scenario.nodes.iter().map(|name| topology.add_node(name)).collect();
    let links = scenario.links.iter().map(|link| {
        let (forward, backward) = (link.forward.clone(), link.backward.clone());
        topology.add_link(nodes[link.from], nodes[link.to], forward, backward)
    });
    let links: Vec<(LinkId, LinkId)> = links.collect();
    for attachments in &scenario.attachments {
        let when = attachments.links.map(|&link| links[link].0);
        topology.add_roaming(Roaming {
            notifies: attachments.notifies.iter().map(|&node| nodes[node]).collect(),
            warning: attachments.warning,
            ..Roaming::new(nodes[attachments.node], when)
        });
    }
    for (link, &(id, _)) in scenario.links.iter().zip(&links) {
        if let Some(outages) = &link.outages {
            topology.add_outages(id, outages.clone());
        }
    }
    let mut world = topology.build(Seed(seed));
    for &node in &scenario.shared_probes {
        let host = world.host_mut(nodes[node]);
        host.set(host::Settings { shared_probe: true, ..host.settings() });
    }
    let mut hosts = Nodes { scenario, nodes: &nodes, world: &mut world };
    install(scenario, seed, &mut hosts);
    let Installed { codings, associations } = install_boxes(scenario, seed, &mut hosts);
    hosts.add_oracles(Seed(seed));
    for association in associations {
        world.see_inside(move |packet| association.inside(packet));
    }
    for &node in &nodes {
        world.wake(node);
    }
    Built { world, nodes, links, codings }
}

impl Built {
    /// The address of a flow at a node.
    pub(crate) fn address(&self, scenario: &Scenario, flow: usize, node: usize) -> IpAddr {
        address(scenario, flow, self.nodes[node])
    }
}

fn address(scenario: &Scenario, flow: usize, node: NodeId) -> IpAddr {
    let [v4, v6] = node.addresses(address_number(flow));
    match scenario.flows[flow].ip {
        IpVersion::V4 => v4,
        IpVersion::V6 => v6,
    }
}

/// The simulator's nodes, each with a host.
struct Nodes<'a> {
    scenario: &'a Scenario,
    nodes: &'a [NodeId],
    world: &'a mut World<End>,
}

impl Placement for Nodes<'_> {
    const STREAMS: bool = true;

    fn endpoint(&mut self, _flow: usize, node: usize) -> &mut dyn Endpoint {
        self.node_host(node)
    }

    fn address(&self, flow: usize, node: usize) -> IpAddr {
        address(self.scenario, flow, self.nodes[node])
    }

    fn node_host(&mut self, node: usize) -> &mut Host<End> {
        self.world.host_mut(self.nodes[node])
    }

    fn own(&self, node: usize, ip: IpVersion) -> IpAddr {
        match ip {
            IpVersion::V4 => self.nodes[node].address(),
            IpVersion::V6 => self.nodes[node].address_v6(),
        }
    }

    fn addresses(&self, node: usize) -> Vec<IpAddr> {
        let last = self.scenario.flows.len().saturating_sub(1);
        (0..=address_number(last)).flat_map(|number| self.nodes[node].addresses(number)).collect()
    }

    fn add_box(&mut self, node: usize, middlebox: Box<dyn Middlebox + Send>) {
        self.world.add_box(self.nodes[node], middlebox);
    }
}

impl Nodes<'_> {
    /// Lets the simulator itself notify senders of corruption, where flows use the oracle.
    fn add_oracles(&mut self, seed: Seed) {
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            if flow.report != Report::Oracle {
                continue;
            }
            let [from, to] = [flow.from, flow.to].map(|node| self.address(index, node));
            self.world.add_oracle(from, to, port(index));
            if flow.mistakes > 0.0 {
                let random = seed.stream(&format!("flow.{}.mistakes", flow.name));
                self.world.add_mistakes(from, to, port(index), flow.mistakes, random);
            }
        }
    }
}
