//! Sockets: from nothing to a connection, and back.

use crate::endpoint::Endpoint;
use crate::socket::{Family, Kind, Options, Place, Socket, descriptor};
use crate::stack::Stack;
use core::net::{IpAddr, SocketAddr};
use host::{Listener, Opening};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, RawFd};
use tcp::{Config, Connection, State};

/// Which half of a connection is shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// `SHUT_RD`
    Read,
    /// `SHUT_WR`
    Write,
    /// `SHUT_RDWR`
    Both,
}

/// Whether an active open waits for the answer to its SYN.
fn is_unanswered(connection: &Connection) -> bool {
    connection.state() == State::SynSent
}

impl Stack {
    /// `socket(2)` for a stream.
    ///
    /// # Errors
    /// If no file descriptor is left.
    pub fn socket(&mut self, family: Family) -> Result<RawFd, Errno> {
        let options = Options::new(&self.setup);
        self.add_socket(family, Kind::Idle, options)
    }

    fn add_socket(&mut self, family: Family, kind: Kind, options: Options) -> Result<RawFd, Errno> {
        let own = descriptor()?;
        let fd = own.as_raw_fd();
        self.sockets.insert(
            fd,
            Socket {
                _fd: own,
                family,
                kind,
                options,
                nonblocking: false,
                local_port: None,
                read_shut: false,
                write_shut: false,
            },
        );
        Ok(fd)
    }

    pub(crate) fn find(&self, fd: RawFd) -> Result<&Socket, Errno> {
        self.sockets.get(&fd).ok_or(Errno::BADF)
    }

