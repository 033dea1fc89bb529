//! The way to the other gateway of a pair: a UDP socket, whose datagrams are PDUs of SRP that a channel
//! authenticates and encrypts.

use base::{Duration, Time};
use channel::{
    Channel, ConfigError, Event, HEADER, OVERHEAD, PresharedKey, SecretKey, TAG, system_entropy,
};
use live::inline::{Change, Received, Underlay};
use live::sockopt;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use scenario::Peer;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::{Range, RangeInclusive};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use thiserror::Error;
use tracing::{info, warn};
use wire::{Body, Ip, Packet, Srp};

/// Why there is no way to the other gateway.
#[derive(Debug, Error)]
pub enum PeerError {
    /// The file of a key cannot be read.
    #[error("reading the key {0}: {1}")]
    Key(String, io::Error),
    /// What is in the file is no key.
    #[error("the key {0}: {1}")]
    BadKey(String, channel::KeyError),
    /// The other gateway's key is none.
    #[error("`peer_key`: {0}")]
    PeerKey(channel::KeyError),
    /// The keys do not fit.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The socket cannot be opened.
    #[error("listening on {0}: {1}")]
    Listen(SocketAddr, io::Error),
}

/// The folder whose files the unit names `lasthop`.
const CREDENTIALS: &str = "/etc/lasthop";

/// Bytes of headers in front of SRP's: IP, UDP, and what the channel adds.
pub(crate) fn overhead(is_ipv6: bool) -> u32 {
    headers(is_ipv6) + OVERHEAD as u32
}

/// Bytes of the headers of a datagram: IP and UDP.
fn headers(is_ipv6: bool) -> u32 {
    if is_ipv6 { 48 } else { 28 }
}

/// What is known of the longest packet of the hop, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mtu {
    /// This.
    Known(u32),
    /// At most that of the interface. It is searched for.
    AtMost(u32),
}

impl Mtu {
    /// Paths with a smaller one are rare, and fragment what is longer (RFC 8200 §5).
    const LEAST: u32 = 1280;

    /// With which packets begin.
    pub(crate) fn first(self) -> u32 {
        match self {
            Mtu::Known(bytes) => bytes,
            Mtu::AtMost(bytes) => bytes.min(Mtu::LEAST),
        }
    }

    /// The lengths of datagrams between which the longest is searched for.
    fn datagrams(self, is_ipv6: bool) -> RangeInclusive<u16> {
        let datagram = |packet: u32| {
            u16::try_from(packet.saturating_sub(headers(is_ipv6))).unwrap_or(u16::MAX)
        };
        match self {
            Mtu::Known(bytes) => datagram(bytes)..=datagram(bytes),
            Mtu::AtMost(bytes) => datagram(self.first())..=datagram(bytes),
        }
    }
}

/// The way to the other gateway.
pub(crate) struct Way {
    socket: UdpSocket,
    /// The socket is one of IPv6, which may carry IPv4, too.
    is_ipv6_socket: bool,
    /// Datagrams are over IPv6.
    is_ipv6: bool,
    channel: Channel,
    /// The other gateway answers, as far as is known.
    is_up: bool,
    /// The names of the two gateways in packets, which are never on the wire.
    names: [IpAddr; 2],
    changes: VecDeque<Change>,
    buffer: Vec<u8>,
}

impl Way {
    /// The most datagrams that wait in the socket, bytes: those of others must not soon keep out the peer's.
    const BUFFER: usize = 8 << 20;

