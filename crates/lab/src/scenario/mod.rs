//! What is to be run: a scenario file with every default filled in and everything checked.

mod file;
mod flows;
mod links;
mod quantity;
mod settings;

pub use file::Report;

use crate::document::Document;
use crate::error::{Problem, ScenarioError};
use crate::reword::reword;
use base::{Duration, Rate, Time};
use serde::Deserialize as _;
use toml::de::ValueDeserializer;

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
    /// The flows, in the order of declaration; at least one.
    pub flows: Vec<Flow>,
}

/// A link between two nodes. Nodes are named by their index.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The node where its forward direction starts.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// Transmission rate of either direction.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// The queue of either direction.
    pub queue: link::Queue,
    /// Errors of the forward direction.
    pub forward: link::ErrorModel,
    /// Errors of the backward direction.
    pub backward: link::ErrorModel,
}

/// A TCP connection and what it carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The node that sends data.
    pub from: usize,
    /// The node that receives it.
    pub to: usize,
    /// When the connection is opened; before the end of the scenario.
    pub start: Time,
    /// How much it carries, bytes; `None` never ends.
    pub size: Option<u64>,
    /// The settings of the sending end.
    pub sender: tcp::Config,
    /// The settings of the receiving end: the sender's without its error notification.
    pub receiver: tcp::Config,
    /// Who tells the sender of corruption.
    pub report: Report,
    /// Size of a notice of corruption, bytes of the whole packet.
    pub notice_size: u16,
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

    /// What a document says.
    pub(crate) fn read(document: &Document<'_>) -> Result<Scenario, ScenarioError> {
        let deserializer = ValueDeserializer::from(document.root().clone());
        file::File::deserialize(deserializer)
            .map_err(|error| reword(error.into()))
            .and_then(Scenario::resolve)
            .map_err(|problem| document.error(problem))
    }

    /// Fills in what was left out, and checks what types cannot say.
    fn resolve(file: file::File) -> Result<Scenario, Problem> {
        let span = file.duration.span();
        let duration = file.duration.into_inner().0;
        if duration == Duration::ZERO || duration > Scenario::LONGEST {
            let longest = Scenario::LONGEST.as_secs_f64();
            return Err(Problem::at(
                span,
                format!("expected more than 0 s and at most {longest} s"),
            ));
        }
        let nodes = nodes(&file.nodes)?;
        let links = links::resolve(file.links, &nodes)?;
        let context =
            flows::Context { duration, profile: file.profile, nodes: &nodes, links: &links };
        let flows = context.resolve(file.flows)?;
        Ok(Scenario { title: file.title, duration, nodes, links, flows })
    }
}

fn nodes(names: &toml::Spanned<file::Names>) -> Result<Vec<String>, Problem> {
    let list = &names.get_ref().0;
    if let Some(name) = list.iter().find(|name| name.get_ref().is_empty()) {
        return Err(Problem::at(name.span(), "a node needs a name"));
    }
    Ok(list.iter().map(|name| name.get_ref().clone()).collect())
}

/// The index of a node.
fn node(name: &toml::Spanned<String>, nodes: &[String]) -> Result<usize, Problem> {
    nodes.iter().position(|node| node == name.get_ref()).ok_or_else(|| {
        let known: Vec<String> = nodes.iter().map(|node| format!("`{node}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Problem::at(name.span(), "there is no such node")
            .help(format!("the nodes of [nodes] are: {known}"))
    })
}