    pub(crate) fn find_mut(&mut self, fd: RawFd) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(Errno::BADF)
    }

    /// Whether calls on a descriptor return at once (`O_NONBLOCK`).
    ///
    /// # Errors
    /// `BADF`
    pub fn is_nonblocking(&self, fd: RawFd) -> Result<bool, Errno> {
        Ok(self.find(fd)?.nonblocking)
    }

    /// `fcntl(2)`, `F_SETFL`
    ///
    /// # Errors
    /// `BADF`
    pub fn set_nonblocking(&mut self, fd: RawFd, nonblocking: bool) -> Result<(), Errno> {
        self.find_mut(fd)?.nonblocking = nonblocking;
        Ok(())
    }

    /// Whether a number is one of ours.
    #[must_use]
    pub fn has(&self, fd: RawFd) -> bool {
        self.sockets.contains_key(&fd) || self.epolls.contains_key(&fd)
    }

    /// `bind(2)`. Of the address only the port matters: there is one interface.
    ///
    /// # Errors
    /// As the system call.
    pub fn bind(&mut self, fd: RawFd, address: SocketAddr) -> Result<(), Errno> {
        let socket = self.find_mut(fd)?;
        if socket.local_port.is_some() || socket.kind != Kind::Idle {
            return Err(Errno::INVAL);
        }
        socket.local_port = Some(address.port()).filter(|&port| port != 0);
        Ok(())
    }

    /// `listen(2)`
    ///
    /// # Errors
    /// As the system call; a socket must be bound.
    pub fn listen(&mut self, fd: RawFd, backlog: u32) -> Result<(), Errno> {
        let socket = self.find_mut(fd)?;
        if matches!(socket.kind, Kind::Connected(_)) {
            return Err(Errno::INVAL);
        }
        let port = socket.local_port.ok_or(Errno::INVAL)?;
        socket.kind = Kind::Listening { backlog };
        for is_ipv6 in socket.versions() {
            let config = self.find(fd)?.options.config(&self.setup, is_ipv6);
            let asked = self.find(fd)?.options.accepts_fast_open;
            let fast_open = self.setup.accepts_fast_open(asked);
            let config = Config { fast_open, ..self.setup.accepting(config) };
            let accept =
                move |_| (config.clone(), Endpoint { listener: Some(fd), ..Endpoint::default() });
            // Linux accepts one more than the backlog.
            let listener = Listener::new(port, accept).backlog(backlog.saturating_add(1));
            self.host(is_ipv6).add_listener(listener);
        }
        Ok(())
    }

    /// `accept(2)`
    ///
    /// # Errors
    /// As the system call; `AGAIN` if no connection waits.
    pub fn accept(&mut self, fd: RawFd) -> Result<(RawFd, SocketAddr), Errno> {
        let socket = self.find(fd)?;
        if !matches!(socket.kind, Kind::Listening { .. }) {
            return Err(Errno::INVAL);
        }
        let (family, options) = (socket.family, socket.options.clone());
        let place = self.first_of(fd).ok_or(Errno::AGAIN)?;
        self.using(place, |_, endpoint| endpoint.accepted = true);
        let tuple = self.host_ref(place.is_ipv6).four_tuple(place.id).ok_or(Errno::CONNABORTED)?;
        let accepted = self.add_socket(family, Kind::Connected(place), options)?;
        Ok((accepted, family.address(tuple.remote_end())))
    }

    /// The first connection of a listening socket that was not accepted yet.
    fn first_of(&self, fd: RawFd) -> Option<Place> {
        [false, true].into_iter().find_map(|is_ipv6| {
            let mut connections = self.host_ref(is_ipv6).connections();
            let is_next = |endpoint: &Endpoint| {
                endpoint.listener == Some(fd) && endpoint.established && !endpoint.accepted
            };
            let (id, ..) = connections.find(|(_, _, endpoint)| is_next(endpoint))?;
            Some(Place { is_ipv6, id })
        })
    }

    /// Whether `accept` would return something.
    pub(crate) fn is_acceptable(&self, fd: RawFd) -> bool {
        self.first_of(fd).is_some()
    }

    /// The beginning of `connect(2)`, which [`Stack::connected`] ends. With `TCP_FASTOPEN_CONNECT`
    /// and a cookie of the server it ends at once, and the SYN is sent with the first data.
    ///
    /// # Errors
    /// As the system call.
    pub fn connect(&mut self, fd: RawFd, address: SocketAddr) -> Result<(), Errno> {
        let socket = self.find(fd)?;
        match socket.kind {
            Kind::Idle => {}
            Kind::Deferred(_) => return Err(Errno::ISCONN),
            Kind::Listening { .. } => return Err(Errno::OPNOTSUPP),
            Kind::Connected(place) => {
                return Err(match self.connection(place)?.state() {
                    State::SynSent | State::SynReceived => Errno::ALREADY,
                    _ => Errno::ISCONN,
                });
            }
        }
        let fast = socket.options.connects_fast;
        let remote = address.ip().to_canonical();
        if fast && self.host_ref(remote.is_ipv6()).has_fast_open_cookie(self.now, remote) {
            self.find_mut(fd)?.kind = Kind::Deferred(address);
            return Ok(());
        }
        let place = self.open(fd, address, fast)?;
        self.using(place, |_, _| ());
        Ok(())
    }

    /// Opens a connection; nothing is sent yet.
    pub(crate) fn open(
        &mut self,
        fd: RawFd,
        address: SocketAddr,
        fast_open: bool,
    ) -> Result<Place, Errno> {
        let socket = self.find(fd)?;
        let remote = address.ip().to_canonical();
        if socket.family == Family::Inet && remote.is_ipv6() {
            return Err(Errno::AFNOSUPPORT);
        }
        let is_ipv6 = remote.is_ipv6();
        let config = socket.options.config(&self.setup, is_ipv6);
        let opening = Opening {
            at: self.now,
            remote,
            remote_port: address.port(),
            local: None,
            local_port: socket.local_port,
            config: Config { fast_open, ..config },
            application: Endpoint { accepted: true, ..Endpoint::default() },
        };
        let now = self.now;
        let id = self.host(is_ipv6).connect(now, opening).ok_or(Errno::ADDRNOTAVAIL)?;
        let place = Place { is_ipv6, id };
        self.find_mut(fd)?.kind = Kind::Connected(place);
        Ok(place)
    }

    /// Whether the connection is established.
    ///
    /// # Errors
    /// `AGAIN` as long as it may be, else why it never will.
    pub fn connected(&mut self, fd: RawFd) -> Result<(), Errno> {
        if matches!(self.find(fd)?.kind, Kind::Deferred(_)) {
            return Ok(());
        }
        let place = self.place(fd)?;
        let status = self.using(place, |connection, endpoint| match endpoint.error.take() {
            Some(error) => Err(error),
            None if endpoint.established => Ok(()),
            None if connection.state() == State::Closed => Err(Errno::CONNABORTED),
            None => Err(Errno::AGAIN),
        });
        status.unwrap_or(Err(Errno::CONNABORTED))
    }

    /// `shutdown(2)`
    ///
    /// # Errors
    /// As the system call.
    pub fn shutdown(&mut self, fd: RawFd, how: Shutdown) -> Result<(), Errno> {
        let place = self.place(fd)?;
        if self.connection(place)?.state() == State::Closed {
            return Err(Errno::NOTCONN);
        }
        let socket = self.find_mut(fd)?;
        socket.read_shut |= how != Shutdown::Write;
        socket.write_shut |= how != Shutdown::Read;
        if how != Shutdown::Read {
            self.using(place, |connection, _| connection.close());
        }
        Ok(())
    }

    /// `close(2)`: the connection lives on until it is over.
    ///
    /// # Errors
    /// `BADF`
    pub fn close(&mut self, fd: RawFd) -> Result<(), Errno> {
        self.epolls.values_mut().for_each(|epoll| epoll.forget(fd));
        if self.epolls.remove(&fd).is_some() {
            return Ok(());
        }
        let socket = self.sockets.remove(&fd).ok_or(Errno::BADF)?;
        match socket.kind {
            Kind::Idle | Kind::Deferred(_) => {}
            Kind::Listening { .. } => self.close_listener(fd, &socket),
            Kind::Connected(place) => {
                let (now, aborts) = (self.now, socket.options.aborts());
                // Before the answer to its SYN, a connection is deleted (RFC 9293 §3.10.4), also one
                // of Fast Open.
                self.using(place, |connection, _| match aborts || is_unanswered(connection) {
                    true => connection.abort(),
                    false => connection.close_both(now),
                });
            }
        }
        Ok(())
    }

    /// Connections that were not accepted are reset.
    fn close_listener(&mut self, fd: RawFd, socket: &Socket) {
        for is_ipv6 in socket.versions() {
            let Some(port) = socket.local_port else { continue };
            let host = self.host(is_ipv6);
            host.unlisten(port);
            let waiting: Vec<_> = host
                .connections()
                .filter(|(_, _, endpoint)| endpoint.listener == Some(fd) && !endpoint.accepted)
                .map(|(id, ..)| Place { is_ipv6, id })
                .collect();
            for place in waiting {
                self.using(place, |connection, _| connection.abort());
            }
        }
    }

    /// The connection of a socket.
    pub(crate) fn place(&self, fd: RawFd) -> Result<Place, Errno> {
        match self.find(fd)?.kind {
            Kind::Connected(place) => Ok(place),
            Kind::Idle | Kind::Deferred(_) | Kind::Listening { .. } => Err(Errno::NOTCONN),
        }
    }

    pub(crate) fn connection(&self, place: Place) -> Result<&Connection, Errno> {
        self.host_ref(place.is_ipv6).connection(place.id).ok_or(Errno::NOTCONN)
    }

    /// Calls a function with a connection, and transmits afterwards.
    pub(crate) fn using<R>(
        &mut self,
        place: Place,
        using: impl FnOnce(&mut Connection, &mut Endpoint) -> R,
    ) -> Option<R> {
        let now = self.now;
        let result = self.host(place.is_ipv6).access(now, place.id, using);
        self.transmit();
        result
    }
}

impl Socket {
    /// Which versions of IP it is for: of each whether it is IPv6.
    fn versions(&self) -> impl Iterator<Item = bool> + use<> {
        let most = self.family == Family::Inet6;
        [false, true].into_iter().filter(move |is_ipv6| most || !is_ipv6)
    }
}

impl Family {
    /// An address as a socket of this family shows it.
    fn address(self, address: SocketAddr) -> SocketAddr {
        match (self, address.ip()) {
            (Family::Inet6, IpAddr::V4(ip)) => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
            }
            _ => address,
        }
    }
}