    /// Opens the socket in the network namespace of the calling thread. `known` is where the other gateway was.
    pub(crate) fn open(
        now: Time,
        peer: &Peer,
        (known, mtu): (Option<SocketAddr>, Mtu),
    ) -> Result<Way, PeerError> {
        let secret = read_key(&peer.key)?;
        let theirs: channel::PublicKey = peer.peer_key.parse().map_err(PeerError::PeerKey)?;
        let own_is_first = secret.public().to_string() < theirs.to_string();
        let unix_time = unix_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        let address = known.or(peer.address);
        let is_ipv6 = is_over_ipv6(address);
        let config = channel::Config {
            address,
            datagrams: mtu.datagrams(is_ipv6),
            unix_time: u64::try_from(unix_time.as_nanos()).unwrap_or(0),
            // A hop that is down should not be long in going on.
            keep_alive: Some(Duration::from_secs(5)),
            lost_after: Duration::from_secs(15),
            ..channel::Config::new(secret, theirs)
        };
        let socket = listen(peer.listen).map_err(|error| PeerError::Listen(peer.listen, error))?;
        let mut names = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(127, 0, 0, n)));
        if !own_is_first {
            names.reverse();
        }
        Ok(Way {
            is_ipv6_socket: socket.local_addr().is_ok_and(|own| own.is_ipv6()),
            socket,
            is_ipv6,
            channel: Channel::new(now, config, system_entropy)?,
            is_up: false,
            names,
            changes: VecDeque::new(),
            buffer: Vec::with_capacity(1 << 16),
        })
    }

    /// The names of this gateway and of the other one.
    pub(crate) fn names(&self) -> [IpAddr; 2] {
        self.names
    }

    fn send_to(&self, datagram: &[u8], address: SocketAddr) {
        // What is not sent is lost, as on any network.
        if let Err(error) = self.socket.send_to(datagram, address)
            && error.kind() != ErrorKind::WouldBlock
        {
            warn!(%error, %address, "a datagram to the other gateway was not sent");
        }
    }

    /// Takes note of the channel's events, and sends what it has to send.
    fn serve(&mut self, now: Time) {
        let peer = self.names[1];
        while let Some(event) = self.channel.poll_event() {
            match event {
                Event::Connected => info!("connected with the other gateway"),
                Event::PeerRestarted => info!("the other gateway has been restarted"),
                Event::AddressChanged(address) => info!(%address, "the other gateway is here"),
                Event::Lost => info!("the other gateway does not answer"),
                Event::Resumed => info!("the other gateway answers again"),
                Event::Datagrams(longest) => self.on_longest(longest.into()),
            }
            match event {
                // One that was started again refuses what it does not know.
                Event::Connected | Event::PeerRestarted | Event::Resumed => {
                    self.is_up = true;
                    self.changes.push_back(Change::Up(peer));
                }
                Event::Lost => {
                    self.is_up = false;
                    self.changes.push_back(Change::Down(peer));
                }
                Event::AddressChanged(_) | Event::Datagrams(_) => {}
            }
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(address) = self.channel.poll_path_probe(now, &mut buffer) {
            self.send_whole(&buffer, address);
        }
        while let Some(address) = self.channel.poll_transmit(now, &mut buffer) {
            self.send_to(&buffer, address);
        }
        buffer.clear();
        self.buffer = buffer;
    }

    /// Sends what was cut when longer packets reached the other gateway.
    fn send_parts(&mut self, now: Time, payload: &[u8]) {
        let mut sealed = Vec::new();
        let keep = |part: &[u8], address| sealed.push((part.to_vec(), address));
        // Without a session it is lost, too.
        let _ = self.channel.seal_parts(now, payload, &mut Vec::new(), keep);
        sealed.iter().for_each(|(part, address)| self.send_to(part, *address));
    }

    /// Sends a probe of the path, which no router may fragment. If it cannot be sent, it is lost, too.
    fn send_whole(&self, probe: &[u8], address: SocketAddr) {
        let allow = |allow| sockopt::allow_fragments(&self.socket, self.is_ipv6_socket, allow);
        if allow(false).is_ok() {
            let _ = self.socket.send_to(probe, address);
        }
        // It has worked before.
        let _ = allow(true);
    }

    /// Datagrams of this length, and no longer ones, reach the other gateway.
    fn on_longest(&mut self, datagram: u32) {
        let bytes = datagram + headers(self.is_ipv6);
        info!(bytes, "the longest packet to the other gateway");
        self.changes.push_back(Change::Mtu(self.names[1], bytes));
    }

    /// The packet in a payload, and the place of its data there.
    fn read(&self, payload: &[u8]) -> Option<(Packet, Range<usize>)> {
        let (srp, header) = Srp::from_bytes(payload)?;
        let [own, peer] = self.names;
        let packet = Packet { ip: Ip::new(peer, own), body: Body::Srp(srp), ..Packet::BLANK };
        Some((packet, header..payload.len()))
    }
}

impl Underlay for Way {
    fn carries(&self, packet: &Packet) -> bool {
        matches!(packet.body, Body::Srp(_))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.channel.address()
    }

    fn receive(&mut self, now: Time, memory: &mut [u8]) -> Received {
        let (len, from) = match self.socket.recv_from(memory) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Nothing,
            // An ICMP error about a datagram that was sent.
            Err(_) => return Received::Other,
        };
        let base = memory.as_ptr() as usize;
        let opened = self.channel.handle_datagram(now, from, &mut memory[..len]);
        let payload = opened.map(|payload| {
            let start = payload.as_ptr() as usize - base;
            start..start + payload.len()
        });
        self.serve(now);
        let payload = payload.or_else(|| {
            let joined = self.channel.take_joined()?;
            memory.get_mut(..joined.len())?.copy_from_slice(&joined);
            Some(0..joined.len())
        });
        let packet = payload.and_then(|place| {
            let (packet, data) = self.read(&memory[place.clone()])?;
            Some(Received::Packet(
                Box::new(packet),
                place.start + data.start..place.start + data.end,
            ))
        });
        packet.unwrap_or(Received::Other)
    }

    fn refused(&self) -> u64 {
        self.channel.statistics().refused()
    }

    fn send(&mut self, now: Time, packet: &Packet, append: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let Body::Srp(srp) = &packet.body else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(HEADER, 0);
        if srp.write(&mut buffer).is_ok() && append(&mut buffer) {
            buffer.resize(buffer.len() + TAG, 0);
            if buffer.len() > OVERHEAD + self.channel.longest_payload() {
                self.send_parts(now, &buffer[HEADER..buffer.len() - TAG]);
            } else if let Ok(address) = self.channel.seal(now, &mut buffer) {
                self.send_to(&buffer, address);
            }
        }
        buffer.clear();
        self.buffer = buffer;
    }

    fn on_way_changed(&mut self, now: Time) {
        if self.is_up {
            // What was lost is sent again without waiting for the answer.
            self.changes.push_back(Change::Up(self.names[1]));
        }
        self.channel.ask();
        self.serve(now);
    }

    fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    fn poll_timeout(&self) -> Time {
        self.channel.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.channel.handle_timeout(now);
        self.serve(now);
    }
}

