//! The boxes that tell senders of corruption.

use crate::scenario::{Report, Scenario};
use crate::stage::port;
use core::net::IpAddr;
use middlebox::Reporter;

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
