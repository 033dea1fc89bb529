//! The JSON Schema of scenario files, for other programs.

use crate::scenario::Scenario;

/// The JSON Schema (2020-12) of a scenario file, made from the definitions that files are read by.
///
/// It has all keys and the kinds of their values. What depends on other values, such as whether a node
/// exists, is checked only when a file is read.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = Scenario::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "lasthop scenario".into();
    schema
}
