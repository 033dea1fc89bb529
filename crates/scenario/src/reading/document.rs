//! A scenario file as a tree of values with their places in the text.

use crate::reading::error::{Finding, Problem, ScenarioError};
use crate::reading::path::{Path, Step, written};
use crate::reading::shape::OrReport as _;
use crate::reading::source::{Override, Place, Source};
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

/// A value and its place in the text.
pub(crate) type Node<'s> = Spanned<DeValue<'s>>;

/// A scenario file as TOML, not yet interpreted. Values can be overridden; each keeps the place
/// where it was written, so that problems point there.
#[derive(Clone, Debug)]
pub(crate) struct Document<'s> {
    source: &'s Source,
    root: Node<'s>,
}

impl<'s> Document<'s> {
    /// Parses the TOML of a file, without the overrides.
    pub(crate) fn parse(source: &'s Source) -> Result<Document<'s>, ScenarioError> {
        let (table, errors) = DeTable::parse_recoverable(source.file());
        if !errors.is_empty() {
            let problem = |error: toml::de::Error| Problem {
                span: error.span(),
                message: format!("not valid TOML: {}", error.message()),
                ..Problem::default()
            };
            let findings = errors.into_iter().map(|error| source.finding(problem(error), None));
            return Err(ScenarioError::new(findings.collect()));
        }
        let root = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
        Ok(Document { root, source })
    }

    /// Parses the TOML of a file and puts the overrides in.
    pub(crate) fn with_overrides(source: &'s Source) -> Result<Document<'s>, ScenarioError> {
        let mut document = Document::parse(source)?;
        let mut problems = Vec::new();
        for addition in source.overrides() {
            let put = value(source, addition)
                .and_then(|value| document.put(&addition.path, &addition.key, &value));
            put.or_report(&mut problems);
        }
        match problems.is_empty() {
            true => Ok(document),
            false => Err(ScenarioError::new(document.findings(problems))),
        }
    }

    /// The tree.
    pub(crate) fn root(&self) -> &Node<'s> {
        &self.root
    }

    /// The text of the tree.
    pub(crate) fn source(&self) -> &'s Source {
        self.source
    }

    /// A key of the outermost table, and its value.
    pub(crate) fn entry(&self, key: &str) -> Option<(&Spanned<Cow<'s, str>>, &Node<'s>)> {
        self.root.get_ref().as_table()?.get_key_value(key)
    }

    /// The place of the innermost of these keys that exists, from the outermost on.
    pub(crate) fn span(&self, path: &[&str]) -> Option<Range<usize>> {
        let mut node = &self.root;
        let mut span = None;
        for step in path {
            let inner = match node.get_ref() {
                DeValue::Table(table) => table.get(*step),
                DeValue::Array(array) => step.parse().ok().and_then(|at: usize| array.get(at)),
                _ => None,
            };
            let Some(inner) = inner else { break };
            (node, span) = (inner, Some(inner.span()));
        }
        span
    }

    /// Sets the value at a path, whose key was written at `key`. Missing tables are made.
    pub(crate) fn put(
        &mut self,
        path: &Path,
        key: &Range<usize>,
        value: &Node<'s>,
    ) -> Result<(), Problem> {
        Put { path, key, value }.below(&mut self.root, 0)
    }

    /// Removes a key of the outermost table.
    pub(crate) fn remove(&mut self, key: &str) {
        if let DeValue::Table(table) = self.root.get_mut() {
            table.remove(key);
        }
    }

    /// Problems with their places, as reported to the user.
    pub(crate) fn findings(&self, problems: Vec<Problem>) -> Vec<Finding> {
        let finding = |problem: Problem| {
            let place = problem.span.as_ref().and_then(|span| self.locate(span));
            self.source.finding(problem, place)
        };
        problems.into_iter().map(finding).collect()
    }

    /// The innermost value or key that was written around `span`.
    fn locate(&self, span: &Range<usize>) -> Option<Place> {
        let mut search = Search { span, best: None };
        search.value(&self.root, "");
        search.best.map(|(_, place)| place)
    }
}

/// A value, and the path where it is set.
struct Put<'a, 's> {
    path: &'a Path,
    key: &'a Range<usize>,
    value: &'a Node<'s>,
}

