//! `boxes` of a node: boxes that stand in it by themselves.

use crate::alone::Alone;
use crate::attacks;
use crate::flow::{IpVersion, Profile};
use crate::loss_meters;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::nearest::did_you_mean;
use crate::reading::shape::{Shape, Table as _};
use crate::reading::tagged;
use base::settings::Table as _;
use middlebox::BoxSettings;
use serde_json::{Value, json};
use tcp::Config;
use toml::Spanned;

/// A box that stands in a node by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeBox {
    /// The node.
    pub node: usize,
    /// The box.
    pub settings: BoxSettings,
    /// The settings of its own TCP, if it runs TCP.
    pub tcp: Config,
}

/// One of `boxes`, as written.
#[derive(Debug)]
pub(crate) struct Entry {
    settings: BoxSettings,
    /// The settings of the box's own TCP.
    own: Alone,
}

/// The keys of the box's own TCP, if one of this name runs TCP.
fn own_keys(name: &str) -> Vec<&'static str> {
    let runs_tcp = tagged::default::<BoxSettings>(name).is_some_and(|settings| settings.runs_tcp());
    if runs_tcp { Alone::keys() } else { Vec::new() }
}

impl Shape for Entry {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Entry> {
        let settings: BoxSettings = tagged::read_beside(node, own_keys, problems)?;
        let own = match node.get_ref().as_table() {
            Some(table) if settings.runs_tcp() => Alone::fields(node, table, &[], problems),
            _ => Alone::default(),
        };
        Some(Entry { settings, own })
    }

    fn schema() -> Value {
        let own = Alone::schema();
        let mut schemas = tagged::schemas::<BoxSettings>();
        for schema in &mut schemas {
            let name = schema["properties"][BoxSettings::TAG]["const"].as_str();
            for key in name.map(own_keys).unwrap_or_default() {
                schema["properties"][key] = own["properties"][key].clone();
            }
        }
        json!({ "oneOf": schemas })
    }
}

/// The boxes of a node, checked against the flows; `profile` is that of the scenario.
pub(crate) fn resolve(
    (node, profile): (usize, Profile),
    boxes: Vec<Spanned<Entry>>,
    context: &attacks::Context<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<NodeBox> {
    let flows = context.flows;
    let mut resolved = Vec::with_capacity(boxes.len());
    for entry in boxes {
        let span = entry.span();
        let Entry { settings, own } = entry.into_inner();
        if let BoxSettings::LossMeter(meter) = &settings
            && let Err(message) = loss_meters::check_meter(meter, flows)
        {
            problems.push(Problem::at(span.clone(), message));
        }
        if let Err(message) = settings.check().and(context.check(node, &settings)) {
            problems.push(Problem::at(span.clone(), message));
        }
        if settings.neighbour() == Some("") {
            let known = context.neighbours(node).join(", ");
            let problem = Problem::at(span.clone(), "missing key `hop`");
            problems.push(problem.help(format!("the node's neighbours are: {known}")));
        } else if let Some(name) = settings.neighbour() {
            let neighbours = context.neighbours(node);
            if !neighbours.contains(&name) {
                let problem =
                    Problem::at(span.clone(), format!("`{name}` is no neighbour of this node"));
                let known = || format!("its neighbours are: {}", neighbours.join(", "));
                problems.push(problem.help(did_you_mean(name, &neighbours).unwrap_or_else(known)));
            }
        }
        for name in settings.flows() {
            if flows.iter().any(|flow| flow.name == *name) {
                continue;
            }
            let known: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
            let problem = Problem::at(span.clone(), format!("there is no flow `{name}`"));
            problems.push(match did_you_mean(name, &known) {
                Some(help) => problem.help(help),
                None => problem.help(format!("the flows are: {}", known.join(", "))),
            });
        }
        if let Some(tcp) = own.resolve(profile, IpVersion::V4, problems) {
            resolved.push(NodeBox { node, settings, tcp });
        }
    }
    resolved
}
