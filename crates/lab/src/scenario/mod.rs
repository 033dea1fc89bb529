//! What is to be run: a scenario file with every default filled in and everything checked.

mod attachments;
mod attacks;
mod ceten;
mod coding;
mod datagrams;
mod file;
mod flows;
mod increase;
mod keep_alive;
mod links;
mod mechanism;
mod quantity;
mod routes;
mod schedule;
mod settings;
mod stack;
mod tagged;
mod testbed;
mod traffic;
mod tunnels;
mod words;
mod workload;

pub use attacks::{Attack, AttackKind, Method};
pub use ceten::Ceten;
pub use coding::{Coding, Corruption};
pub use datagrams::Datagrams;
pub use file::{Headers, IpVersion, Report, Transport};
pub use routes::{Hop, Routes};
pub use stack::{Stack, Stacks};
pub use testbed::{Corrupted, Testbed};
pub use traffic::{Pace, Sending, Traffic, Transfer};
pub use tunnels::{Tunnel, TunnelNotices};
pub use workload::Workload;

use crate::document::Document;
use crate::error::Problem;
use crate::files::Files;
use crate::nearest::did_you_mean;
use crate::shape::{Shape, Told as _};
use base::{Duration, Time};

/// A scenario that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it shows, in one line.
    pub title: String,
    /// How long it runs, at most [`Scenario::LONGEST`].
    pub duration: Duration,
    /// The names of the nodes, in the order of declaration.
    pub nodes: Vec<String>,
    /// The links, in the order of declaration.
    pub links: Vec<Link>,
    /// Nodes that move from link to link.
    pub attachments: Vec<Attachments>,
    /// Nodes whose connections share one probe of a path that has changed.
    pub shared_probes: Vec<usize>,
    /// The flows, in the order of declaration; at least one.
    pub flows: Vec<Flow>,
    /// IPsec tunnels, none of which share a link.
    pub tunnels: Vec<Tunnel>,
    /// Who forges notices.
    pub attacks: Vec<Attack>,
    /// What nodes measure for flows with cumulative error notification.
    pub ceten: Ceten,
    /// How it is run on real packets.
    pub testbed: Testbed,
}

/// A link between two nodes. Nodes are named by their index.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The node where its forward direction starts.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// Its forward direction.
    pub forward: link::Config,
    /// Its backward direction.
    pub backward: link::Config,
    /// When it is down.
    pub outages: Option<link::Outages>,
}

/// By which links a node that moves is attached, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachments {
    /// The node.
    pub node: usize,
    /// The links, by their index; at other times it is attached to nobody.
    pub links: link::Intervals<usize>,
    /// The nodes whose hosts hear of it when it is attached anew.
    pub tells: Vec<usize>,
    /// They hear so long before it is detached, too.
    pub warning: Option<Duration>,
}

/// Who sends to whom, and what.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The node that sends data.
    pub from: usize,
    /// The node that receives it.
    pub to: usize,
    /// When the first connection is opened; before the end of the scenario.
    pub start: Time,
    /// The version of IP that carries it.
    pub ip: IpVersion,
    /// What it carries.
    pub traffic: Traffic,
    /// The settings of the sending end.
    pub sender: tcp::Config,
    /// The settings of the receiving end: the sender's without error notification that is the
    /// sender's alone.
    pub receiver: tcp::Config,
    /// Who tells the sender of corruption.
    pub report: Report,
    /// Size of a notice of corruption, bytes of the whole packet.
    pub notice_size: u16,
    /// How likely the oracle takes a packet for corrupted that a link dropped.
    pub mistakes: f64,
    /// How word of it gets to the receiver.
    pub transport: Transport,
    /// What nodes can read of a corrupted packet.
    pub headers: Headers,
    /// How its data are coded from end to end; only the lab does that.
    pub coding: Option<Coding>,
    /// How strong a code each of its packets carries, in the direction of its data; likewise.
    pub packet_code: Option<middlebox::fec::PacketStrength>,
    /// Whose TCP its ends use on the testbed.
    pub stacks: Stacks,
}

