//! The increase function of `aimd` in congestion avoidance: its name, or a table with its settings.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Positive, Written};
use crate::reading::shape::{Shape, unexpected, word};
use crate::reading::tagged::{self, Tagged};
use base::Duration;
use serde_json::{Value, json};
use tcp::congestion::{Congestion, Fast, Increase};
use toml::Spanned;

impl Tagged for Increase {
    const TAG: &'static str = "policy";

    fn names() -> Vec<&'static str> {
        Increase::ALL.iter().map(|(name, _)| *name).collect()
    }

    fn setting(key: &str) -> Option<Value> {
        let (mut schema, description) = match key {
            "k" => (Positive::schema(), "Segments per window."),
            "c" => (Positive::schema(), "Segments per second squared."),
            "nit" => (
                Written::<Duration>::schema(),
                "The interval in which a window grows by a segment.",
            ),
            "rtt" => (
                json!({ "anyOf": [
                    { "enum": ["smoothed", "propagation"] },
                    Written::<Duration>::schema(),
                ] }),
                "The round-trip time of the formula: the smoothed RTT, the propagation delay of the \
                 path there and back at the start of the run, or a given value.",
            ),
            "cap" => (
                json!({ "anyOf": [{ "const": "off" }, Positive::schema()] }),
                "The largest increase per ACK, segments.",
            ),
            "fast" => (name_or_table::<Fast>(), "The function while the path has free capacity."),
            _ => return None,
        };
        schema["description"] = description.into();
        Some(schema)
    }
}

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
        name_or_table::<Increase>()
    }
}

fn name_or_table<T: Tagged>() -> Value {
    let mut forms = vec![json!({ "enum": T::names() })];
    forms.extend(tagged::schemas::<T>());
    json!({ "anyOf": forms })
}

impl Tagged for Fast {
    const TAG: &'static str = Increase::TAG;

    fn names() -> Vec<&'static str> {
        Fast::ALL.iter().map(|(name, _)| *name).collect()
    }

    fn setting(key: &str) -> Option<Value> {
        Increase::setting(key)
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
