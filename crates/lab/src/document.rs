//! A scenario as a tree of values that know where they were written.

use crate::error::{Finding, Problem, ScenarioError};
use crate::path::{Path, Step, written};
use crate::source::{Place, Source};
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

/// A value and where it was written.
pub(crate) type Node<'s> = Spanned<DeValue<'s>>;

/// A scenario before anybody has looked at what it means. Values can be put in; each keeps the
/// place where it was written, so that whatever is wrong with it later is told of that place.
#[derive(Clone, Debug)]
pub(crate) struct Document<'s> {
    source: &'s Source,
    root: Node<'s>,
}

impl<'s> Document<'s> {
    /// Reads TOML; what is to be put in from outside is left out.
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

    /// The tree.
    pub(crate) fn root(&self) -> &Node<'s> {
        &self.root
    }

    /// Where the tree was written.
    pub(crate) fn source(&self) -> &'s Source {
        self.source
    }

    /// What stands at a key of the outermost table, and the key.
    pub(crate) fn entry(&self, key: &str) -> Option<(&Spanned<Cow<'s, str>>, &Node<'s>)> {
        self.root.get_ref().as_table()?.get_key_value(key)
    }

    /// Where the last of these keys was written that there is, from the outermost on.
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

    /// Puts a value in, whose key was written at `key`. Tables that are not there are made.
    pub(crate) fn put(
        &mut self,
        path: &Path,
        key: &Range<usize>,
        value: &Node<'s>,
    ) -> Result<(), Problem> {
        Put { path, key, value }.below(&mut self.root, 0)
    }

    /// Takes out what stands at a key of the outermost table.
    pub(crate) fn remove(&mut self, key: &str) {
        if let DeValue::Table(table) = self.root.get_mut() {
            table.remove(key);
        }
    }

    /// Problems as their reader sees them.
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

/// A value on its way to its place.
struct Put<'a, 's> {
    path: &'a Path,
    key: &'a Range<usize>,
    value: &'a Node<'s>,
}

impl<'s> Put<'_, 's> {
    /// Goes into `node`, which stands at the first `depth` steps of the path.
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
                        "`{}` has {len} {}, counted from 0, and no `{name}`",
                        self.path.first(depth),
                        if len == 1 { "entry" } else { "entries" },
                    ))),
                }
            }
            (other, _) => Err(self.problem(format!(
                "`{}` is no table or array here, but of type {}",
                self.path.first(depth),
                other.type_str()
            ))),
        }
    }

    /// An empty table for the first `depth` steps of the path, if that is what should be there.
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

/// A search for what was written at a place.
struct Search<'a> {
    span: &'a Range<usize>,
    /// The shortest so far that contains it, and its length.
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

/// The value alone.
pub(crate) fn plain(node: &Node<'_>) -> Result<Value, toml::de::Error> {
    Value::deserialize(ValueDeserializer::from(node.clone()))
}

/// The same value, written `by` bytes further on.
pub(crate) fn shifted<'s>(node: Node<'s>, by: usize) -> Node<'s> {
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
