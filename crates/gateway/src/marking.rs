//! Mode `spep` in the kernel: no packet passes the process, and no device or rule is made.

#[cfg(not(feature = "marker"))]
#[path = "marking/absent.rs"]
mod kernel;
#[cfg(feature = "marker")]
mod kernel;

pub(crate) use kernel::{Marking, refusal};

use crate::network::DEVICES;
use live::Netlink;
use scenario::{DataPath, Gateway, Work};
use thiserror::Error;
use tracing::info;

/// Why packets are not marked in the kernel.
#[derive(Debug, Error)]
pub enum MarkingError {
    /// The process lacks rights.
    #[error(
        "the process may not load BPF programs: it needs CAP_BPF and CAP_PERFMON, besides CAP_NET_ADMIN"
    )]
    Forbidden,
    /// The kernel does not take the program.
    #[error("{0}")]
    Refused(String),
    /// The program was built without it.
    #[error("this lasthopd was built without BPF (feature `marker`)")]
    Absent,
    /// The system has refused something else.
    #[error(transparent)]
    Live(#[from] live::Error),
}

/// Marks packets in the kernel, if that is what a gateway does; `None` if packets are to pass the process.
///
/// # Errors
/// If it is to be in the kernel, and cannot be.
pub(crate) fn start(gateway: &Gateway) -> Result<Option<Marking>, MarkingError> {
    let Work::Spep(station, path) = &gateway.work else { return Ok(None) };
    let in_kernel = || Marking::start(&gateway.wan, station);
    match path {
        DataPath::UserSpace => Ok(None),
        DataPath::Kernel => in_kernel().map(Some),
        DataPath::Auto => Ok(in_kernel()
            .inspect_err(|error| info!(%error, "marks packets in user space, not in the kernel"))
            .ok()),
    }
}

/// Whether packets pass the devices of a gateway that is to run, or does.
pub(crate) fn has_devices(netlink: &Netlink, gateway: &Gateway, running: bool) -> bool {
    match &gateway.work {
        Work::Spep(_, DataPath::Kernel) => false,
        Work::Spep(_, DataPath::Auto) if running => netlink.index(DEVICES[0]).is_ok(),
        Work::Spep(station, DataPath::Auto) => refusal(&gateway.wan, station).is_some(),
        _ => true,
    }
}
