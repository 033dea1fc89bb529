//! `[sweep]`: the keys that are varied, their values and the combinations of these.

use crate::reading::document::{Document, Node, plain};
use crate::reading::error::Problem;
use crate::reading::path::{Path, Step};
use crate::reading::shape::{OrReport as _, integer, number};
use crate::reading::source::Source;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value as Plain};

/// All combinations of the values of some axes, the first axis changing slowest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid<'s> {
    axes: Vec<Axis<'s>>,
    /// Seeds per point, if the file sets them.
    pub(crate) seeds: Option<u64>,
    /// Where it is written.
    pub(crate) span: Option<Range<usize>>,
}

/// Keys that vary together: one key, or those of one table in `zip`.
#[derive(Clone, Debug)]
struct Axis<'s> {
    keys: Vec<Key<'s>>,
    len: usize,
    /// Written in `zip`.
    zipped: bool,
}

/// A swept key and its values.
#[derive(Clone, Debug)]
pub(crate) struct Key<'s> {
    /// Its path as written.
    pub(crate) name: String,
    /// Its path.
    pub(crate) path: Path,
    /// Where it was written.
    pub(crate) span: Range<usize>,
    values: Vec<Node<'s>>,
}

/// Values of a swept key, all of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum SweptValues {
    /// True or false.
    Boolean(Vec<bool>),
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Numbers.
    Float(Vec<f64>),
    /// Anything else, as it was written; texts without their quotes.
    Text(Vec<String>),
}

impl<'s> Grid<'s> {
    /// The grid of a document; one point for one without `[sweep]`. Invalid keys are left out.
    pub(crate) fn read(document: &Document<'s>, problems: &mut Vec<Problem>) -> Grid<'s> {
        let Some((key, node)) = document.entry("sweep") else { return Grid::default() };
        let mut grid = Grid { span: Some(key.span()), ..Grid::default() };
        let Some(table) = table(node).or_report(problems) else { return grid };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "seeds" => grid.seeds = seeds(value).or_report(problems),
                "zip" => {
                    let tables = array(value, "tables, such as [{ \"a.b\" = [1, 2] }]");
                    for columns in tables.or_report(problems).unwrap_or_default() {
                        grid.axes.extend(zipped(columns, problems));
                    }
                }
                _ => {
                    let key = Key::read(key, value).or_report(problems);
                    grid.axes.extend(key.map(|key| Axis {
                        len: key.values.len(),
                        keys: vec![key],
                        zipped: false,
                    }));
                }
            }
        }
        let keys: Vec<_> = grid.keys().collect();
        for (index, key) in keys.iter().enumerate() {
            if keys[..index].iter().any(|other| other.path == key.path) {
                problems.push(Problem::at(
                    key.span.clone(),
                    "expected each key once: it is swept already",
                ));
            }
        }
        grid
    }

    /// The number of points; `None` beyond 2^64.
    pub(crate) fn points(&self) -> Option<u64> {
        self.axes.iter().try_fold(1u64, |points, axis| points.checked_mul(axis.len as u64))
    }

    /// The swept keys, in the order in which they were written.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key<'s>> {
        self.axes.iter().flat_map(|axis| &axis.keys)
    }

    /// The values of every key at a point.
    pub(crate) fn values(&self, point: u64) -> Vec<(&Key<'s>, &Node<'s>)> {
        let mut rest = point;
        let mut indexes = vec![0; self.axes.len()];
        for (index, axis) in indexes.iter_mut().zip(&self.axes).rev() {
            *index = (rest % axis.len as u64) as usize;
            rest /= axis.len as u64;
        }
        let axes = self.axes.iter().zip(indexes);
        axes.flat_map(|(axis, index)| axis.keys.iter().map(move |key| (key, &key.values[index])))
            .collect()
    }

    /// `[sweep]` as a table; empty without one.
    pub(crate) fn document(&self) -> Result<Table, toml::de::Error> {
        let mut table = Table::new();
        if let Some(seeds) = self.seeds {
            table.insert("seeds".to_owned(), Plain::Integer(seeds as i64));
        }
        for axis in &self.axes {
            let columns = axis.keys.iter().map(|key| {
                let values: Result<_, _> = key.values.iter().map(plain).collect();
                Ok((key.name.clone(), Plain::Array(values?)))
            });
            let columns = columns.collect::<Result<Table, toml::de::Error>>()?;
            if !axis.zipped {
                table.extend(columns);
            } else if let Plain::Array(zip) =
                table.entry("zip").or_insert_with(|| Plain::Array(Vec::new()))
            {
                zip.push(Plain::Table(columns));
            }
        }
        Ok(table)
    }

    /// Sets the swept keys at this path to one value at all points. Points that become equal are
    /// merged.
    pub(crate) fn pin(&mut self, path: &Path, value: &Node<'s>, source: &Source) {
        let pinned =
            |key: &Key<'s>| path.covers(&key.path) && path.steps().len() == key.path.steps().len();
        for axis in self.axes.iter_mut().filter(|axis| axis.keys.iter().any(pinned)) {
            for key in axis.keys.iter_mut().filter(|key| pinned(key)) {
                key.values.fill(value.clone());
            }
            axis.merge(source);
        }
    }
}

