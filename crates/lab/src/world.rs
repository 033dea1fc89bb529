//! From a scenario to a world.

use crate::scenario::{Report, Scenario};
use base::{Seed, Time};
use host::{Application, Opening, Sink, Source, Traffic};
use middlebox::Reporter;
use sim::{LinkId, Network, NodeId, World};
use tcp::{Connection, Events};

/// An end of a flow, which knows whose it is.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The flow's index.
    pub(crate) flow: usize,
    /// What it does.
    pub(crate) traffic: Traffic,
}

impl Application for End {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        self.traffic.handle(now, connection, events);
    }
}

/// A world and where the scenario's parts are in it.
pub(crate) struct Built {
    pub(crate) world: World<End>,
    /// By the index of the node.
    pub(crate) nodes: Vec<NodeId>,
    /// Forward and backward, by the index of the link.
    pub(crate) links: Vec<(LinkId, LinkId)>,
}

/// The port to which a flow connects; ports below are for those with names.
fn port(flow: usize) -> u16 {
    const FIRST: u16 = 5001;
    FIRST + flow as u16
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
    add_flows(scenario, &nodes, &mut world);
    add_reports(scenario, &nodes, &mut world);
    for &node in &nodes {
        world.wake(node);
    }
    Built { world, nodes, links }
}

fn add_flows(scenario: &Scenario, nodes: &[NodeId], world: &mut World<End>) {
    for (index, flow) in scenario.flows.iter().enumerate() {
        // A stream has the number of its flow: every byte is accounted for.
        let stream = index as u32;
        let end = move |traffic| End { flow: index, traffic };
        let receiver = flow.receiver.clone();
        world
            .host_mut(nodes[flow.to])
            .listen(port(index), move || (receiver.clone(), end(Traffic::Sink(Sink::new(stream)))));
        world.host_mut(nodes[flow.from]).open(Opening {
            at: flow.start,
            remote: nodes[flow.to].address(),
            remote_port: port(index),
            local_port: None,
            config: flow.sender.clone(),
            application: end(Traffic::Source(Source::new(stream, flow.size))),
        });
    }
}

/// Whoever tells senders of corruption: the world itself, or a box in every node for every size
/// of notice.
fn add_reports(scenario: &Scenario, nodes: &[NodeId], world: &mut World<End>) {
    let mut sizes = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        match flow.report {
            Report::None => {}
            Report::Oracle => world.add_oracle(nodes[flow.from], nodes[flow.to], port(index)),
            Report::Backward if sizes.contains(&flow.notice_size) => {}
            Report::Backward => sizes.push(flow.notice_size),
        }
    }
    for &node in nodes {
        for &size in &sizes {
            let mut reporter = Reporter::new(node.address(), size);
            for (index, flow) in scenario.flows.iter().enumerate() {
                if flow.report == Report::Backward && flow.notice_size == size {
                    let (from, to) = (nodes[flow.from].address(), nodes[flow.to].address());
                    reporter.register(from, to, port(index));
                }
            }
            world.add_box(node, reporter);
        }
    }
}
