//! Long work, during which Python's user may want to see progress, or to stop.

use crate::convert;
use core::ops::{ControlFlow, Range};
use lab::{Journal, Monitor, Outcome, Seeds, Table, Watch, supervise};
use pyo3::prelude::*;
use scenario::{Experiment, Scenario};

/// What is done while work goes on: signals are looked for, progress is told. The first exception
/// ends the work.
pub(crate) struct Patience {
    /// Called with what is done and what there is.
    progress: Option<Py<PyAny>>,
    told: u64,
    raised: Option<PyErr>,
}

impl Patience {
    /// Calls `progress`, if given, with the runs that are done and all runs.
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Patience {
        Patience { progress, told: 0, raised: None }
    }

    /// Looks, and says whether to go on.
    fn look(&mut self, done: u64, all: u64) -> ControlFlow<()> {
        if self.raised.is_some() {
            return ControlFlow::Break(());
        }
        let result = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) if done != self.told => {
                    self.told = done;
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

/// Runs everything.
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

/// Runs everything that is not in the journal.
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

/// Runs some of it, and gives the rows as a journal has them.
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

/// Looks at every point.
pub(crate) fn checking(experiment: &Experiment<'_>, mut patience: Patience) -> PyResult<()> {
    let result = lab::check(experiment, || patience.look(0, 1));
    patience.end(result.map_err(convert::sweep_error))
}
