//! Long work with progress reports, which Ctrl-C interrupts.

use crate::convert;
use core::ops::{ControlFlow, Range};
use lab::{Journal, Monitor, Outcome, Seeds, Table, Watch, supervise};
use pyo3::prelude::*;
use scenario::{Experiment, Scenario};

/// The monitor of work in progress: it checks for signals and reports progress. The first exception
/// ends the work.
pub(crate) struct Patience {
    /// Called with the number of finished runs and of all runs.
    progress: Option<Py<PyAny>>,
    reported: u64,
    raised: Option<PyErr>,
}

impl Patience {
    /// Calls `progress`, if given, with the number of finished runs and of all runs.
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Patience {
        Patience { progress, reported: 0, raised: None }
    }

    /// Checks for signals and reports progress; returns whether to go on.
    fn look(&mut self, done: u64, all: u64) -> ControlFlow<()> {
        if self.raised.is_some() {
            return ControlFlow::Break(());
        }
        let result = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) if done != self.reported => {
                    self.reported = done;
                    progress.call1(py, (done, all)).map(|_| ())
                }
                _ => Ok(()),
            }
        });
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// The work's result, unless an exception ended it.
    fn end<T>(self, result: PyResult<T>) -> PyResult<T> {
        match self.raised {
            Some(error) => Err(error),
            None => result,
        }
    }
}

/// Runs a scenario once.
pub(crate) fn running(
    scenario: &Scenario,
    seed: u64,
    watch: &Watch,
    mut patience: Patience,
) -> PyResult<Outcome> {
    let monitor = Monitor::default();
    let work = || lab::run(scenario, seed, watch, monitor.cancelled());
    let result = supervise(&monitor, work, |_| patience.look(0, 1));
    patience.end(result.map_err(convert::run_error))
}

/// Runs a scenario once, on real packets.
pub(crate) fn on_testbed(
    scenario: &Scenario,
    seed: u64,
    mut patience: Patience,
) -> PyResult<testbed::Outcome> {
    let monitor = Monitor::default();
    let work = || testbed::run(scenario, seed, monitor.cancelled());
    let result = supervise(&monitor, work, |_| patience.look(0, 1));
    patience.end(result.map_err(convert::testbed_error))
}

/// Runs a whole sweep.
pub(crate) fn sweeping(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    threads: usize,
    mut patience: Patience,
) -> PyResult<Table> {
    let look = |done, runs| patience.look(done, runs);
    let result = lab::sweep(experiment, seeds, threads, look);
    patience.end(result.map_err(convert::sweep_error))
}

/// Runs the runs of a sweep that are not in the journal.
pub(crate) fn recording(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    threads: usize,
    journal: &mut Journal,
    mut patience: Patience,
) -> PyResult<()> {
    let look = |done, runs| patience.look(done, runs);
    let result = lab::record(experiment, seeds, threads, journal, look);
    patience.end(result.map_err(convert::sweep_error))
}

/// Runs some runs of a sweep, and returns their rows in the journal's format.
pub(crate) fn running_part(
    experiment: &Experiment<'_>,
    seeds: Seeds,
    threads: usize,
    runs: Range<u64>,
    mut patience: Patience,
) -> PyResult<Vec<u8>> {
    let look = |done, runs| patience.look(done, runs);
    let result = lab::part(experiment, seeds, threads, runs, look);
    patience.end(result.map_err(convert::sweep_error))
}

/// Checks every point.
pub(crate) fn checking(experiment: &Experiment<'_>, mut patience: Patience) -> PyResult<()> {
    let result = lab::check(experiment, || patience.look(0, 1));
    patience.end(result.map_err(convert::sweep_error))
}
