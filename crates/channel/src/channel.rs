//! The state machine: datagrams and time in; datagrams, payloads and events out.

use crate::config::{Config, ConfigError, Event, SealError, Statistics};
use crate::handshake::Handshake;
use crate::liveness::Liveness;
use crate::noise::Identity;
use crate::packet::{HEADER, Header, NotAPacket, Packet, Purpose, parse};
use crate::parts::{self, PART, Parts};
use crate::path_mtu::PathMtu;
use crate::session::{Opening, Recognition, Session, TAG};
use crate::sessions::{Found, Sessions};
use crate::{Entropy, OVERHEAD};
use base::Time;
use core::{fmt, mem};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// One end of the channel between two gateways.
pub struct Channel {
    pub(crate) config: Config,
    pub(crate) identity: Identity,
    pub(crate) entropy: Box<dyn Entropy + Send>,
    pub(crate) instance: u64,
    /// The latest time that was seen: time never goes back.
    now: Time,
    pub(crate) started: Time,
    /// Where the peer's last packet came from.
    pub(crate) address: Option<SocketAddr>,
    peer_instance: Option<u64>,
    pub(crate) sessions: Sessions,
    pub(crate) handshake: Handshake,
    pub(crate) liveness: Liveness,
    is_probe_due: bool,
    is_answer_due: bool,
    path_mtu: PathMtu,
    /// The length of a path probe that has arrived.
    path_answer: Option<u16>,
    /// What has arrived in parts, and the number of the next payload that is sent so.
    parts: Parts,
    next_in_parts: u32,
    events: VecDeque<Event>,
    pub(crate) statistics: Statistics,
}

impl Channel {
    /// An end that begins a handshake at once, if it knows where the peer is. `entropy` makes keys:
    /// [`system_entropy`](crate::system_entropy), except in tests.
    ///
    /// # Errors
    /// The keys are unusable, or there is no randomness.
    pub fn new(
        now: Time,
        config: Config,
        mut entropy: impl Entropy + Send + 'static,
    ) -> Result<Channel, ConfigError> {
        let config = config.in_range();
        if config.secret.public() == config.peer {
            return Err(ConfigError::OwnKey);
        }
        let identity = Identity::new(&config.secret, config.peer, config.preshared.as_ref())
            .ok_or(ConfigError::WeakKey)?;
        let instance = match config.instance {
            Some(instance) => instance,
            None => {
                let [a, b, c, d, e, f, g, h, ..] = entropy.draw().ok_or(ConfigError::Entropy)?;
                u64::from_be_bytes([a, b, c, d, e, f, g, h])
            }
        };
        Ok(Channel {
            identity,
            entropy: Box::new(entropy),
            instance,
            now,
            started: now,
            address: config.address,
            peer_instance: None,
            sessions: Sessions::new(config.rekey_after + config.rekey_after / 2),
            handshake: Handshake::default(),
            liveness: Liveness::new(now, &config),
            is_probe_due: false,
            is_answer_due: false,
            path_mtu: PathMtu::new(&config),
            path_answer: None,
            parts: Parts::default(),
            next_in_parts: 0,
            events: VecDeque::new(),
            statistics: Statistics::default(),
            config,
        })
    }

    /// What this end calls its life, for [`Config::instance`].
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// The life of the peer with which there was a session last.
    #[must_use]
    pub fn peer_instance(&self) -> Option<u64> {
        self.peer_instance
    }

    /// Where packets to the peer go.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// True if a payload can be sealed.
    #[must_use]
    pub fn is_connected(&self, now: Time) -> bool {
        self.sessions.is_sending(now.max(self.now))
    }

    /// Counts since the channel was made.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// What happened, the earliest first. Events of a datagram precede its payload.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The sessions whose packets are opened, if they are others than at the last call: four at most.
    pub fn poll_sessions(&mut self) -> Option<impl Iterator<Item = Recognition>> {
        self.sessions.poll()
    }

