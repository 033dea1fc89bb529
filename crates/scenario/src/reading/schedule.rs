//! Spans of time, each with a value.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::Written;
use crate::reading::shape::{
    AtLeastOne, Both, Keys, Shape, Table, at, needed, read_table, table, table_schema,
};
use base::Duration;
use link::{Interval, IntervalError, Intervals};
use serde_json::Value;
use toml::Spanned;
use toml::de::DeTable;

table! {
    /// A span of time.
    pub(crate) struct Span {
        /// Its start, from the start of the run or of the period.
        start: Written<Duration>, needed;
        /// Its end; if absent, the start of the next span, and for the last one the end of the
        /// period, or never.
        end: Written<Duration>;
    }
}

table! {
    /// A span without a value.
    pub(crate) struct Nothing {}
}

/// Spans of time with their values, once or in every period.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    at: Option<AtLeastOne<Spanned<Both<Span, T>>>>,
    every: Option<Spanned<Written<Duration>>>,
}

const AT: &str = "at";
const EVERY: &str = "every";

impl<T: Table> Table for Schedule<T> {
    const ABOUT: &[&str] = T::ABOUT;

    fn keys() -> Vec<&'static str> {
        vec![AT, EVERY]
    }

    fn fields(
        node: &Node<'_>,
        table: &DeTable<'_>,
        known: &[&str],
        problems: &mut Vec<Problem>,
    ) -> Schedule<T> {
        needed(node, table, known, AT, problems);
        Schedule { at: at(table, AT, problems), every: at(table, EVERY, problems) }
    }

    fn describe(keys: &mut Keys) {
        keys.add::<AtLeastOne<Both<Span, T>>>(AT, &["Spans of time, in order."]);
        keys.needed(AT);
        keys.add::<Written<Duration>>(EVERY, &["The period after which the spans repeat."]);
    }
}

impl<T: Table> Shape for Schedule<T> {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Schedule<T>> {
        read_table(node, problems)
    }

    fn schema() -> Value {
        table_schema::<Schedule<T>>()
    }
}

impl<T> Schedule<T> {
    /// The values, in order.
    pub(crate) fn held(&self) -> impl Iterator<Item = &T> {
        self.at.iter().flat_map(|at| at.0.iter().map(|entry| &entry.get_ref().1))
    }

    /// The intervals, each with `value` of what is written in it.
    pub(crate) fn resolve<U>(
        &self,
        mut value: impl FnMut(&T) -> Result<U, Problem>,
    ) -> Result<Intervals<U>, Problem> {
        let period = self.every.as_ref().map(|every| every.get_ref().0);
        let entries = self.at.as_ref().map_or(&[][..], |at| &at.0);
        let start = |entry: &Spanned<Both<Span, T>>| {
            entry.get_ref().0.start.map_or(Duration::ZERO, |start| start.0)
        };
        // An interval without a start was reported where it was read.
        if entries.iter().any(|entry| entry.get_ref().0.start.is_none()) {
            return Ok(Intervals::default());
        }
        let mut list = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let Both(span, held) = entry.get_ref();
            let next = entries.get(index + 1);
            if let Some(next) = next.filter(|next| start(next) <= start(entry)) {
                let message =
                    format!("starts at {}: expected later than the one before it", start(next));
                return Err(Problem::at(next.span(), message));
            }
            let end = span.end.map(|end| end.0).or(next.map(start)).or(period);
            let end = end.unwrap_or(Duration::MAX);
            list.push(Interval { start: start(entry), end, value: value(held)? });
        }
        Intervals::new(list, period).map_err(|error| match error {
            IntervalError::Empty { index, start, end } => Problem::at(
                entries[index].span(),
                format!("ends at {end}: expected an end after its start, {start}"),
            ),
            IntervalError::Overlap { index, start, end } => Problem::at(
                entries[index].span(),
                format!("starts at {start}: expected {end}, the end of the one before, or later"),
            ),
            IntervalError::Period { period, end } => {
                let message = format!(
                    "a period of {period}: expected more than 0 s and no less than {end}, the \
                     last end"
                );
                let span = self.every.as_ref().map(Spanned::span);
                Problem { span, message, ..Problem::default() }
            }
        })
    }
}