impl<'s> Put<'_, 's> {
    /// Sets the value below `node`, which is at the first `depth` steps of the path.
    fn below(&self, node: &mut Node<'s>, depth: usize) -> Result<(), Problem> {
        let Some(step) = self.path.steps().get(depth) else {
            *node = self.value.clone();
            return Ok(());
        };
        match (node.get_mut(), step) {
            (DeValue::Table(table), Step::Every) => {
                table.iter_mut().try_for_each(|(_, inner)| self.below(inner, depth + 1))
            }
            (DeValue::Array(array), Step::Every) => {
                array.iter_mut().try_for_each(|inner| self.below(inner, depth + 1))
            }
            (DeValue::Table(table), Step::Name(name)) => match table.get_mut(name.as_str()) {
                Some(inner) => self.below(inner, depth + 1),
                None => {
                    let mut inner = self.make(depth + 1)?;
                    self.below(&mut inner, depth + 1)?;
                    table.insert(Spanned::new(self.key.clone(), Cow::Owned(name.clone())), inner);
                    Ok(())
                }
            },
            (DeValue::Array(array), Step::Name(name)) => {
                let len = array.len();
                let index = name.parse::<usize>().ok();
                match index.and_then(|index| array.get_mut(index)) {
                    Some(inner) => self.below(inner, depth + 1),
                    None => Err(self.problem(format!(
                        "`{}` has {len} {}, counted from 0: there is no `{name}`",
                        self.path.first(depth),
                        if len == 1 { "entry" } else { "entries" },
                    ))),
                }
            }
            (other, _) => Err(self.problem(format!(
                "`{}` is of type {} here: expected a table or an array",
                self.path.first(depth),
                other.type_str()
            ))),
        }
    }

    /// An empty table at the first `depth` steps of the path, unless an array is expected there.
    fn make(&self, depth: usize) -> Result<Node<'s>, Problem> {
        match self.path.steps().get(depth) {
            Some(Step::Name(name)) if name.parse::<usize>().is_err() => {}
            None => {}
            _ => return Err(self.problem(format!("there is no `{}`", self.path.first(depth)))),
        }
        Ok(Spanned::new(self.key.clone(), DeValue::Table(DeTable::new())))
    }

    fn problem(&self, message: String) -> Problem {
        Problem { key: Some(self.path.to_string()), ..Problem::at(self.key.clone(), message) }
    }
}

/// A search for the value or key at a place.
struct Search<'a> {
    span: &'a Range<usize>,
    /// The shortest match so far, and its length.
    best: Option<(usize, Place)>,
}

impl Search<'_> {
    fn value(&mut self, node: &Node<'_>, path: &str) {
        let plain = !matches!(node.get_ref(), DeValue::Table(_) | DeValue::Array(_));
        self.offer(&node.span(), path, plain);
        match node.get_ref() {
            DeValue::Table(table) => {
                for (key, inner) in table {
                    let name = written(key.get_ref());
                    let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                    self.offer(&key.span(), &path, false);
                    self.value(inner, &path);
                }
            }
            DeValue::Array(array) => {
                for (index, inner) in array.iter().enumerate() {
                    self.value(inner, &format!("{path}.{index}"));
                }
            }
            _ => {}
        }
    }

    fn offer(&mut self, range: &Range<usize>, path: &str, plain: bool) {
        let inside = range.start <= self.span.start && self.span.end <= range.end;
        if inside && self.best.as_ref().is_none_or(|(len, _)| range.len() <= *len) {
            self.best = Some((range.len(), Place { path: path.to_owned(), plain }));
        }
    }
}

/// An override's value as a tree.
pub(crate) fn value<'s>(source: &'s Source, addition: &Override) -> Result<Node<'s>, Problem> {
    let text = source.text(&addition.value).unwrap_or_default();
    match DeValue::parse(text) {
        Ok(node) => Ok(shifted(node, addition.value.start)),
        Err(error) => {
            let message = format!("not a value of TOML: {}", error.message());
            Err(Problem::at(addition.value.clone(), message))
        }
    }
}

/// The value without its place.
pub(crate) fn plain(node: &Node<'_>) -> Result<Value, toml::de::Error> {
    Value::deserialize(ValueDeserializer::from(node.clone()))
}

/// The same value, its place moved on by `by` bytes.
fn shifted<'s>(node: Node<'s>, by: usize) -> Node<'s> {
    let span = node.span().start + by..node.span().end + by;
    let value = match node.into_inner() {
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(key, inner)| {
                    let span = key.span().start + by..key.span().end + by;
                    (Spanned::new(span, key.into_inner()), shifted(inner, by))
                })
                .collect(),
        ),
        DeValue::Array(array) => {
            DeValue::Array(array.into_iter().map(|inner| shifted(inner, by)).collect())
        }
        other => other,
    };
    Spanned::new(span, value)
}
