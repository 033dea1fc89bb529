//! The state of a socket and its options.

use crate::profile::Setup;
use base::Duration;
use core::net::SocketAddr;
use host::ConnectionId;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use tcp::congestion::Congestion;
use tcp::{Config, KeepAlive, ReceiveWindow};

/// The address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `AF_INET`
    Inet,
    /// `AF_INET6`, which carries IPv4 as well, by mapped addresses (RFC 4291 §2.5.5.2).
    Inet6,
}

/// A socket.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Keeps the number reserved: packetdrill closes descriptors that scripts leave open by the
    /// real call.
    pub(crate) _fd: OwnedFd,
    pub(crate) family: Family,
    pub(crate) kind: Kind,
    pub(crate) options: Options,
    pub(crate) nonblocking: bool,
    pub(crate) local_port: Option<u16>,
    pub(crate) read_shut: bool,
    pub(crate) write_shut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Idle,
    Listening {
        backlog: u32,
    },
    /// `connect` has returned, and the SYN is sent with the first data (`TCP_FASTOPEN_CONNECT`).
    Deferred(SocketAddr),
    Connected(Place),
}

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) is_ipv6: bool,
    pub(crate) id: ConnectionId,
}

/// A number that the kernel assigns to nothing else.
pub(crate) fn descriptor() -> Result<OwnedFd, Errno> {
    match File::open("/dev/null") {
        Ok(file) => Ok(file.into()),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::NFILE)),
    }
}

/// Level and name of an option, as in C.
pub type Name = (i32, i32);

/// The options of a socket.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) nodelay: bool,
    pub(crate) corked: bool,
    /// Reading returns the number of unread bytes (`TCP_INQ`).
    pub(crate) reports_inq: bool,
    pub(crate) send_buffer: u64,
    pub(crate) receive_buffer: Option<u32>,
    pub(crate) mss: Option<u16>,
    pub(crate) congestion: Option<Congestion>,
    /// A listener accepts Fast Open, or does not, whatever the system's default (`TCP_FASTOPEN`).
    pub(crate) accepts_fast_open: Option<bool>,
    /// `connect` opens by Fast Open (`TCP_FASTOPEN_CONNECT`).
    pub(crate) connects_fast: bool,
    /// Retransmissions of a SYN (`TCP_SYNCNT`).
    pub(crate) syn_retries: Option<u32>,
    /// Milliseconds without progress; 0 is never (`TCP_USER_TIMEOUT`).
    pub(crate) user_timeout: u32,
    pub(crate) keep_alive: bool,
    /// Silence before the first keep-alive probe (`TCP_KEEPIDLE`).
    pub(crate) keep_alive_idle: Option<Duration>,
    /// On `close`, nothing lingers: the connection is aborted.
    pub(crate) linger: Option<u32>,
    /// Options that make no difference here, as they were set.
    pub(crate) kept: BTreeMap<Name, i32>,
}

impl Options {
    pub(crate) fn new(setup: &Setup) -> Options {
        Options {
            nodelay: false,
            corked: false,
            reports_inq: false,
            send_buffer: setup.send_buffer(),
            receive_buffer: None,
            mss: None,
            congestion: None,
            accepts_fast_open: None,
            connects_fast: false,
            syn_retries: None,
            user_timeout: 0,
            keep_alive: false,
            keep_alive_idle: None,
            linger: None,
            kept: BTreeMap::new(),
        }
    }

    /// The settings of a connection of this socket.
    pub(crate) fn config(&self, setup: &Setup, is_ipv6: bool) -> Config {
        let mut config = setup.config(is_ipv6);
        config.nagle = !self.nodelay;
        config.mss = self.mss.map_or(config.mss, |mss| mss.min(config.mss));
        config.receive_window =
            self.receive_buffer.map_or(config.receive_window, ReceiveWindow::fixed);
        config.congestion = self.congestion.unwrap_or(config.congestion);
        config.syn_retries = self.syn_retries.unwrap_or(config.syn_retries);
        config.user_timeout = self.user_timeout();
        if self.keep_alive {
            let usual = KeepAlive::default();
            let idle = self.keep_alive_idle.unwrap_or(usual.idle);
            config.keep_alive = Some(KeepAlive { idle, ..usual });
        }
        config
    }

    pub(crate) fn user_timeout(&self) -> Option<Duration> {
        (self.user_timeout > 0).then(|| Duration::from_millis(self.user_timeout.into()))
    }

    /// Whether `close` aborts the connection (`SO_LINGER` with no time).
    pub(crate) fn aborts(&self) -> bool {
        self.linger == Some(0)
    }
}
