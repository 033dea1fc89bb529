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
        let mechanism = tagged::read(node, problems)?;
        if let Mechanism::CumulativeEten(ceten) = &mechanism
            && !ceten.averages_enough()
        {
            let message = "the strategy `adaptive` compares averages over many packets: expected `a` \
                           to be at most 0.015625 (1/64)";
            problems.push(Problem::at(node.span(), message));
        }
        Some(Entry(mechanism))
    }

    fn schema() -> Value {
        json!({ "oneOf": tagged::schemas::<Mechanism>() })
    }
}
