//! Outages: when a link is down, and what happens to its packets.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::Written;
use crate::reading::schedule::{Nothing, Schedule};
use crate::reading::shape::{OrReport as _, Shape, Table as _, keys, table, unexpected};
use crate::reading::words::words;
use base::Duration;
use serde_json::{Value, json};
use toml::Spanned;

table! {
    /// Random outages. Times up and times down are exponential; the first is a time up.
    pub(super) struct Random {
        /// The mean time up.
        mean_up: Spanned<Written<Duration>>, needed;
        /// The mean time down.
        mean_down: Spanned<Written<Duration>>, needed;
    }
}

/// When a link is down.
#[derive(Debug)]
pub(super) struct Outages(pub(super) link::Outages);

impl Shape for Outages {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Outages> {
        let known = [Schedule::<Nothing>::keys(), Random::keys()].concat();
        let before = problems.len();
        let table = keys(node, &known, problems)?;
        let has = |keys: Vec<&str>| keys.iter().any(|key| table.contains_key(*key));
        let outages = match (has(Schedule::<Nothing>::keys()), has(Random::keys())) {
            (true, false) => {
                let schedule = Schedule::<Nothing>::fields(node, table, &known, problems);
                schedule.resolve(|_| Ok(())).map(link::Outages::At)
            }
            (false, true) => random(&Random::fields(node, table, &known, problems)),
            _ if problems.len() > before => return None,
            _ => {
                let message = "expected either times (`at`, and `every` if they repeat), or `mean_up` and \
                               `mean_down`";
                Err(Problem::at(node.span(), message))
            }
        };
        outages.or_report(problems).map(Outages)
    }

    fn schema() -> Value {
        json!({ "anyOf": [Schedule::<Nothing>::schema(), Random::schema()] })
    }
}

fn random(means: &Random) -> Result<link::Outages, Problem> {
    let mean = |written: &Option<Spanned<Written<Duration>>>| match written {
        // A missing one was reported where it was read.
        None => Ok(Duration::ZERO),
        Some(mean) if mean.get_ref().0 == Duration::ZERO => {
            Err(Problem::at(mean.span(), "expected more than 0 s"))
        }
        Some(mean) => Ok(mean.get_ref().0),
    };
    Ok(link::Outages::Random { up: mean(&means.mean_up)?, down: mean(&means.mean_down)? })
}

/// What happens to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fortune {
    /// They are kept.
    Keep,
    /// They are dropped.
    Drop,
}

words! { Fortune }

table! {
    /// What happens to packets when the link goes down, and while it is down.
    pub(super) struct WhenDownTable {
        /// Those in the queue wait until the link is up, and the one in transmission is sent again
        /// (`keep`), or they are dropped.
        queued: Fortune, needed;
        /// Those that have been transmitted arrive (`keep`), or they are dropped.
        flying: Fortune, needed;
        /// Those that arrive while the link is down wait in the queue, as long as there is room
        /// (`keep`), or they are dropped.
        arriving: Fortune, needed;
    }
}

/// A word for all, or a table.
#[derive(Debug)]
pub(super) struct WhenDown(pub(super) link::WhenDown);

impl Shape for WhenDown {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<WhenDown> {
        match node.get_ref().as_str() {
            Some("keep") => return Some(WhenDown(link::WhenDown::KEEP)),
            Some("drop") => return Some(WhenDown(link::WhenDown::DROP)),
            None if node.get_ref().is_table() => {}
            _ => {
                let expected =
                    "\"keep\", \"drop\", or a table with `queued`, `flying` and `arriving`";
                return unexpected(node, expected, problems);
            }
        }
        let table = WhenDownTable::read(node, problems)?;
        Some(WhenDown(link::WhenDown {
            keep_queued: table.queued? == Fortune::Keep,
            keep_flying: table.flying? == Fortune::Keep,
            accept: table.arriving? == Fortune::Keep,
        }))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Fortune::schema(), WhenDownTable::schema()] })
    }
}
