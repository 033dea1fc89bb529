//! The way to the other gateway of a pair: a UDP socket, whose datagrams are PDUs of SRP that a channel
//! authenticates and encrypts.

mod sockets;

pub(crate) use sockets::{listen, try_listen};

use crate::tunnel::{self, Mtu, Tunnel};
use base::{Duration, Time};
use channel::{ConfigError, PresharedKey, SecretKey, system_entropy};
use live::inline::{Change, Received, Underlay};
use scenario::Peer;
use sockets::Sockets;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use thiserror::Error;
use wire::{Body, Packet};

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

/// The way to the other gateway.
pub(crate) struct Way {
    sockets: Sockets,
    tunnel: Tunnel,
    /// The names of the two gateways in packets, which are never on the wire.
    names: [IpAddr; 2],
}

impl Way {
    /// Opens the socket in the network namespace of the calling thread. `known` is where the other gateway was.
    pub(crate) fn open(
        now: Time,
        peer: &Peer,
        (known, mtu): (Option<SocketAddr>, Mtu),
    ) -> Result<Way, PeerError> {
        let secret = read_key(&peer.key)?;
        let theirs: channel::PublicKey = peer.peer_key.parse().map_err(PeerError::PeerKey)?;
        let own_is_first = secret.public().to_string() < theirs.to_string();
        let address = known.or(peer.address);
        let is_ipv6 = is_over_ipv6(address);
        let config = channel::Config {
            address,
            datagrams: mtu.datagrams(is_ipv6),
            unix_time: tunnel::unix_time(),
            // A hop that is down should not be long in going on.
            keep_alive: Some(Duration::from_secs(5)),
            lost_after: Duration::from_secs(15),
            ..channel::Config::new(secret, theirs)
        };
        let sockets =
            Sockets::listen(peer.listen).map_err(|error| PeerError::Listen(peer.listen, error))?;
        let mut names = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(127, 0, 0, n)));
        if !own_is_first {
            names.reverse();
        }
        let tunnel = Tunnel::new(now, config, ("the other gateway", names), is_ipv6)?;
        Ok(Way { sockets, tunnel, names })
    }

    /// The names of this gateway and of the other one.
    pub(crate) fn names(&self) -> [IpAddr; 2] {
        self.names
    }

    /// Its datagrams are those of the channel's sessions.
    fn note_sessions(&mut self) {
        if let Some(sessions) = self.tunnel.poll_sessions() {
            self.sockets.set_sessions(sessions);
        }
    }
}

impl Underlay for Way {
    fn carries(&self, packet: &Packet) -> bool {
        matches!(packet.body, Body::Srp(_))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.sockets.either()
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.tunnel.address()
    }

    fn receive(&mut self, now: Time, memory: &mut [u8]) -> Received {
        match self.sockets.receive(memory) {
            Ok(received) => {
                let sender = self.sockets.sender();
                let received = self.tunnel.receive(now, sender, received, memory);
                self.note_sessions();
                received
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Received::Nothing,
            // An ICMP error about a datagram that was sent.
            Err(_) => Received::Other,
        }
    }

    fn refused(&self) -> u64 {
        self.tunnel.refused()
    }

    fn send(&mut self, now: Time, packet: &Packet, append: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        if let Body::Srp(srp) = &packet.body {
            self.tunnel.send(now, self.sockets.sender(), srp, append);
        }
    }

    fn flush(&mut self) {
        tunnel::flush(self.sockets.sender());
    }

    fn on_way_changed(&mut self, now: Time) {
        self.tunnel.on_way_changed(now, self.sockets.sender());
    }

    fn poll_change(&mut self) -> Option<Change> {
        self.tunnel.poll_change()
    }

    fn poll_timeout(&self) -> Time {
        self.tunnel.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.tunnel.handle_timeout(now, self.sockets.sender());
        self.note_sessions();
    }
}

/// Whether datagrams to an address go over IPv6; if it is not known, they may.
pub(crate) fn is_over_ipv6(address: Option<SocketAddr>) -> bool {
    address.is_none_or(|address| address.ip().to_canonical().is_ipv6())
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
