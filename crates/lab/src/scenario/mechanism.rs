//! A mechanism of a flow and its settings.

use super::tagged::{self, Tagged};
use crate::document::Node;
use crate::error::Problem;
use crate::shape::Shape;
use serde_json::{Value, json};
use tcp::mechanism::{Mechanism, Suppression};

/// One of `mechanisms`.
#[derive(Debug)]
pub(super) struct Entry(pub(super) Mechanism);

impl Tagged for Mechanism {
    const TAG: &'static str = "mechanism";

    fn names() -> Vec<&'static str> {
        Mechanism::NAMES.to_vec()
    }

    fn setting(key: &str) -> Option<Value> {
        if key == "suppress_dupacks" {
            let description = "Of which reported corruptions the duplicate ACKs reduce nothing.";
            let mut schema = Suppression::schema();
            schema["description"] = json!(description);
            return Some(schema);
        }
        // They follow from another setting, so that they have no default of their own.
        let unless_strict = matches!(key, "resend" | "suppress" | "rate_limit");
        unless_strict.then(|| {
            json!({
                "type": "boolean",
                "description": "What the report only suggests: the opposite of `strict` if absent.",
            })
        })
    }
}

impl Shape for Entry {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Entry> {
        tagged::read(node, problems).map(Entry)
    }

    fn schema() -> Value {
        json!({ "oneOf": tagged::schemas::<Mechanism>() })
    }
}
