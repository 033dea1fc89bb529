//! All runs of an experiment.

use crate::failure::{RunError, SweepError};
use crate::journal::{self, Journal};
use crate::ordered::OrderedRunner;
use crate::outcome::{Outcome, Record, tabulate, tabulate_distributions};
use crate::run::run;
use crate::supervise::{Monitor, supervise};
use crate::table::Table;
use crate::threads::on_threads;
use crate::watch::Watch;
use core::ops::{ControlFlow, Range};
use scenario::{Experiment, ScenarioError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The seeds of every point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// Their number; they are consecutive.
    pub count: u64,
}

/// Runs every point with every seed on `threads` threads (0: one for each processor) and returns
/// the rows: points in the order of the grid, seeds in order within a point, flows within a run.
/// The number of threads does not change them.
///
/// `look` is called on this thread some twenty times a second with the number of runs that are
/// done and that of all; if it breaks, the sweep ends with [`RunError::Cancelled`].
///
/// # Errors
/// If a point cannot be run (found out before the first run), if the sweep was cancelled, or if a
/// check inside a run failed.
pub fn sweep(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    threads: usize,
    mut look: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Table, SweepError> {
    let mut outcomes = Vec::new();
    let keep = |_, outcome| {
        outcomes.push(outcome);
        Ok(())
    };
    let runs = experiment.check_runs(seeds.count)?;
    check_on(experiment, threads, || look(0, runs))?;
    each(experiment, seeds, threads, 0..runs, keep, look)?;
    Ok(rows(experiment, seeds, 0, &outcomes))
}

/// Like [`sweep`], with a journal: finished runs are appended to it. Rows are in the order of
/// [`sweep`], however often it was interrupted; at most about a thousand runs are held in memory.
///
/// # Errors
/// As [`sweep`]; and if the journal cannot be written. What was written before stays.
pub fn record(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    threads: usize,
    journal: &mut Journal,
    mut look: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), SweepError> {
    let done = journal.runs();
    let keep = |index, outcome| {
        let rows = rows(experiment, seeds, index, &[outcome]);
        journal.append(index, &rows)
    };
    let runs = experiment.check_runs(seeds.count)?;
    check_on(experiment, threads, || look(done, runs))?;
    each(experiment, seeds, threads, done..runs, keep, look)
}

/// Some of the runs of [`sweep`], by their indexes: the bytes that [`record`] writes for them. Only
/// their points are checked.
///
/// # Errors
/// As [`sweep`].
pub fn part(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    threads: usize,
    runs: Range<u64>,
    look: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Vec<u8>, SweepError> {
    let mut bytes = Vec::new();
    let keep = |index, outcome| {
        bytes
            .extend_from_slice(&journal::lines(index, &rows(experiment, seeds, index, &[outcome])));
        Ok(())
    };
    let end = runs.end.min(experiment.check_runs(seeds.count)?);
    each(experiment, seeds, threads, runs.start..end, keep, look)?;
    Ok(bytes)
}

/// The columns of [`sweep`], without a row.
#[must_use]
pub fn columns(experiment: &Experiment<'_>) -> Table {
    rows(experiment, Seeds { first: 1, count: 1 }, 0, &[])
}

/// Runs the runs of these indexes, and passes their outcomes to `keep` one by one, in order.
fn each(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    threads: usize,
    runs: Range<u64>,
    keep: impl FnMut(u64, Outcome) -> Result<(), RunError> + Send,
    mut look: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), SweepError> {
    let Range { start, end } = runs;
    let monitor = Monitor::default();
    let runner = OrderedRunner::new(start, end, keep, &monitor);
    let work = || {
        let run = |index| one(experiment, seeds, index, &monitor);
        on_threads(threads, end.saturating_sub(start), || runner.work(run))?;
        runner.end()
    };
    supervise(&monitor, work, |monitor| look(start + monitor.done(), end))?;
    // `look` also sees the last runs, and can still break.
    match look(end, end) {
        ControlFlow::Break(()) => Err(RunError::Cancelled.into()),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Checks that every point can be run; `look` is called as by [`sweep`], without arguments.
///
/// # Errors
/// If a point cannot be run, or if `look` broke.
pub fn check(
    experiment: &Experiment<'_>,
    look: impl FnMut() -> ControlFlow<()>,
) -> Result<(), SweepError> {
    check_on(experiment, 0, look)
}

fn check_on(
    experiment: &Experiment<'_>,
    threads: usize,
    mut look: impl FnMut() -> ControlFlow<()>,
) -> Result<(), SweepError> {
    let monitor = Monitor::default();
    supervise(&monitor, || validate(experiment, threads, &monitor), |_| look())
}

/// The number of points that are checked together; their problems are reported together.
const TOGETHER: u64 = 4096;

/// Checks every point.
fn validate(
    experiment: &Experiment<'_>,
    threads: usize,
    monitor: &Monitor,
) -> Result<(), SweepError> {
    let all = experiment.points();
    for first in (0..all).step_by(TOGETHER as usize) {
        if monitor.cancelled().load(Ordering::Relaxed) {
            return Err(RunError::Cancelled.into());
        }
        let end = all.min(first + TOGETHER);
        let (next, errors) = (AtomicU64::new(first), Mutex::new(Vec::new()));
        let check = || {
            let point = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < end);
            while let Some(point) = point() {
                if let Err(error) = experiment.scenario_at(point) {
                    errors.lock().unwrap_or_else(PoisonError::into_inner).push((point, error));
                }
            }
        };
        on_threads(threads, end - first, check)?;
        let mut errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
        errors.sort_by_key(|&(point, _)| point);
        // An error of all points occurs at each: it is reported once, for the first point.
        let errors: Vec<ScenarioError> = errors.into_iter().map(|(_, error)| error).collect();
        if let Some(error) = ScenarioError::all(errors) {
            return Err(error.into());
        }
    }
    Ok(())
}

fn one(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    index: u64,
    monitor: &Monitor,
) -> Result<Outcome, SweepError> {
    let scenario = experiment.scenario_at(index / seeds.count)?;
    let seed = seeds.first.wrapping_add(index % seeds.count);
    Ok(run(&scenario, seed, &Watch::default(), monitor.cancelled())?)
}

/// The rows of runs with indexes from `first` on.
fn rows(experiment: &Experiment<'_>, seeds: Seeds, first: u64, outcomes: &[Outcome]) -> Table {
    let mut points = Vec::new();
    let mut records = Vec::new();
    for (index, outcome) in (first..).zip(outcomes) {
        for row in &outcome.rows {
            points.push(index / seeds.count);
            let seed = seeds.first.wrapping_add(index % seeds.count);
            records.push(Record { seed, outcome, row });
        }
    }
    let mut table = Table::default();
    for (name, values) in experiment.swept(&points) {
        table.push(name, values.into());
    }
    tabulate(&mut table, &records);
    if experiment.keeps_distributions() {
        tabulate_distributions(&mut table, &records);
    }
    table
}
