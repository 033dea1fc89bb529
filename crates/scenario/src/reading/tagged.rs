//! An entry of a table (of boxes, mechanisms, increase functions), by its name, with its settings.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Positive, Written};
use crate::reading::shape::{Shape as _, integer, keys, number, prose, unexpected, word};
use base::settings::{Entry, Key, Kind, Table};
use base::{Duration, Rate};
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

/// The entry that a table with a name and settings describes.
pub(crate) fn read<T: Table>(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<T> {
    read_beside(node, |_| Vec::new(), problems)
}

/// The same of a table that has other keys besides, by the name of the entry. They are not read.
pub(crate) fn read_beside<T: Table>(
    node: &Node<'_>,
    others: impl Fn(&str) -> Vec<&'static str>,
    problems: &mut Vec<Problem>,
) -> Option<T> {
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
    let known = |name: &str| T::ENTRIES.iter().find(|known| known.name == name);
    let known = word(name, &names, known, problems)?;
    let others = others(known.name);
    let mut alone = node.clone();
    if let DeValue::Table(table) = alone.get_mut() {
        for key in &others {
            table.remove(*key);
        }
    }
    entry(&alone, name, (known, &others), problems)
}

/// The schemas of all entries.
pub(crate) fn schemas<T: Table>() -> Vec<Value> {
    T::ENTRIES.iter().map(schema::<T>).collect()
}

fn entry<T: Table>(
    node: &Node<'_>,
    name: &Node<'_>,
    (known, others): (&Entry, &[&str]),
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let before = problems.len();
    let names = core::iter::once(T::TAG).chain(known.keys.iter().map(|key| key.name));
    let names: Vec<&str> = names.chain(others.iter().copied()).collect();
    let table = keys(node, &names, problems)?;
    // Each alone, so that every wrong setting is reported at its place.
    for key in known.keys {
        let Some((written, value)) = table.get_key_value(key.name) else { continue };
        let alone = [(T::TAG.into(), name.clone()), (written.get_ref().clone(), value.clone())];
        let alone = alone.into_iter().map(|(key, value)| (Spanned::new(0..0, key), value));
        let alone = Spanned::new(node.span(), DeValue::Table(alone.collect()));
        // Bounds of the key are narrower than those of the value's type.
        if !check(key.kind, value, problems) {
            continue;
        }
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

/// Checks the bounds that the type of a setting does not have. Says whether the value keeps them, or is
/// of another type.
fn check(kind: Kind, value: &Node<'_>, problems: &mut Vec<Problem>) -> bool {
    let inside = match kind {
        Kind::Whole { least } => {
            integer(value).is_none_or(|number| u64::try_from(number).is_ok_and(|n| n >= least))
        }
        Kind::Number { least, most } => number(value).is_none_or(|n| (least..=most).contains(&n)),
        Kind::Weight => number(value).is_none_or(|n| n > 0.0 && n <= 1.0),
        _ => true,
    };
    if !inside {
        problems.push(Problem::at(value.span(), format!("expected {kind:?}")));
    }
    inside
}

/// The entry of this name with its defaults, if it needs no setting.
pub(crate) fn default<T: Table>(name: &str) -> Option<T> {
    T::deserialize(json!({ T::TAG: name })).ok()
}

/// The settings of the entry of this name, with their defaults.
fn defaults<T: Table>(name: &str) -> Value {
    default::<T>(name).map(serde_json::to_value).and_then(Result::ok).unwrap_or_default()
}

fn schema<T: Table>(entry: &Entry) -> Value {
    let mut properties = json!({ T::TAG: { "const": entry.name, "description": "Its name." } });
    let defaults = defaults::<T>(entry.name);
    for key in entry.keys {
        let mut schema = described::<T>(key);
        if let Some(default) = defaults.get(key.name).filter(|default| !default.is_null()) {
            schema["default"] = default.clone();
        }
        properties[key.name] = schema;
    }
    json!({
        "description": prose(entry.about),
        "type": "object",
        "properties": properties,
        "required": [T::TAG],
        "additionalProperties": false,
    })
}

/// The schema of the name of an entry, or of a table with its settings.
pub(crate) fn name_or_table<T: Table>(names: &[&str]) -> Value {
    let entries = T::ENTRIES.iter().filter(|entry| names.contains(&entry.name));
    let mut forms = vec![json!({ "enum": names })];
    forms.extend(entries.map(schema::<T>));
    json!({ "anyOf": forms })
}

fn described<T: Table>(key: &Key) -> Value {
    let mut schema = value::<T>(key.kind);
    schema["description"] = prose(key.about).into();
    schema
}

/// The schema of a kind of value.
fn value<T: Table>(kind: Kind) -> Value {
    match kind {
        Kind::Flag => bool::schema(),
        Kind::Whole { least } => json!({ "type": "integer", "minimum": least }),
        Kind::Number { least, most } => {
            let mut schema = json!({ "type": "number" });
            for (key, bound) in [("minimum", least), ("maximum", most)] {
                if bound.is_finite() {
                    schema[key] = bound.into();
                }
            }
            schema
        }
        Kind::Positive => Positive::schema(),
        Kind::Weight => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        Kind::Duration => Written::<Duration>::schema(),
        Kind::Rate => Written::<Rate>::schema(),
        Kind::Bytes => Amount::schema(),
        Kind::Text => String::schema(),
        Kind::Words(words) => match words() {
            [word] => json!({ "const": word }),
            words => json!({ "enum": words }),
        },
        Kind::Another(names) => name_or_table::<T>(names),
        Kind::List(of) => json!({ "type": "array", "items": value::<T>(*of) }),
        Kind::Either(kinds) => {
            let kinds = kinds.iter().map(|kind| value::<T>(*kind));
            json!({ "anyOf": kinds.collect::<Vec<_>>() })
        }
        Kind::Settings(keys) => {
            let property = |key: &Key| (key.name.to_owned(), described::<T>(key));
            let properties: Map<_, _> = keys.iter().map(property).collect();
            let needed = keys.iter().filter(|key| key.needed).map(|key| key.name);
            json!({
                "type": "object",
                "properties": properties,
                "required": needed.collect::<Vec<_>>(),
                "additionalProperties": false,
            })
        }
    }
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
    ("missing field", "missing key"),
    ("unknown variant", "unknown name"),
];

fn words(message: &str) -> String {
    WORDS.iter().fold(message.to_owned(), |text, (serde, toml)| text.replacen(serde, toml, 1))
}
