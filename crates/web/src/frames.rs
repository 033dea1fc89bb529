//! Time series at equal steps.
//!
//! A picture is some hundred points wide, and a series has a row for every change: a million, where
//! a link is fast.

use lab::{Column, Table};
use serde_json::{Value, json};

/// The columns of a series at `steps` + 1 equal times from 0 to the end: what each was then, or null
/// before its first row.
pub(crate) fn frames(table: Table, duration_s: f64, steps: usize) -> Value {
    let Some(Column::Float(times)) = table.column("t_s") else { return Value::Null };
    let latest: Vec<Option<usize>> = (0..=steps)
        .map(|step| {
            let at = duration_s * step as f64 / steps.max(1) as f64;
            times.partition_point(|time| time.is_some_and(|time| time <= at)).checked_sub(1)
        })
        .collect();
    let columns = table.into_columns().into_iter().filter(|(name, _)| name != "t_s");
    columns.map(|(name, column)| (name, at(&column, &latest))).collect()
}

fn at(column: &Column, rows: &[Option<usize>]) -> Value {
    let value = |row: usize| match column {
        Column::Integer(values) => json!(values[row]),
        Column::Count(values) => json!(values[row]),
        Column::Float(values) => json!(values[row]),
        Column::Text(_) | Column::Boolean(_) => Value::Null,
    };
    rows.iter().map(|row| row.map_or(Value::Null, value)).collect()
}
