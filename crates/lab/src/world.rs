//! From a scenario to a world.

mod flows;

pub(crate) use flows::{End, Errand, port};

use crate::ideal::{Ideal, Way};
use crate::scenario::{Flow, Report, Scenario};
use base::Seed;
use flows::address;
use middlebox::Reporter;
use sim::{LinkId, Network, NodeId, World};
use std::collections::BTreeMap;

/// A world and where the scenario's parts are in it.
pub(crate) struct Built {
    pub(crate) world: World<End>,
    /// By the index of the node.
    pub(crate) nodes: Vec<NodeId>,
    /// Forward and backward, by the index of the link.
    pub(crate) links: Vec<(LinkId, LinkId)>,
    /// By the index of the flow.
    pub(crate) ideals: Vec<Ideal>,
}

/// Builds the world of a scenario at time zero, its flows waiting for their start.
pub(crate) fn build(scenario: &Scenario, seed: u64) -> Built {
    let mut network = Network::new();
    let nodes: Vec<NodeId> = scenario.nodes.iter().map(|_| network.add_node()).collect();
    let links = scenario.links.iter().map(|link| {
        let (forward, backward) = (link.forward.clone(), link.backward.clone());
        network.add_link(nodes[link.from], nodes[link.to], forward, backward)
    });
    let links: Vec<(LinkId, LinkId)> = links.collect();
    for attachments in &scenario.attachments {
        network.add_roaming(&attachments.links.map(|&link| links[link].0));
    }
    for (link, &(id, _)) in scenario.links.iter().zip(&links) {
        if let Some(outages) = &link.outages {
            network.add_outages(id, outages.clone());
        }
    }
    let mut world = network.build(Seed(seed));
    let configs = scenario.links.iter().zip(&links).flat_map(|(link, &(forward, backward))| {
        [(forward, &link.forward), (backward, &link.backward)]
    });
    let configs: BTreeMap<LinkId, &link::Config> = configs.collect();
    let ideals = scenario.flows.iter().map(|flow| {
        let way = |from: usize, to: usize| -> Way {
            let links = world.path(nodes[from], nodes[to]);
            Way::over(links.iter().filter_map(|link| configs.get(link).copied()))
        };
        Ideal { forward: way(flow.from, flow.to), backward: way(flow.to, flow.from) }
    });
    let ideals = ideals.collect();
    flows::add(scenario, &nodes, Seed(seed), &mut world);
    add_reports(scenario, &nodes, &mut world);
    for &node in &nodes {
        world.wake(node);
    }
    Built { world, nodes, links, ideals }
}

/// Whoever tells senders of corruption: the world itself, or a box in every node for every size
/// of notice and version of IP.
fn add_reports(scenario: &Scenario, nodes: &[NodeId], world: &mut World<End>) {
    let mut kinds = Vec::new();
    let ends = |flow: &Flow| (address(nodes[flow.from], flow.ip), address(nodes[flow.to], flow.ip));
    for (index, flow) in scenario.flows.iter().enumerate() {
        let (from, to) = ends(flow);
        match flow.report {
            Report::None => {}
            Report::Oracle => world.add_oracle(from, to, port(index)),
            Report::Backward if kinds.contains(&(flow.ip, flow.notice_size)) => {}
            Report::Backward => kinds.push((flow.ip, flow.notice_size)),
        }
    }
    for &node in nodes {
        for &(ip, size) in &kinds {
            let mut reporter = Reporter::new(address(node, ip), size);
            for (index, flow) in scenario.flows.iter().enumerate() {
                if flow.report == Report::Backward && (flow.ip, flow.notice_size) == (ip, size) {
                    let (from, to) = ends(flow);
                    reporter.register(from, to, port(index));
                }
            }
            world.add_box(node, reporter);
        }
    }
}
