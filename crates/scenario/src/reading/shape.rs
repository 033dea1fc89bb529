//! Shapes of values: one definition from which a value is read and the schema is made.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::nearest::{did_you_mean, nearest, one_of};
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A kind of value that a key can hold.
pub(crate) trait Shape: Sized {
    /// The value at `node`. Its problems are added to `problems`; `None` if it is unusable.
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Self>;

    /// The same as a JSON Schema (2020-12).
    fn schema() -> Value;
}

/// Declares a table: the keys that it may have, what each means, and what it holds.
///
/// A key is `name: Shape;`, or `name: Shape, needed;`, or `name: Shape = default;`; one that is no
/// identifier is written `name as "key": Shape;`. The struct has a field for each: an `Option`, or,
/// with a default, the value itself. Every key is read even if another has a problem; a needed one that
/// is missing is a problem.
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $Table:ident {
            $(
                $(#[doc = $doc:literal])*
                $key:ident $(as $name:literal)?: $Shape:ty $(= $default:expr)? $(, $needed:ident)?;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug)]
        #[allow(dead_code)] // A key may be read elsewhere, as `sweep` is.
        $vis struct $Table {
            $($(#[doc = $doc])* $vis $key: $crate::reading::shape::table!(@field $Shape $(, $default)?),)*
        }

        /// A table without keys.
        impl Default for $Table {
            fn default() -> $Table {
                $Table { $($key: $crate::reading::shape::table!(@absent $(, $default)?),)* }
            }
        }

        impl $crate::reading::shape::Table for $Table {
            const ABOUT: &[&str] = &[$($about),*];

            fn keys() -> Vec<&'static str> {
                vec![$($crate::reading::shape::table!(@name $key $(, $name)?)),*]
            }

            #[allow(unused_variables)] // Not all tables have keys that are needed, or any.
            fn fields(
                node: &$crate::reading::document::Node<'_>,
                table: &toml::de::DeTable<'_>,
                known: &[&str],
                problems: &mut Vec<$crate::reading::error::Problem>,
            ) -> $Table {
                $(
                    let key = $crate::reading::shape::table!(@name $key $(, $name)?);
                    $($crate::reading::shape::$needed(node, table, known, key, problems);)?
                )*
                $Table {
                    $($key: {
                        let key = $crate::reading::shape::table!(@name $key $(, $name)?);
                        let value = $crate::reading::shape::at::<$Shape>(table, key, problems);
                        $(let value = value.unwrap_or_else(|| $default);)?
                        value
                    },)*
                }
            }

            #[allow(unused_variables)] // Likewise.
            fn describe(keys: &mut $crate::reading::shape::Keys) {
                $(
                    let key = $crate::reading::shape::table!(@name $key $(, $name)?);
                    keys.add::<$Shape>(key, &[$($doc),*]);
                    $(keys.left_out(key, &$default);)?
                    $(keys.$needed(key);)?
                )*
            }
        }

        impl $crate::reading::shape::Shape for $Table {
            fn read(
                node: &$crate::reading::document::Node<'_>,
                problems: &mut Vec<$crate::reading::error::Problem>,
            ) -> Option<$Table> {
                $crate::reading::shape::read_table(node, problems)
            }

            fn schema() -> serde_json::Value {
                $crate::reading::shape::table_schema::<$Table>()
            }
        }
    };
    (@name $key:ident) => { stringify!($key) };
    (@name $key:ident, $name:literal) => { $name };
    (@field $Shape:ty) => { Option<$Shape> };
    (@field $Shape:ty, $default:expr) => { $Shape };
    (@absent) => { None };
    (@absent, $default:expr) => { $default };
}
pub(crate) use table;

/// A kind of table, whose keys can be combined with those of another.
pub(crate) trait Table: Sized {
    /// Its description, by lines.
    const ABOUT: &[&str];

    /// Its keys.
    fn keys() -> Vec<&'static str>;

    /// The values of its keys in `table`, which is at `node` and may have the keys `known`.
    fn fields(
        node: &Node<'_>,
        table: &DeTable<'_>,
        known: &[&str],
        problems: &mut Vec<Problem>,
    ) -> Self;