impl Scenario {
    /// A scenario runs no longer than a million seconds.
    pub const LONGEST: Duration = Duration::from_secs(1_000_000);
    /// There are so many ports for flows.
    pub const MOST_FLOWS: usize = 60_000;

    /// The two directions of a link by the names of its ends: `a->b` and `b->a`.
    #[must_use]
    pub fn directions(&self, link: &Link) -> [String; 2] {
        let (a, b) = (&self.nodes[link.from], &self.nodes[link.to]);
        [format!("{a}->{b}"), format!("{b}->{a}")]
    }

    /// What a file may say, as a JSON Schema.
    pub(crate) fn schema() -> serde_json::Value {
        file::File::schema()
    }

    /// What a document says, or everything that is wrong with it.
    pub(crate) fn read(document: &Document<'_>) -> Result<Scenario, Vec<Problem>> {
        let mut problems = Vec::new();
        let file = file::File::read(document.root(), &mut problems);
        let scenario =
            file.and_then(|file| Scenario::resolve(file, document.source().files(), &mut problems));
        scenario.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Fills in what was left out, and checks what shapes cannot say.
    fn resolve(file: file::File, files: &Files, problems: &mut Vec<Problem>) -> Option<Scenario> {
        let duration = file.duration.and_then(|written| duration(&written).told(problems));
        let (nodes, settings): (Vec<String>, Vec<_>) = file.nodes?.0.into_iter().unzip();
        let links = links::resolve(file.links.unwrap_or_default(), &nodes, files, problems);
        // With a link that could not be read, there may be a way all the same.
        let routed = problems.is_empty();
        let (profile, flows) = (file.profile, file.flows);
        let probabilities = ceten::tells_probabilities(file.ceten.as_ref());
        let context = flows::Context {
            duration,
            profile,
            nodes: &nodes,
            links: &links,
            routed,
            probabilities,
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
                tunnels::Context { profile, nodes: &nodes, links: &links, flows, moving }
                    .resolve(tunnels, problems)
            }
            _ => Vec::new(),
        };
        let attacks = match (&flows, file.attacks) {
            (Some(flows), Some(attacks)) => {
                attacks::Context { nodes: &nodes, links: &links, flows }.resolve(attacks, problems)
            }
            _ => Vec::new(),
        };
        let (title, duration, mut flows) = (file.title?, duration?, flows?);
        let ceten = ceten::resolve(file.ceten, &mut flows, problems);
        let testbed = file.testbed.map(testbed::Table::resolve).unwrap_or_default();
        let mut scenario = Scenario {
            title,
            duration,
            nodes,
            links,
            attachments,
            shared_probes,
            flows,
            tunnels,
            attacks,
            ceten,
            testbed,
        };
        scenario.tell_propagation();
        Some(scenario)
    }
}

fn duration(written: &toml::Spanned<quantity::Written<Duration>>) -> Result<Duration, Problem> {
    let duration = written.get_ref().0;
    if duration == Duration::ZERO || duration > Scenario::LONGEST {
        let longest = Scenario::LONGEST.as_secs_f64();
        let message = format!("expected more than 0 s and at most {longest} s");
        return Err(Problem::at(written.span(), message));
    }
    Ok(duration)
}

/// The index of a node.
fn node(name: &toml::Spanned<String>, nodes: &[String]) -> Result<usize, Problem> {
    nodes.iter().position(|node| node == name.get_ref()).ok_or_else(|| {
        let known: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let help = did_you_mean(name.get_ref(), &known).unwrap_or_else(|| {
            let known: Vec<String> = nodes.iter().map(|node| format!("`{node}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("the nodes of [nodes] are: {known}")
        });
        Problem::at(name.span(), "there is no such node").help(help)
    })
}
