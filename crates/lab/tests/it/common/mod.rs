//! What the tests of runs share: the scenarios of the tests of files, and ways to run them.

#[path = "../../../../scenario/tests/it/common/mod.rs"]
mod files;

pub(crate) use files::*;

use lab::{Column, Outcome, Seeds, Table, Watch};
use scenario::{Experiment, Source};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// Settings of RFC 5681 and RFC 6675, for tests of something else than the TCP of `modern`.
pub(crate) const SACK_AND_AIMD: &str = "recovery = \"sack\", congestion = \"aimd\", \
    hystart = false, byte_counting = 2, reduction = \"immediate\", frto = false";

/// A run with seed 1, its digest taken.
pub(crate) fn run(text: &str) -> Outcome {
    run_with(text, 1, &Watch { digest: true, ..Watch::default() })
}

/// A run without the counts of the paths that segments took: those depend on what is watched.
pub(crate) fn run_with(text: &str, seed: u64, watch: &Watch) -> Outcome {
    let run = lab::run(&scenario(text), seed, watch, &AtomicBool::new(false)).unwrap();
    Outcome { paths: None, ..run }
}

/// Up to `most` points of a sweep: the first, the last, and some evenly between.
pub(crate) fn spread(points: u64, most: u64) -> impl Iterator<Item = u64> {
    let some = points.min(most);
    (0..some).map(move |index| if some == 1 { 0 } else { index * (points - 1) / (some - 1) })
}

/// The share of a run's segments that took the fast path.
pub(crate) fn fast_share(text: &str, watch: &Watch) -> f64 {
    let run = lab::run(&scenario(text), 1, watch, &AtomicBool::new(false)).unwrap();
    run.paths.and_then(|paths| paths.fast_share()).unwrap()
}

pub(crate) fn digest(text: &str) -> String {
    format!("{:016x}", run(text).digest.unwrap().0)
}

/// All rows, on so many threads.
pub(crate) fn sweep(text: &str, threads: usize) -> Table {
    let source = Source::new(text, "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let seeds = Seeds { first: 1, count: experiment.seeds() };
    lab::sweep(&experiment, seeds, threads, |_, _| ControlFlow::Continue(())).unwrap()
}

pub(crate) fn texts<'a>(table: &'a Table, name: &str) -> Vec<&'a str> {
    match table.column(name) {
        Some(Column::Text(values)) => values.iter().map(String::as_str).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

pub(crate) fn integers(table: &Table, name: &str) -> Vec<i64> {
    match table.column(name) {
        Some(Column::Integer(values)) => values.clone(),
        Some(Column::Count(values)) => values.iter().map(|value| value.unwrap()).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

pub(crate) fn floats(table: &Table, name: &str) -> Vec<f64> {
    match table.column(name) {
        Some(Column::Float(values)) => values.iter().map(|value| value.unwrap()).collect(),
        other => panic!("{name}: {other:?}"),
    }
}
