//! The lab for Python: the module `lasthop._lasthop`.
//!
//! It only converts: texts and plain values come in, columns go out as lists. The interpreter is
//! released during runs, and checked for signals at intervals. The types and the documentation for
//! callers are in `_lasthop.pyi`.

mod convert;
#[cfg_attr(not(all(target_os = "linux", feature = "packets")), path = "no_packets.rs")]
mod packets;
mod wanted;
mod watch;

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    lasthop._lasthop,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run; its text is a report of several lines."
);

create_exception!(
    lasthop._lasthop,
    RunError,
    PyRuntimeError,
    "A check inside a run failed: an error of the simulator."
);

create_exception!(
    lasthop._lasthop,
    TestbedError,
    PyRuntimeError,
    "A scenario or a transfer cannot be run on real packets here."
);

create_exception!(
    lasthop._lasthop,
    TransferError,
    PyRuntimeError,
    "The connection of a transfer failed."
);

/// TCP over the last hop, simulated.
#[pymodule]
mod _lasthop {
    use crate::convert::{self, Override};
    use crate::packets;
    use crate::wanted::Wanted;
    use crate::watch::{self, Patience};
    use base::settings::Table as _;
    use base::units::Size;
    use host::ApplicationSettings;
    use lab::{Capture, Journal, Watch};
    use middlebox::{BoxSettings, Hop};
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyDict};
    use scenario::{Experiment, Latency};
    use std::net::IpAddr;
    use std::path::PathBuf;
    use tcp::Recovery;
    use tcp::congestion::{Congestion, Increase};
    use tcp::mechanism::Mechanism;

    #[pymodule_export]
    use super::{RunError, ScenarioError, TestbedError, TransferError};

    #[pymodule_export]
    use crate::packets::Shell;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The contents of a scenario, after a check that every point of it can be run.
    #[pyfunction]
    #[pyo3(signature = (source, name, *, overrides = Vec::new()))]
    #[pyo3(text_signature = "(source, name, *, overrides=())")]
    fn check<'py>(
        py: Python<'py>,
        source: String,
        name: String,
        overrides: Vec<Override<'py>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        py.detach(|| watch::checking(&experiment, Patience::new(None)))?;
        let first = experiment.scenario_at(0).map_err(convert::scenario_error)?;
        convert::contents(py, &experiment, &first)
    }

    /// A scenario as one dict, with its overrides.
    #[pyfunction]
    #[pyo3(signature = (source, name, *, overrides = Vec::new()))]
    #[pyo3(text_signature = "(source, name, *, overrides=())")]
    fn document<'py>(
        py: Python<'py>,
        source: String,
        name: String,
        overrides: Vec<Override<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        convert::object(py, experiment.document().map_err(convert::scenario_error)?)
    }

    /// The JSON Schema of scenario files.
    #[pyfunction]
    fn schema() -> String {
        scenario::schema().to_string()
    }

    /// Runs a scenario once.
    #[pyfunction]
    #[pyo3(signature = (
        source, name, *, overrides = Vec::new(), seed = 1, trace = false, byte_mode = false,
        pcap = None, pcap_at = Vec::new(), events = None
    ))]
    #[pyo3(
        text_signature = "(source, name, *, overrides=(), seed=1, trace=False, byte_mode=False, \
                             pcap=None, pcap_at=(), events=None)"
    )]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn run<'py>(
        py: Python<'py>,
        source: String,
        name: String,
        overrides: Vec<Override<'py>>,
        seed: u64,
        trace: bool,
        byte_mode: bool,
        pcap: Option<PathBuf>,
        pcap_at: Vec<String>,
        events: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let seed = convert::seeds(seed, 1)?.first;
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        let scenario = experiment.scenario().map_err(convert::scenario_error)?;
        let capture = pcap.map(|file| Capture { file, at: pcap_at });
        let what = Watch {
            series: trace,
            digest: true,
            bytes: byte_mode,
            capture,
            general_path: false,
            latency: Latency::Distributions,
            log: events,
        };
        let outcome = py.detach(|| watch::running(&scenario, seed, &what, Patience::new(None)))?;
        convert::outcome(py, seed, outcome)
    }

    /// Runs a scenario once on real packets.
    #[pyfunction]
    #[pyo3(signature = (source, name, *, overrides = Vec::new(), seed = 1))]
    #[pyo3(text_signature = "(source, name, *, overrides=(), seed=1)")]
    fn run_testbed<'py>(
        py: Python<'py>,
        source: String,
        name: String,
        overrides: Vec<Override<'py>>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let seed = convert::seeds(seed, 1)?.first;
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        let scenario = experiment.testbed_scenario().map_err(convert::scenario_error)?;
        let outcome = py.detach(|| watch::on_testbed(&scenario, seed, Patience::new(None)))?;
        convert::real_outcome(py, seed, outcome)
    }

    /// Transfers a file by our TCP on this machine's network.
    #[pyfunction]
    #[pyo3(signature = (
        file, port, watch, *, sends, peer = None, source = String::new(), overrides = Vec::new(),
        address = None, masquerade = false
    ))]
    #[pyo3(text_signature = "(file, port, watch, *, sends, peer=None, source='', overrides=(), \
                             address=None, masquerade=False)")]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn transfer<'py>(
        py: Python<'py>,
        file: i32,
        port: u16,
        watch: Py<PyAny>,
        sends: bool,
        peer: Option<IpAddr>,
        source: String,
        overrides: Vec<Override<'py>>,
        address: Option<IpAddr>,
        masquerade: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let settings = convert::source(source, "--tcp".to_owned(), overrides)?;
        let wanted = Wanted { file, sends, peer: (peer, port), address, masquerade };
        packets::transfer(py, &settings, &wanted, &watch)
    }

    /// Removes what killed runs, transfers and shells on real packets have left.
    #[pyfunction]
    fn clean_testbed(py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(testbed::clean).map_err(convert::testbed_error)
    }

    /// Runs every point of a scenario's sweep with every seed.
    #[pyfunction]
    #[pyo3(signature = (
        source, name, *, overrides = Vec::new(), seeds = None, first_seed = 1, threads = 0,
        progress = None
    ))]
    #[pyo3(
        text_signature = "(source, name, *, overrides=(), seeds=None, first_seed=1, threads=0, \
                             progress=None)"
    )]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn sweep<'py>(
        py: Python<'py>,
        source: String,
        name: String,
        overrides: Vec<Override<'py>>,
        seeds: Option<u64>,
        first_seed: u64,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        let seeds = convert::seeds(first_seed, seeds.unwrap_or(experiment.seeds()))?;
        let patience = Patience::new(progress);
        let table = py.detach(|| watch::sweeping(&experiment, seeds, threads, patience))?;
        convert::table(py, table)
    }

    /// The remedies that may improve a flow.
    #[pyfunction]
    fn remedies(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
        scenario::remedies().iter().map(|remedy| convert::remedy(py, remedy)).collect()
    }

    /// The remedies in boxes of nodes at a bad hop; a rate or delay that is no quantity is not known,
    /// and the hop takes the least of the MTUs.
    #[pyfunction]
    #[pyo3(text_signature = "(neighbour, *, rate, delay, mtus, flow=None)")]
    #[pyo3(signature = (neighbour, *, rate, delay, mtus, flow = None))]
    fn box_remedies<'py>(
        py: Python<'py>,
        neighbour: &str,
        rate: &str,
        delay: &str,
        mtus: Vec<String>,
        flow: Option<&str>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let sizes = mtus.iter().filter_map(|mtu| match mtu.parse() {
            Ok(Size::Bytes(bytes)) => u32::try_from(bytes).ok(),
            _ => None,
        });
        let mtu = sizes.min();
        let (rate, delay) = (rate.parse().ok(), delay.parse().ok());
        let remedies = scenario::box_remedies(&Hop { neighbour, rate, delay, mtu, flow });
        remedies.iter().map(|remedy| convert::remedy(py, remedy)).collect()
    }

    /// The remedies in the queue of the slowest link, for its rate and the round trip of the path; none
    /// if either is no quantity.
    #[pyfunction]
    #[pyo3(text_signature = "(*, rate, round_trip)")]
    #[pyo3(signature = (*, rate, round_trip))]
    fn queue_remedies<'py>(
        py: Python<'py>,
        rate: &str,
        round_trip: &str,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (Ok(rate), Ok(round_trip)) = (rate.parse(), round_trip.parse()) else {
            return Ok(Vec::new());
        };
        let remedies = scenario::queue_remedies(rate, round_trip);
        remedies.iter().map(|remedy| convert::remedy(py, remedy)).collect()
    }

    /// Runs a sweep, and appends finished runs to a journal.
    #[pyfunction]
    #[pyo3(signature = (
        source, name, journal, about, *, overrides = Vec::new(), seeds = None, first_seed = 1,
        threads = 0, progress = None
    ))]
    #[pyo3(text_signature = "(source, name, journal, about, *, overrides=(), seeds=None, \
                             first_seed=1, threads=0, progress=None)")]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn record<'py>(
        py: Python<'py>,
        source: String,
        name: String,
        journal: PathBuf,
        about: &str,
        overrides: Vec<Override<'py>>,
        seeds: Option<u64>,
        first_seed: u64,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        let seeds = convert::seeds(first_seed, seeds.unwrap_or(experiment.seeds()))?;
        experiment.check_runs(seeds.count).map_err(convert::scenario_error)?;
        let mut journal = Journal::open(&journal, about, &lab::columns(&experiment))
            .map_err(convert::journal_error)?;
        let before = journal.runs();
        let patience = Patience::new(progress);
        py.detach(|| watch::recording(&experiment, seeds, threads, &mut journal, patience))?;
        Ok(before)
    }

    /// Opens the journal of a sweep, and counts its runs.
    #[pyfunction]
    #[pyo3(signature = (
        source, name, journal, about, *, overrides = Vec::new(), seeds = None, first_seed = 1
    ))]
    #[pyo3(text_signature = "(source, name, journal, about, *, overrides=(), seeds=None, \
                             first_seed=1)")]
    fn open_journal(
        source: String,
        name: String,
        journal: PathBuf,
        about: &str,
        overrides: Vec<Override<'_>>,
        seeds: Option<u64>,
        first_seed: u64,
    ) -> PyResult<u64> {
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        let seeds = convert::seeds(first_seed, seeds.unwrap_or(experiment.seeds()))?;
        experiment.check_runs(seeds.count).map_err(convert::scenario_error)?;
        let journal = Journal::open(&journal, about, &lab::columns(&experiment))
            .map_err(convert::journal_error)?;
        Ok(journal.runs())
    }

    /// Runs a part of a sweep, and returns the bytes that `record` writes for it.
    #[pyfunction]
    #[pyo3(signature = (
        source, name, first, end, *, overrides = Vec::new(), seeds = None, first_seed = 1,
        threads = 0
    ))]
    #[pyo3(text_signature = "(source, name, first, end, *, overrides=(), seeds=None, \
                             first_seed=1, threads=0)")]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn part<'py>(
        py: Python<'py>,
        source: String,
        name: String,
        first: u64,
        end: u64,
        overrides: Vec<Override<'py>>,
        seeds: Option<u64>,
        first_seed: u64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        let seeds = convert::seeds(first_seed, seeds.unwrap_or(experiment.seeds()))?;
        let patience = Patience::new(None);
        let rows =
            py.detach(|| watch::running_part(&experiment, seeds, threads, first..end, patience))?;
        Ok(PyBytes::new(py, &rows))
    }

    /// The names of the mechanisms that a scenario may give to a flow.
    #[pyfunction]
    fn mechanisms() -> Vec<&'static str> {
        Mechanism::names()
    }

    /// The names of the applications that a scenario may give to a flow.
    #[pyfunction]
    fn applications() -> Vec<&'static str> {
        ApplicationSettings::names()
    }

    /// The names of the boxes that a scenario may put into a node.
    #[pyfunction]
    fn boxes() -> Vec<&'static str> {
        BoxSettings::names()
    }

    /// The names of the congestion controllers.
    #[pyfunction]
    fn congestion_controllers() -> Vec<&'static str> {
        Congestion::ALL.iter().map(|(name, _)| *name).collect()
    }

    /// The names of the increase functions.
    #[pyfunction]
    fn increase_functions() -> Vec<&'static str> {
        Increase::ALL.iter().map(|(name, _)| *name).collect()
    }

    /// The names of the algorithms of loss recovery.
    #[pyfunction]
    fn recoveries() -> Vec<&'static str> {
        Recovery::ALL.iter().map(|(name, _)| *name).collect()
    }

    /// The names of the profiles.
    #[pyfunction]
    fn profiles() -> Vec<&'static str> {
        scenario::Profile::ALL.iter().map(|(name, _)| *name).collect()
    }
}
