//! What is wrong with a scenario, and where.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, NamedSource, SourceSpan};
use std::ops::Range;
use thiserror::Error;

/// Something in a scenario that cannot be run: what, where, and what was expected instead.
///
/// As text it is one line; [`ScenarioError::render`] also shows the place.
#[derive(Debug, Error)]
#[error("{}", .0.message)]
pub struct ScenarioError(Box<Report>);

#[derive(Debug, Error, Diagnostic)]
#[error("{message}")]
struct Report {
    message: String,
    #[source_code]
    text: NamedSource<String>,
    #[label("here")]
    span: Option<SourceSpan>,
    #[help]
    help: Option<String>,
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
    /// A problem with its full message, in the text of this name, at this place of it.
    pub(crate) fn new(
        message: String,
        help: Option<String>,
        (name, text): (&str, &str),
        span: Option<Range<usize>>,
    ) -> ScenarioError {
        ScenarioError(Box::new(Report {
            message: one_line(&message),
            text: NamedSource::new(name, text.to_owned()),
            span: span.map(|span| SourceSpan::from((span.start, span.len()))),
            help,
        }))
    }

    /// The report, several lines: the message, the lines in question with the place marked, and
    /// help where there is any.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let theme = match style {
            Style::Plain => GraphicalTheme::unicode_nocolor(),
            Style::Coloured => GraphicalTheme::unicode(),
        };
        let handler =
            GraphicalReportHandler::new_themed(theme).with_links(false).with_wrap_lines(false);
        let mut report = String::new();
        match handler.render_report(&mut report, self.0.as_ref()) {
            Ok(()) => report,
            Err(_) => self.to_string(),
        }
    }

    /// The same with more help.
    pub(crate) fn with_help(mut self, more: String) -> ScenarioError {
        self.0.help = Some(match self.0.help.take() {
            Some(help) => format!("{help}\n{more}"),
            None => more,
        });
        self
    }

    /// Whether both say the same of the same place.
    pub(crate) fn says_the_same_as(&self, other: &ScenarioError) -> bool {
        self.0.message == other.0.message && self.0.span == other.0.span
    }
}

/// The text with its control characters written out: it may quote anything.
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

/// A [`ScenarioError`] before it is known how the place is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where in the sources; `None` if in no one place.
    pub(crate) span: Option<Range<usize>>,
    /// What was expected, or what is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl Problem {
    /// A problem at `span`.
    pub(crate) fn at(span: Range<usize>, message: impl Into<String>) -> Problem {
        Problem { span: Some(span), message: message.into(), help: None }
    }

    /// With advice.
    pub(crate) fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(help.into()), ..self }
    }
}

impl From<toml::de::Error> for Problem {
    fn from(error: toml::de::Error) -> Problem {
        Problem { span: error.span(), message: error.message().to_owned(), help: None }
    }
}
