//! The `ecn` key of a flow's `tcp`.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, unexpected};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tcp::EcnMode;
use toml::de::DeValue;

/// What is offered of ECN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ecn(pub(crate) EcnMode);

impl Shape for Ecn {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Ecn> {
        match node.get_ref() {
            DeValue::Boolean(false) => Some(Ecn(EcnMode::Off)),
            DeValue::Boolean(true) => Some(Ecn(EcnMode::Classic)),
            value if value.as_str() == Some("accurate") => Some(Ecn(EcnMode::Accurate)),
            _ => unexpected(node, "true, false or \"accurate\"", problems),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [true, false, "accurate"] })
    }
}

/// As it is written.
impl Serialize for Ecn {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            EcnMode::Off => to.serialize_bool(false),
            EcnMode::Classic => to.serialize_bool(true),
            EcnMode::Accurate => to.serialize_str("accurate"),
        }
    }
}