/// Whether datagrams to an address go over IPv6; if it is not known, they may.
pub(crate) fn is_over_ipv6(address: Option<SocketAddr>) -> bool {
    address.is_none_or(|address| address.ip().to_canonical().is_ipv6())
}

#[expect(clippy::disallowed_methods, reason = "a program that runs in real time")]
fn unix_time() -> SystemTime {
    SystemTime::now()
}

/// The public key that belongs to the private key in a file. If there is no such file, it is made, with a new key,
/// for its owner alone.
///
/// # Errors
/// If the file cannot be read, or not be made, or has no key.
pub fn public_key(path: &Path) -> Result<channel::PublicKey, PeerError> {
    let failed = |error| PeerError::Key(path.display().to_string(), error);
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let none = || failed(io::Error::other("no random numbers"));
            let secret = SecretKey::generate(&mut system_entropy).ok_or_else(none)?;
            writeln!(file, "{}", *secret.reveal()).map_err(failed)?;
            Ok(secret.public())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(read_key(path)?.public()),
        Err(error) => Err(failed(error)),
    }
}

/// Makes the key that the base stations and mobile hosts of a network share, in a file for its owner alone.
///
/// # Errors
/// If there is such a file, or it cannot be made.
pub fn make_network_key(path: &Path) -> Result<(), PeerError> {
    let failed = |error| PeerError::Key(path.display().to_string(), error);
    let none = || failed(io::Error::other("no random numbers"));
    let key = PresharedKey::generate(&mut system_entropy).ok_or_else(none)?;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(file, "{}", *key.reveal()).map_err(failed)
}

/// The private key in a file.
pub(crate) fn read_key(path: &Path) -> Result<SecretKey, PeerError> {
    let text = read_secret(path)?;
    text.trim().parse().map_err(|error| PeerError::BadKey(path.display().to_string(), error))
}

/// The text of a file with a key. A service has no right to read it, and has it as a credential of the service manager.
pub(crate) fn read_secret(path: &Path) -> Result<String, PeerError> {
    let read = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            credential(path).map_or(Err(error), std::fs::read_to_string)
        }
        read => read,
    };
    read.map_err(|error| PeerError::Key(path.display().to_string(), error))
}

/// Where the service manager has put a file of a folder that the unit names: `LoadCredential=NAME:FOLDER` makes it
/// `NAME_FILE`.
fn credential(path: &Path) -> Option<PathBuf> {
    let name = path.strip_prefix(CREDENTIALS).ok()?.to_str()?;
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY")?;
    Some(Path::new(&folder).join(format!("lasthop_{name}")))
}

/// A socket for datagrams, which may be cut up on their way.
pub(crate) fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    let open = |domain| Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
    let socket = match open(Domain::for_address(address)) {
        // A kernel without IPv6: any address is one of IPv4.
        Err(error) if error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => {
            let any = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
            let ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            return if any { listen(ipv4) } else { Err(error) };
        }
        opened => opened?,
    };
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // The kernel limits them, but not for one with CAP_NET_ADMIN; more is better.
    if set_socket_recv_buffer_size_force(&socket, Way::BUFFER).is_err() {
        let _ = socket.set_recv_buffer_size(Way::BUFFER);
    }
    let _ = socket.set_send_buffer_size(Way::BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    sockopt::allow_fragments(&socket, address.is_ipv6(), true).map_err(io::Error::other)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;

    #[test]
    fn the_kernels_limit_of_buffers_does_not_count_with_cap_net_admin() {
        let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let has_right = set_socket_recv_buffer_size_force(&socket, Way::BUFFER).is_ok();
        let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        // The kernel doubles what it is asked for.
        let size = SockRef::from(&socket).recv_buffer_size().unwrap();
        assert!(!has_right || size >= 2 * Way::BUFFER, "{size} bytes");
    }
}
