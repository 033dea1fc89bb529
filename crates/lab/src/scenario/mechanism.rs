//! A mechanism of a flow and its settings, which the table of mechanisms tells by its defaults.

use crate::document::Node;
use crate::error::Problem;
use crate::shape::{Shape, keys, unexpected, word};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tcp::mechanism::Mechanism;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The key that names the mechanism.
const NAME: &str = "mechanism";

/// One of `mechanisms`.
#[derive(Debug)]
pub(super) struct Entry(pub(super) Mechanism);

impl Shape for Entry {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Entry> {
        let Some(table) = node.get_ref().as_table() else {
            return unexpected(node, "a table such as { mechanism = \"eten\" }", problems);
        };
        let Some(name) = table.get(NAME) else {
            problems.push(Problem::at(node.span(), format!("missing key `{NAME}`")));
            return None;
        };
        let known = |name: &str| Mechanism::NAMES.iter().find(|known| **known == name);
        let known = word(name, Mechanism::NAMES, known, problems)?;
        entry(node, table, name, known, problems)
    }

    fn schema() -> Value {
        json!({ "oneOf": Mechanism::NAMES.iter().map(|name| schema(name)).collect::<Vec<_>>() })
    }
}

fn entry(
    node: &Node<'_>,
    table: &DeTable<'_>,
    name: &Node<'_>,
    known: &str,
    problems: &mut Vec<Problem>,
) -> Option<Entry> {
    let before = problems.len();
    let settings = settings(known);
    let names: Vec<&str> =
        std::iter::once(NAME).chain(settings.keys().map(String::as_str)).collect();
    keys(node, &names, problems)?;
    // Each by itself, so that all that are wrong are told of, and where they are.
    for (key, value) in
        table.iter().filter(|(key, _)| settings.contains_key(key.get_ref().as_ref()))
    {
        let alone = [(NAME.into(), name.clone()), (key.get_ref().clone(), value.clone())];
        let alone = alone.into_iter().map(|(key, value)| (Spanned::new(0..0, key), value));
        let alone = Spanned::new(node.span(), DeValue::Table(alone.collect()));
        if let Err(error) = Mechanism::deserialize(ValueDeserializer::from(alone)) {
            problems.push(Problem::at(value.span(), words(error.message())));
        }
    }
    if problems.len() > before {
        return None;
    }
    match Mechanism::deserialize(ValueDeserializer::from(node.clone())) {
        Ok(mechanism) => Some(Entry(mechanism)),
        Err(error) => {
            problems.push(Problem::at(node.span(), words(error.message())));
            None
        }
    }
}

/// The settings of a mechanism with their defaults.
fn settings(name: &str) -> Map<String, Value> {
    let default = Mechanism::deserialize(json!({ NAME: name }));
    let mut settings = match default.and_then(serde_json::to_value) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    settings.remove(NAME);
    settings
}

fn schema(name: &str) -> Value {
    let mut properties = json!({ NAME: { "const": name } });
    for (key, default) in settings(name) {
        let kind = match &default {
            Value::Bool(_) => json!({ "type": "boolean" }),
            Value::Number(number) if number.is_u64() => json!({ "type": "integer", "minimum": 0 }),
            Value::Number(_) => json!({ "type": "number" }),
            Value::String(_) => json!({ "type": "string" }),
            _ => json!({}),
        };
        properties[&key] = kind;
        properties[&key]["default"] = default;
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": [NAME],
        "additionalProperties": false,
    })
}

/// What serde calls things, and what they are called in TOML.
const WORDS: &[(&str, &str)] = &[
    ("invalid type: ", "found "),
    ("invalid value: ", "found "),
    ("found map", "found a table"),
    ("found sequence", "found a list"),
    ("expected a boolean", "expected true or false"),
    ("expected f64", "expected a number"),
    ("expected u32", "expected a whole number, 0 or more"),
];

fn words(message: &str) -> String {
    WORDS.iter().fold(message.to_owned(), |text, (serde, toml)| text.replacen(serde, toml, 1))
}
