//! Conversions between Python's values and the lab's.

use crate::{RunError, ScenarioError, TestbedError};
use lab::{Column, Numbers, Outcome, Seeds, SweepError, Table};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{
    PyFileExistsError, PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use scenario::{Experiment, Scenario, Source, Style, Value};

/// A dotted key and its value.
pub(crate) type Override<'py> = (String, Bound<'py, PyAny>);

/// A scenario file with its overrides.
pub(crate) fn source(
    source: String,
    name: String,
    overrides: Vec<Override<'_>>,
) -> PyResult<Source> {
    let mut source = Source::new(source, name);
    for (path, value) in overrides {
        let value = self::value(&path, &value)?;
        source.put(&path, &value).map_err(scenario_error)?;
    }
    Ok(source)
}

fn value(path: &str, any: &Bound<'_, PyAny>) -> PyResult<Value> {
    // A bool is an int, too, in Python.
    if let Ok(boolean) = any.cast::<PyBool>() {
        Ok(Value::Boolean(boolean.is_true()))
    } else if any.is_instance_of::<PyInt>() {
        any.extract()
            .map(Value::Integer)
            .map_err(|_| PyValueError::new_err(format!("{path}: an integer of more than 64 bits")))
    } else if any.is_instance_of::<PyFloat>() {
        Ok(Value::Float(any.extract()?))
    } else if let Ok(text) = any.cast::<PyString>() {
        Ok(Value::String(text.extract()?))
    } else if any.is_instance_of::<PyList>() || any.is_instance_of::<PyTuple>() {
        let values: PyResult<Vec<Value>> = any.try_iter()?.map(|v| value(path, &v?)).collect();
        Ok(Value::Array(values?))
    } else if let Ok(dict) = any.cast::<PyDict>() {
        let entries: PyResult<_> =
            dict.iter().map(|(key, v)| Ok((key.extract::<String>()?, value(path, &v)?))).collect();
        Ok(Value::Table(entries?))
    } else {
        let kind = any.get_type().name()?.to_string();
        Err(PyTypeError::new_err(format!(
            "{path}: expected bool, int, float, str, list or dict, not {kind}"
        )))
    }
}

