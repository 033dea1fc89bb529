//! What may be written in `[[links]]`.

use super::super::quantity::{Probability, Written};
use super::down::{Outages, WhenDown};
use super::errors::Errors;
use super::impairments::{Changes, Jitter, Reordering};
use super::queue::Queue;
use super::rate::Rate;
use crate::document::Node;
use crate::error::Problem;
use crate::shape::{Both, Shape, Table as _, needed, table};
use base::Duration;
use serde_json::{Value, json};
use toml::Spanned;

table! {
    /// A link between two nodes.
    pub(super) struct Ends {
        /// The two nodes. *Forward* is from the first to the second.
        between: Spanned<Pair>, needed;
    }
}

table! {
    /// One direction of a link. What is left out is as for both directions.
    pub(super) struct Direction {
        /// Transmission rate, or a recording of it. Needed, for both directions at once or for each.
        rate: Rate;
        /// Propagation delay, one way. Needed, for both directions at once or for each.
        delay: Written<Duration>;
        /// The drop-tail limit in packets or bytes, the packet being transmitted included, or a table
        /// with what the queue does before it is full. Unlimited if absent.
        queue: Spanned<Queue>;
        /// What damages packets: `bit` and `packet`, or one of the others. Nothing, if absent.
        errors: Spanned<Errors>;
        /// Some packets are held up, and others overtake them.
        reordering: Reordering;
        /// The probability that a packet arrives twice, its copy right behind it.
        duplication: Probability;
        /// A random delay of every packet, besides that of the link: the longest, or a table.
        jitter: Jitter;
        /// Times of another rate or delay. What is in transmission goes on at the new rate; what is
        /// flying is not overtaken.
        changes: Spanned<Changes>;
    }
}

table! {
    /// The two directions of a link, where they differ.
    pub(super) struct Directions {
        /// From the first node to the second: what differs from the keys for both directions, each
        /// of which may stand here, too.
        forward: Direction;
        /// From the second node to the first, likewise.
        backward: Direction;
        /// When the link is down, both directions at once.
        outages: Outages;
        /// What becomes of packets when the link goes down, and while it is down: `keep`, a pause in
        /// which nothing is lost but what the queue has no room for; `drop`, a cut that loses
        /// everything; or a table. If absent, outages keep, and changes of attachment drop.
        when_down: WhenDown;
    }
}

/// A link: its ends, what holds for both directions, and what for one.
#[derive(Debug)]
pub(in super::super) struct Link(pub(super) Both<Ends, Both<Direction, Directions>>);

/// What no direction can do without.
const NEEDED: [&str; 2] = ["rate", "delay"];

impl Shape for Link {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Link> {
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
        Some(Link(link))
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
pub(super) struct Pair(pub(super) [Spanned<String>; 2]);

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
