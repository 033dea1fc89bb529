//! A mechanism of a flow, with its settings.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::Shape;
use crate::reading::tagged::{self, Tagged};
use serde_json::{Value, json};
use tcp::mechanism::{Mechanism, Suppression};

/// One of `mechanisms`.
#[derive(Debug)]
pub(crate) struct Entry(pub(crate) Mechanism);

impl Tagged for Mechanism {
    const TAG: &'static str = "mechanism";

    fn names() -> Vec<&'static str> {
        Mechanism::NAMES.to_vec()
    }

    fn setting(key: &str) -> Option<Value> {
        if key == "suppress_dupacks" {
            let description =
                "Which reported corruptions keep their duplicate ACKs from reducing the window.";
            let mut schema = Suppression::schema();
            schema["description"] = json!(description);
            return Some(schema);
        }
        // They follow from another setting, so that they have no default of their own.
        let unless_strict = matches!(key, "resend" | "suppress" | "rate_limit");
        unless_strict.then(|| {
            json!({
                "type": "boolean",
                "description": "What the publication only suggests: the opposite of `strict` if absent.",
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
