//! The boxes of a scenario, installed in its nodes: those of the simulator, or of the testbed.
//!
//! Some stand in a node by themselves; `[[tunnels]]`, a blind attack and `coding` each make several,
//! which belong together.

mod attacks;
mod codes;
mod reports;
mod tunnels;

use crate::attacks::{Attack, Method};
use crate::flow::IpVersion;
use crate::links::{Link, Mtu};
use crate::node_boxes::NodeBox;
use crate::placement::{Placement, port};
use crate::scenario::Scenario;
use attacks::Attacker;
use base::{Seed, Time};
use host::Port;
use middlebox::fec::Flow;
use middlebox::fec::SideChannel;
use middlebox::{Association, BoxSettings, Contents, Ends, LinkMtu, Neighbour, Site};
use std::collections::BTreeMap;
use tcp::Config;
use tunnels::Tunnels;

/// What boxes share beside packets, which a world may have to know.
pub struct Installed {
    /// What goes beside the packets of flows that are coded, by the index of the flow.
    pub codings: Vec<Option<SideChannel>>,
    /// The directions of tunnels.
    pub associations: Vec<Association>,
}

/// Installs the boxes of a scenario in its nodes. Packets pass those of a node in the order in which
/// they are installed.
pub fn install_boxes(scenario: &Scenario, seed: u64, placement: &mut impl Placement) -> Installed {
    let seed = Seed(seed);
    let tunnels = Tunnels::new(scenario, placement, seed);
    let readable: Vec<Association> = tunnels.readable().cloned().collect();
    let flows = flows(scenario, placement);
    let inside = tunnels.inside(&flows);
    let alone = Alone {
        scenario,
        seed,
        tunnels: &inside,
        readable: &readable,
        contents: placement.contents(),
        flows,
    };
    alone.install_in_every_node(reports::notifying(scenario), placement);
    tunnels.install_reporters(placement);
    alone.install_in_every_node(reports::metering(scenario), placement);
    // A gateway's other boxes see what is inside.
    tunnels.install_egresses(placement);
    alone.install_attackers(Attack::guesses_under_esp, placement);
    alone.install_as_written(placement);
    alone.install_attackers(|attack| !attack.guesses_under_esp(), placement);
    // Repair packets get the code of source packets, and the decoder gets packets without.
    codes::install_packet_codes(scenario, placement);
    let codings = codes::install_erasure_codes(scenario, placement);
    tunnels.install_ingresses(placement);
    install_mtus(scenario, placement);
    Installed { codings, associations: tunnels.associations() }
}

/// The routers at both ends of links with an MTU.
fn install_mtus(scenario: &Scenario, placement: &mut impl Placement) {
    for (index, link) in scenario.links.iter().enumerate() {
        let Some(Mtu { bytes, changes, icmp }) = &link.mtu else { continue };
        for (direction, node) in [(2 * index, link.from), (2 * index + 1, link.to)] {
            let own = [IpVersion::V4, IpVersion::V6].map(|ip| placement.own(node, ip));
            let router = LinkMtu {
                link: Port(direction as u32),
                mtu: *bytes,
                changes: changes.clone(),
                own: icmp.then_some(own),
            };
            placement.add_box(node, Box::new(router));
        }
    }
}

/// The neighbours of a node.
fn neighbours<'a>(
    scenario: &'a Scenario,
    node: usize,
    placement: &impl Placement,
) -> Vec<Neighbour<'a>> {
    let links = scenario.links.iter().enumerate();
    let directions = links.flat_map(|(index, link)| {
        [(link.from, link.to, 2 * index), (link.to, link.from, 2 * index + 1)]
    });
    let arriving = directions.filter(|&(_, to, _)| to == node);
    let named = arriving.map(|(from, _, direction)| Neighbour {
        name: &scenario.nodes[from],
        address: placement.own(from, IpVersion::V4),
        port: Port(direction as u32),
    });
    named.collect()
}

/// The node to which another one is attached at the start, if it is attached by one link only.
fn attached(scenario: &Scenario, node: usize) -> Option<usize> {
    let other = |link: &Link| if link.from == node { link.to } else { link.from };
    let moves = scenario.attachments.iter().find(|attachments| attachments.node == node);
    if let Some(attachments) = moves {
        let (link, _) = attachments.links.at(Time::ZERO);
        return link.map(|&link| other(&scenario.links[link]));
    }
    let mut links = scenario.links.iter().filter(|link| link.from == node || link.to == node);
    links.next().map(other).filter(|_| links.next().is_none())
}

/// The flows, by their names.
fn flows<'a>(scenario: &'a Scenario, placement: &impl Placement) -> BTreeMap<&'a str, Flow> {
    let flows = scenario.flows.iter().enumerate();
    let flows = flows.map(|(index, flow)| {
        let [source, destination] = [flow.from, flow.to].map(|node| placement.address(index, node));
        (flow.name.as_str(), Flow { source, destination, port: port(index) })
    });
    flows.collect()
}

/// Installs boxes that stand in a node by themselves.
struct Alone<'a> {
    scenario: &'a Scenario,
    seed: Seed,
    flows: BTreeMap<&'a str, Flow>,
    tunnels: &'a [(Flow, Ends)],
    readable: &'a [Association],
    contents: Contents,
}

impl Alone<'_> {
    /// Those that every node has.
    fn install_in_every_node(
        &self,
        boxes: Vec<(String, BoxSettings)>,
        placement: &mut impl Placement,
    ) {
        for node in 0..self.scenario.nodes.len() {
            for (stream, settings) in &boxes {
                let stream = format!("node.{node}.{stream}");
                self.install((node, &Config::default()), &stream, settings, placement);
            }
        }
    }

    /// Those of `boxes`.
    fn install_as_written(&self, placement: &mut impl Placement) {
        for (number, NodeBox { node, settings, tcp }) in self.scenario.boxes.iter().enumerate() {
            let stream = format!("node.{node}.box.{number}");
            self.install((*node, tcp), &stream, settings, placement);
        }
    }

    /// Those of some of the attackers.
    fn install_attackers(&self, which: impl Fn(&Attack) -> bool, placement: &mut impl Placement) {
        let &Alone { scenario, seed, .. } = self;
        let attacks = scenario.attacks.iter().enumerate();
        for (number, &Attack { at, ref method }) in attacks.filter(|(_, attack)| which(attack)) {
            match method {
                Method::Box(settings) => {
                    let stream = format!("attack.{number}.guesses");
                    self.install((at, &Config::default()), &stream, settings, placement);
                }
                Method::Blind(settings) => {
                    let random = |part: &str| seed.stream(&format!("attack.{number}.{part}"));
                    let settings = *settings;
                    Attacker { scenario, number, at, settings, random }.install(placement);
                }
            }
        }
    }

    fn install<P: Placement>(
        &self,
        (node, tcp): (usize, &Config),
        stream: &str,
        settings: &BoxSettings,
        placement: &mut P,
    ) {
        let neighbours = neighbours(self.scenario, node, placement);
        let site = Site {
            neighbours: &neighbours,
            attached: attached(self.scenario, node).map(|to| placement.own(to, IpVersion::V4)),
            own: [IpVersion::V4, IpVersion::V6].map(|ip| placement.own(node, ip)),
            flows: &self.flows,
            tunnels: self.tunnels,
            readable: self.readable,
            tcp,
            has_streams: P::STREAMS,
            contents: &self.contents,
            random: &|| self.seed.stream(stream),
        };
        placement.add_box(node, settings.build(&site));
    }
}
