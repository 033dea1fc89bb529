//! A scenario file: what may be written in it, and the scenario that it comes to with every default
//! filled in and everything checked.
//!
//! A key is a line in the table of its part (`flow`, `links`, ...), with what it means, and what the
//! `resolve` beside that table makes of it. The schema has it by that; `python docs/reference.py`
//! puts it into the book.

use crate::attachments;
use crate::attacks::{self, Attack};
use crate::ceten;
use crate::flow::{self, Flow, Profile, Traffic};
use crate::grid;
use crate::latency::Latency;
use crate::links::{self, Link};
use crate::loss_meters;
use crate::node_boxes::{self, NodeBox};
use crate::reading::document::{Document, Node};
use crate::reading::error::Problem;
use crate::reading::files::Files;
use crate::reading::quantity::Written;
use crate::reading::shape::{AtLeastOne, OrReport as _, Shape, table, unexpected};
use crate::routes::{Hop, Routes};
use crate::testbed::{self, Testbed};
use crate::tunnels::{self, Tunnel};
use base::Duration;
use link::Attachments;
use middlebox::LossMeter;
use serde_json::{Value, json};
use toml::Spanned;

/// A scenario that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its title, one line.
    pub title: String,
    /// The simulated time of a run, at most [`Scenario::LONGEST`].
    pub duration: Duration,
    /// The flow, one transfer, with whose completion a run ends before its duration.
    pub ends_with: Option<usize>,
    /// What every run measures of round trips and delays.
    pub latency: Latency,
    /// The names of the nodes, in the order of declaration.
    pub nodes: Vec<String>,
    /// The links, in the order of declaration.
    pub links: Vec<Link>,
    /// Nodes that move from link to link.
    pub attachments: Vec<Attachments>,
    /// The nodes whose connections share one probe after a change of path.
    pub shared_probes: Vec<usize>,
    /// The flows, in the order of declaration; at least one.
    pub flows: Vec<Flow>,
    /// IPsec tunnels, none of which share a link.
    pub tunnels: Vec<Tunnel>,
    /// The attackers.
    pub attacks: Vec<Attack>,
    /// Boxes that stand in a node by themselves, beside those that other keys stand for: the node, and
    /// the box. Those of a node are in the order in which packets pass them.
    pub boxes: Vec<NodeBox>,
    /// The box by which every node measures its links, if a flow has `eten = "cumulative"`.
    pub meter: LossMeter,
    /// Settings for runs on real packets.
    pub testbed: Testbed,
}

table! {
    /// A scenario of lasthop.
    struct File {
        /// Its title, one line.
        title: String, needed;
        /// The simulated time of a run, up to 1e6 seconds.
        duration: Spanned<Written<Duration>>, needed;
        /// A flow of one transfer: once all of its data has arrived and was acknowledged, the run ends,
        /// at the end of the next hundredth of its duration or second. On real packets, a run ends
        /// when all flows have completed, or with its duration.
        ends_with: Spanned<String>;
        /// The runs of a sweep measure round trips and delays, too: the columns `rtt_*`, `srtt_*`,
        /// `delay_*` and `queue_delay_*` of rows. With `"distributions"`, rows have their distributions,
        /// too. A single run always measures all.
        latency: Latency = Latency::Off;
        /// The defaults of TCP settings that the file leaves out. `modern`: today's RFCs;
        /// `ns2-2001`, `ns2-2007`: ns-2 at that time; `sunos-1994`: SunOS 4.1, a 4.3BSD.
        profile: Profile = Profile::default();
        /// The nodes: a table by their names. Every node routes, and may be an end of flows.
        nodes: Names, needed;
        /// Links; each joins two nodes in both directions.
        links: Vec<links::Written>;
        /// Flows; each is a TCP connection, many of them, or UDP datagrams.
        flows: Spanned<AtLeastOne<Spanned<flow::Table>>>, needed;
        /// IPsec tunnels; each hides packets between two nodes.
        tunnels: Vec<Spanned<tunnels::Table>>;
        /// Attackers; each forges notices about a flow.
        attacks: Vec<Spanned<attacks::Table>>;
        /// What nodes measure and report for flows with `eten = "cumulative"`.
        ceten: ceten::Table;
        /// Settings for runs on real packets.
        testbed: testbed::Table;
        /// The keys that are varied, and the runs of each combination.
        sweep: Swept;
    }
}

/// A table whose keys are the names of nodes, in order.
#[derive(Debug)]
struct Names(Vec<(String, attachments::Settings)>);

/// The sweep, which the grid reads.
#[derive(Debug)]
struct Swept;

impl Shape for Names {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Names> {
        let Some(table) = node.get_ref().as_table() else {
            let expected = "a table of nodes, such as { sender = {}, receiver = {} }";
            return unexpected(node, expected, problems);
        };
        let mut names = Vec::with_capacity(table.len());
        for (name, settings) in table {
            let settings = attachments::Settings::read(settings, problems).unwrap_or_default();
            if name.get_ref().is_empty() {
                problems.push(Problem::at(name.span(), "expected a name that is not empty"));
            }
            names.push((name.get_ref().clone().into_owned(), settings));
        }
        Some(Names(names))
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": { "minLength": 1 },
            "additionalProperties": attachments::Settings::schema(),
        })
    }
}