/// A value of TOML.
pub(crate) fn object(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Value::Boolean(value) => value.into_bound_py_any(py),
        Value::Integer(value) => value.into_bound_py_any(py),
        Value::Float(value) => value.into_bound_py_any(py),
        Value::String(value) => value.into_bound_py_any(py),
        Value::Datetime(value) => value.to_string().into_bound_py_any(py),
        Value::Array(values) => {
            let values: PyResult<Vec<_>> = values.into_iter().map(|v| object(py, v)).collect();
            values?.into_bound_py_any(py)
        }
        Value::Table(table) => {
            let dict = PyDict::new(py);
            for (key, value) in table {
                dict.set_item(key, object(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// Seeds that a column can hold.
pub(crate) fn seeds(first: u64, count: u64) -> PyResult<Seeds> {
    match first.checked_add(count).map(i64::try_from) {
        Some(Ok(_)) => Ok(Seeds { first, count }),
        _ => Err(PyValueError::new_err("expected seeds below 2**63")),
    }
}

/// The contents of a scenario; `first` is that at its first point.
pub(crate) fn contents<'py>(
    py: Python<'py>,
    experiment: &Experiment<'_>,
    first: &Scenario,
) -> PyResult<Bound<'py, PyDict>> {
    let (points, seeds) = (experiment.points(), experiment.seeds());
    let flows: Vec<&str> = first.flows.iter().map(|flow| flow.name.as_str()).collect();
    let dict = PyDict::new(py);
    dict.set_item("title", &first.title)?;
    dict.set_item("duration_s", first.duration.as_secs_f64())?;
    dict.set_item("points", points)?;
    dict.set_item("seeds", seeds)?;
    dict.set_item("runs", points * seeds)?;
    dict.set_item("flows", flows)?;
    let links: Vec<String> = first.links.iter().flat_map(|link| first.directions(link)).collect();
    dict.set_item("links", links)?;
    let columns = PyDict::new(py);
    for (name, column) in lab::columns(experiment).columns() {
        columns.set_item(name, column.kind())?;
    }
    dict.set_item("columns", columns)?;
    Ok(dict)
}

/// The outcome of one run.
pub(crate) fn outcome<'py>(
    py: Python<'py>,
    seed: u64,
    outcome: Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let distributions = distributions(py, &outcome)?;
    dict.set_item("rows", table(py, outcome.table(seed))?)?;
    dict.set_item("links", table(py, outcome.links_table())?)?;
    dict.set_item("box_drops", table(py, outcome.box_drops_table())?)?;
    dict.set_item("box_counts", table(py, outcome.box_counts_table())?)?;
    dict.set_item("fast_path_share", outcome.paths.and_then(|paths| paths.fast_share()))?;
    let series = match outcome.series {
        None => None,
        Some(series) => {
            let all = PyDict::new(py);
            all.set_item("flows", all_buffers(py, series.flows)?)?;
            all.set_item("deliveries", all_buffers(py, series.deliveries)?)?;
            all.set_item("queues", all_buffers(py, series.queues)?)?;
            all.set_item("boxes", all_buffers(py, series.boxes)?)?;
            Some(all)
        }
    };
    dict.set_item("series", series)?;
    dict.set_item("distributions", distributions)?;
    let digest = outcome.digest.unwrap_or_default();
    dict.set_item("digest", format!("{:016x}", digest.0))?;
    Ok(dict)
}

/// The outcome of one run on real packets.
pub(crate) fn real_outcome<'py>(
    py: Python<'py>,
    seed: u64,
    outcome: testbed::Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let testbed::Outcome { run, health } = outcome;
    let dict = PyDict::new(py);
    dict.set_item("rows", table(py, run.table(seed))?)?;
    dict.set_item("links", table(py, run.links_table())?)?;
    dict.set_item("box_drops", table(py, run.box_drops_table())?)?;
    dict.set_item("box_counts", table(py, run.box_counts_table())?)?;
    dict.set_item("distributions", distributions(py, &run)?)?;
    let found = PyDict::new(py);
    found.set_item("packets", health.packets)?;
    found.set_item("late", health.late)?;
    found.set_item("lost", health.lost)?;
    found.set_item("median_s", health.median.as_secs_f64())?;
    found.set_item("p99_s", health.p99.as_secs_f64())?;
    found.set_item("worst_s", health.worst.as_secs_f64())?;
    found.set_item("limit_s", health.limit.as_secs_f64())?;
    found.set_item("steal", health.steal)?;
    found.set_item("void", health.void)?;
    dict.set_item("health", found)?;
    Ok(dict)
}

/// What there is of distributions, the name, and the columns.
fn distributions<'py>(
    py: Python<'py>,
    outcome: &Outcome,
) -> PyResult<Vec<(&'static str, String, Bound<'py, PyDict>)>> {
    let all = outcome.distributions().into_iter();
    all.map(|(what, of, table)| Ok((what, of.to_owned(), buffers(py, table)?))).collect()
}

fn all_buffers<'py>(py: Python<'py>, tables: Vec<(String, Table)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, columns) in tables {
        dict.set_item(name, buffers(py, columns)?)?;
    }
    Ok(dict)
}

/// Columns of numbers by name, each as its type, its values as bytes, and which there are.
fn buffers<'py>(py: Python<'py>, table: Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in table.into_columns() {
        let Some(Numbers { kind, values, there }) = column.numbers() else {
            return Err(PyTypeError::new_err(format!("{name}: no column of numbers")));
        };
        let there = there.map(|there| PyBytes::new(py, &there));
        dict.set_item(name, (kind, PyBytes::new(py, &values), there))?;
    }
    Ok(dict)
}