    /// Makes a packet of a payload, in place: `packet` has room for [`HEADER`] bytes before the payload
    /// and [`TAG`](crate::TAG) behind. Returns where it goes.
    ///
    /// # Errors
    /// There is no session, or no room.
    pub fn seal(&mut self, now: Time, packet: &mut [u8]) -> Result<SocketAddr, SealError> {
        if packet.len() < OVERHEAD {
            return Err(SealError::TooShort);
        }
        let address = self.seal_as(Purpose::Data, now, packet).ok_or(SealError::NoSession)?;
        self.liveness.on_sent(self.now);
        self.statistics.sealed += 1;
        Ok(address)
    }

    /// The longest payload that a packet brings to the peer, as far as that is known ([`Event::Datagrams`]); what
    /// is longer goes by [`Channel::seal_parts`].
    #[must_use]
    pub fn longest_payload(&self) -> usize {
        usize::from(self.path_mtu.known()).saturating_sub(OVERHEAD)
    }

    /// Makes packets of the parts of a payload, one after the other in `packet`, and passes each to `send` with where
    /// it goes.
    ///
    /// # Errors
    /// There is no session, or the payload is too long.
    pub fn seal_parts(
        &mut self,
        now: Time,
        payload: &[u8],
        packet: &mut Vec<u8>,
        mut send: impl FnMut(&[u8], SocketAddr),
    ) -> Result<(), SealError> {
        let most = self.longest_payload().saturating_sub(PART).max(1);
        let of = u8::try_from(payload.len().div_ceil(most)).map_err(|_| SealError::TooLong)?;
        let number = self.next_in_parts;
        self.next_in_parts = number.wrapping_add(1);
        for (part, bytes) in (0..).zip(payload.chunks(most)) {
            packet.clear();
            packet.resize(HEADER, 0);
            packet.extend_from_slice(&parts::header(number, part, of));
            packet.extend_from_slice(bytes);
            packet.resize(packet.len() + TAG, 0);
            let address = self.seal_as(Purpose::Part, now, packet).ok_or(SealError::NoSession)?;
            send(packet, address);
        }
        self.liveness.on_sent(self.now);
        self.statistics.sealed += 1;
        Ok(())
    }

    /// The payload whose last part the datagram has brought that was handled last.
    pub fn take_joined(&mut self) -> Option<Vec<u8>> {
        self.parts.joined.take()
    }

    fn seal_as(&mut self, purpose: Purpose, now: Time, packet: &mut [u8]) -> Option<SocketAddr> {
        let now = self.at(now);
        self.sessions.sending(now)?.seal(purpose, packet)?;
        self.address
    }

