//! The state machine: datagrams and time in; datagrams, payloads and events out.

use crate::config::{Config, ConfigError, Event, SealError, Statistics};
use crate::handshake::Handshake;
use crate::liveness::Liveness;
use crate::noise::Identity;
use crate::packet::{HEADER, Header, NotAPacket, Packet, parse};
use crate::session::{Opening, Session, TAG};
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

    /// Makes a packet of a payload, in place: `packet` has room for [`HEADER`] bytes before the payload
    /// and [`TAG`](crate::TAG) behind. Returns where it goes.
    ///
    /// # Errors
    /// There is no session, or no room.
    pub fn seal(&mut self, now: Time, packet: &mut [u8]) -> Result<SocketAddr, SealError> {
        if packet.len() < OVERHEAD {
            return Err(SealError::TooShort);
        }
        let address = self.seal_as(false, now, packet).ok_or(SealError::NoSession)?;
        self.liveness.on_sent(self.now);
        self.statistics.sealed += 1;
        Ok(address)
    }

    fn seal_as(&mut self, is_probe: bool, now: Time, packet: &mut [u8]) -> Option<SocketAddr> {
        let now = self.at(now);
        self.sessions.sending(now)?.seal(is_probe, packet)?;
        self.address
    }

    /// Takes a datagram that has arrived from an address. Returns the payload in it, decrypted in place, if
    /// there is one. Then [`Channel::poll_event`] and [`Channel::poll_transmit`] may have something.
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
        self.is_answer_due |= header.is_probe;
        let is_payload = packet.len() > OVERHEAD;
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
                self.liveness.is_lost = false;
                self.push_event(Event::PeerRestarted);
            }
            Some(_) => {}
        }
        self.sessions.push(session);
        self.on_heard(now);
    }

    fn on_heard(&mut self, now: Time) {
        self.liveness.on_heard(now);
        if mem::take(&mut self.liveness.is_lost) {
            self.push_event(Event::Resumed);
        }
    }

    fn set_address(&mut self, from: SocketAddr) {
        if self.address.replace(from).is_some_and(|address| address != from) {
            self.push_event(Event::AddressChanged(from));
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
        let is_probe = mem::take(&mut self.is_probe_due);
        // A probe is an answer, too.
        if !(mem::take(&mut self.is_answer_due) | is_probe) {
            return None;
        }
        out.resize(OVERHEAD, 0);
        let address = self.seal_as(is_probe, now, out)?;
        if is_probe {
            self.liveness.on_probe(now);
        } else {
            self.liveness.on_answer(now);
        }
        Some(address)
    }

    /// When [`Channel::handle_timeout`] is to be called; perhaps in the past.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.handshake_at().min(self.probe_at()).min(self.lost_at()).min(self.sessions.expiry())
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
