//! The sockets at the port of a gateway: what comes from the peer's address waits in one of its own, so that a flood
//! from other addresses does not fill its queue.

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

/// Both sockets.
pub(super) struct Sockets {
    /// For datagrams from any address, and for what is sent.
    any: UdpSocket,
    /// Where the peer is, and the socket for datagrams from there, if it could be opened.
    peer: Option<(SocketAddr, Option<UdpSocket>)>,
    /// Can be read if one of them can.
    either: OwnedFd,
}

impl Sockets {
    pub(super) fn listen(address: SocketAddr) -> io::Result<Sockets> {
        let any = listen(address)?;
        let either = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&either, &any)?;
        Ok(Sockets { any, peer: None, either })
    }

    /// The one that sends.
    pub(super) fn sender(&self) -> &UdpSocket {
        &self.any
    }

    /// To be waited for.
    pub(super) fn either(&self) -> BorrowedFd<'_> {
        self.either.as_fd()
    }

    /// The next datagram: one of the peer's, if there is one.
    pub(super) fn receive(&self, memory: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        if let Some((_, Some(own))) = &self.peer {
            match own.recv_from(memory) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                received => return received,
            }
        }
        self.any.recv_from(memory)
    }

    /// Notes where the peer is.
    pub(super) fn set_peer(&mut self, address: Option<SocketAddr>) {
        let address = address.map(|at| SocketAddr::new(at.ip().to_canonical(), at.port()));
        if self.peer.as_ref().map(|(at, _)| *at) != address {
            // The port is free for another one only then.
            self.forget_peer();
            self.peer = address.map(|address| {
                // Without such a socket, the other one has all.
                let refused = |error: &io::Error| {
                    warn!(%error, %address, "a flood of datagrams can keep out those of the other gateway");
                };
                (address, self.connected(address).inspect_err(refused).ok())
            });
        }
    }

    /// The route to the peer has changed: the connected socket has the local address of the route before.
    pub(super) fn forget_peer(&mut self) {
        self.peer = None;
    }

    /// A socket at the same port, to which the kernel gives all datagrams from an address.
    fn connected(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        let own = self.any.local_addr()?;
        let to = match (own, to.ip()) {
            (SocketAddr::V6(_), IpAddr::V4(ip)) => (ip.to_ipv6_mapped(), to.port()).into(),
            _ => to,
        };
        // No other program may share the port, neither before nor later.
        let any = SockRef::from(&self.any);
        any.set_reuse_address(true)?;
        let connected = open(own, true).and_then(|socket| {
            socket.connect(&to.into())?;
            socket.set_reuse_address(false)?;
            Ok(UdpSocket::from(socket))
        });
        any.set_reuse_address(false)?;
        let connected = connected?;
        watch(&self.either, &connected)?;
        Ok(connected)
    }
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

/// The same, perhaps at a port that another socket lets it share.
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
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    live::sockopt::allow_fragments(&socket, address.is_ipv6(), true).map_err(io::Error::other)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// Sockets at any port, by the addresses that they listen at, and their port at a loopback address.
    fn listening(any: IpAddr) -> (Sockets, SocketAddr) {
        let sockets = Sockets::listen((any, 0).into()).unwrap();
        let port = sockets.sender().local_addr().unwrap().port();
        (sockets, (Ipv4Addr::LOCALHOST, port).into())
    }

    fn program(to: SocketAddr) -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(to).unwrap();
        socket
    }

    /// The next datagram, for which it waits a second at most.
    fn next(sockets: &Sockets) -> Option<Vec<u8>> {
        let mut ready = [PollFd::from_borrowed_fd(sockets.either(), PollFlags::IN)];
        poll(&mut ready, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap();
        let mut memory = [0; 100];
        let (len, _) = sockets.receive(&mut memory).ok()?;
        Some(memory[..len].to_vec())
    }

    const ANY: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

    #[test]
    fn a_flood_from_other_addresses_does_not_keep_out_the_peer() {
        for any in ANY {
            let (mut sockets, at) = listening(any);
            let (peer, other) = (program(at), program(at));
            sockets.set_peer(Some(peer.local_addr().unwrap()));
            // More than the queue holds.
            for _ in 0..100_000 {
                other.send(&[0]).unwrap();
            }
            peer.send(&[1]).unwrap();
            assert_eq!(next(&sockets), Some(vec![1]), "{any}");
            assert_eq!(next(&sockets), Some(vec![0]), "{any}");
        }
    }

    #[test]
    fn a_peer_with_another_address_is_heard() {
        for any in ANY {
            let (mut sockets, at) = listening(any);
            let (before, now) = (program(at), program(at));
            let has_own = |sockets: &Sockets| matches!(sockets.peer, Some((_, Some(_))));
            sockets.set_peer(Some(before.local_addr().unwrap()));
            assert!(has_own(&sockets));
            now.send(&[1]).unwrap();
            assert_eq!(next(&sockets), Some(vec![1]));
            sockets.set_peer(Some(now.local_addr().unwrap()));
            assert!(has_own(&sockets));
            for (number, program) in [(2, &now), (3, &before)] {
                program.send(&[number]).unwrap();
                assert_eq!(next(&sockets), Some(vec![number]));
            }
            sockets.forget_peer();
            now.send(&[4]).unwrap();
            assert_eq!(next(&sockets), Some(vec![4]));
        }
    }

    #[test]
    fn without_a_socket_of_its_own_a_peer_is_heard() {
        for any in ANY {
            let (mut sockets, at) = listening(any);
            // The kernel refuses to connect to it.
            sockets.set_peer(Some((Ipv4Addr::BROADCAST, 9).into()));
            assert!(matches!(sockets.peer, Some((_, None))), "{any}");
            program(at).send(&[1]).unwrap();
            assert_eq!(next(&sockets), Some(vec![1]), "{any}");
        }
    }

    #[test]
    fn no_other_program_shares_the_port() {
        for any in ANY {
            let (mut sockets, at) = listening(any);
            let peer = program(at);
            for known in [None, Some(peer.local_addr().unwrap())] {
                sockets.set_peer(known);
                let address = SocketAddr::from((any, at.port()));
                for shares in [false, true] {
                    let error = open(address, shares).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::AddrInUse);
                }
            }
        }
    }

    #[test]
    fn the_kernels_limit_of_buffers_does_not_count_with_cap_net_admin() {
        let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let has_right = set_socket_recv_buffer_size_force(&socket, BUFFER).is_ok();
        let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        // The kernel doubles what it is asked for.
        let size = SockRef::from(&socket).recv_buffer_size().unwrap();
        assert!(!has_right || size >= 2 * BUFFER, "{size} bytes");
    }
}