    /// Takes a datagram that has arrived from an address. Returns the payload in it, decrypted in place, if
    /// there is one; [`Channel::take_joined`] has one that came in parts. Then [`Channel::poll_event`] and
    /// [`Channel::poll_transmit`] may have something.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &'d mut [u8],
    ) -> Option<&'d mut [u8]> {
        let now = self.at(now);
        match parse(datagram) {
            Ok(Packet::Transport(header)) => {
                let is_payload = self.on_transport(now, from, header, datagram);
                let end = datagram.len() - TAG;
                return is_payload.then(|| &mut datagram[HEADER..end]);
            }
            Ok(Packet::Initiation { timestamp, noise }) => {
                self.on_initiation(now, from, timestamp, noise, datagram);
            }
            Ok(Packet::Response { receiver, noise }) => {
                if let Some(session) = self.on_response(now, receiver, noise, datagram) {
                    self.establish(now, session);
                    self.set_address(from);
                    // It proves to the peer that this end has the session.
                    self.is_probe_due = true;
                }
            }
            Ok(Packet::Stale { echo, newest }) => self.on_stale(echo, newest, datagram),
            Err(NotAPacket::Length) => self.statistics.malformed += 1,
            Err(NotAPacket::Version) => self.statistics.unknown_version += 1,
            Err(NotAPacket::Kind) => self.statistics.unknown_type += 1,
        }
        None
    }

    /// Opens a transport packet. Returns whether it carries a payload.
    fn on_transport(
        &mut self,
        now: Time,
        from: SocketAddr,
        header: Header,
        packet: &mut [u8],
    ) -> bool {
        let Some(found) = self.sessions.find(now, header.receiver) else {
            self.statistics.unknown_session += 1;
            return false;
        };
        let (session, is_latest, is_pending) = match found {
            Found::Latest(session) => (session, true, false),
            Found::Earlier(session) => (session, false, false),
            Found::Pending(session) => (session, true, true),
        };
        let opening = session.open(header, packet);
        match opening {
            Opening::Replayed => self.statistics.replayed += 1,
            Opening::Forged => self.statistics.forged += 1,
            Opening::Highest | Opening::Overtaken => {}
        }
        if matches!(opening, Opening::Replayed | Opening::Forged) {
            return false;
        }
        match is_pending.then(|| self.sessions.take_pending()).flatten() {
            Some(session) => self.establish(now, session),
            None => self.on_heard(now),
        }
        // RFC 9000 §9.3: packets that others have overtaken say nothing of where the peer is now.
        if is_latest && opening == Opening::Highest {
            self.set_address(from);
        }
        match header.purpose {
            Purpose::Data => {}
            Purpose::Probe => self.is_answer_due = true,
            Purpose::PathProbe => self.path_answer = u16::try_from(packet.len()).ok(),
            Purpose::PathAnswer => self.on_path_answer(now, &packet[HEADER..]),
            Purpose::Part => self.on_part(&packet[HEADER..packet.len() - TAG]),
        }
        let is_data = matches!(header.purpose, Purpose::Data | Purpose::Probe);
        let is_payload = is_data && packet.len() > OVERHEAD;
        self.statistics.opened += u64::from(is_payload);
        is_payload
    }

    /// Both ends have proved to each other that they have this session: packets are sent on it.
    fn establish(&mut self, now: Time, session: Session) {
        self.statistics.sessions += 1;
        self.handshake.stop();
        let instance = session.peer_instance;
        match self.peer_instance.replace(instance) {
            None => self.push_event(Event::Connected),
            Some(earlier) if earlier != instance => {
                // What the peer sealed before it lost its state is not to be opened after this event.
                self.sessions.clear();
                self.parts.clear();
                self.liveness.is_lost = false;
                self.push_event(Event::PeerRestarted);
            }
            Some(_) => {}
        }
        let is_first = self.sessions.latest().is_none();
        self.sessions.push(session);
        self.on_heard(now);
        if is_first {
            self.search_path(now);
        }
    }

    fn on_heard(&mut self, now: Time) {
        self.liveness.on_heard(now);
        if mem::take(&mut self.liveness.is_lost) {
            self.path_mtu.confirm(now);
            self.push_event(Event::Resumed);
        }
    }

    /// Searches for the longest datagrams from the shortest on.
    fn search_path(&mut self, now: Time) {
        self.change_path(|path_mtu| path_mtu.begin(now));
    }

    fn on_path_answer(&mut self, now: Time, payload: &[u8]) {
        if let Some(&[high, low]) = payload.first_chunk() {
            self.change_path(|path_mtu| path_mtu.on_answer(now, u16::from_be_bytes([high, low])));
        }
    }

    fn on_part(&mut self, bytes: &[u8]) {
        if !self.parts.take(bytes) {
            self.statistics.malformed += 1;
        } else if self.parts.joined.is_some() {
            self.statistics.opened += 1;
        }
    }

    fn change_path<R>(&mut self, change: impl FnOnce(&mut PathMtu) -> R) -> R {
        let before = self.path_mtu.known();
        let result = change(&mut self.path_mtu);
        let known = self.path_mtu.known();
        if known != before {
            self.push_event(Event::Datagrams(known));
        }
        result
    }

    fn set_address(&mut self, from: SocketAddr) {
        if self.address.replace(from).is_some_and(|address| address != from) {
            self.push_event(Event::AddressChanged(from));
            self.search_path(self.now);
        }
    }

    /// An event takes the place of the one before if that is of the same kind and was not read.
    fn push_event(&mut self, event: Event) {
        match self.events.back_mut() {
            Some(last) if mem::discriminant(last) == mem::discriminant(&event) => *last = event,
            _ => self.events.push_back(event),
        }
    }

    /// The next datagram to send, and where: a message of a handshake, a probe or an answer to one. `out` is
    /// overwritten. To be called until there is none, after each other call but [`Channel::seal`].
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let now = self.at(now);
        out.clear();
        if let Some(address) = self.poll_handshake(now, out) {
            return Some(address);
        }
        if let Some(len) = self.path_answer.take() {
            out.resize(OVERHEAD + 2, 0);
            out[HEADER..HEADER + 2].copy_from_slice(&len.to_be_bytes());
            let address = self.seal_as(Purpose::PathAnswer, now, out)?;
            self.liveness.on_answer(now);
            return Some(address);
        }
        let is_probe = mem::take(&mut self.is_probe_due);
        // A probe is an answer, too.
        if !(mem::take(&mut self.is_answer_due) | is_probe) {
            return None;
        }
        out.resize(OVERHEAD, 0);
        let purpose = if is_probe { Purpose::Probe } else { Purpose::Data };
        let address = self.seal_as(purpose, now, out)?;
        if is_probe {
            self.liveness.on_probe(now);
        } else {
            self.liveness.on_answer(now);
        }
        Some(address)
    }

    /// The next datagram to send, and where, to learn whether one of its length arrives: no router may fragment it,
    /// and if it cannot be sent, it is lost. `out` is overwritten. To be called before
    /// [`Channel::poll_transmit`] by an end with [`Config::datagrams`].
    pub fn poll_path_probe(&mut self, now: Time, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let now = self.at(now);
        out.clear();
        if !self.sessions.is_sending(now) {
            return None;
        }
        // Whether the peer is there must be known if this is lost.
        self.is_probe_due |= self.path_mtu.is_doubtful(now);
        let heard = self.liveness.heard();
        let len = self.change_path(|path_mtu| path_mtu.poll(now, heard))?;
        out.resize(usize::from(len).max(OVERHEAD), 0);
        self.seal_as(Purpose::PathProbe, now, out)
    }

    /// The way to the peer may be there again: it is asked at once whether it hears. [`Channel::handle_timeout`] and
    /// [`Channel::poll_transmit`] are to be called.
    pub fn ask(&mut self) {
        self.is_probe_due = self.sessions.latest().is_some();
        self.handshake.hurry();
    }

    /// When [`Channel::handle_timeout`] is to be called; perhaps in the past.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        let all = [self.handshake_at(), self.probe_at(), self.lost_at(), self.path_probe_at()];
        all.into_iter().fold(self.sessions.expiry(), Time::min)
    }

    fn path_probe_at(&self) -> Time {
        match self.sessions.latest() {
            Some(_) => self.path_mtu.poll_timeout(),
            None => Time::NEVER,
        }
    }

    /// Does what is due. Then [`Channel::poll_event`] and [`Channel::poll_transmit`] may have something.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.at(now);
        self.sessions.expire(now);
        if self.handshake_at() <= now {
            self.handshake.start_or_stop(self.handshake_needed_at() <= now);
        }
        self.is_probe_due |= self.probe_at() <= now;
        if self.lost_at() <= now {
            self.liveness.is_lost = true;
            self.push_event(Event::Lost);
        }
    }

    fn probe_at(&self) -> Time {
        let can_probe = self.sessions.latest().is_some() && !self.is_probe_due;
        if can_probe { self.liveness.probe_at() } else { Time::NEVER }
    }

    fn lost_at(&self) -> Time {
        if self.peer_instance.is_some() { self.liveness.lost_at() } else { Time::NEVER }
    }

    fn at(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("peer", &self.config.peer)
            .field("address", &self.address)
            .field("peer_instance", &self.peer_instance)
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}
