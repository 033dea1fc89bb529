//! What the tests share: one small scenario, and ways to change and read it.
#![allow(dead_code)] // Every test program uses a part.
#![allow(clippy::unwrap_used)] // A test that cannot go on may say so in any way.

use lab::{Column, Experiment, Outcome, Scenario, ScenarioError, Seeds, Source, Table, Watch};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// One flow over one long link. Every key that it has can be replaced by a test.
pub(crate) const LONG_LINK: &str = r#"title    = "one long link"
profile  = "ns2-2001"
duration = "60 s"
[nodes]
a = {}
b = {}
[[links]]
between = ["a", "b"]
rate    = "1.5 Mbit/s"
delay   = "100 ms"
queue   = "50 packets"
errors  = { bit = 1e-5 }
[[flows]]
from    = "a"
to      = "b"
tcp     = { recovery = "sack", receive_window = "20 segments", eten = "none" }
"#;

/// [`LONG_LINK`] with some of its text replaced. Every text must be there.
pub(crate) fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(LONG_LINK.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "no {old:?} in the scenario");
        text.replacen(old, new, 1)
    })
}

/// What is wrong with a scenario or any point of its sweep.
pub(crate) fn error(text: &str) -> ScenarioError {
    let source = Source::new(text, "case.toml");
    let checked = Experiment::read(&source).and_then(|experiment| {
        experiment.scenario()?;
        (0..experiment.points()).try_for_each(|point| experiment.scenario_at(point).map(|_| ()))
    });
    checked.expect_err("this scenario should not be accepted")
}

/// Checks what is told after one change of the scenario, and that it points at `marked`.
pub(crate) fn told(change: (&str, &str), marked: &str, message: &str) {
    let text = with(&[change]);
    let error = error(&text);
    let report = error.render(lab::Style::Plain);
    assert_eq!(error.to_string(), message, "\n{report}");
    let before = &text[..text.find(marked).expect("what is marked is in the scenario")];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    assert!(report.contains(&format!("[case.toml:{line}:{column}]")), "not {marked:?}:\n{report}");
}

pub(crate) fn scenario(text: &str) -> Scenario {
    let source = Source::new(text, "case.toml");
    let scenario = Experiment::read(&source).and_then(|experiment| experiment.scenario());
    scenario.unwrap_or_else(|error| panic!("{}", error.render(lab::Style::Plain)))
}

/// A run with seed 1, its digest taken.
pub(crate) fn run(text: &str) -> Outcome {
    run_with(text, 1, &Watch { digest: true, ..Watch::default() })
}

/// A run without the counts of the paths that segments took: those depend on what is watched.
pub(crate) fn run_with(text: &str, seed: u64, watch: &Watch) -> Outcome {
    let run = lab::run(&scenario(text), seed, watch, &AtomicBool::new(false)).unwrap();
    Outcome { paths: None, ..run }
}

/// The share of a run's segments that took the fast path.
pub(crate) fn fast_share(text: &str, watch: &Watch) -> f64 {
    let run = lab::run(&scenario(text), 1, watch, &AtomicBool::new(false)).unwrap();
    let paths = run.paths.unwrap();
    paths.fast as f64 / paths.segments as f64
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
