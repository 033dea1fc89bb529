//! Packets of SRP to a peer and from it: datagrams of UDP that a channel authenticates and encrypts.

use base::Time;
use channel::{
    Channel, Config, ConfigError, Event, HEADER, OVERHEAD, Recognition, TAG, system_entropy,
};
use live::inline::{Change, Received};
use live::{UdpSender, sockopt};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::{Range, RangeInclusive};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::{info, warn};
use wire::{Body, Ip, Packet, Srp};

// The packets of the lab are as long.
const _: () = assert!(Srp::CHANNEL == OVERHEAD);

/// Bytes of headers in front of SRP's: IP, UDP, and what the channel adds.
pub(crate) fn overhead(is_ipv6: bool) -> u32 {
    headers(is_ipv6) + OVERHEAD as u32
}

/// Bytes of the headers of a datagram: IP and UDP.
fn headers(is_ipv6: bool) -> u32 {
    if is_ipv6 { 48 } else { 28 }
}

/// The length of the datagram, bytes of UDP payload, in a packet of this length.
fn datagram(packet: u32, is_ipv6: bool) -> u16 {
    u16::try_from(packet.saturating_sub(headers(is_ipv6))).unwrap_or(u16::MAX)
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
    pub(crate) fn datagrams(self, is_ipv6: bool) -> RangeInclusive<u16> {
        match self {
            Mtu::Known(bytes) => datagram(bytes, is_ipv6)..=datagram(bytes, is_ipv6),
            Mtu::AtMost(bytes) => datagram(self.first(), is_ipv6)..=datagram(bytes, is_ipv6),
        }
    }
}

/// Wall-clock time, nanoseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a program that runs in real time")]
pub(crate) fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(0)
}

/// One end. It has no socket of its own: several tunnels may share one.
pub(crate) struct Tunnel {
    channel: Channel,
    /// What the log calls the peer.
    called: &'static str,
    /// The addresses of this end and of the peer in packets.
    names: [IpAddr; 2],
    /// Datagrams are over IPv6.
    is_ipv6: bool,
    /// The peer answers, as far as is known.
    is_up: bool,
    changes: VecDeque<Change>,
    buffer: Vec<u8>,
}

impl Tunnel {
    /// An end that begins a handshake at [`Tunnel::handle_timeout`], if the settings say where the peer is.
    pub(crate) fn new(
        now: Time,
        config: Config,
        (called, names): (&'static str, [IpAddr; 2]),
        is_ipv6: bool,
    ) -> Result<Tunnel, ConfigError> {
        Ok(Tunnel {
            channel: Channel::new(now, config, system_entropy)?,
            called,
            names,
            is_ipv6,
            is_up: false,
            changes: VecDeque::new(),
            buffer: Vec::with_capacity(1 << 16),
        })
    }

    /// Where the peer is, if that is known.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.channel.address()
    }

    /// Whether packets can be sent.
    pub(crate) fn is_connected(&self, now: Time) -> bool {
        self.channel.is_connected(now)
    }

    /// Datagrams that were none of the peer's, or had arrived before.
    pub(crate) fn refused(&self) -> u64 {
        self.channel.statistics().refused()
    }

    /// The sessions whose datagrams it opens, if they are others than at the last call.
    pub(crate) fn poll_sessions(&mut self) -> Option<impl Iterator<Item = Recognition>> {
        self.channel.poll_sessions()
    }

