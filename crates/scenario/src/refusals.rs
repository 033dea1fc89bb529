//! What of a scenario the testbed cannot run.

use crate::flow::{Flow, Report, Stack};
use crate::node_boxes::NodeBox;
use crate::reading::document::Document;
use crate::reading::error::Problem;
use crate::scenario::Scenario;
use crate::testbed::Corrupted;
use tcp::mechanism::{Fields, Mechanism, Needs};

impl Scenario {
    /// What of it the testbed cannot run, each at its place.
    pub(crate) fn refusals(&self, document: &Document<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |path: &[&str], message: &str, help: &str| {
            let span = document.span(path);
            let problem = Problem { span, message: message.to_owned(), ..Problem::default() };
            problems.push(if help.is_empty() { problem } else { problem.help(help) });
        };
        if self.flows.len() > Flow::PORTS {
            let most = Flow::PORTS;
            let message =
                format!("expected at most {most} flows: the testbed's nodes have one address");
            refuse(&["flows"], &message, "more flows run in the lab only");
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let index = index.to_string();
            let at = |key| ["flows", index.as_str(), "tcp", key];
            let kernel_sends = flow.stacks.from == Stack::Linux;
            match flow.report {
                Report::None | Report::Cumulative => {}
                Report::Oracle => refuse(
                    &at("eten"),
                    "the testbed cannot run the oracle: no hardware reports without delay",
                    "expected \"backward\", \"forward\", \"cumulative\" or \"none\"; the oracle runs in the \
                     lab only",
                ),
                Report::Backward if kernel_sends => refuse(
                    &at("eten"),
                    "the kernel's TCP does not understand notices of corruption",
                    "expected `stack` \"lasthop\" at the sending end",
                ),
                Report::Backward | Report::Forward if self.testbed.corrupted == Corrupted::Flip => {
                    refuse(
                        &["testbed", "corrupted"],
                        "with flipped bits no node detects a corruption: expected \"drop\" where a flow \
                     has `eten`",
                        "",
                    )
                }
                Report::Backward | Report::Forward => {}
            }
            if flow.packet_code.is_some() {
                refuse(
                    &["flows", index.as_str(), "coding", "per_packet"],
                    "the testbed has no link hardware that corrects packets: expected 0",
                    "codes in packets run in the lab only",
                );
            }
            if needs_of_the_kernel(flow) {
                refuse(
                    &at("mechanisms"),
                    "the kernel's TCP does not have this mechanism",
                    "expected `stack` \"lasthop\" at the ends that need it",
                );
            }
        }
        let needs_reports = |node_box: &&NodeBox| node_box.settings.needs_damage_reports();
        if self.testbed.corrupted == Corrupted::Flip
            && let Some(NodeBox { node, .. }) = self.boxes.iter().find(needs_reports)
        {
            let message = format!(
                "with flipped bits no node detects a corruption, of which a box of `{}` must be told: expected \
                 \"drop\"",
                self.nodes[*node]
            );
            refuse(&["testbed", "corrupted"], &message, "");
        }
        problems
    }
}

impl Scenario {
    /// The scenario with what real packets have: the fields of Cumulative ETEN take bytes.
    pub(crate) fn on_real_packets(mut self) -> Scenario {
        let ends = self.flows.iter_mut().flat_map(|flow| [&mut flow.sender, &mut flow.receiver]);
        for mechanism in ends.flat_map(|end| &mut end.mechanisms) {
            if let Mechanism::CumulativeEten(ceten) = mechanism {
                ceten.fields = Fields::Real;
            }
        }
        self
    }
}

/// Whether a mechanism of the flow needs an end that uses the kernel's TCP.
fn needs_of_the_kernel(flow: &Flow) -> bool {
    let ends = [(flow.stacks.from, Needs::SENDER), (flow.stacks.to, Needs::RECEIVER)];
    let kernel = ends.into_iter().filter(|(stack, _)| *stack == Stack::Linux);
    let kernel = kernel.fold(Needs::empty(), |all, (_, end)| all | end);
    flow.receiver
        .mechanisms
        .iter()
        .any(|mechanism: &Mechanism| mechanism.needs().intersects(kernel))
}
