//! From a scenario to a world.

use crate::scenario::{Flow, IpVersion, Report, Scenario, Sending, Traffic, Transfer};
use base::{Seed, Time};
use core::net::IpAddr;
use host::{
    Application, BufferedSource, Opening, PacedSource, Requester, Responder, Sink, SlowSink, Source,
};
use middlebox::Reporter;
use sim::{LinkId, Network, NodeId, World};
use tcp::{Connection, Events};

/// An end of a flow, which knows whose it is.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The flow's index.
    pub(crate) flow: usize,
    /// What it does.
    pub(crate) traffic: host::Traffic,
}

impl Application for End {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        self.traffic.handle(now, connection, events);
    }

    #[inline]
    fn next_wake(&self) -> Time {
        self.traffic.next_wake()
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        self.traffic.wake(now, connection);
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
        let (sending, receiving) = applications(flow, index as u32);
        let end = |traffic| End { flow: index, traffic };
        let (sender, receiver) = (nodes[flow.from], nodes[flow.to]);
        let data = (sender, flow.sender.clone(), end(sending));
        let sink = (receiver, flow.receiver.clone(), end(receiving));
        // Who asks, opens; data goes to the flow's port all the same.
        let (opens, accepts, local_port) = match flow.traffic {
            Traffic::Transfer(_) => (data, sink, None),
            Traffic::Requests(_) => (sink, data, Some(port(index))),
        };
        let (place, config, application) = accepts;
        world.host_mut(place).listen(port(index), move || (config.clone(), application.clone()));
        world.host_mut(opens.0).open(Opening {
            at: flow.start,
            remote: address(place, flow.ip),
            remote_port: port(index),
            local_port,
            config: opens.1,
            application: opens.2,
        });
    }
}

/// The applications at the ends of a flow: that which sends data, and that which receives it.
fn applications(flow: &Flow, stream: u32) -> (host::Traffic, host::Traffic) {
    use host::Traffic::{Buffered, Paced, Sink as Reader, Slow, Source as Writer};
    let Transfer { size, sending, reading } = match flow.traffic {
        Traffic::Transfer(transfer) => transfer,
        Traffic::Requests(dialogue) => {
            return (
                host::Traffic::Responder(Responder::new(stream, dialogue)),
                host::Traffic::Requester(Requester::new(stream, dialogue).into()),
            );
        }
    };
    let source = match sending {
        Sending::Eager => Writer(Source::new(stream, size)),
        Sending::Buffered(buffer) => Buffered(BufferedSource::new(stream, size, buffer)),
        Sending::Paced(pace) => Paced(PacedSource::new(stream, size, pace.chunk, pace.interval)),
    };
    let sink = match reading {
        None => Reader(Sink::new(stream)),
        Some(pace) => Slow(SlowSink::new(stream, pace.chunk as u32, pace.interval)),
    };
    (source, sink)
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

fn address(node: NodeId, ip: IpVersion) -> IpAddr {
    match ip {
        IpVersion::V4 => node.address(),
        IpVersion::V6 => node.address_v6(),
    }
}
