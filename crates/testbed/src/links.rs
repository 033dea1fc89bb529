//! The links of a scenario, emulated.

use crate::Error;
use crate::network::Network;
use crate::report::Health;
use base::{Duration, Histogram, Quantiles, Seed};
use host::HostIndication;
use lab::{BoxCount, BoxDrops, Totals};
use link::Names;
use live::emulator::{
    Bytes, Corruption, Direction, Emulator, End, Limits, Node, Report, Running, Surroundings,
};
use live::stack::Indications;
use live::{Clock, Copies};
use middlebox::Contents;
use scenario::{Corrupted, Scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// What is in the nodes at the ends of links.
pub(crate) struct Nodes<'a> {
    pub(crate) nodes: Vec<Node>,
    /// The bytes of what has arrived at boxes, and of what these write themselves.
    pub(crate) bytes: (Bytes, Contents),
    /// Where drivers of links report what has arrived damaged.
    pub(crate) link_sockets: &'a LinkSockets,
    /// The node beyond which all other addresses are.
    pub(crate) default_gateway: Option<usize>,
}

/// Starts the links between the devices of a network, which it takes, and the boxes of its nodes.
pub(crate) fn start(
    scenario: &Scenario,
    seed: u64,
    clock: Clock,
    network: &mut Network,
    Nodes { nodes, bytes: (arrived, contents), link_sockets, default_gateway }: Nodes<'_>,
    copies: &Copies,
    hosts: Hosts,
) -> Result<Running, Error> {
    let mut emulator = Emulator::new(clock, Seed(seed));
    let corruption = match scenario.testbed.corrupted {
        Corrupted::Drop => Corruption::Drop,
        Corrupted::Flip => Corruption::Flip,
    };
    let devices = std::mem::take(&mut network.links);
    // As in the lab.
    let mut names = Names::new();
    for (index, (link, [near, far])) in scenario.links.iter().zip(devices).enumerate() {
        let ends = [End { node: link.from, tun: near }, End { node: link.to, tun: far }];
        let [from, to] = ends.each_ref().map(|end| scenario.nodes[end.node].as_str());
        let directions = [(from, to, &link.forward), (to, from, &link.backward)];
        let directions = directions.map(|(from, to, config)| Direction {
            name: names.name(from, to),
            config: config.clone(),
            corruption,
            reports_to: link_sockets.get(&(index, to.to_owned())).cloned(),
        });
        emulator.add_link(ends, directions);
    }
    for attachments in &scenario.attachments {
        emulator.add_attachments(attachments.clone());
    }
    for (index, link) in scenario.links.iter().enumerate() {
        if let Some(outages) = &link.outages {
            emulator.add_outages(index, outages.clone());
        }
    }
    nodes.into_iter().enumerate().for_each(|(index, node)| emulator.set_node(index, node));
    if let Some(node) = default_gateway {
        emulator.set_default_gateway(node);
    }
    emulator.share(arrived, move |payload, out| {
        contents.lend(payload, |bytes| out.copy_from_slice(bytes))
    });
    emulator.copies(copies.clone());
    emulator.surround(Box::new(Reach(hosts)));
    emulator.limit(Limits { lateness: scenario.testbed.late, share: scenario.testbed.void_above });
    Ok(emulator.start()?)
}

/// By the index of a link and the name of the node at one of its ends, the socket at which the driver there reports what
/// arrives damaged.
pub type LinkSockets = BTreeMap<(usize, String), PathBuf>;

/// Our hosts at work, by node, once they are.
pub(crate) type Hosts = Arc<OnceLock<BTreeMap<usize, Indications<scenario::End>>>>;

/// Indications go to our hosts.
struct Reach(Hosts);

impl Surroundings for Reach {
    fn indicate(&mut self, node: usize, indication: HostIndication) {
        // A node without a host of ours has no connection that it would concern.
        if let Some(host) = self.0.get().and_then(|hosts| hosts.get(&node)) {
            host.send(indication);
        }
    }
}

/// The statistics of links, by direction.
pub(crate) fn statistics(
    scenario: &Scenario,
    report: &Report,
) -> (Vec<(String, link::Statistics)>, Totals) {
    let names = scenario.links.iter().flat_map(|link| scenario.directions(link));
    let links: Vec<_> =
        names.zip(report.directions.iter().map(|direction| direction.link)).collect();
    let totals = Totals::of(links.iter().map(|(_, link)| link));
    (links, totals)
}

/// The queueing delays, by direction.
pub(crate) fn queue_delays(report: &Report) -> Vec<Quantiles> {
    let delays = report.directions.iter().map(|direction| direction.queue_delays.clone());
    delays.map(Option::unwrap_or_default).collect()
}

/// What boxes counted.
pub(crate) fn box_counts(scenario: &Scenario, report: &Report) -> Vec<BoxCount> {
    let counts = report.box_counts.iter().map(|&(node, name, count)| BoxCount {
        node: scenario.nodes[node].clone(),
        name,
        count,
    });
    counts.collect()
}

/// The packets that boxes dropped.
pub(crate) fn box_drops(scenario: &Scenario, report: &Report) -> Vec<BoxDrops> {
    let drops = report.box_drops.iter().map(|&(node, reason, packets)| BoxDrops {
        node: scenario.nodes[node].clone(),
        reason,
        packets,
    });
    drops.collect()
}

/// How well the links were emulated, and what was lost outside their models.
pub(crate) fn health(scenario: &Scenario, report: &Report) -> Health {
    let mut lateness = Histogram::default();
    let mut health = Health { limit: report.limits.lateness, ..Health::default() };
    for direction in &report.directions {
        lateness.merge(&direction.lateness);
        health.packets += direction.entered();
        health.late += direction.late;
        health.lost += direction.kernel_dropped + direction.failed;
    }
    health.lost += report.unroutable;
    let quantile = |q| Duration::from_nanos(lateness.quantile(q).unwrap_or(0));
    (health.median, health.p99) = (quantile(0.5), quantile(0.99));
    health.worst = quantile(1.0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let time = report.span.as_secs_f64() * processors as f64;
    health.steal = if time > 0.0 { report.stolen.as_secs_f64() / time } else { 0.0 };
    health.void = why_void(scenario, report);
    health
}

/// Why the run is void: the worst direction, by the names of its nodes.
fn why_void(scenario: &Scenario, report: &Report) -> Option<String> {
    if report.without_bytes > 0 {
        return Some(report.about_bytes());
    }
    let worst = report.void_by()?;
    let [from, to] = [worst.from, worst.to].map(|node| &scenario.nodes[node]);
    Some(format!(
        "{:.2} % of the packets on {from}->{to} were late or lost beyond the model: {} later than \
         {}, {} lost, of {}",
        100.0 * worst.share_beyond_model(),
        worst.late,
        report.limits.lateness,
        worst.kernel_dropped + worst.failed,
        worst.entered(),
    ))
}