    /// Adds its keys to a schema.
    fn describe(keys: &mut Keys);
}

/// [`Shape::read`] of a [`Table`].
pub(crate) fn read_table<T: Table>(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<T> {
    let known = T::keys();
    let table = keys(node, &known, problems)?;
    Some(T::fields(node, table, &known, problems))
}

/// [`Shape::schema`] of a [`Table`].
pub(crate) fn table_schema<T: Table>() -> Value {
    let mut keys = Keys::default();
    T::describe(&mut keys);
    keys.schema(T::ABOUT)
}

/// A table with the keys of two kinds.
#[derive(Debug)]
pub(crate) struct Both<A, B>(pub(crate) A, pub(crate) B);

impl<A: Table, B: Table> Table for Both<A, B> {
    const ABOUT: &[&str] = A::ABOUT;

    fn keys() -> Vec<&'static str> {
        [A::keys(), B::keys()].concat()
    }

    fn fields(
        node: &Node<'_>,
        table: &DeTable<'_>,
        known: &[&str],
        problems: &mut Vec<Problem>,
    ) -> Both<A, B> {
        Both(A::fields(node, table, known, problems), B::fields(node, table, known, problems))
    }

    fn describe(keys: &mut Keys) {
        A::describe(keys);
        B::describe(keys);
    }
}

impl<A: Table, B: Table> Shape for Both<A, B> {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Both<A, B>> {
        read_table(node, problems)
    }

    fn schema() -> Value {
        table_schema::<Both<A, B>>()
    }
}

/// The table at `node`, with its keys checked.
pub(crate) fn keys<'a, 's>(
    node: &'a Node<'s>,
    known: &[&str],
    problems: &mut Vec<Problem>,
) -> Option<&'a DeTable<'s>> {
    let Some(table) = node.get_ref().as_table() else {
        return unexpected(node, "a table", problems);
    };
    for (key, _) in table {
        let name = key.get_ref().as_ref();
        if !known.contains(&name) {
            let expected = match known {
                [] => "expected an empty table".to_owned(),
                known => format!("expected {}", one_of(known)),
            };
            let message = format!("unknown key `{name}`, {expected}");
            let help = did_you_mean(name, known);
            problems.push(Problem { help, ..Problem::at(key.span(), message) });
        }
    }
    Some(table)
}

/// The value of a key, if there is one.
pub(crate) fn at<T: Shape>(
    table: &DeTable<'_>,
    key: &str,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    table.get(key).and_then(|node| T::read(node, problems))
}

/// Reports a needed key that is missing, unless it is only misspelt.
pub(crate) fn needed(
    node: &Node<'_>,
    table: &DeTable<'_>,
    known: &[&str],
    key: &str,
    problems: &mut Vec<Problem>,
) {
    let mut unknown = table.keys().map(|key| key.get_ref().as_ref()).filter(|k| !known.contains(k));
    if !table.contains_key(key) && !unknown.any(|unknown| nearest(unknown, known) == Some(key)) {
        problems.push(Problem::at(node.span(), format!("missing key `{key}`")));
    }
}

/// The schema of a table, as its keys are added.
#[derive(Default)]
pub(crate) struct Keys {
    properties: Map<String, Value>,
    needed: Vec<&'static str>,
}

impl Keys {
    pub(crate) fn add<T: Shape>(&mut self, key: &str, doc: &[&str]) {
        let mut schema = T::schema();
        schema["description"] = prose(doc).into();
        self.properties.insert(key.to_owned(), schema);
    }

    pub(crate) fn left_out(&mut self, key: &str, value: &impl serde::Serialize) {
        if let Ok(value) = serde_json::to_value(value) {
            self.properties[key]["default"] = value;
        }
    }

    pub(crate) fn needed(&mut self, key: &'static str) {
        self.needed.push(key);
    }

