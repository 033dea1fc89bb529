//! What a file says of the testbed, and what it says that the testbed cannot do.

use super::quantity::{Probability, Written};
use super::{Flow, Report, Scenario, Stack};
use crate::document::Document;
use crate::error::Problem;
use crate::shape::table;
use base::Duration;
use serde::{Deserialize, Serialize};
use tcp::mechanism::{Mechanism, Needs};

/// How a scenario is run on real packets. The lab does not look at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Testbed {
    /// A packet that leaves a link later than it should by more than this is late.
    pub late: Duration,
    /// A run is void in which a larger share of the packets was late, or lost by others than the
    /// links.
    pub void_above: f64,
    /// What becomes of a packet that a link corrupts.
    pub corrupted: Corrupted,
}

/// What becomes of a packet that a link corrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corrupted {
    /// The node at the link's end drops it, and may tell its source.
    #[default]
    Drop,
    /// It goes on with bits flipped: what notices is a checksum at its end.
    Flip,
}

impl Default for Testbed {
    fn default() -> Testbed {
        Testbed { late: Duration::from_millis(1), void_above: 0.01, corrupted: Corrupted::Drop }
    }
}

table! {
    /// How the scenario is run on real packets (`lasthop run --testbed`); otherwise without effect.
    pub(super) struct Table {
        /// A packet that leaves a link later than it should by more than this is late; 1 ms if
        /// absent.
        late: Written<Duration>;
        /// A run is void if a larger share of the packets was late, or lost by others than the links.
        void_above: Probability = Probability(Testbed::default().void_above);
        /// What becomes of a packet that a link corrupts: the node at the link's end drops it, or it
        /// goes on with bits flipped.
        corrupted: Corrupted = Corrupted::default();
    }
}

impl Table {
    pub(super) fn resolve(self) -> Testbed {
        Testbed {
            late: self.late.map_or(Testbed::default().late, |late| late.0),
            void_above: self.void_above.0,
            corrupted: self.corrupted,
        }
    }
}

impl Scenario {
    /// What of it cannot be had on real packets, each at its place.
    pub(crate) fn unreal(&self, document: &Document<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |path: &[&str], message: &str, help: &str| {
            let span = document.span(path);
            let problem = Problem { span, message: message.to_owned(), ..Problem::default() };
            problems.push(if help.is_empty() { problem } else { problem.help(help) });
        };
        for attachments in &self.attachments {
            let path = ["nodes", &self.nodes[attachments.node], "attached"];
            refuse(&path, "nodes of the testbed do not move", "only the lab has attachments");
        }
        for &node in &self.shared_probes {
            let path = ["nodes", &self.nodes[node], "shared_probe"];
            refuse(&path, "nodes of the testbed hear of no change: expected false", "");
        }
        if !self.tunnels.is_empty() {
            refuse(&["tunnels"], "nodes of the testbed hide nothing", "only the lab has tunnels");
        }
        if !self.attacks.is_empty() {
            refuse(
                &["attacks"],
                "nobody forges notices on the testbed",
                "only the lab has attacks",
            );
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let index = index.to_string();
            let nonces = |m: &Mechanism| matches!(m, Mechanism::Guard(guard) if guard.nonce);
            if flow.sender.mechanisms.iter().any(nonces) {
                refuse(
                    &["flows", &index, "tcp"],
                    "no real header has room for a nonce, and no notice would be believed",
                    "expected no `defences = { nonce = true }`",
                );
            }
            let at = |key| ["flows", index.as_str(), "tcp", key];
            let dumb = flow.stacks.from == Stack::Linux;
            match flow.report {
                Report::None | Report::Cumulative => {}
                Report::Oracle => refuse(
                    &at("eten"),
                    "on the testbed nobody knows of a corruption by himself",
                    "expected \"backward\" or \"none\"; the oracle is the lab's",
                ),
                Report::Forward => refuse(
                    &at("eten"),
                    "on real packets no header says which copy of a segment it is, which the echoes \
                     of a receiver must name",
                    "expected \"backward\" or \"none\"; forward notification is the lab's",
                ),
                Report::Backward if dumb => refuse(
                    &at("eten"),
                    "the kernel's TCP does not know what a notice of corruption is",
                    "expected `stack` to leave the sending end to \"lasthop\"",
                ),
                Report::Backward if self.testbed.corrupted == Corrupted::Flip => refuse(
                    &["testbed", "corrupted"],
                    "nobody tells of a corruption that nobody detects: expected \"drop\" where \
                     a flow has `eten`",
                    "",
                ),
                Report::Backward => {}
            }
            if flow.coding.is_some() || flow.packet_code.is_some() {
                refuse(
                    &["flows", index.as_str(), "coding"],
                    "on the testbed nobody codes: expected \"off\"",
                    "only the lab has erasure coding and codes in packets",
                );
            }
            if flow.is_metered() {
                let key = if flow.report == Report::Cumulative { "eten" } else { "mechanisms" };
                refuse(
                    &at(key),
                    "the nodes of the testbed do not measure their links",
                    "only the lab has cumulative notification",
                );
            }
            if needs_of_the_kernel(flow) {
                refuse(
                    &at("mechanisms"),
                    "the kernel's TCP has no such mechanism",
                    "expected `stack` to leave the ends that need it to \"lasthop\"",
                );
            }
        }
        problems
    }
}

/// Whether a mechanism of the flow needs an end that is the kernel's.
fn needs_of_the_kernel(flow: &Flow) -> bool {
    let ends = [(flow.stacks.from, Needs::SENDER), (flow.stacks.to, Needs::RECEIVER)];
    let kernel = ends.into_iter().filter(|(stack, _)| *stack == Stack::Linux);
    let kernel = kernel.fold(Needs::empty(), |all, (_, end)| all | end);
    flow.receiver
        .mechanisms
        .iter()
        .any(|mechanism: &Mechanism| mechanism.needs().intersects(kernel))
}
