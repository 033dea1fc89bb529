//! A mechanism of a flow, with its settings.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::Shape;
use crate::reading::tagged;
use serde_json::{Value, json};
use tcp::mechanism::Mechanism;

/// One of `mechanisms`.
#[derive(Debug)]
pub(crate) struct Entry(pub(crate) Mechanism);

impl Shape for Entry {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Entry> {
        tagged::read(node, problems).map(Entry)
    }

    fn schema() -> Value {
        json!({ "oneOf": tagged::schemas::<Mechanism>() })
    }
}
