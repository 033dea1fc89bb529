//! The boxes that tell ends of flows of corruption.

use crate::scenario::{Flow, Report, Scenario};
use crate::stage::port;
use core::net::IpAddr;
use middlebox::{Forwarder, Reporter};

/// The boxes of the node with this index that tell senders: one for every size of notice and
/// version of IP that flows asked for. `address` gives that of an end of a flow, both by their
/// index; a node that is no end of it has one, too.
pub fn at(
    scenario: &Scenario,
    node: usize,
    address: impl Fn(usize, usize) -> IpAddr,
) -> Vec<Reporter> {
    let make = |flow: &Flow, address| Reporter::new(address, flow.notice_size);
    boxes(scenario, node, Report::Backward, address, make, Reporter::register)
}

/// The same for those that tell receivers.
pub(crate) fn forwarders_at(
    scenario: &Scenario,
    node: usize,
    address: impl Fn(usize, usize) -> IpAddr,
) -> Vec<Forwarder> {
    let make = |flow: &Flow, address| Forwarder::new(address, flow.notice_size);
    boxes(scenario, node, Report::Forward, address, make, Forwarder::register)
}

fn boxes<B>(
    scenario: &Scenario,
    node: usize,
    report: Report,
    address: impl Fn(usize, usize) -> IpAddr,
    make: impl Fn(&Flow, IpAddr) -> B,
    register: impl Fn(&mut B, IpAddr, IpAddr, u16),
) -> Vec<B> {
    let mut kinds = Vec::new();
    let mut boxes = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if flow.report != report {
            continue;
        }
        let kind = (flow.ip, flow.notice_size, flow.transport);
        let place = kinds.iter().position(|other| *other == kind).unwrap_or_else(|| {
            kinds.push(kind);
            boxes.push(make(flow, address(index, node)));
            kinds.len() - 1
        });
        let [from, to] = [flow.from, flow.to].map(|node| address(index, node));
        register(&mut boxes[place], from, to, port(index));
    }
    boxes
}
