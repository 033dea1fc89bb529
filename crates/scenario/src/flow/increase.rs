//! The increase function of `aimd` in congestion avoidance: its name, or a table with its settings.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, unexpected, word};
use crate::reading::tagged;
use base::settings::Table as _;
use serde_json::Value;
use tcp::congestion::{Congestion, Increase};
use toml::Spanned;

impl Shape for Increase {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Increase> {
        if node.get_ref().is_table() {
            return tagged::read(node, problems);
        }
        let names = Increase::names();
        if !node.get_ref().is_str() {
            let name = names.first().copied().unwrap_or_default();
            let expected = format!("a name, such as \"{name}\", or {{ policy = \"{name}\", ... }}");
            return unexpected(node, &expected, problems);
        }
        let named = |name: &str| Increase::ALL.iter().find(|(known, _)| *known == name);
        word(node, &names, named, problems).map(|(_, increase)| *increase)
    }

    fn schema() -> Value {
        tagged::name_or_table::<Increase>(&Increase::names())
    }
}

/// The increase function of a flow.
pub(crate) fn resolve(
    written: Option<Spanned<Increase>>,
    congestion: Congestion,
) -> Result<Increase, Problem> {
    match (written, congestion) {
        (None, _) => Ok(Increase::default()),
        (Some(increase), Congestion::Aimd) => Ok(increase.into_inner()),
        (Some(increase), other) => {
            let name = Congestion::ALL.iter().find(|(_, one)| *one == other).map(|(name, _)| name);
            let message = format!(
                "`{}` has no increase function: expected `increase` with `congestion = \"aimd\"` only",
                name.unwrap_or(&"")
            );
            Err(Problem::at(increase.span(), message))
        }
    }
}
