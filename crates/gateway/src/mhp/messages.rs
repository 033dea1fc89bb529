//! The messages of mobile hosts and base stations: datagrams of the kernel's UDP.

use super::Guests;
use crate::peer::listen;
use base::Time;
use live::inline::{Received, Underlay};
use middlebox::mhp::Keys;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use wire::{Body, Ip, Mobility, MobilityMessage, Packet};

/// The socket.
pub(crate) struct Messages {
    socket: UdpSocket,
    is_ipv6_socket: bool,
    own: [IpAddr; 2],
    /// At a base station.
    station: Option<(Arc<Guests>, Keys)>,
}

impl Messages {
    /// Opens the socket in the network namespace of the calling thread, for a node with these addresses. A base station
    /// has guests, and knows by the keys who they are.
    pub(crate) fn open(
        own: [IpAddr; 2],
        station: Option<(Arc<Guests>, Keys)>,
    ) -> io::Result<Messages> {
        let socket = listen(SocketAddr::from((Ipv6Addr::UNSPECIFIED, Mobility::PORT)))?;
        let is_ipv6_socket = socket.local_addr()?.is_ipv6();
        Ok(Messages { socket, is_ipv6_socket, own, station })
    }

    /// The packet of a datagram from an address.
    fn read(&self, datagram: &[u8], from: SocketAddr) -> Option<Packet> {
        let source = from.ip().to_canonical();
        let message = Mobility::from_bytes(datagram).filter(|_| from.port() == Mobility::PORT)?;
        if let Some((guests, keys)) = &self.station
            && matches!(message.message, MobilityMessage::Attach { .. })
            && keys.verify(source, &message)
        {
            guests.arrive(source);
        }
        let own = self.own[usize::from(source.is_ipv6())];
        let body = Body::Mobility(message);
        Some(Packet { ip: Ip::new(source, own), body, ..Packet::BLANK })
    }
}

impl Underlay for Messages {
    fn carries(&self, packet: &Packet) -> bool {
        matches!(packet.body, Body::Mobility(_))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, _: Time, memory: &mut [u8]) -> Received {
        match self.socket.recv_from(memory) {
            Ok((len, from)) => match self.read(&memory[..len], from) {
                Some(packet) => Received::Packet(Box::new(packet), 0..0),
                None => Received::Other,
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => Received::Nothing,
            // An ICMP error about a datagram that was sent.
            Err(_) => Received::Other,
        }
    }

    /// What is not authentic, the middlebox counts.
    fn refused(&self) -> u64 {
        0
    }

    fn send(&mut self, _: Time, packet: &Packet, _: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let Body::Mobility(message) = &packet.body else { return };
        let to = match packet.ip.destination {
            IpAddr::V4(address) if self.is_ipv6_socket => address.to_ipv6_mapped().into(),
            address => address,
        };
        // What is not sent is lost, as on any network; it is sent again.
        let _ = self.socket.send_to(&message.to_bytes(), (to, Mobility::PORT));
    }
}
