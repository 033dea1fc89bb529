//! A mechanism of a flow and its settings.

use super::tagged::{self, Tagged};
use crate::document::Node;
use crate::error::Problem;
use crate::shape::Shape;
use serde_json::{Value, json};
use tcp::mechanism::Mechanism;

/// One of `mechanisms`.
#[derive(Debug)]
pub(super) struct Entry(pub(super) Mechanism);

impl Tagged for Mechanism {
    const TAG: &'static str = "mechanism";

    fn names() -> Vec<&'static str> {
        Mechanism::NAMES.to_vec()
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
