//! What goes between mobile hosts and base stations over the hop: datagrams of the kernel's UDP with their messages, and
//! tunnels of SRP.

use super::{Guests, Tunnels};
use crate::peer::listen;
use crate::tunnel;
use base::Time;
use live::inline::{Change, Received, Underlay};
use live::{Netlink, UdpSender};
use middlebox::mhp::Keys;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use wire::{Body, Ip, Mobility, MobilityMessage, Packet};

/// The socket.
pub(crate) struct Messages {
    sender: UdpSender,
    is_ipv6_socket: bool,
    /// The interface of the hop: an address of the link alone is one of its link.
    interface: String,
    netlink: Netlink,
    own: [IpAddr; 2],
    keys: Keys,
    /// None at a mobile host whose connections go over the hop by TCP.
    tunnels: Option<Tunnels>,
    of: Node,
}

/// What kind of node it is.
enum Node {
    Station(Arc<Guests>),
    Mobile(Attached),
}

/// The base station to which a mobile host is attached.
#[derive(Default)]
struct Attached {
    station: Option<IpAddr>,
    /// Its incarnation, if it has answered.
    incarnation: Option<u32>,
    /// Its answer, which waits until SRP can be sent.
    answer: Option<Box<Packet>>,
}

impl Messages {
    /// Opens the socket of a base station with these addresses, in the network namespace of the calling thread.
    pub(crate) fn of_station(
        (interface, own): (&str, [IpAddr; 2]),
        keys: Keys,
        tunnels: Tunnels,
        guests: Arc<Guests>,
    ) -> io::Result<Messages> {
        Messages::open((interface, own), keys, Some(tunnels), Node::Station(guests))
    }

    /// Opens that of a mobile host.
    pub(crate) fn of_mobile(
        (interface, own): (&str, [IpAddr; 2]),
        keys: Keys,
        tunnels: Option<Tunnels>,
    ) -> io::Result<Messages> {
        Messages::open((interface, own), keys, tunnels, Node::Mobile(Attached::default()))
    }

    fn open(
        (interface, own): (&str, [IpAddr; 2]),
        keys: Keys,
        tunnels: Option<Tunnels>,
        of: Node,
    ) -> io::Result<Messages> {
        let socket = listen(SocketAddr::from((Ipv6Addr::UNSPECIFIED, Mobility::PORT)))?;
        let is_ipv6_socket = socket.local_addr()?.is_ipv6();
        let sender = UdpSender::new(socket);
        let (interface, netlink) =
            (interface.to_owned(), Netlink::open().map_err(io::Error::other)?);
        Ok(Messages { sender, is_ipv6_socket, interface, netlink, own, keys, tunnels, of })
    }

    /// Where a peer listens.
    fn place(&self, peer: IpAddr) -> SocketAddr {
        match peer {
            IpAddr::V4(address) if self.is_ipv6_socket => {
                SocketAddr::from((address.to_ipv6_mapped(), Mobility::PORT))
            }
            IpAddr::V6(address) if address.is_unicast_link_local() => {
                // If it is gone, nothing can be sent.
                let link = self.netlink.index(&self.interface).unwrap_or(0);
                SocketAddrV6::new(address, Mobility::PORT, 0, link).into()
            }
            address => SocketAddr::from((address, Mobility::PORT)),
        }
    }

    /// The address of this node by which a peer knows it.
    fn own(&self, peer: IpAddr) -> IpAddr {
        self.own[usize::from(peer.is_ipv6())]
    }

    /// Takes a message from an address. Returns its packet, unless it is to wait.
    fn on_message(&mut self, now: Time, source: IpAddr, message: Mobility) -> Option<Box<Packet>> {
        let (own, body) = (self.own(source), Body::Mobility(message));
        let packet = Box::new(Packet { ip: Ip::new(source, own), body, ..Packet::BLANK });
        match (&mut self.of, message.message) {
            (Node::Station(guests), MobilityMessage::Attach { other, .. })
                if self.keys.verify(source, &message) =>
            {
                guests.arrive(source, other);
            }
            (Node::Mobile(attached), MobilityMessage::Resume { incarnation, .. }) => {
                let is_valid = attached.station == Some(source) && self.keys.verify(own, &message);
                if let Some(tunnels) = self.tunnels.as_mut().filter(|_| is_valid) {
                    // It has lost its end of the tunnel, too.
                    if attached.incarnation.replace(incarnation).is_some_and(|it| it != incarnation)
                    {
                        tunnels.close(source);
                        tunnels.on_attach(now, &mut self.sender, own, source);
                    }
                    // What is sent at once, when transfer resumes, is not to be lost.
                    if !tunnels.is_connected(now, source) {
                        attached.answer = Some(packet);
                        return None;
                    }
                }
            }
            _ => {}
        }
        Some(packet)
    }

