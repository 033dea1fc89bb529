//! A transfer of a file by our TCP, through a TUN device on this machine's network, to or from any TCP
//! peer.
//!
//! The device, its addresses and what else was changed are gone at the end of a transfer, whatever ended
//! it; [`clean`] undoes what a killed process has left.

pub(crate) mod addresses;
mod connected;
mod error;
mod files;
pub(crate) mod masquerade;
mod pump;
pub(crate) mod uplink;

pub use error::{Error, Failure};

use crate::error::Doing;
use crate::stack::{Running, Stack};
use crate::{Clock, Netlink, Stream, rights};
use base::{Duration, Seed, Time};
use connected::Connected;
use files::Stop;
use host::{ConnectionId, FourTuple, Host, Listener, Opening, Settings};
use pump::Pump;
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tcp::{Config, Events, State, Statistics};
use uplink::Uplink;

/// Unacknowledged bytes that a sender may have.
const SEND_BUFFER: u64 = 16 << 20;

/// The time between two looks at the connection.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// How long the peer has to close its side after everything is done.
const LINGER: Duration = Duration::from_secs(2);

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The file is read and sent.
    Send,
    /// What is received is written to the file.
    Receive,
}

/// The other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A listener to which we connect.
    Connect(SocketAddr),
    /// The first that connects to this port of ours.
    Listen(u16),
}

/// What to transfer, and how.
pub struct Transfer {
    /// The direction.
    pub direction: Direction,
    /// The file. It may be a pipe or a terminal.
    pub file: OwnedFd,
    /// The other end.
    pub peer: Peer,
    /// The settings of our TCP; an MSS that the device does not allow is reduced.
    pub config: Config,
    /// The address of our host: the second or third of a /30 or /126, of which the other is the
    /// kernel's. `None` chooses addresses that are not routed, of 198.18.0.0/15 and 2001:2::/48.
    pub address: Option<IpAddr>,
    /// Packets to a peer beyond this machine leave as the machine's, and answers are forwarded.
    pub masquerade: bool,
}

/// The progress of a transfer, for other threads.
#[derive(Debug, Default)]
pub struct Progress {
    moved: AtomicU64,
    words: Mutex<Vec<String>>,
}

impl Progress {
    /// Bytes that the peer has acknowledged, or that have been received.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Sentences for the user, each once.
    #[must_use]
    pub fn take_words(&self) -> Vec<String> {
        std::mem::take(&mut self.words.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn say(&self, words: impl IntoIterator<Item = String>) {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).extend(words);
    }
}

/// What the peer did with its side of the connection at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// It has closed it.
    Closed,
    /// It keeps it open.
    Open,
    /// It has reset the connection, after acknowledging everything.
    Reset,
}

/// The result of a transfer.
#[derive(Clone, Debug)]
pub struct Report {
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Bytes that the peer has acknowledged, or that were received and written.
    pub bytes: u64,
    /// From our SYN (or the peer's) to the acknowledgment of the last byte (or to its arrival).
    pub time: Duration,
    /// The counters of our sender.
    pub statistics: Statistics,
    /// The smoothed round trip, once there is a sample.
    pub srtt: Option<Duration>,
    /// The shortest round trip of the last minutes.
    pub min_rtt: Option<Duration>,
    /// The peer's side at the end.
    pub peer_end: PeerEnd,
    /// Bytes from the peer that a sender has discarded.
    pub discarded: u64,
}

type OurStack = Running<Stream<Pump>>;

/// Transfers a file, unless `cancelled` becomes true. The calling thread's network namespace is used.
///
/// A sender is done when the peer has acknowledged the FIN and everything before it; a receiver, when
/// everything up to the peer's FIN is written.
///
/// # Errors
/// If it cannot start, if the connection or the file fails, or if it was cancelled; the peer of an open
/// connection then gets a reset.
pub fn run(
    transfer: Transfer,
    cancelled: &AtomicBool,
    progress: &Progress,
) -> Result<Report, Error> {
    let missing = rights::missing(&[rights::NET_ADMIN]);
    if !missing.is_empty() {
        return Err(Error::Forbidden(missing.join(", ")));
    }
    let Transfer { direction, file, peer, config, address, masquerade } = transfer;
    // Undone after the stack has ended.
    let Uplink { tun, own, mtu, mut changes } = Uplink::open(&peer, address, masquerade)?;
    progress.say(std::mem::take(&mut changes.words));
    let device = tun.name().to_owned();
    let clock = Clock::start();
    let mut host = Host::new(own[0], Seed(random_seed()?).stream("host"));
    own[1..].iter().for_each(|address| host.add_address(*address));
    host.set(Settings { keep_closed: true, ..Settings::default() });
    let stack: OurStack = Stack::new(host, tun, clock).start()?;
    let opened = open(&stack, peer, config, mtu, clock, &own, progress)?;
    let running = Connected { id: establish(&stack, peer, opened, cancelled, progress)?, stack };
    let stop = Stop::new()?;
    let mut file = running.start(direction, file, stop.clone())?;
    let done = running.wait(direction, &mut file, cancelled, progress);
    let done = done.and_then(|seen| Ok((seen, running.linger(clock, cancelled)?)));
    let (seen, last) = match done {
        Ok(both) => both,
        Err(error) => {
            // The peer gets a reset.
            drop(running);
            stop.stop();
            file.join();
            return Err(error);
        }
    };
    if last.state == State::FinWait2 {
        // It has everything, and may not have read it yet: no reset disturbs it.
        let _ = Netlink::open()?.set_down(&device);
    }
    drop(running);
    file.join();
    let ended = seen.ended.unwrap_or(seen.began);
    Ok(Report {
        local: seen.tuple.local_end(),
        remote: seen.tuple.remote_end(),
        bytes: seen.moved,
        time: ended.since(seen.began),
        statistics: seen.statistics,
        srtt: seen.srtt,
        min_rtt: seen.min_rtt,
        peer_end: match last.events {
            events if events.contains(Events::RESET) => PeerEnd::Reset,
            events if events.contains(Events::PEER_CLOSED) => PeerEnd::Closed,
            _ => PeerEnd::Open,
        },
        discarded: last.discarded,
    })
}