impl Axis<'_> {
    /// Keeps the first of equal combinations.
    fn merge(&mut self, source: &Source) {
        let combination = |index: usize| -> Vec<String> {
            self.keys.iter().map(|key| text(source, &key.values[index])).collect()
        };
        let mut seen = BTreeSet::new();
        let kept: Vec<usize> =
            (0..self.len).filter(|&index| seen.insert(combination(index))).collect();
        for key in &mut self.keys {
            key.values = kept.iter().map(|&index| key.values[index].clone()).collect();
        }
        self.len = kept.len();
    }
}

impl<'s> Key<'s> {
    fn read(key: &Spanned<toml::de::DeString<'s>>, node: &Node<'s>) -> Result<Key<'s>, Problem> {
        let name = key.get_ref().as_ref();
        let problem = |message: String| {
            Problem::at(key.span(), message)
                .help("[sweep] knows `seeds`, `zip`, and dotted paths in quotes")
        };
        let path: Path = name.parse().map_err(|error| problem(format!("{error}")))?;
        if path.steps().first() == Some(&Step::Name("sweep".to_owned())) {
            return Err(problem("a sweep cannot sweep itself".to_owned()));
        }
        let values = array(node, "a list of values")?;
        if values.is_empty() {
            return Err(Problem::at(node.span(), "expected at least one value"));
        }
        Ok(Key { name: name.to_owned(), path, span: key.span(), values: values.to_vec() })
    }

    /// All its values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Node<'s>> {
        self.values.iter()
    }

    /// These of the key's values, numbers only if all its values are numbers.
    pub(crate) fn typed<'a>(
        &self,
        source: &Source,
        values: impl Iterator<Item = &'a Node<'s>>,
    ) -> SweptValues
    where
        's: 'a,
    {
        let every = |test: fn(&Node<'s>) -> bool| self.values.iter().all(test);
        if every(|value| value.get_ref().is_bool()) {
            SweptValues::Boolean(values.filter_map(|value| value.get_ref().as_bool()).collect())
        } else if every(|value| integer(value).is_some()) {
            SweptValues::Integer(values.filter_map(integer).collect())
        } else if every(|value| number(value).is_some()) {
            SweptValues::Float(values.filter_map(number).collect())
        } else {
            SweptValues::Text(values.map(|value| text(source, value)).collect())
        }
    }
}

/// A value as written; texts without their quotes.
pub(crate) fn text(source: &Source, value: &Node<'_>) -> String {
    match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        _ => source.text(&value.span()).unwrap_or_default().to_owned(),
    }
}

fn zipped<'s>(node: &Node<'s>, problems: &mut Vec<Problem>) -> Option<Axis<'s>> {
    let table = table(node).or_report(problems)?;
    if table.is_empty() {
        problems.push(Problem::at(node.span(), "expected at least one key"));
    }
    let keys = table.iter().filter_map(|(key, value)| Key::read(key, value).or_report(problems));
    let keys: Vec<Key<'s>> = keys.collect();
    let len = keys.first()?.values.len();
    for key in keys.iter().filter(|key| key.values.len() != len) {
        let (other, first) = (key.values.len(), &keys[0].name);
        let message = format!("{other} values here, {len} of `{first}`: expected the same number");
        problems.push(Problem::at(key.span.clone(), message));
    }
    keys.iter().all(|key| key.values.len() == len).then_some(Axis { keys, len, zipped: true })
}

fn table<'a, 's>(node: &'a Node<'s>) -> Result<&'a DeTable<'s>, Problem> {
    node.get_ref().as_table().ok_or_else(|| {
        let message = "expected a table with keys such as \"links.0.errors.bit\" = [0, 1e-6]";
        Problem::at(node.span(), message)
    })
}

fn array<'a, 's>(node: &'a Node<'s>, expected: &str) -> Result<&'a [Node<'s>], Problem> {
    match node.get_ref() {
        DeValue::Array(array) => Ok(array),
        _ => Err(Problem::at(node.span(), format!("expected {expected}"))),
    }
}

fn seeds(node: &Node<'_>) -> Result<u64, Problem> {
    match integer(node).map(u64::try_from) {
        Some(Ok(seeds)) if seeds > 0 => Ok(seeds),
        _ => Err(Problem::at(node.span(), "expected the number of seeds per point, at least 1")),
    }
}

/// `[sweep]` as a JSON Schema.
pub(crate) fn schema() -> Value {
    let columns = json!({ "type": "array", "minItems": 1 });
    json!({
        "type": "object",
        "properties": {
            "seeds": {
                "description": "Runs of each point, with the seeds 1, 2, 3, ...",
                "type": "integer",
                "minimum": 1,
                "default": 1,
            },
            "zip": {
                "description": "Tables of columns that go together: dotted paths with as many \
                                values each.",
                "type": "array",
                "items": { "type": "object", "minProperties": 1, "additionalProperties": columns },
            },
        },
        "additionalProperties": columns,
    })
}
