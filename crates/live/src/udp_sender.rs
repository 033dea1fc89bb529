//! Datagrams of UDP that leave by few calls.

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use rustix::io::Errno;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

/// Sends datagrams. Those of one length that go to one address one after the other wait until
/// [`UdpSender::flush`], and leave by one call; the kernel, or the network card, makes datagrams of them
/// (`UDP_SEGMENT`).
#[derive(Debug)]
pub struct UdpSender {
    socket: UdpSocket,
    /// Those that wait, one after the other.
    waiting: Vec<u8>,
    /// The length of each of them but the last, which may be shorter, bytes.
    len: usize,
    address: SocketAddr,
    /// The kernel can do it, as far as is known.
    offloads: bool,
    /// Why the last ones could not be sent.
    failure: Option<ErrorKind>,
}

/// The most datagrams in one call: the kernel's limit before Linux 6.10.
const MOST: usize = 64;
/// The most bytes in one call: those of a datagram over IPv4, without its headers.
const MOST_BYTES: usize = 65_507;

impl UdpSender {
    /// By this socket.
    #[must_use]
    pub fn new(socket: UdpSocket) -> UdpSender {
        let address = SocketAddr::from(([0; 4], 0));
        UdpSender { socket, waiting: Vec::new(), len: 0, address, offloads: true, failure: None }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sends a datagram, perhaps later.
    ///
    /// # Errors
    /// Those that waited cannot be sent, or this one, as with [`UdpSender::flush`].
    pub fn send(&mut self, datagram: &[u8], address: SocketAddr) -> io::Result<()> {
        let sent = match self.takes(datagram.len(), address) {
            true => Ok(()),
            false => self.flush(),
        };
        if datagram.is_empty() {
            let empty = self.socket.send_to(datagram, address).map(drop);
            return sent.and(self.unless_known(empty));
        }
        if self.waiting.is_empty() {
            (self.len, self.address) = (datagram.len(), address);
        }
        self.waiting.extend_from_slice(datagram);
        sent
    }

    /// Whether a datagram can wait with those that do.
    fn takes(&self, len: usize, address: SocketAddr) -> bool {
        let bytes = self.waiting.len();
        // The last one, if it is shorter, ends them.
        let is_whole = bytes.is_multiple_of(self.len.max(1));
        bytes == 0
            || (self.address == address
                && is_whole
                && (1..=self.len).contains(&len)
                && bytes / self.len < MOST
                && bytes + len <= MOST_BYTES)
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// Some cannot be sent, and are lost. It is returned once, until datagrams can be sent again or
    /// cannot for another reason.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let sent = self.send_waiting();
        self.waiting.clear();
        self.unless_known(sent)
    }

    fn unless_known(&mut self, sent: io::Result<()>) -> io::Result<()> {
        let failure = sent.as_ref().err().map(io::Error::kind);
        let is_known = std::mem::replace(&mut self.failure, failure) == failure;
        if is_known { Ok(()) } else { sent }
    }

    fn send_waiting(&mut self) -> io::Result<()> {
        if self.offloads && self.waiting.len() > self.len {
            match self.send_as_one() {
                Ok(()) => return Ok(()),
                // They are longer than a packet of the route, and have to be fragmented.
                Err(Errno::INVAL | Errno::MSGSIZE) => {}
                // The device does not compute checksums, or packets are encrypted behind it.
                Err(Errno::IO | Errno::OPNOTSUPP) => self.offloads = false,
                Err(error) => return Err(error.into()),
            }
        }
        let send = |datagram| self.socket.send_to(datagram, self.address).map(drop);
        self.waiting.chunks(self.len).map(send).fold(Ok(()), Result::and)
    }

    fn send_as_one(&self) -> Result<(), Errno> {
        // No more than MOST_BYTES.
        let len = self.len as u16;
        let (descriptor, address) = (self.socket.as_raw_fd(), SockaddrStorage::from(self.address));
        let (bytes, control) =
            ([IoSlice::new(&self.waiting)], [ControlMessage::UdpGsoSegments(&len)]);
        let sent = sendmsg(descriptor, &bytes, &control, MsgFlags::empty(), Some(&address));
        sent.map(drop).map_err(|error| Errno::from_raw_os_error(error as i32))
    }
}
