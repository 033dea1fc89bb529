//! The boxes that notify the ends of flows of corruption, and those that measure links.

use crate::flow::Report;
use crate::scenario::Scenario;
use middlebox::{BoxSettings, CorruptionForwarder, CorruptionReporter, LossMeter};

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
                (format!("reading.backward.{number}"), BoxSettings::CorruptionReporter(reporter))
            } else {
                let forwarder = CorruptionForwarder { flows, transport, notice_size, headers };
                (format!("reading.forward.{number}"), BoxSettings::CorruptionForwarder(forwarder))
            });
        }
    }
    boxes
}

/// The box by which every node measures its links, if a flow uses that.
pub(super) fn metering(scenario: &Scenario) -> Vec<(String, BoxSettings)> {
    let flows = scenario.flows.iter().filter(|flow| flow.report == Report::Cumulative);
    let flows: Vec<String> = flows.map(|flow| flow.name.clone()).collect();
    if flows.is_empty() {
        return Vec::new();
    }
    let meter = LossMeter { flows, ..scenario.meter.clone() };
    vec![("ceten".to_owned(), BoxSettings::LossMeter(meter))]
}
