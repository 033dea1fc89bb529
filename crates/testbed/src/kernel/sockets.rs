//! Sockets of the kernel's TCP: their settings, and what the kernel says of them.

use crate::state::RunState;
use crate::{Error, settings};
use lab::Counts;
use scenario::Flow;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use tcp::Config;

/// A socket with the settings of an end of a flow.
pub(super) fn stream(flow: &Flow, config: &Config, own: SocketAddr) -> Result<Socket, Error> {
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(own), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket = open().map_err(|error| Error::System(format!("opening a socket: {error}")))?;
    settings::apply(&socket, flow, config)?;
    Ok(socket)
}

/// The listening socket of a flow.
pub(super) fn listen(flow: &Flow, config: &Config, own: SocketAddr) -> Result<Socket, Error> {
    let failed = |error: io::Error| Error::System(format!("listening at {own}: {error}"));
    let socket = stream(flow, config, own)?;
    socket.bind(&SockAddr::from(own)).map_err(failed)?;
    socket.listen(i32::from(u16::MAX)).map_err(failed)?;
    Ok(socket)
}

/// Counts that the kernel does not report.
pub(super) const UNKNOWN: Counts = Counts {
    segments: None,
    retransmissions: None,
    timeouts: None,
    reductions: None,
    notices: None,
    reprobes: None,
};

pub(super) fn counts(socket: &Socket) -> Counts {
    let counts = live::sockopt::tcp_counts(socket).unwrap_or_default();
    Counts {
        segments: counts.segments,
        retransmissions: counts.retransmissions,
        timeouts: counts.timeouts,
        ..UNKNOWN
    }
}

/// The port of the end that opened the connection.
pub(super) fn client_port(address: io::Result<SockAddr>) -> u64 {
    let address = address.ok().and_then(|address| address.as_socket());
    address.map_or(0, |address| u64::from(address.port()))
}

/// Resets a connection that the end of the run interrupts.
pub(super) fn leave(state: &RunState, socket: &Socket) {
    if state.is_over() {
        let _ = socket.set_linger(Some(std::time::Duration::ZERO));
    }
}
