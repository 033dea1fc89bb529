//! `[[links]]`: the links between nodes.

mod down;
mod errors;
mod impairments;
mod mtu;
mod queue;
mod rate;

use crate::nodes::node;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::files::Files;
use crate::reading::quantity::{self, Probability};
use crate::reading::shape::{Both, OrReport as _, Shape, Table as _, needed, table};
use base::Duration;
use down::{Outages, WhenDown};
use errors::Errors;
use impairments::{Changes, Jitter, Reordering, variation};
use link::{ErrorModel, Impairments, Intervals};
pub use mtu::Mtu;
use queue::Queue;
use rate::Rate;
use serde_json::{Value, json};
use toml::Spanned;

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
    /// The largest packet that it takes.
    pub mtu: Option<Mtu>,
}

table! {
    /// A link between two nodes.
    struct Ends {
        /// The two nodes. *Forward* is from the first to the second.
        between: Spanned<Pair>, needed;
    }
}

table! {
    /// One direction of a link. What is left out is as for both directions.
    struct Direction {
        /// Transmission rate, or a recording of it. Needed, for both directions at once or for each.
        rate: Rate;
        /// Propagation delay, one way. Needed, for both directions at once or for each.
        delay: quantity::Written<Duration>;
        /// The drop-tail limit in packets or bytes, the packet in transmission included, or a table
        /// with an active queue management. Unlimited if absent.
        queue: Spanned<Queue>;
        /// The error model: `bit` and `packet`, or one of the others. No errors if absent.
        errors: Spanned<Errors>;
        /// Reordering: some packets are delayed, and others overtake them.
        reordering: Reordering;
        /// The probability that a packet arrives twice, its copy right behind it.
        duplication: Probability;
        /// A random delay of every packet, in addition to that of the link: its upper bound, or a
        /// table.
        jitter: Jitter;
        /// Times with another rate or delay. A packet in transmission continues at the new rate;
        /// packets in flight are not overtaken.
        changes: Spanned<Changes>;
    }
}

table! {
    /// The two directions of a link, where they differ.
    struct Directions {
        /// From the first node to the second: any of the keys above, where this direction differs.
        forward: Direction;
        /// From the second node to the first, likewise.
        backward: Direction;
        /// When the link is down, both directions at once.
        outages: Outages;
        /// What happens to packets when the link goes down, and while it is down: `keep` loses only
        /// what the queue has no room for; `drop` loses everything; or a table. If absent, outages
        /// keep, and changes of attachment drop.
        when_down: WhenDown;
        /// The largest IP packet that the link takes, both directions at once. A larger one is
        /// dropped where it would enter the link, and its sender is told by an ICMP message. A size,
        /// or a table. No limit if absent.
        mtu: mtu::Written;
    }
}

/// A link: its ends, what holds for both directions, and what for one.
#[derive(Debug)]
pub(crate) struct Written(Both<Ends, Both<Direction, Directions>>);

/// The keys that each direction needs.
const NEEDED: [&str; 2] = ["rate", "delay"];

impl Shape for Written {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Written> {
        let link = Both::read(node, problems)?;
        let table = node.get_ref().as_table()?;
        let of = |direction: &str| table.get(direction).and_then(|node| node.get_ref().as_table());
        let directions = ["forward", "backward"].map(of);
        for key in NEEDED {
            if !directions.iter().all(|table| table.is_some_and(|table| table.contains_key(key))) {
                needed(
                    node,
                    table,
                    &Both::<Ends, Both<Direction, Directions>>::keys(),
                    key,
                    problems,
                );
            }
        }
        Some(Written(link))
    }

    fn schema() -> Value {
        let mut schema = Both::<Ends, Both<Direction, Directions>>::schema();
        let each = |key| {
            json!({ "anyOf": [
                { "required": [key] },
                {
                    "required": ["forward", "backward"],
                    "properties": {
                        "forward": { "required": [key] },
                        "backward": { "required": [key] },
                    },
                },
            ] })
        };
        schema["allOf"] = NEEDED.map(each).into();
        schema
    }
}

/// Two names of nodes.
#[derive(Debug)]
struct Pair([Spanned<String>; 2]);

