//! The problems of a scenario, with their places.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};
use core::fmt;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// Why a scenario cannot be run: all its problems, in the order of the file.
///
/// Its text has one line for each; [`ScenarioError::render`] also shows the places.
#[derive(Debug, Error)]
pub struct ScenarioError {
    /// At least one.
    findings: Vec<Finding>,
    /// The number of findings beyond these.
    more: usize,
}

/// One problem: its place, and what was expected instead.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The name of the file, or of what was put in from outside.
    pub file: String,
    /// Line and column, counted from 1; `None` for a problem of the whole file.
    pub at: Option<(usize, usize)>,
    /// The dotted path of the key.
    pub key: Option<String>,
    /// The value there, as written; `None` if it is long.
    pub value: Option<String>,
    /// The problem, and what was expected.
    pub message: String,
    /// How to solve it.
    pub help: Option<String>,
    /// Its place in all texts of the scenario, for sorting.
    pub(crate) position: usize,
    /// Its place in its own text.
    pub(crate) span: Option<Range<usize>>,
    pub(crate) text: Arc<String>,
}

/// How a report looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text, for files and pipes.
    #[default]
    Plain,
    /// With the colours of a terminal.
    Coloured,
}

impl ScenarioError {
    /// The largest number of findings that are reported.
    pub(crate) const MOST: usize = 50;

    /// The error of these findings, at least one.
    pub(crate) fn new(mut findings: Vec<Finding>) -> ScenarioError {
        findings.sort_by_key(|finding| finding.position);
        findings.dedup_by(|a, b| a.same_as(b));
        let more = findings.len().saturating_sub(ScenarioError::MOST);
        findings.truncate(ScenarioError::MOST);
        ScenarioError { findings, more }
    }

    /// The findings, in the order of the file, at most the first 50.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// All findings of these errors, each once; `None` without any.
    #[must_use]
    pub fn all(errors: impl IntoIterator<Item = ScenarioError>) -> Option<ScenarioError> {
        let mut findings: Vec<Finding> = Vec::new();
        for finding in errors.into_iter().flat_map(ScenarioError::into_findings) {
            if !findings.iter().any(|known| known.same_as(&finding)) {
                findings.push(finding);
            }
        }
        (!findings.is_empty()).then(|| ScenarioError::new(findings))
    }

    /// The findings, owned.
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// The report: for each finding the message, the lines around its place with the place marked, and
    /// help where there is any.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Coloured => Renderer::styled().hyperlink(false),
        };
        // Lines are shown whole: a terminal wraps them.
        let renderer = renderer.decor_style(DecorStyle::Unicode).term_width(2 * LONGEST);
        let mut all = String::new();
        for finding in &self.findings {
            all.push_str(&renderer.render(&[finding.report()]));
            all.push('\n');
        }
        match (self.findings.len(), self.more) {
            (1, 0) => {}
            (count, 0) => all.push_str(&format!("{count} problems\n")),
            (count, more) => {
                all.push_str(&format!("the first {count} of {} problems\n", count + more))
            }
        }
        all
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            let gap = if index > 0 { "\n" } else { "" };
            write!(f, "{gap}{finding}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = match (&self.key, &self.value) {
            (Some(key), Some(value)) => format!("`{key} = {value}`: {}", self.message),
            (Some(key), None) => format!("`{key}`: {}", self.message),
            (None, _) => self.message.clone(),
        };
        f.write_str(&one_line(&line))
    }
}

impl Finding {
    /// The same with additional help.
    pub(crate) fn with_help(mut self, more: &str) -> Finding {
        self.help = Some(match self.help.take() {
            Some(help) => format!("{help}\n{more}"),
            None => more.to_owned(),
        });
        self
    }

    /// Whether both are the same problem at the same place.
    pub(crate) fn same_as(&self, other: &Finding) -> bool {
        self.position == other.position && self.message == other.message
    }

    /// What is drawn of it.
    fn report(&self) -> Group<'_> {
        let help = self.help.iter().map(|help| Level::HELP.message(normalize_untrusted_str(help)));
        let (file, message) = (one_line(&self.file), self.to_string());
        // Who prints it says that it is an error.
        let title = |text: String| Level::ERROR.no_name().primary_title(text);
        let Some((line, column)) = self.at else {
            return title(format!("{file}: {message}")).elements(help);
        };
        let place = self.span.as_ref().map(|span| (span, excerpt(&self.text, span)));
        match place.filter(|(_, shown)| self.text[shown.clone()].lines().all(presentable)) {
            Some((span, shown)) => {
                let marked = span.start - shown.start..span.end - shown.start;
                let snippet = Snippet::source(&self.text[shown])
                    .path(file)
                    .line_start(line.saturating_sub(1).max(1))
                    .fold(false)
                    .annotation(AnnotationKind::Primary.span(marked));
                title(message).element(snippet).elements(help)
            }
            None => title(format!("{file}:{line}:{column}: {message}")).elements(help),
        }
    }
}

/// The lines of a place, and those before and after them.
fn excerpt(text: &str, place: &Range<usize>) -> Range<usize> {
    let from = text[..place.start].rmatch_indices('\n').nth(1).map_or(0, |(at, _)| at + 1);
    let after = &text[place.end..];
    let to = after.match_indices('\n').nth(1).map_or(text.len(), |(at, _)| place.end + at);
    from..to
}

/// The longest line that is shown, bytes.
const LONGEST: usize = 500;

/// Whether a line is short and without control characters.
fn presentable(line: &str) -> bool {
    line.len() <= LONGEST && !line.contains(|c: char| c.is_control() && c != '\t')
}

/// The text with its control characters escaped.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// A problem, before its place is looked up: then it is a [`Finding`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Its place in the texts; `None` if it has none.
    pub(crate) span: Option<Range<usize>>,
    /// The problem, or what was expected.
    pub(crate) message: String,
    /// How to solve it.
    pub(crate) help: Option<String>,
    /// The key, if there is none at the place.
    pub(crate) key: Option<String>,
}

impl Problem {
    /// A problem at `span`.
    pub(crate) fn at(span: Range<usize>, message: impl Into<String>) -> Problem {
        Problem { span: Some(span), message: message.into(), ..Problem::default() }
    }

    /// With advice.
    pub(crate) fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(help.into()), ..self }
    }
}