/// Undoes what killed transfers have left in the calling thread's network namespace, and returns what that
/// was. Running transfers keep what is theirs.
///
/// # Errors
/// If something cannot be undone.
pub fn clean() -> Result<Vec<String>, Error> {
    masquerade::clean()
}

/// The secret that sequence numbers and ports depend on.
fn random_seed() -> Result<u64, crate::Error> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.doing(|| "reading /dev/urandom".to_owned())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Opens a connection, and returns it, or listens.
fn open(
    stack: &OurStack,
    peer: Peer,
    config: Config,
    mtu: u16,
    clock: Clock,
    own: &[IpAddr],
    progress: &Progress,
) -> Result<Option<ConnectionId>, Error> {
    let settings = move |remote: IpAddr| {
        let headers = if remote.is_ipv6() { 60 } else { 40 };
        let mss = config.mss.min(mtu - headers);
        (Config { mss, ..config.clone() }, Stream::new(Pump::new(clock.now()), SEND_BUFFER))
    };
    match peer {
        Peer::Connect(to) => {
            let (config, application) = settings(to.ip());
            let (remote, remote_port) = (to.ip(), to.port());
            let (local, local_port, at) = (None, None, Time::ZERO);
            let opening =
                Opening { at, remote, remote_port, local, local_port, config, application };
            let id = stack.call(move |now, host| host.connect(now, opening))?;
            progress.say([format!("connecting to {to}")]);
            // A new host has all ports free.
            Ok(Some(id.ok_or(crate::Error::Stopped)?))
        }
        Peer::Listen(port) => {
            let accept = move |tuple: FourTuple| settings(tuple.remote);
            let listener = Listener::new(port, accept);
            stack.call(move |_, host| host.add_listener(listener))?;
            let ends = own.iter().map(|own| SocketAddr::new(*own, port).to_string());
            progress.say([format!("listening at {}", ends.collect::<Vec<_>>().join(" and "))]);
            Ok(None)
        }
    }
}

/// Waits for the handshake of the connection, or of the first that is accepted.
fn establish(
    stack: &OurStack,
    peer: Peer,
    opened: Option<ConnectionId>,
    cancelled: &AtomicBool,
    progress: &Progress,
) -> Result<ConnectionId, Error> {
    loop {
        let found = stack.call(move |now, host| {
            let found = host.connections().find_map(|(id, connection, application)| {
                let events = application.program().events;
                let over = connection.state() == State::Closed;
                let counts = match opened {
                    Some(_) => over || events.contains(Events::CONNECTED),
                    None => !over && events.contains(Events::CONNECTED),
                };
                counts.then_some((id, events))
            });
            let (id, events) = found?;
            if let Peer::Listen(port) = peer {
                // One is enough.
                host.unlisten(port);
                let others: Vec<_> =
                    host.connections().map(|(id, _, _)| id).filter(|other| *other != id).collect();
                for other in others {
                    host.access(now, other, |connection, _| connection.abort());
                }
            }
            Some((id, events, host.four_tuple(id)))
        })?;
        match found {
            Some((id, events, tuple)) if events.contains(Events::CONNECTED) => {
                if let (Peer::Listen(_), Some(tuple)) = (peer, tuple) {
                    progress.say([format!("connection from {}", tuple.remote_end())]);
                }
                return Ok(id);
            }
            Some((_, events, tuple)) => {
                // An opening that ended by no failure was ended by us, and nothing here does that.
                let failure = tuple.and_then(|tuple| Failure::of(events, tuple.remote_end(), 0));
                return Err(failure.map_or(Error::Cancelled, Error::Failed));
            }
            None if cancelled.load(Ordering::Relaxed) => return Err(Error::Cancelled),
            None => std::thread::sleep(PAUSE),
        }
    }
}