    /// Takes a datagram of `len` bytes, which has arrived from an address.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        sender: &mut UdpSender,
        (len, from): (usize, SocketAddr),
        memory: &mut [u8],
    ) -> Received {
        let base = memory.as_ptr() as usize;
        let opened = self.channel.handle_datagram(now, from, &mut memory[..len]);
        let payload = opened.map(|payload| {
            let start = payload.as_ptr() as usize - base;
            start..start + payload.len()
        });
        self.serve(now, sender);
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

    /// The packet in a payload, and the place of its data there.
    fn read(&self, payload: &[u8]) -> Option<(Packet, Range<usize>)> {
        let (srp, header) = Srp::from_bytes(payload)?;
        let [own, peer] = self.names;
        let packet = Packet { ip: Ip::new(peer, own), body: Body::Srp(srp), ..Packet::BLANK };
        Some((packet, header..payload.len()))
    }

    /// Sends a packet, whose payload `append` appends. Without a session, it is lost.
    pub(crate) fn send(
        &mut self,
        now: Time,
        sender: &mut UdpSender,
        srp: &Srp,
        append: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(HEADER, 0);
        if srp.write(&mut buffer).is_ok() && append(&mut buffer) {
            buffer.resize(buffer.len() + TAG, 0);
            if buffer.len() > OVERHEAD + self.channel.longest_payload() {
                self.send_parts(now, sender, &buffer[HEADER..buffer.len() - TAG]);
            } else if let Ok(address) = self.channel.seal(now, &mut buffer) {
                note(sender.send(&buffer, address));
            }
        }
        buffer.clear();
        self.buffer = buffer;
    }

    /// Sends what was cut when longer packets reached the peer.
    fn send_parts(&mut self, now: Time, sender: &mut UdpSender, payload: &[u8]) {
        let mut sealed = Vec::new();
        let keep = |part: &[u8], address| sealed.push((part.to_vec(), address));
        // Without a session it is lost, too.
        let _ = self.channel.seal_parts(now, payload, &mut Vec::new(), keep);
        sealed.iter().for_each(|(part, address)| note(sender.send(part, *address)));
    }

    /// Takes note of the channel's events, and sends what it has to send.
    fn serve(&mut self, now: Time, sender: &mut UdpSender) {
        let (called, [_, peer]) = (self.called, self.names);
        while let Some(event) = self.channel.poll_event() {
            let address = self.channel.address();
            match event {
                Event::Connected => info!(?address, "connected with {called}"),
                Event::PeerRestarted => info!(?address, "{called} has been restarted"),
                Event::AddressChanged(address) => info!(%address, "{called} is here"),
                Event::Lost => info!(?address, "{called} does not answer"),
                Event::Resumed => info!(?address, "{called} answers again"),
                Event::Datagrams(longest) => {
                    let bytes = u32::from(longest) + headers(self.is_ipv6);
                    info!(bytes, "the longest packet to {called}");
                    self.changes.push_back(Change::Mtu(peer, bytes));
                }
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
            send_whole(sender.socket(), &buffer, address);
        }
        while let Some(address) = self.channel.poll_transmit(now, &mut buffer) {
            note(sender.send(&buffer, address));
        }
        buffer.clear();
        self.buffer = buffer;
    }

    /// The peer may hear again, or be reached by another way: it is asked at once.
    pub(crate) fn on_way_changed(&mut self, now: Time, sender: &mut UdpSender) {
        if self.is_up {
            // What was lost is sent again without waiting for the answer.
            self.changes.push_back(Change::Up(self.names[1]));
        }
        self.channel.ask();
        self.handle_timeout(now, sender);
    }

    /// The next change.
    pub(crate) fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// When [`Tunnel::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.channel.poll_timeout()
    }

    /// Handles what is due, and sends what has to be sent.
    pub(crate) fn handle_timeout(&mut self, now: Time, sender: &mut UdpSender) {
        self.channel.handle_timeout(now);
        self.serve(now, sender);
    }
}

/// Sends what waits of datagrams.
pub(crate) fn flush(sender: &mut UdpSender) {
    note(sender.flush());
}

/// What is not sent is lost, as on any network.
fn note(sent: io::Result<()>) {
    if let Err(error) = sent
        && error.kind() != ErrorKind::WouldBlock
    {
        warn!(%error, "a datagram was not sent");
    }
}

/// Sends a probe of the path, which no router may fragment. If it cannot be sent, it is lost, too.
fn send_whole(socket: &UdpSocket, probe: &[u8], address: SocketAddr) {
    let is_ipv6 = socket.local_addr().is_ok_and(|own| own.is_ipv6());
    let allow = |allow| sockopt::allow_fragments(socket, is_ipv6, allow);
    if allow(false).is_ok() {
        let _ = socket.send_to(probe, address);
    }
    // It has worked before.
    let _ = allow(true);
}
