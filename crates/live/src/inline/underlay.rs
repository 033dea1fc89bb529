//! A way to peers that is not one of the kernel's routes.

use base::Time;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
#[cfg(doc)]
use host::LinkEvent;
use std::os::fd::BorrowedFd;
use wire::Packet;

/// What [`Underlay::receive`] has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing now.
    Nothing,
    /// Something that is no packet of the peer's.
    Other,
    /// A packet of the peer's, with the place of its payload in the memory.
    Packet(Box<Packet>, Range<usize>),
    /// The headers of a packet that has arrived damaged, by the link below ([`LinkEvent::Corrupted`]).
    Damaged(Box<Packet>),
}

/// A change of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The peer is there (again).
    Up(IpAddr),
    /// The peer does not answer.
    Down(IpAddr),
    /// Packets to the peer may be so long, bytes of IP packets.
    Mtu(IpAddr, u32),
}

/// A way to peers for some of the middlebox's packets: a socket with what protects its datagrams. Or a socket by which
/// the link below tells what has happened to packets.
pub trait Underlay: Send {
    /// Whether a packet of the middlebox goes this way.
    fn carries(&self, packet: &Packet) -> bool;

    /// To be waited for.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Where the peer is, if there is one and that is known.
    fn peer(&self) -> Option<SocketAddr> {
        None
    }

    /// Reads the next datagram into memory, which has room for the largest.
    fn receive(&mut self, now: Time, memory: &mut [u8]) -> Received;

    /// Datagrams that were no packets of the peer's: garbage, replayed ones and forged ones.
    fn refused(&self) -> u64;

    /// Sends a packet, perhaps with the next [`Underlay::flush`], whose payload `append` appends; if it says that it
    /// cannot, nothing is sent. A packet that is sent may be lost.
    fn send(&mut self, now: Time, packet: &Packet, append: &mut dyn FnMut(&mut Vec<u8>) -> bool);

    /// Sends what has waited for others.
    fn flush(&mut self) {}

    /// The device below is up again, or has another address or route: the peer is to be asked at once.
    fn on_way_changed(&mut self, _now: Time) {}

    /// The next change.
    fn poll_change(&mut self) -> Option<Change> {
        None
    }

    /// When [`Underlay::handle_timeout`] is to be called.
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// Handles what is due, and sends what has to be sent.
    fn handle_timeout(&mut self, _now: Time) {}
}
