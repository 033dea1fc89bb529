//! Where there are no network namespaces.

use crate::convert;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// It cannot be made.
#[pyclass(module = "lasthop._lasthop")]
pub(crate) struct Shell;

#[pymethods]
impl Shell {
    #[new]
    #[pyo3(signature = (*_words, **_settings))]
    fn new(_words: &Bound<'_, PyTuple>, _settings: Option<&Bound<'_, PyDict>>) -> PyResult<Shell> {
        Err(convert::testbed_error(testbed::Error::Platform))
    }
}
