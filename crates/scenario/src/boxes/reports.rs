//! The boxes that notify the ends of flows of corruption, and those that measure links.

use crate::ceten::Ceten;
use crate::flow::{Flow, Report};
use crate::placement::{Placement, port};
use crate::scenario::Scenario;
use base::Seed;
use middlebox::{BoxSettings, CorruptionForwarder, CorruptionReporter, Meter, Traceback};
use tcp::mechanism;

/// The boxes by which every node notifies senders and receivers, one for each way of notification that
/// flows use; each with the name of its random stream in a node. It is what `eten` stands for.
pub(super) fn notifying(scenario: &Scenario) -> Vec<(String, BoxSettings)> {
    let mut boxes = Vec::new();
    for report in [Report::Backward, Report::Forward] {
        let mut kinds: Vec<(_, Vec<String>)> = Vec::new();
        for flow in scenario.flows.iter().filter(|flow| flow.report == report) {
            let kind = (flow.ip, flow.notice_size, flow.transport, flow.headers);
            match kinds.iter_mut().find(|known| known.0 == kind) {
                Some((_, flows)) => flows.push(flow.name.clone()),
                None => kinds.push((kind, vec![flow.name.clone()])),
            }
        }
        for (number, ((_, notice_size, transport, headers), flows)) in kinds.into_iter().enumerate()
        {
            boxes.push(if report == Report::Backward {
                let reporter = CorruptionReporter { flows, notice_size, headers };
                (format!("backward.{number}"), BoxSettings::CorruptionReporter(reporter))
            } else {
                let forwarder = CorruptionForwarder { flows, transport, notice_size, headers };
                (format!("forward.{number}"), BoxSettings::CorruptionForwarder(forwarder))
            });
        }
    }
    boxes
}

/// In every node, what measures its links, if a flow uses that.
pub(super) fn install_meters(scenario: &Scenario, seed: Seed, placement: &mut impl Placement) {
    let Ceten { network, messages } = scenario.ceten;
    let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.is_metered());
    let flows: Vec<(usize, &Flow)> = flows.collect();
    if flows.is_empty() {
        return;
    }
    for node in 0..scenario.nodes.len() {
        let mut meter = Meter::new(network.a, network.form);
        if network.transport != mechanism::Transport::Header {
            let own = flows.iter().map(|(_, flow)| placement.own(node, flow.ip)).collect();
            let random = seed.stream(&format!("node.{node}.ceten"));
            let mut traceback = Traceback::new(own, messages, random);
            for &(index, flow) in &flows {
                let [from, to] = [flow.from, flow.to].map(|node| placement.address(index, node));
                traceback.register(from, to, port(index));
            }
            meter = meter.with_traceback(traceback);
        }
        placement.add_box(node, Box::new(meter));
    }
}
