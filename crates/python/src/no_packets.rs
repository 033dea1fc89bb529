//! Where there is nothing that sends real packets.

use crate::convert;
use crate::wanted::Wanted;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use scenario::Source;

pub(crate) fn transfer<'py>(
    _: Python<'py>,
    _: &Source,
    _: &Wanted,
    _: &Py<PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    Err(convert::testbed_error(testbed::Error::Absent))
}

/// It cannot be made.
#[pyclass(module = "lasthop._lasthop")]
pub(crate) struct Shell;

#[pymethods]
impl Shell {
    #[new]
    #[pyo3(signature = (*_words, **_settings))]
    fn new(_words: &Bound<'_, PyTuple>, _settings: Option<&Bound<'_, PyDict>>) -> PyResult<Shell> {
        Err(convert::testbed_error(testbed::Error::Absent))
    }
}
