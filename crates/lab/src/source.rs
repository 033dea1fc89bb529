//! The texts that a scenario is made of.

use crate::error::{Problem, ScenarioError};
use crate::path::Path;
use std::ops::Range;

pub use toml::Value;

/// A scenario file, and what is put into it from outside, before anybody has looked at either.
///
/// One numbering of bytes serves for all texts: first the file, then what was put in, so that
/// every problem can be shown where it was written.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    file: String,
    /// What was put in, one `path = value` a line.
    additions: String,
    overrides: Vec<Override>,
}

/// A value put into a scenario from outside.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    /// Where it goes.
    pub(crate) path: Path,
    /// Where the path was written.
    pub(crate) key: Range<usize>,
    /// Where the value was written.
    pub(crate) value: Range<usize>,
}

/// What stands at a place of the texts.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The path of the value, or of the value whose key is there.
    pub(crate) path: String,
    /// It is a value, and neither a key nor made up of others.
    pub(crate) plain: bool,
}

/// Characters; a longer value is not repeated in a message.
const LONGEST_VALUE: usize = 60;

impl Source {
    /// The text of a file and the name by which reports call it.
    #[must_use]
    pub fn new(file: impl Into<String>, name: impl Into<String>) -> Source {
        Source {
            name: name.into(),
            file: file.into(),
            additions: String::new(),
            overrides: Vec::new(),
        }
    }

    /// Puts a value at a dotted path, such as `links.0.errors.bit`, instead of what the file says.
    ///
    /// # Errors
    /// If the path is none.
    pub fn put(&mut self, path: &str, value: &Value) -> Result<(), ScenarioError> {
        let key = self.end()..self.end() + path.len();
        self.additions.push_str(path);
        self.additions.push_str(" = ");
        let start = self.end();
        self.additions.push_str(&value.to_string());
        let value = start..self.end();
        self.additions.push('\n');
        match path.parse() {
            Ok(path) => {
                self.overrides.push(Override { path, key, value });
                Ok(())
            }
            Err(error) => Err(self.error(Problem::at(key, format!("{error}")), None)),
        }
    }

    /// The file's text.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// What was put in, in the order in which it was.
    pub(crate) fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// The text at a span.
    pub(crate) fn text(&self, span: &Range<usize>) -> Option<&str> {
        let (_, text, span) = self.part(span);
        text.get(span)
    }

    /// Which text a span lies in: its name, the text, and the span within it.
    fn part(&self, span: &Range<usize>) -> (&str, &str, Range<usize>) {
        let base = self.file.len();
        if span.start >= base && !self.additions.is_empty() {
            ("overrides", &self.additions, span.start - base..span.end.saturating_sub(base))
        } else {
            (&self.name, &self.file, span.clone())
        }
    }

    /// The problem as its reader sees it; `place` is what stands where it is.
    pub(crate) fn error(&self, problem: Problem, place: Option<Place>) -> ScenarioError {
        let Problem { span, message, help } = problem;
        let value = span.as_ref().and_then(|span| self.text(span));
        let message = match (place, value) {
            (Some(Place { path, plain: true }), Some(value)) if value.len() <= LONGEST_VALUE => {
                format!("`{path} = {value}`: {message}")
            }
            (Some(Place { path, .. }), _) if !path.is_empty() => format!("`{path}`: {message}"),
            _ => message,
        };
        match span {
            None => ScenarioError::new(message, help, (&self.name, &self.file), None),
            Some(span) => {
                let (name, text, span) = self.part(&span);
                ScenarioError::new(message, help, (name, text), Some(span))
            }
        }
    }

    fn end(&self) -> usize {
        self.file.len() + self.additions.len()
    }
}
