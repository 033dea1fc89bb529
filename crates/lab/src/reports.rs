//! The boxes that tell senders of corruption.

use crate::scenario::{Ceten, Flow, Report, Scenario};
use crate::stage::port;
use base::Seed;
use core::net::IpAddr;
use middlebox::{Meter, Reporter, Traceback};
use tcp::mechanism::Transport;

/// The boxes of the node with this index: one for every size of notice and version of IP that
/// flows asked for. `address` gives that of an end of a flow, both by their index; a node that is
/// no end of it has one, too.
pub fn at(
    scenario: &Scenario,
    node: usize,
    address: impl Fn(usize, usize) -> IpAddr,
) -> Vec<Reporter> {
    let mut kinds = Vec::new();
    let mut reporters = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if flow.report != Report::Backward {
            continue;
        }
        let kind = (flow.ip, flow.notice_size);
        let place = kinds.iter().position(|other| *other == kind).unwrap_or_else(|| {
            kinds.push(kind);
            reporters.push(Reporter::new(address(index, node), flow.notice_size));
            kinds.len() - 1
        });
        let [from, to] = [flow.from, flow.to].map(|node| address(index, node));
        reporters[place].register(from, to, port(index));
    }
    reporters
}

/// What the node with this index measures its links with, if a flow wants that; `address` as for
/// [`at`].
pub(crate) fn meter(
    scenario: &Scenario,
    seed: Seed,
    node: usize,
    address: impl Fn(usize, usize) -> IpAddr,
) -> Option<Meter> {
    let Ceten { network, messages } = scenario.ceten;
    let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.is_metered());
    let flows: Vec<(usize, &Flow)> = flows.collect();
    if flows.is_empty() {
        return None;
    }
    let meter = Meter::new(network.a, network.form);
    if network.transport == Transport::Header {
        return Some(meter);
    }
    let own = flows.iter().map(|&(index, _)| address(index, node)).collect();
    let random = seed.stream(&format!("node.{node}.ceten"));
    let mut traceback = Traceback::new(own, messages, random);
    for (index, flow) in flows {
        let [from, to] = [flow.from, flow.to].map(|node| address(index, node));
        traceback.register(from, to, port(index));
    }
    Some(meter.with_traceback(traceback))
}
