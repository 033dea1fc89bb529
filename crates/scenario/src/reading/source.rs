//! The texts of a scenario: its file and overrides.

use crate::reading::error::{Finding, Problem, ScenarioError};
use crate::reading::files::Files;
use crate::reading::path::Path;
use std::ops::Range;
use std::sync::Arc;

pub use toml::Value;

/// A scenario file and the values that override its own, as texts.
///
/// One numbering of bytes covers all texts: first the file, then the overrides, so that every problem
/// can be shown where it was written.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    file: Arc<String>,
    /// The overrides, one `path = value` a line.
    additions: Arc<String>,
    overrides: Vec<Override>,
    files: Arc<Files>,
}

/// A value that replaces one of the file.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    /// The path of the value.
    pub(crate) path: Path,
    /// Where the path was written.
    pub(crate) key: Range<usize>,
    /// Where the value was written.
    pub(crate) value: Range<usize>,
}

/// The value or key at a place of the texts.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The path of the value, or of the value whose key is there.
    pub(crate) path: String,
    /// Whether it is a value, and neither a key nor a table or list.
    pub(crate) plain: bool,
}

/// The longest value that a message repeats, characters.
const LONGEST_VALUE: usize = 60;

impl Source {
    /// The text of a file, and its path: reports name it, and files that the scenario names are
    /// relative to it.
    #[must_use]
    pub fn new(file: impl Into<String>, name: impl Into<String>) -> Source {
        let name = name.into();
        Source {
            files: Arc::new(Files::beside(&name)),
            name,
            file: Arc::new(file.into()),
            additions: Arc::default(),
            overrides: Vec::new(),
        }
    }

    /// Overrides the value at a dotted path, such as `links.0.errors.bit`.
    ///
    /// # Errors
    /// If the path is invalid.
    pub fn put(&mut self, path: &str, value: &Value) -> Result<(), ScenarioError> {
        let key = self.end()..self.end() + path.len();
        let additions = Arc::make_mut(&mut self.additions);
        additions.push_str(path);
        additions.push_str(" = ");
        let start = self.file.len() + additions.len();
        additions.push_str(&value.to_string());
        let value = start..self.file.len() + additions.len();
        additions.push('\n');
        match path.parse() {
            Ok(path) => {
                self.overrides.push(Override { path, key, value });
                Ok(())
            }
            Err(error) => {
                let problem = Problem::at(key, format!("{error}"));
                Err(ScenarioError::new(vec![self.finding(problem, None)]))
            }
        }
    }

    /// The files that the scenario names.
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// The file's text.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// The overrides, in order.
    pub(crate) fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// The text at a span.
    pub(crate) fn text(&self, span: &Range<usize>) -> Option<&str> {
        let (_, text, span) = self.part(span);
        text.get(span)
    }

    /// The text that contains a span: its name, the text, and the span within it.
    fn part(&self, span: &Range<usize>) -> (&str, &Arc<String>, Range<usize>) {
        let base = self.file.len();
        if span.start >= base && !self.additions.is_empty() {
            ("settings", &self.additions, span.start - base..span.end.saturating_sub(base))
        } else {
            (&self.name, &self.file, span.clone())
        }
    }

    /// The problem as reported to the user; `place` is the value or key at its place.
    pub(crate) fn finding(&self, problem: Problem, place: Option<Place>) -> Finding {
        let Problem { span, message, help, key } = problem;
        // A problem of the whole file has no place.
        let whole = place.as_ref().is_some_and(|place| place.path.is_empty());
        let span = span.filter(|_| !whole);
        let value = span.as_ref().and_then(|span| self.text(span)).map(str::to_owned);
        let plain = place.as_ref().is_some_and(|place| place.plain);
        let (file, text, inside) = match &span {
            Some(span) => {
                let (file, text, span) = self.part(span);
                (file, text, Some(span))
            }
            None => (self.name.as_str(), &self.file, None),
        };
        Finding {
            file: file.to_owned(),
            at: inside.as_ref().map(|span| line_and_column(text, span.start)),
            key: place.map(|place| place.path).filter(|path| !path.is_empty()).or(key),
            value: value.filter(|value| plain && value.len() <= LONGEST_VALUE),
            message,
            help,
            position: span.map_or(0, |span| span.start),
            span: inside,
            text: Arc::clone(text),
        }
    }

    fn end(&self) -> usize {
        self.file.len() + self.additions.len()
    }
}

/// The line and column of a byte of a text, both counted from 1.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}
