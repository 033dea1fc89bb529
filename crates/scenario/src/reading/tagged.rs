//! An entry of one of the tables of `tcp`, by its name, with its settings, which are known from its
//! defaults.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{keys, unexpected, word};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// An entry of a table, which has a name and settings.
pub(crate) trait Tagged: DeserializeOwned + Serialize {
    /// The key that holds its name.
    const TAG: &'static str;

    /// The names in the table.
    fn names() -> Vec<&'static str>;

    /// The schema of a setting, if its default is not enough to derive it.
    fn setting(key: &str) -> Option<Value> {
        let _ = key;
        None
    }
}

/// The entry that a table with a name and settings describes.
pub(crate) fn read<T: Tagged>(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<T> {
    let names = T::names();
    let Some(table) = node.get_ref().as_table() else {
        let example = names.first().copied().unwrap_or_default();
        let expected = format!("a table such as {{ {} = \"{example}\" }}", T::TAG);
        return unexpected(node, &expected, problems);
    };
    let Some(name) = table.get(T::TAG) else {
        problems.push(Problem::at(node.span(), format!("missing key `{}`", T::TAG)));
        return None;
    };
    let known = |name: &str| names.iter().find(|known| **known == name);
    let known = word(name, &names, known, problems)?;
    entry(node, table, name, known, problems)
}

/// The schemas of all entries.
pub(crate) fn schemas<T: Tagged>() -> Vec<Value> {
    T::names().into_iter().map(schema::<T>).collect()
}

fn entry<T: Tagged>(
    node: &Node<'_>,
    table: &DeTable<'_>,
    name: &Node<'_>,
    known: &str,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let before = problems.len();
    let settings = settings::<T>(known);
    let names: Vec<&str> =
        std::iter::once(T::TAG).chain(settings.keys().map(String::as_str)).collect();
    keys(node, &names, problems)?;
    // Each alone, so that every wrong setting is reported at its place.
    for (key, value) in
        table.iter().filter(|(key, _)| settings.contains_key(key.get_ref().as_ref()))
    {
        let alone = [(T::TAG.into(), name.clone()), (key.get_ref().clone(), value.clone())];
        let alone = alone.into_iter().map(|(key, value)| (Spanned::new(0..0, key), value));
        let alone = Spanned::new(node.span(), DeValue::Table(alone.collect()));
        if let Err(error) = T::deserialize(ValueDeserializer::from(alone)) {
            problems.push(Problem::at(value.span(), words(error.message())));
        }
    }
    if problems.len() > before {
        return None;
    }
    match T::deserialize(ValueDeserializer::from(node.clone())) {
        Ok(read) => Some(read),
        Err(error) => {
            problems.push(Problem::at(node.span(), words(error.message())));
            None
        }
    }
}

/// The settings of the entry of this name, with their defaults.
fn settings<T: Tagged>(name: &str) -> Map<String, Value> {
    let default = T::deserialize(json!({ T::TAG: name }));
    let mut settings = match default.and_then(serde_json::to_value) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    settings.remove(T::TAG);
    settings
}

fn schema<T: Tagged>(name: &str) -> Value {
    let mut properties = json!({ T::TAG: { "const": name, "description": "Its name." } });
    for (key, default) in settings::<T>(name) {
        let kind = T::setting(&key).unwrap_or_else(|| match &default {
            Value::Bool(_) => json!({ "type": "boolean" }),
            Value::Number(number) if number.is_u64() => json!({ "type": "integer", "minimum": 0 }),
            Value::Number(_) => json!({ "type": "number" }),
            Value::String(_) => json!({ "type": "string" }),
            _ => json!({}),
        });
        properties[&key] = kind;
        if !default.is_null() {
            properties[&key]["default"] = default;
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": [T::TAG],
        "additionalProperties": false,
    })
}

/// serde's terms, and those of TOML.
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
