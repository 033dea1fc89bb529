//! The network of a scenario for programs.

use crate::TestbedError;
use crate::convert::{self, Override};
use live::namespace::{self, Launch};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::{Experiment, IpVersion};
use std::ffi::OsString;
use std::path::PathBuf;
use testbed::{End, Wanted};

/// The network of a scenario for programs, until it is stopped.
#[pyclass(module = "lasthop._lasthop")]
pub(crate) struct Shell {
    network: Option<testbed::Shell>,
    seed: u64,
}

/// A user, the user's group, and all groups.
type User = (u32, u32, Vec<u32>);

#[pymethods]
impl Shell {
    #[new]
    #[pyo3(signature = (
        source, name, *, overrides = Vec::new(), seed = 1, flow = 0, machine = false, congestion = None
    ))]
    #[pyo3(text_signature = "(source, name, *, overrides=(), seed=1, flow=0, machine=False, \
                             congestion=None)")]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn new(
        py: Python<'_>,
        source: String,
        name: String,
        overrides: Vec<Override<'_>>,
        seed: u64,
        flow: usize,
        machine: bool,
        congestion: Option<String>,
    ) -> PyResult<Shell> {
        let seed = convert::seeds(seed, 1)?.first;
        let source = convert::source(source, name, overrides)?;
        let experiment = Experiment::read(&source).map_err(convert::scenario_error)?;
        let scenario = experiment.scenario().map_err(convert::scenario_error)?;
        let wanted = Wanted { seed, flow, machine, congestion: congestion.as_deref() };
        let network = py.detach(|| testbed::Shell::start(&scenario, &wanted));
        Ok(Shell { network: Some(network.map_err(convert::testbed_error)?), seed })
    }

    /// The addresses of an end: IPv4, IPv6.
    #[pyo3(signature = (*, far))]
    fn addresses(&self, far: bool) -> PyResult<[Option<String>; 2]> {
        let network = self.network()?;
        let address = |ip| network.address(end(far), ip).map(|address| address.to_string());
        Ok([IpVersion::V4, IpVersion::V6].map(address))
    }

    /// Sentences about the machine, for the user.
    fn words(&self) -> PyResult<Vec<String>> {
        Ok(self.network()?.words().to_vec())
    }

    /// Starts a program at an end.
    #[pyo3(signature = (
        words, environment, *, far = false, user = None, resolver = None, background = false
    ))]
    #[pyo3(text_signature = "(words, environment, *, far=False, user=None, resolver=None, \
                             background=False)")]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn launch(
        &self,
        py: Python<'_>,
        words: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        far: bool,
        user: Option<User>,
        resolver: Option<PathBuf>,
        background: bool,
    ) -> PyResult<u32> {
        let network = self.network()?;
        let user = user.map(|(user, group, groups)| namespace::User { user, group, groups });
        let launch = Launch { words, environment, user, resolver, background };
        py.detach(|| network.launch(end(far), &launch)).map_err(error)
    }

    /// Whether a program at the far end waits for connections or datagrams.
    fn is_served(&self, py: Python<'_>) -> PyResult<bool> {
        let network = self.network()?;
        py.detach(|| network.is_served()).map_err(convert::testbed_error)
    }

    /// Ends all programs and the network, and says what happened there.
    fn stop<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.network()?;
        let network = self.network.take();
        let outcome = py.detach(|| network.map(testbed::Shell::stop).transpose());
        match outcome.map_err(convert::testbed_error)? {
            Some(outcome) => convert::real_outcome(py, self.seed, outcome),
            None => unreachable!("it was there"),
        }
    }
}

impl Shell {
    fn network(&self) -> PyResult<&testbed::Shell> {
        self.network.as_ref().ok_or_else(|| PyRuntimeError::new_err("it has been stopped"))
    }
}

fn end(far: bool) -> End {
    if far { End::Far } else { End::Near }
}

fn error(error: live::Error) -> PyErr {
    match error {
        live::Error::System { action, source } => match source.raw_os_error() {
            // With both, Python makes the right subclass.
            Some(number) => {
                let text = source.to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, text, action))
            }
            None => TestbedError::new_err(format!("{action}: {source}")),
        },
        other => TestbedError::new_err(other.to_string()),
    }
}