    /// The answer that has waited, once SRP can be sent.
    fn take_answer(&mut self, now: Time) -> Option<Box<Packet>> {
        let (Node::Mobile(attached), Some(tunnels)) = (&mut self.of, &self.tunnels) else {
            return None;
        };
        attached.answer.take_if(|answer| tunnels.is_connected(now, answer.ip.source))
    }

    /// The mobile host tells a base station that it is attached there.
    fn on_attach(&mut self, now: Time, station: IpAddr) {
        let own = self.own(station);
        let (Node::Mobile(attached), Some(tunnels)) = (&mut self.of, &mut self.tunnels) else {
            return;
        };
        if attached.station != Some(station) {
            *attached = Attached { station: Some(station), ..Attached::default() };
        }
        tunnels.on_attach(now, &mut self.sender, own, station);
    }

    /// Takes a datagram that is no message.
    fn on_datagram(
        &mut self,
        now: Time,
        source: IpAddr,
        len: usize,
        memory: &mut [u8],
    ) -> Received {
        let is_expected = match &self.of {
            Node::Station(guests) => guests.contains(source),
            Node::Mobile(_) => false,
        };
        let ends = (self.own(source), source, is_expected);
        match &mut self.tunnels {
            Some(tunnels) => tunnels.receive(now, &mut self.sender, ends, (len, memory)),
            None => Received::Other,
        }
    }
}

impl Underlay for Messages {
    fn carries(&self, packet: &Packet) -> bool {
        matches!(packet.body, Body::Mobility(_) | Body::Srp(_))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.sender.socket().as_fd()
    }

    fn receive(&mut self, now: Time, memory: &mut [u8]) -> Received {
        if let Some(answer) = self.take_answer(now) {
            return Received::Packet(answer, 0..0);
        }
        let (len, source) = match self.sender.socket().recv_from(memory) {
            Ok((len, from)) if from.port() == Mobility::PORT => (len, from.ip().to_canonical()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Nothing,
            // Of another program; or an ICMP error about a datagram that was sent.
            Ok(_) | Err(_) => return Received::Other,
        };
        let Some(message) = Mobility::from_bytes(&memory[..len]) else {
            return self.on_datagram(now, source, len, memory);
        };
        match self.on_message(now, source, message) {
            Some(packet) => Received::Packet(packet, 0..0),
            None => Received::Other,
        }
    }

    /// Messages that are not authentic, the middlebox counts.
    fn refused(&self) -> u64 {
        self.tunnels.as_ref().map_or(0, Tunnels::refused)
    }

    fn send(&mut self, now: Time, packet: &Packet, append: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let peer = packet.ip.destination;
        match &packet.body {
            Body::Mobility(message) => {
                // What is not sent is lost, as on any network; it is sent again.
                let _ = self.sender.socket().send_to(&message.to_bytes(), self.place(peer));
                if matches!(message.message, MobilityMessage::Attach { .. }) {
                    self.on_attach(now, peer);
                }
            }
            Body::Srp(srp) => {
                if let Some(tunnels) = &mut self.tunnels {
                    tunnels.send(now, &mut self.sender, (peer, srp), append);
                }
            }
            _ => {}
        }
    }

    fn flush(&mut self) {
        tunnel::flush(&mut self.sender);
    }

    fn poll_change(&mut self) -> Option<Change> {
        self.tunnels.as_mut()?.poll_change()
    }

    fn poll_timeout(&self) -> Time {
        self.tunnels.as_ref().map_or(Time::NEVER, Tunnels::poll_timeout)
    }

    fn handle_timeout(&mut self, now: Time) {
        if let Some(tunnels) = &mut self.tunnels {
            tunnels.handle_timeout(now, &mut self.sender);
        }
    }
}
