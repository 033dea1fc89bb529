//! From a scenario to a world.

use crate::attacks;
use crate::ideal::{Ideal, ideals};
use crate::reports;
use crate::scenario::{Corruption, IpVersion, Report, Scenario};
use crate::stage::{End, Stage, enact, port};
use crate::tunnels::Tunnels;
use base::Seed;
use core::net::IpAddr;
use host::Host;
use middlebox::fec::{self, Beside, Decoder, Encoder, PacketDecoder, PacketEncoder};
use sim::{LinkId, Network, NodeId, Roaming, World};
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
    /// What goes beside the packets of flows that are coded, by the index of the flow.
    pub(crate) codings: Vec<Option<Beside>>,
}

/// Builds the world of a scenario at time zero, its flows waiting for their start.
pub(crate) fn build(scenario: &Scenario, seed: u64) -> Built {
    let mut network = Network::new();
    let nodes: Vec<NodeId> = scenario.nodes.iter().map(|name| network.add_node(name)).collect();
    let links = scenario.links.iter().map(|link| {
        let (forward, backward) = (link.forward.clone(), link.backward.clone());
        network.add_link(nodes[link.from], nodes[link.to], forward, backward)
    });
    let links: Vec<(LinkId, LinkId)> = links.collect();
    for attachments in &scenario.attachments {
        let when = attachments.links.map(|&link| links[link].0);
        network.add_roaming(Roaming {
            tells: attachments.tells.iter().map(|&node| nodes[node]).collect(),
            warning: attachments.warning,
            ..Roaming::new(nodes[attachments.node], when)
        });
    }
    for (link, &(id, _)) in scenario.links.iter().zip(&links) {
        if let Some(outages) = &link.outages {
            network.add_outages(id, outages.clone());
        }
    }
    let mut world = network.build(Seed(seed));
    for &node in &scenario.shared_probes {
        let host = world.host_mut(nodes[node]);
        host.set(host::Settings { shared_probe: true, ..host.settings() });
    }
    let configs = scenario.links.iter().zip(&links).flat_map(|(link, &(forward, backward))| {
        [(forward, &link.forward), (backward, &link.backward)]
    });
    let configs: BTreeMap<LinkId, &link::Config> = configs.collect();
    let ideals = ideals(scenario, |from, to| {
        let links = world.path(nodes[from], nodes[to]);
        links.iter().filter_map(|link| configs.get(link).copied()).collect()
    });
    let mut hosts = Hosts { scenario, nodes: &nodes, world: &mut world };
    enact(scenario, seed, &mut hosts);
    let tunnels = Tunnels::new(scenario, &nodes, Seed(seed));
    add_reports(&mut hosts, Seed(seed), &tunnels);
    add_meters(&mut hosts, Seed(seed));
    // A gateway's other boxes see what is inside.
    tunnels.add_egresses(hosts.world);
    for (index, attack) in scenario.attacks.iter().enumerate() {
        let random = |part: &str| Seed(seed).stream(&format!("attack.{index}.{part}"));
        let node = |node: usize| nodes[node];
        let address = |node: usize| match scenario.flows[attack.flow].ip {
            IpVersion::V4 => nodes[node].address(),
            IpVersion::V6 => nodes[node].address_v6(),
        };
        let into = (&mut *hosts.world, &tunnels);
        attacks::add(scenario, (index, attack), into, node, address, random);
    }
    add_packet_codes(&mut hosts);
    let codings = add_codings(&mut hosts);
    tunnels.add_ingresses(hosts.world);
    for &node in &nodes {
        world.wake(node);
    }
    Built { world, nodes, links, ideals, codings }
}

/// The simulator's hosts, one in every node.
struct Hosts<'a> {
    scenario: &'a Scenario,
    nodes: &'a [NodeId],
    world: &'a mut World<End>,
}

