//! Why a transfer failed.

use std::io;
use std::net::SocketAddr;
use tcp::Events;

/// Why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process lacks a privilege.
    #[error("a TUN device needs root: this process lacks {0}")]
    Forbidden(String),
    /// The request cannot be fulfilled on this machine; the text says why, and what can.
    #[error("{0}")]
    Unusable(String),
    /// There is no command to masquerade with.
    #[error("masquerading needs the command `nft`, of the package nftables")]
    NoNft,
    /// The system refused something.
    #[error(transparent)]
    System(#[from] crate::Error),
    /// The connection failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The file failed.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The transfer was cancelled.
    #[error("the transfer was cancelled")]
    Cancelled,
}

/// How a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The kernel has no route.
    #[error("there is no route to {0}")]
    NoRoute(SocketAddr),
    /// The peer has answered the SYN by a reset.
    #[error("{0} refused the connection")]
    Refused(SocketAddr),
    /// The peer has not answered the SYN.
    #[error("{0} does not answer")]
    NoAnswer(SocketAddr),
    /// An ICMP message says that the peer is out of reach.
    #[error("{0} is unreachable, as an ICMP message says")]
    Unreachable(SocketAddr),
    /// The peer has reset the connection.
    #[error("{peer} reset the connection after {bytes} bytes")]
    Reset {
        /// The peer.
        peer: SocketAddr,
        /// Bytes acknowledged or received.
        bytes: u64,
    },
    /// The peer has stopped to answer.
    #[error("{peer} stopped answering after {bytes} bytes")]
    TimedOut {
        /// The peer.
        peer: SocketAddr,
        /// Bytes acknowledged or received.
        bytes: u64,
    },
}

impl Failure {
    /// What ended a connection, of its events; `None` if that was no failure.
    pub(super) fn of(events: Events, peer: SocketAddr, bytes: u64) -> Option<Failure> {
        let connected = events.contains(Events::CONNECTED);
        match events {
            events if events.contains(Events::RESET) && connected => {
                Some(Failure::Reset { peer, bytes })
            }
            events if events.contains(Events::RESET) => Some(Failure::Refused(peer)),
            events if events.contains(Events::UNREACHABLE) => Some(Failure::Unreachable(peer)),
            events if events.contains(Events::TIMED_OUT) && connected => {
                Some(Failure::TimedOut { peer, bytes })
            }
            events if events.contains(Events::TIMED_OUT) => Some(Failure::NoAnswer(peer)),
            _ => None,
        }
    }
}
