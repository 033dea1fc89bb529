//! References to nodes, by their names.

use crate::reading::error::Problem;
use crate::reading::nearest::did_you_mean;
use toml::Spanned;

/// The index of the node of this name.
pub(crate) fn node(name: &Spanned<String>, nodes: &[String]) -> Result<usize, Problem> {
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
