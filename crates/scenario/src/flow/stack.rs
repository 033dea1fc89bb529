//! Which TCP the ends of a flow use on the testbed.

use super::datagrams::RateControl;
use super::traffic::Traffic;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, table, unexpected};
use crate::reading::words::words;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toml::Spanned;

/// An implementation of TCP and UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// Ours.
    #[default]
    Lasthop,
    /// The kernel's.
    Linux,
}

/// Which TCP the two ends of a flow use on the testbed; in the lab both use ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// At the node that sends data.
    pub from: Stack,
    /// At the node that receives it.
    pub to: Stack,
    /// The congestion control of the kernel's ends, by the kernel's name; `None` for the one
    /// closest to the flow's.
    pub congestion: Option<String>,
}

words! { Stack }

table! {
    /// Which TCP each end uses on the testbed.
    pub(crate) struct StackTable {
        /// At the node that sends data.
        from: Stack = Stack::default();
        /// At the node that receives it.
        to: Stack = Stack::default();
        /// The congestion control of the kernel's ends, by the kernel's name, such as `bbr`; if
        /// absent, the one closest to `tcp.congestion`: `cubic`, `reno` or `westwood`.
        congestion: Spanned<String>;
    }
}

/// A word for both ends, or a table.
#[derive(Debug, Default)]
pub(crate) struct Written(StackTable);

impl Shape for Written {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Written> {
        if node.get_ref().is_table() {
            return StackTable::read(node, problems).map(Written);
        }
        let both = match node.get_ref().as_str() {
            Some("lasthop") => Stack::Lasthop,
            Some("linux") => Stack::Linux,
            _ => {
                let expected = "\"lasthop\", \"linux\", or { from = one of them, ... }";
                return unexpected(node, expected, problems);
            }
        };
        Some(Written(StackTable { from: both, to: both, congestion: None }))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Stack::schema(), StackTable::schema()], "default": "lasthop" })
    }
}

/// The stacks, checked.
pub(crate) fn resolve(
    written: Option<Spanned<Written>>,
    traffic: Option<&Traffic>,
) -> Result<Stacks, Problem> {
    let (span, written) = written
        .map_or((0..0, Written::default()), |written| (written.span(), written.into_inner()));
    let StackTable { from, to, congestion } = written.0;
    if let Some(Traffic::Datagrams(datagrams)) = traffic
        && datagrams.rate_control == RateControl::Tfrc
        && [from, to].contains(&Stack::Linux)
    {
        return Err(Problem::at(span, "the kernel has no TFRC: expected \"lasthop\" at both ends"));
    }
    let Some(name) = congestion else { return Ok(Stacks { from, to, congestion: None }) };
    // TCP_CA_NAME_MAX, with its final zero.
    const LONGEST: usize = 15;
    let known = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let wrong =
        if !(1..=LONGEST).contains(&name.get_ref().len()) || !name.get_ref().chars().all(known) {
            "expected the name of one of the kernel's congestion controls, such as \"bbr\""
        } else if ![from, to].contains(&Stack::Linux) {
            "only ends with the kernel's TCP have it: expected \"linux\" at `from` or `to`"
        } else if matches!(traffic, Some(Traffic::Datagrams(_))) {
            "UDP datagrams have no congestion control"
        } else {
            return Ok(Stacks { from, to, congestion: Some(name.into_inner()) });
        };
    Err(Problem::at(name.span(), wrong))
}
