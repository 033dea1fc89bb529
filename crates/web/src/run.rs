//! A run, as a page shows it.

use crate::frames::frames;
use lab::{Column, Outcome, Series, Table, Watch};
use scenario::{Latency, Scenario};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::atomic::AtomicBool;

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ran {
    /// As `lasthop run` prints it.
    digest: String,
    /// The scenario's duration, or when it ended before.
    end_s: f64,
    /// A map of columns for each flow: those of `lasthop run --json`.
    flows: Vec<Map<String, Value>>,
    /// By flow: `cwnd_bytes`, `ssthresh_bytes`, `srtt_s`, ... at equal steps from 0 to the end.
    senders: Map<String, Value>,
    /// By flow: pairs of `t_s` and `payload_bytes`, as lists.
    deliveries: Map<String, Value>,
    /// By direction of a link: `packets` at equal steps.
    queues: Map<String, Value>,
}

/// Runs a scenario with everything that a page shows.
pub(crate) fn run(scenario: &Scenario, seed: u64, steps: usize) -> Result<Ran, String> {
    let watch = Watch { series: true, digest: true, latency: Latency::Summary, ..Watch::default() };
    // A page that does not want to wait ends the worker.
    let outcome = lab::run(scenario, seed, &watch, &AtomicBool::new(false));
    let outcome = outcome.map_err(|error| error.to_string())?;
    let flows = rows(&outcome, seed);
    let digest = outcome.digest.map_or_else(String::new, |digest| format!("{:016x}", digest.0));
    let series = outcome.series.unwrap_or_default();
    let end_s = end(&series).unwrap_or(scenario.duration.as_secs_f64());
    let thin = |(name, table)| (name, frames(table, end_s, steps));
    Ok(Ran {
        digest,
        end_s,
        flows,
        senders: series.flows.into_iter().map(thin).collect(),
        deliveries: series.deliveries.into_iter().map(|(name, of)| (name, whole(of))).collect(),
        queues: series.queues.into_iter().map(thin).collect(),
    })
}

/// When the last sample of deliveries was taken.
fn end(series: &Series) -> Option<f64> {
    let Column::Float(times) = series.deliveries.first()?.1.column("t_s")? else { return None };
    *times.last()?
}

/// A map for each row.
fn rows(outcome: &Outcome, seed: u64) -> Vec<Map<String, Value>> {
    let mut rows = vec![Map::new(); outcome.rows.len()];
    for (name, column) in outcome.table(seed).into_columns() {
        for (row, value) in rows.iter_mut().zip(values(column)) {
            row.insert(name.clone(), value);
        }
    }
    rows
}

fn whole(table: Table) -> Value {
    let columns = table.into_columns().into_iter();
    columns.map(|(name, column)| (name, Value::Array(values(column)))).collect()
}

fn values(column: Column) -> Vec<Value> {
    match column {
        Column::Text(values) => values.into_iter().map(Value::from).collect(),
        Column::Integer(values) => values.into_iter().map(Value::from).collect(),
        Column::Count(values) => values.into_iter().map(|value| json!(value)).collect(),
        Column::Float(values) => values.into_iter().map(|value| json!(value)).collect(),
        Column::Boolean(values) => values.into_iter().map(Value::from).collect(),
    }
}
