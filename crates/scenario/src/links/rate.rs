//! The transmission rate of a link, fixed or recorded.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::files::Files;
use crate::reading::quantity::Written;
use crate::reading::shape::{Shape, table, unexpected};
use link::DeliveryTrace;
use serde_json::{Value, json};
use toml::Spanned;

table! {
    /// A recorded rate.
    pub(super) struct Recording {
        /// The path of a file, relative to that of the scenario, in the format of mahimahi: each line
        /// is an opportunity to transmit 1500 bytes, in milliseconds from the start. After the last
        /// it starts again.
        trace: Spanned<String>, needed;
    }
}

/// A rate, or a recording.
#[derive(Debug)]
pub(super) enum Rate {
    Constant(base::Rate),
    Recorded(Recording),
}

impl Shape for Rate {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Rate> {
        if node.get_ref().is_table() {
            return Recording::read(node, problems).map(Rate::Recorded);
        }
        if !node.get_ref().is_str() {
            let expected = "a rate in quotes, such as \"1.5 Mbit/s\", or { trace = \"FILE\" }";
            return unexpected(node, expected, problems);
        }
        Written::read(node, problems).map(|rate| Rate::Constant(rate.0))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Written::<base::Rate>::schema(), Recording::schema()] })
    }
}

impl Rate {
    /// The rate, or when the link may transmit.
    pub(super) fn resolve(
        &self,
        files: &Files,
    ) -> Result<(Option<base::Rate>, Option<DeliveryTrace>), Problem> {
        match self {
            Rate::Constant(rate) => Ok((Some(*rate), None)),
            // A trace without a file was reported where it was read.
            Rate::Recorded(Recording { trace: None }) => Ok((None, None)),
            Rate::Recorded(Recording { trace: Some(file) }) => files
                .deliveries(file.get_ref())
                .map(|trace| (None, Some((*trace).clone())))
                .map_err(|message| Problem::at(file.span(), message)),
        }
    }
}
