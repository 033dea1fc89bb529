//! What of the loss meters of Cumulative ETEN depends on the flows that read them.

use crate::ceten::Ceten;
use crate::flow::{Flow, Report};
use crate::reading::error::Problem;
use middlebox::LossMeter;
use tcp::mechanism::{CumulativeEten, Mechanism, Transport};

/// The mechanism of a flow's sender, if it has Cumulative ETEN.
fn mechanism(flow: &Flow) -> Option<&CumulativeEten> {
    flow.sender.mechanisms.iter().find_map(|mechanism| match mechanism {
        Mechanism::CumulativeEten(ceten) => Some(ceten),
        _ => None,
    })
}

/// Checks the weight of `[ceten]`.
pub(crate) fn check_weight(ceten: &Ceten, flows: &[Flow], problems: &mut Vec<Problem>) {
    let mut reported = flows.iter().filter(|flow| flow.report == Report::Cumulative);
    if reported.any(|flow| mechanism(flow).is_some_and(|ceten| !ceten.averages_enough())) {
        let message = "the strategy `adaptive` of a flow compares averages over many packets: \
                       expected `a` of [ceten] to be at most 0.015625 (1/64)";
        let (span, message) = (ceten.a.clone(), message.to_owned());
        problems.push(Problem { span, message, ..Problem::default() });
    }
}

/// Checks a meter of a node's `boxes`.
pub(crate) fn check_meter(meter: &LossMeter, flows: &[Flow]) -> Result<(), String> {
    let reads =
        |ceten: &CumulativeEten| ceten.transport == Transport::Header && ceten.form == meter.form;
    let senders = || flows.iter().filter_map(|flow| Some((flow, mechanism(flow)?)));
    if senders().any(|(flow, ceten)| flow.report == Report::Cumulative && reads(ceten)) {
        // A second meter would count each loss of a link twice.
        return Err("every node has a meter of this form by `eten = \"cumulative\"` of a flow: \
                    expected the mechanism `cumulative-eten` in its place"
            .to_owned());
    }
    let gets_messages = |flow: &Flow| {
        meter.messages > 0.0 && (meter.flows.is_empty() || meter.flows.contains(&flow.name))
    };
    let is_used = |(flow, ceten): (&Flow, &CumulativeEten)| match ceten.transport {
        Transport::Header => reads(ceten),
        Transport::Traceback => gets_messages(flow),
    };
    match senders().next() {
        Some((flow, _)) if !senders().any(is_used) => {
            let name = &flow.name;
            Err(format!(
                "no flow reads what it reports: expected `form`, or `messages`, as the mechanism \
                 `cumulative-eten` of flow `{name}` has `form` and `transport`"
            ))
        }
        _ => Ok(()),
    }
}