impl Stage for Hosts<'_> {
    const STREAMS: bool = true;

    fn host(&mut self, _flow: usize, node: usize) -> Option<&mut Host<End>> {
        Some(self.world.host_mut(self.nodes[node]))
    }

    fn address(&self, flow: usize, node: usize) -> IpAddr {
        match self.scenario.flows[flow].ip {
            IpVersion::V4 => self.nodes[node].address(),
            IpVersion::V6 => self.nodes[node].address_v6(),
        }
    }
}

/// Whoever tells of corruption: the world itself, or boxes in every node.
fn add_reports(hosts: &mut Hosts<'_>, seed: Seed, tunnels: &Tunnels<'_>) {
    for (index, flow) in hosts.scenario.flows.iter().enumerate() {
        if flow.report == Report::Oracle {
            let [from, to] = [flow.from, flow.to].map(|node| hosts.address(index, node));
            hosts.world.add_oracle(from, to, port(index));
            if flow.mistakes > 0.0 {
                let random = seed.stream(&format!("flow.{}.mistakes", flow.name));
                hosts.world.add_mistakes(from, to, port(index), flow.mistakes, random);
            }
        }
    }
    for (index, &node) in hosts.nodes.iter().enumerate() {
        let address = |flow, node| hosts.address(flow, node);
        let reporters = reports::at(hosts.scenario, seed, index, address);
        let forwarders = reports::forwarders_at(hosts.scenario, seed, index, address);
        for mut reporter in reporters {
            tunnels.readable().for_each(|association| reporter.read(association.clone()));
            hosts.world.add_box(node, reporter);
        }
        forwarders.into_iter().for_each(|forwarder| hosts.world.add_box(node, forwarder));
    }
    tunnels.add_reporters(hosts.world);
    tunnels.show_inside(hosts.world);
}

/// What measures links, in every node.
fn add_meters(hosts: &mut Hosts<'_>, seed: Seed) {
    for (index, &node) in hosts.nodes.iter().enumerate() {
        let address = |flow, node| hosts.address(flow, node);
        if let Some(meter) = reports::meter(hosts.scenario, seed, index, address) {
            hosts.world.add_box(node, meter);
        }
    }
}

/// Codes of packets, which come before erasure codes at either end: repair packets get the code of
/// source packets, and the decoder gets packets without.
fn add_packet_codes(hosts: &mut Hosts<'_>) {
    for (index, flow) in hosts.scenario.flows.iter().enumerate() {
        let Some(strength) = flow.packet_code else { continue };
        let [source, destination] = [flow.from, flow.to].map(|node| hosts.address(index, node));
        let coded = fec::Flow { source, destination, port: port(index) };
        let encoder = PacketEncoder::new(coded, strength, hosts.scenario.ceten.network.a);
        hosts.world.add_box(hosts.nodes[flow.from], encoder);
        hosts.world.add_box(hosts.nodes[flow.to], PacketDecoder::new(coded));
    }
}

/// Encoders and decoders, behind all other boxes of their hosts.
fn add_codings(hosts: &mut Hosts<'_>) -> Vec<Option<Beside>> {
    let flows = hosts.scenario.flows.iter().enumerate();
    let codings = flows.map(|(index, flow)| {
        let coding = flow.coding?;
        let [source, destination] = [flow.from, flow.to].map(|node| hosts.address(index, node));
        let coded = fec::Flow { source, destination, port: port(index) };
        let beside = Beside::default();
        let mut encoder = Encoder::new(coded, coding.settings, beside.clone());
        let decoder = Decoder::new(coded, coding.settings, coding.signal, beside.clone());
        match coding.corruption {
            Corruption::Known(probability) => encoder.set_corruption(probability),
            Corruption::Told => encoder.follow(hosts.scenario.ceten.network.a),
        }
        hosts.world.add_box(hosts.nodes[flow.from], encoder);
        hosts.world.add_box(hosts.nodes[flow.to], decoder);
        Some(beside)
    });
    codings.collect()
}
