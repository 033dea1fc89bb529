//! Why a gateway cannot run.

use crate::doctor;
use crate::marking::MarkingError;
use crate::peer::PeerError;
use std::io;
use std::net::IpAddr;
use thiserror::Error;

/// Why a gateway cannot run.
#[derive(Debug, Error)]
pub enum Error {
    /// The system has refused something.
    #[error(transparent)]
    Live(#[from] live::Error),
    /// There is no way to the other gateway.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// Packets cannot be marked in the kernel.
    #[error(transparent)]
    Marking(#[from] MarkingError),
    /// There are no packets to be captured.
    #[error("no packet passes the process: the kernel marks them (tcpdump shows them)")]
    InKernel,
    /// The machine is not ready.
    #[error(transparent)]
    Unfit(#[from] doctor::Unfit),
    /// The address or the path cannot be listened at.
    #[error("listening at {place}: {source}")]
    Listening {
        /// The path or the address.
        place: String,
        /// The cause.
        source: io::Error,
    },
    /// The file of the records cannot be written.
    #[error("writing records to {path}: {source}")]
    Records {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A file for the next gateway cannot be used.
    #[error("{path}: {source}")]
    State {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// Another program cannot take the place of this one.
    #[error("executing {program}: {source}")]
    Execute {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// Signals cannot be caught.
    #[error("catching signals: {0}")]
    Signals(#[source] io::Error),
    /// One of its devices is gone.
    #[error("a device of the gateway was removed")]
    Removed,
    /// The base station's address is not of the version of IP of the address by which base stations know the host.
    #[error("{0} is not of the version of IP of the address by which base stations know this host")]
    Version(IpAddr),
    /// There is no randomness for secrets.
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}
