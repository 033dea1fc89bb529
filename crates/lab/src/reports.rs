//! The boxes that tell ends of flows of corruption.

use crate::scenario::{Ceten, Flow, Headers, Report, Scenario, Transport};
use crate::stage::port;
use base::Seed;
use core::net::IpAddr;
use middlebox::{Forwarder, Meter, Reading, Reporter, Traceback};
use tcp::mechanism;

/// The boxes of the node with this index that tell senders: one for each kind that flows asked for.
/// `address` gives that of an end of a flow, both by their index; a node that is no end of it has
/// one, too.
pub fn at(
    scenario: &Scenario,
    seed: Seed,
    node: usize,
    address: impl Fn(usize, usize) -> IpAddr,
) -> Vec<Reporter> {
    let make = |flow: &Flow, address, reading| Reporter::new(address, flow.notice_size, reading);
    Boxes { scenario, seed, node, address }.of(Report::Backward, make, Reporter::register)
}

/// The same for those that tell receivers.
pub(crate) fn forwarders_at(
    scenario: &Scenario,
    seed: Seed,
    node: usize,
    address: impl Fn(usize, usize) -> IpAddr,
) -> Vec<Forwarder> {
    let make = |flow: &Flow, address, reading| match flow.transport {
        Transport::Message => Forwarder::by_message(address, flow.notice_size, reading),
        Transport::Piggyback => Forwarder::by_next_packet(reading),
        Transport::Marked => Forwarder::by_mark(reading),
    };
    Boxes { scenario, seed, node, address }.of(Report::Forward, make, Forwarder::register)
}

/// The boxes of a node.
struct Boxes<'a, F> {
    scenario: &'a Scenario,
    seed: Seed,
    node: usize,
    address: F,
}

impl<F: Fn(usize, usize) -> IpAddr> Boxes<'_, F> {
    fn of<B>(
        &self,
        report: Report,
        make: impl Fn(&Flow, IpAddr, Reading) -> B,
        register: impl Fn(&mut B, IpAddr, IpAddr, u16),
    ) -> Vec<B> {
        let Boxes { scenario, node, address, .. } = self;
        let mut kinds = Vec::new();
        let mut boxes = Vec::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            if flow.report != report {
                continue;
            }
            let kind = (flow.ip, flow.notice_size, flow.transport, flow.headers);
            let place = kinds.iter().position(|other| *other == kind).unwrap_or_else(|| {
                let reading = self.reading(flow.headers, report, kinds.len());
                kinds.push(kind);
                boxes.push(make(flow, address(index, *node), reading));
                kinds.len() - 1
            });
            let [from, to] = [flow.from, flow.to].map(|node| address(index, node));
            register(&mut boxes[place], from, to, port(index));
        }
        boxes
    }

    /// The reading of the box with this number among those of a kind of report.
    fn reading(&self, headers: Headers, report: Report, number: usize) -> Reading {
        match headers {
            Headers::Readable => Reading::Whole,
            Headers::Checked => {
                let way = if report == Report::Forward { "forward" } else { "backward" };
                let name = format!("node.{}.reading.{way}.{number}", self.node);
                Reading::Checked(self.seed.stream(&name))
            }
        }
    }
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
    if network.transport == mechanism::Transport::Header {
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