impl Shape for Swept {
    fn read(_: &Node<'_>, _: &mut Vec<Problem>) -> Option<Swept> {
        Some(Swept)
    }

    fn schema() -> Value {
        grid::schema()
    }
}

impl Scenario {
    /// The longest run, a million seconds.
    pub const LONGEST: Duration = Duration::from_secs(1_000_000);

    /// The names of the two directions of a link: `a->b` and `b->a`.
    #[must_use]
    pub fn directions(&self, link: &Link) -> [String; 2] {
        let (a, b) = (&self.nodes[link.from], &self.nodes[link.to]);
        [format!("{a}->{b}"), format!("{b}->{a}")]
    }

    /// The routes at the start of a run.
    #[must_use]
    pub fn routes(&self) -> Routes {
        Routes::at_start(self.nodes.len(), &self.links, &self.attachments)
    }

    /// The direction of a link that a hop takes.
    #[must_use]
    pub fn direction(&self, hop: Hop) -> &link::Config {
        hop.direction(&self.links)
    }

    /// The JSON Schema of a file.
    pub(crate) fn schema() -> Value {
        File::schema()
    }

    /// The scenario of a document, or all its problems.
    pub(crate) fn read(document: &Document<'_>) -> Result<Scenario, Vec<Problem>> {
        let mut problems = Vec::new();
        let file = File::read(document.root(), &mut problems);
        let scenario =
            file.and_then(|file| Scenario::resolve(file, document.source().files(), &mut problems));
        scenario.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Fills in defaults, and checks what depends on several keys.
    fn resolve(file: File, files: &Files, problems: &mut Vec<Problem>) -> Option<Scenario> {
        let duration = file.duration.and_then(|written| duration(&written).or_report(problems));
        let (nodes, settings): (Vec<String>, Vec<_>) = file.nodes?.0.into_iter().unzip();
        let links = links::resolve(file.links.unwrap_or_default(), &nodes, files, problems);
        let routes = Routes::over(nodes.len(), &links);
        // A link that could not be read may complete a path.
        let routed = problems.is_empty();
        let (profile, flows) = (file.profile, file.flows);
        let ceten = ceten::resolve(file.ceten, problems);
        let context = flow::Context {
            duration,
            profile,
            nodes: &nodes,
            links: &links,
            routes: routed.then_some(&routes),
            ceten: &ceten,
        };
        let flows = flows.and_then(|flows| context.resolve(flows, problems));
        let attachments = if routed {
            let flows = flows.as_deref().unwrap_or_default();
            attachments::Context { nodes: &nodes, links: &links, flows }
                .resolve(&settings, problems)
        } else {
            Vec::new()
        };
        let sharing = settings.iter().enumerate().filter(|(_, settings)| settings.shared_probe);
        let shared_probes = sharing.map(|(node, _)| node).collect();
        let moving = !attachments.is_empty();
        let tunnels = match (&flows, file.tunnels) {
            (Some(flows), Some(tunnels)) if routed => {
                let (nodes, links, routes) = (&nodes, &links, &routes);
                tunnels::Context { profile, nodes, links, flows, routes, moving }
                    .resolve(tunnels, problems)
            }
            _ => Vec::new(),
        };
        let flows = flows?;
        let ends_with =
            file.ends_with.and_then(|name| ends_with(&name, &flows).or_report(problems));
        let attackable =
            attacks::Context { nodes: &nodes, links: &links, flows: &flows, routes: &routes };
        let attacks = attackable.resolve(file.attacks.unwrap_or_default(), problems);
        let boxes = settings.into_iter().enumerate().flat_map(|(node, settings)| {
            let written = settings.boxes.unwrap_or_default();
            node_boxes::resolve((node, profile), written, &attackable, problems)
        });
        let boxes = boxes.collect();
        loss_meters::check_weight(&ceten, &flows, problems);
        let testbed = file.testbed.map(testbed::Table::resolve).unwrap_or_default();
        Some(Scenario {
            title: file.title?,
            duration: duration?,
            ends_with,
            latency: file.latency,
            nodes,
            links,
            attachments,
            shared_probes,
            flows,
            tunnels,
            attacks,
            meter: ceten.meter,
            testbed,
            boxes,
        })
    }
}

/// The flow with which a run ends.
fn ends_with(name: &Spanned<String>, flows: &[Flow]) -> Result<usize, Problem> {
    let index = flows.iter().position(|flow| flow.name == *name.get_ref());
    let index = index.ok_or_else(|| Problem::at(name.span(), "there is no such flow"))?;
    match &flows[index].traffic {
        Traffic::Application(of) if of.settings().size().is_some() => Ok(index),
        _ => Err(Problem::at(name.span(), "expected a flow that is one transfer with a `size`")),
    }
}

fn duration(written: &Spanned<Written<Duration>>) -> Result<Duration, Problem> {
    let duration = written.get_ref().0;
    if duration == Duration::ZERO || duration > Scenario::LONGEST {
        let longest = Scenario::LONGEST.as_secs_f64();
        let message = format!("expected more than 0 s and at most {longest} s");
        return Err(Problem::at(written.span(), message));
    }
    Ok(duration)
}