    pub(crate) fn schema(self, about: &[&str]) -> Value {
        let mut schema = json!({
            "description": prose(about),
            "type": "object",
            "properties": self.properties,
            "additionalProperties": false,
        });
        if !self.needed.is_empty() {
            schema["required"] = json!(self.needed);
        }
        schema
    }
}

/// The lines of a comment as one.
pub(crate) fn prose(lines: &[&str]) -> String {
    let lines = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Reports an unusable value.
pub(crate) fn unexpected<T>(
    node: &Node<'_>,
    expected: &str,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let found = match node.get_ref() {
        // The message shows it anyway.
        DeValue::String(_) => String::new(),
        DeValue::Integer(integer) => format!("found integer `{}`, ", integer.as_str()),
        DeValue::Float(float) => format!("found number `{}`, ", float.as_str()),
        DeValue::Boolean(boolean) => format!("found boolean `{boolean}`, "),
        DeValue::Datetime(date) => format!("found date `{date}`, "),
        DeValue::Array(_) => "found a list, ".to_owned(),
        DeValue::Table(_) => "found a table, ".to_owned(),
    };
    problems.push(Problem::at(node.span(), format!("{found}expected {expected}")));
    None
}

/// A whole number.
pub(crate) fn integer(node: &Node<'_>) -> Option<i64> {
    let integer = node.get_ref().as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A number.
pub(crate) fn number(node: &Node<'_>) -> Option<f64> {
    match node.get_ref() {
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => integer(node).map(|integer| integer as f64),
    }
}

/// One of these words.
pub(crate) fn word<T>(
    node: &Node<'_>,
    words: &[&str],
    meaning: impl FnOnce(&str) -> Option<T>,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let Some(text) = node.get_ref().as_str() else {
        return unexpected(node, &one_of(words), problems);
    };
    meaning(text).or_else(|| {
        let message = format!("unknown name `{text}`, expected {}", one_of(words));
        let help = did_you_mean(text, words);
        problems.push(Problem { help, ..Problem::at(node.span(), message) });
        None
    })
}

/// A result whose error is added to the problems.
pub(crate) trait OrReport<T> {
    /// The value; an error is added to the problems.
    fn or_report(self, problems: &mut Vec<Problem>) -> Option<T>;
}

impl<T> OrReport<T> for Result<T, Problem> {
    fn or_report(self, problems: &mut Vec<Problem>) -> Option<T> {
        self.map_err(|problem| problems.push(problem)).ok()
    }
}

impl<T: Shape> Shape for Spanned<T> {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Spanned<T>> {
        T::read(node, problems).map(|value| Spanned::new(node.span(), value))
    }

    fn schema() -> Value {
        T::schema()
    }
}

/// A value that is present even if it is unusable, so that it is not reported as missing.
#[derive(Debug)]
pub(crate) struct Tried<T>(pub(crate) Option<T>);

impl<T: Shape> Shape for Tried<T> {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Tried<T>> {
        Some(Tried(T::read(node, problems)))
    }

    fn schema() -> Value {
        T::schema()
    }
}

/// A list holds its usable entries.
impl<T: Shape> Shape for Vec<T> {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Vec<T>> {
        let Some(list) = node.get_ref().as_array() else {
            return unexpected(node, "a list", problems);
        };
        Some(list.iter().filter_map(|entry| T::read(entry, problems)).collect())
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// A list that is not empty.
#[derive(Debug)]
pub(crate) struct AtLeastOne<T>(pub(crate) Vec<T>);

impl<T: Shape> Shape for AtLeastOne<T> {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<AtLeastOne<T>> {
        if node.get_ref().as_array().is_some_and(|list| list.is_empty()) {
            problems.push(Problem::at(node.span(), "expected at least one entry"));
        }
        Vec::read(node, problems).map(AtLeastOne)
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema(), "minItems": 1 })
    }
}

impl Shape for String {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        match node.get_ref().as_str() {
            Some(text) => Some(text.to_owned()),
            None => unexpected(node, "a text in quotes", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Shape for bool {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<bool> {
        node.get_ref().as_bool().or_else(|| unexpected(node, "true or false", problems))
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}
