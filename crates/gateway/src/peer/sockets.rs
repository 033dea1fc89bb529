//! The sockets at the port of a gateway: what the other gateway seals waits in one of its own, so that a flood of other
//! datagrams does not fill its queue, not even one with the other gateway's address.

use crate::network;
use channel::Recognition;
use live::{SessionQueue, UdpSender};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use tracing::warn;

/// The most datagrams that wait in a socket, bytes.
const BUFFER: usize = 8 << 20;

/// So many datagrams of sessions are read in turn with so many others, if both wait. Handshakes are among the others.
const OWN: u32 = 64;
const OTHERS: u32 = 8;

/// Both sockets.
pub(super) struct Sockets {
    /// For all other datagrams, and for what is sent.
    any: UdpSender,
    /// For those of the channel's sessions.
    own: UdpSocket,
    queue: SessionQueue,
    /// Datagrams that were read in these turns.
    turn: u32,
    /// Can be read if one of them can.
    either: OwnedFd,
}

impl Sockets {
    pub(super) fn listen(address: SocketAddr) -> io::Result<Sockets> {
        let [any, own] = listen_twice(address)?;
        let refused = |error| {
            warn!(
                %error,
                remedy = network::queues_rights(),
                "a flood of replayed or forged datagrams can keep out those of the other gateway"
            );
            SessionQueue::by_indices()
        };
        let queue = SessionQueue::by_codes(&own).unwrap_or_else(refused);
        let either = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&either, &any)?;
        watch(&either, &own)?;
        let any = UdpSender::new(any);
        let mut sockets = Sockets { any, own, queue, turn: 0, either };
        sockets.set_sessions([].into_iter());
        Ok(sockets)
    }

    /// The one that sends.
    pub(super) fn sender(&mut self) -> &mut UdpSender {
        &mut self.any
    }

    /// To be waited for.
    pub(super) fn either(&self) -> BorrowedFd<'_> {
        self.either.as_fd()
    }

    /// The next datagram: mostly one of a session, if there is one.
    pub(super) fn receive(&mut self, memory: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let own_first = self.turn < OWN;
        self.turn = (self.turn + 1) % (OWN + OTHERS);
        let (own, any) = (&self.own, self.any.socket());
        let [first, second] = if own_first { [own, any] } else { [any, own] };
        let received = first.recv_from(memory);
        if !is_none(&received) {
            return received;
        }
        let received = second.recv_from(memory);
        self.turn = if own_first && !is_none(&received) { OWN } else { 0 };
        received
    }

    /// Sets whose datagrams are for the socket of sessions.
    pub(super) fn set_sessions(&mut self, sessions: impl Iterator<Item = Recognition>) {
        let sessions = sessions.map(|session| (session.index, *session.codes.bytes()));
        if let Err(error) = self.queue.set(&self.own, sessions) {
            warn!(%error, "a flood of datagrams can keep out those of the other gateway");
        }
    }
}

/// Whether no datagram waits.
fn is_none<T>(received: &io::Result<T>) -> bool {
    received.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Whether an address is free, and whether the kernel can check codes there.
pub(crate) fn try_listen(address: SocketAddr) -> io::Result<Result<(), live::Error>> {
    let [_any, own] = listen_twice(address)?;
    Ok(SessionQueue::by_codes(&own).map(drop))
}

/// Two sockets at an address, which no other program has.
fn listen_twice(address: SocketAddr) -> io::Result<[UdpSocket; 2]> {
    // Without the option, the kernel refuses it a port that others have, even if they share it among them.
    let first = listen(address)?;
    SockRef::from(&first).set_reuse_port(true)?;
    let second = open(first.local_addr()?, true)?;
    Ok([first, second.into()])
}

fn watch(either: &OwnedFd, socket: &UdpSocket) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(either, socket, data, epoll::EventFlags::IN)?)
}

/// A socket for datagrams, which may be cut up on their way.
pub(crate) fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    match open(address, false) {
        // A kernel without IPv6: any address is one of IPv4.
        Err(error) if error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => {
            let any = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
            let ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            if any { listen(ipv4) } else { Err(error) }
        }
        opened => Ok(opened?.into()),
    }
}

/// The same, perhaps at a port that another socket of this user shares with it.
fn open(address: SocketAddr, shares: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // The kernel limits them, but not for one with CAP_NET_ADMIN; more is better.
    if set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        let _ = socket.set_recv_buffer_size(BUFFER);
    }
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.set_nonblocking(true)?;
    if shares {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    live::sockopt::allow_fragments(&socket, address.is_ipv6(), true).map_err(io::Error::other)?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