/// A remedy, as a dict.
pub(crate) fn remedy<'py>(
    py: Python<'py>,
    remedy: &scenario::Remedy,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let settings = remedy.toml().into_iter().map(|(place, toml)| {
        let setting = PyDict::new(py);
        setting.set_item("place", place.name())?;
        setting.set_item("toml", toml)?;
        Ok(setting)
    });
    dict.set_item("name", remedy.name)?;
    dict.set_item("settings", settings.collect::<PyResult<Vec<_>>>()?)?;
    let needs = remedy.needs.iter_names().map(|(name, _)| name.to_lowercase().replace('_', " "));
    dict.set_item("needs", needs.collect::<Vec<_>>())?;
    dict.set_item("means", remedy.means.name())?;
    dict.set_item("modes", remedy.modes.iter().map(|mode| mode.name()).collect::<Vec<_>>())?;
    dict.set_item("research", remedy.research)?;
    dict.set_item("buildable", remedy.buildable)?;
    dict.set_item("lead_s", remedy.lead.as_secs_f64())?;
    Ok(dict)
}

/// Columns as lists, by name.
pub(crate) fn table<'py>(py: Python<'py>, table: Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in table.into_columns() {
        match column {
            Column::Text(values) => dict.set_item(name, values)?,
            Column::Integer(values) => dict.set_item(name, values)?,
            Column::Count(values) => dict.set_item(name, values)?,
            Column::Float(values) => dict.set_item(name, values)?,
            Column::Boolean(values) => dict.set_item(name, values)?,
        }
    }
    Ok(dict)
}

/// The exception: its text is the report, its `findings` are the same for programs.
pub(crate) fn scenario_error(error: scenario::ScenarioError) -> PyErr {
    bad_scenario(error.render(Style::Plain), error.findings())
}

fn bad_scenario(report: String, findings: &[scenario::Finding]) -> PyErr {
    let raised = ScenarioError::new_err(report);
    let attached = Python::attach(|py| {
        let findings: PyResult<Vec<_>> = findings.iter().map(|f| finding(py, f)).collect();
        raised.value(py).setattr("findings", findings?)
    });
    attached.err().unwrap_or(raised)
}

fn finding<'py>(py: Python<'py>, finding: &scenario::Finding) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("file", &finding.file)?;
    dict.set_item("line", finding.at.map(|(line, _)| line))?;
    dict.set_item("column", finding.at.map(|(_, column)| column))?;
    dict.set_item("key", &finding.key)?;
    dict.set_item("value", &finding.value)?;
    dict.set_item("message", &finding.message)?;
    dict.set_item("help", &finding.help)?;
    Ok(dict)
}

pub(crate) fn run_error(error: lab::RunError) -> PyErr {
    match error {
        lab::RunError::Cancelled => PyKeyboardInterrupt::new_err(()),
        error @ lab::RunError::NoSuchPlace { .. } => bad_scenario(error.to_string(), &[]),
        error @ lab::RunError::Write { .. } => PyOSError::new_err(error.to_string()),
        other => RunError::new_err(other.to_string()),
    }
}

pub(crate) fn testbed_error(error: testbed::Error) -> PyErr {
    match error {
        testbed::Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        other => TestbedError::new_err(other.to_string()),
    }
}

pub(crate) fn journal_error(error: lab::JournalError) -> PyErr {
    match error {
        lab::JournalError::Other { .. } => PyFileExistsError::new_err(error.to_string()),
        lab::JournalError::File { .. } => PyOSError::new_err(error.to_string()),
    }
}

pub(crate) fn sweep_error(error: SweepError) -> PyErr {
    match error {
        SweepError::Scenario(error) => scenario_error(error),
        SweepError::Run(error) => run_error(error),
        SweepError::Threads(_) => PyRuntimeError::new_err(error.to_string()),
    }
}
