//! Transfers of files by our TCP on this machine's network.

use crate::wanted::Wanted;
use crate::{TestbedError, TransferError, convert};
use core::ops::ControlFlow;
use lab::{Monitor, supervise};
use live::transfer::{self, Direction, Peer, PeerEnd, Progress, Transfer};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::{IpVersion, Source};
use std::net::SocketAddr;

pub(crate) fn run<'py>(
    py: Python<'py>,
    settings: &Source,
    wanted: &Wanted,
    watch: &Py<PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let peer = match wanted.peer {
        (Some(address), port) => Peer::Connect(SocketAddr::new(address.to_canonical(), port)),
        (None, port) => Peer::Listen(port),
    };
    let ip = match peer {
        Peer::Connect(SocketAddr::V6(_)) => IpVersion::V6,
        _ => IpVersion::V4,
    };
    let config = scenario::connection_settings(settings, ip).map_err(convert::scenario_error)?;
    // SAFETY: the caller keeps the descriptor open during the call, in which it is duplicated.
    #[expect(unsafe_code, reason = "Python's files are numbers")]
    let file = unsafe { std::os::fd::BorrowedFd::borrow_raw(wanted.file) };
    let file = file.try_clone_to_owned()?;
    let direction = if wanted.sends { Direction::Send } else { Direction::Receive };
    let &Wanted { address, masquerade, .. } = wanted;
    let transfer = Transfer { direction, file, peer, config, address, masquerade };
    let (monitor, progress) = (Monitor::default(), Progress::default());
    let mut raised = None;
    let look = || {
        Python::attach(|py| {
            py.check_signals()?;
            watch.call1(py, (progress.moved(), progress.take_words())).map(|_| ())
        })
    };
    let result = py.detach(|| {
        let work = || transfer::run(transfer, monitor.cancelled(), &progress);
        supervise(&monitor, work, |_| match raised.is_none().then(look) {
            Some(Ok(())) => ControlFlow::Continue(()),
            Some(Err(error)) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
            None => ControlFlow::Break(()),
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    watch.call1(py, (progress.moved(), progress.take_words()))?;
    report(py, &result.map_err(error)?)
}

fn report<'py>(py: Python<'py>, report: &transfer::Report) -> PyResult<Bound<'py, PyDict>> {
    let seconds = |span: Option<base::Duration>| span.map(base::Duration::as_secs_f64);
    let dict = PyDict::new(py);
    dict.set_item("local", report.local.to_string())?;
    dict.set_item("remote", report.remote.to_string())?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("seconds", report.time.as_secs_f64())?;
    dict.set_item("segments", report.statistics.segments)?;
    dict.set_item("retransmissions", report.statistics.retransmissions)?;
    dict.set_item("timeouts", report.statistics.timeouts)?;
    dict.set_item("srtt_s", seconds(report.srtt))?;
    dict.set_item("min_rtt_s", seconds(report.min_rtt))?;
    let end = match report.peer_end {
        PeerEnd::Closed => "closed",
        PeerEnd::Open => "open",
        PeerEnd::Reset => "reset",
    };
    dict.set_item("peer_end", end)?;
    dict.set_item("discarded", report.discarded)?;
    Ok(dict)
}

fn error(error: transfer::Error) -> PyErr {
    use transfer::Error;

    match error {
        Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        Error::Failed(failure) => TransferError::new_err(failure.to_string()),
        Error::File(error) => match error.raw_os_error() {
            // With both, Python makes the right subclass.
            Some(number) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, text))
            }
            None => PyOSError::new_err(error.to_string()),
        },
        other => TestbedError::new_err(other.to_string()),
    }
}
