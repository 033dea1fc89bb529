//! What a scenario file may say, for other programs.

use crate::scenario::Scenario;

/// The JSON Schema (2020-12) of a scenario file, made of what files are read by.
///
/// It says which keys there are and what each holds. What depends on other values, such as whether
/// a node is there, only reading tells.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = Scenario::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "lasthop scenario".into();
    schema
}
