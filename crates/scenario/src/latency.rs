//! The `latency` key of a scenario.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, unexpected};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use toml::de::DeValue;

/// What is measured of round trips, delays of datagrams and queueing delays; each includes those
/// before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Latency {
    /// Nothing.
    #[default]
    Off,
    /// Their means and percentiles. A bulk transfer takes 5 % more instructions with them.
    Summary,
    /// Their distributions, too, which takes more memory for each run that is kept.
    Distributions,
}

impl Latency {
    /// The value that asks for distributions.
    pub(crate) const DISTRIBUTIONS: &str = "distributions";
}

impl Shape for Latency {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Latency> {
        match node.get_ref() {
            DeValue::Boolean(false) => Some(Latency::Off),
            DeValue::Boolean(true) => Some(Latency::Summary),
            value if value.as_str() == Some(Latency::DISTRIBUTIONS) => Some(Latency::Distributions),
            _ => unexpected(node, "true, false or \"distributions\"", problems),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [true, false, Latency::DISTRIBUTIONS] })
    }
}

/// As it is written.
impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Latency::Off => to.serialize_bool(false),
            Latency::Summary => to.serialize_bool(true),
            Latency::Distributions => to.serialize_str(Latency::DISTRIBUTIONS),
        }
    }
}