impl Shape for Pair {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Pair> {
        let names = Vec::<Spanned<String>>::read(node, problems)?;
        match (names.try_into(), node.get_ref().as_array()) {
            (Ok(pair), _) => Some(Pair(pair)),
            (_, Some(list)) if list.len() == 2 => None,
            _ => {
                problems.push(Problem::at(node.span(), "expected the names of two nodes"));
                None
            }
        }
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": String::schema(), "minItems": 2, "maxItems": 2 })
    }
}

/// The valid links.
pub(super) fn resolve(
    links: Vec<Written>,
    nodes: &[String],
    files: &Files,
    problems: &mut Vec<Problem>,
) -> Vec<Link> {
    let mut resolved: Vec<Link> = Vec::with_capacity(links.len());
    for Written(Both(Ends { between: ends }, Both(common, directions))) in links {
        let span = ends.as_ref().map(Spanned::span);
        let ends = ends.and_then(|ends| between(&ends, nodes, problems));
        let Directions { forward, backward, outages, when_down, mtu } = directions;
        let forward = direction(forward.as_ref(), &common, files, problems);
        let backward = direction(backward.as_ref(), &common, files, problems);
        let mtu = mtu.map(|mtu| mtu.resolve()).transpose().or_report(problems);
        let (Some((from, to)), Some(forward), Some(backward)) = (ends, forward, backward) else {
            continue;
        };
        let when_down = when_down.map(|written| written.0);
        let [forward, backward] =
            [forward, backward].map(|direction| link::Config { when_down, ..direction });
        let link =
            Link { from, to, forward, backward, outages: outages.map(|o| o.0), mtu: mtu.flatten() };
        let ends = |l: &Link| (l.from.min(l.to), l.from.max(l.to));
        if resolved.iter().any(|other| ends(other) == ends(&link)) {
            let message = "there is already a link between these nodes".to_owned();
            problems.push(
                Problem { span, message, ..Problem::default() }
                    .help("a route uses one link; a parallel one would never be used"),
            );
        }
        resolved.push(link);
    }
    resolved
}

/// One direction, by its own settings, and the common ones where it has none.
fn direction(
    own: Option<&Direction>,
    common: &Direction,
    files: &Files,
    problems: &mut Vec<Problem>,
) -> Option<link::Config> {
    macro_rules! written {
        ($key:ident) => {
            own.and_then(|own| own.$key.as_ref()).or(common.$key.as_ref())
        };
    }
    let queue = written!(queue).map_or(Ok(Default::default()), queue::resolve).or_report(problems);
    let errors = |errors| errors::resolve(errors, files);
    let errors = written!(errors).map_or(Ok(ErrorModel::default()), errors).or_report(problems);
    let changes = written!(changes).map(|changes| changes.get_ref().resolve(|c| Ok(variation(c))));
    let variations = changes.unwrap_or_else(|| Ok(Intervals::default())).or_report(problems);
    let impairments = Impairments {
        reordering: written!(reordering).map(Reordering::resolve).unwrap_or_default(),
        duplication: written!(duplication).map_or(0.0, |p| p.0),
        jitter: written!(jitter).map(Jitter::resolve).unwrap_or_default(),
    };
    let rate = written!(rate).and_then(|rate| rate.resolve(files).or_report(problems));
    let (queue, discipline) = queue?;
    let (rate, trace) = rate?;
    let variations = variations?;
    if let (Some(_), Some(changes)) = (&trace, written!(changes))
        && variations.values().any(|variation| variation.rate.is_some())
    {
        let message = "expected no other rate: the trace of the link determines when it transmits";
        problems.push(Problem::at(changes.span(), message));
    }
    Some(link::Config {
        rate,
        trace,
        delay: written!(delay)?.0,
        queue,
        discipline,
        errors: errors?,
        impairments,
        variations,
        ..link::Config::default()
    })
}

fn between(
    ends: &Spanned<Pair>,
    nodes: &[String],
    problems: &mut Vec<Problem>,
) -> Option<(usize, usize)> {
    let [a, b] = &ends.get_ref().0;
    let (from, to) = (node(a, nodes).or_report(problems), node(b, nodes).or_report(problems));
    let (from, to) = (from?, to?);
    if from == to {
        problems.push(Problem::at(ends.span(), "expected two different nodes"));
        return None;
    }
    Some((from, to))
}
