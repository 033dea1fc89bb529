//! The settings of a channel, its events and its counts.

use crate::key::{PresharedKey, PublicKey, SecretKey};
use base::Duration;
use core::ops::RangeInclusive;
use std::net::SocketAddr;

/// The settings of one end.
#[derive(Clone, Debug)]
pub struct Config {
    /// The private key of this gateway.
    pub secret: SecretKey,
    /// The public key of the other.
    pub peer: PublicKey,
    /// The key that both share besides, if they do.
    pub preshared: Option<PresharedKey>,
    /// Where the other gateway is, if it is known. Without it, this end waits for the other's handshake; one
    /// end at least needs it.
    pub address: Option<SocketAddr>,
    /// Wall-clock time at the call of [`Channel::new`](crate::Channel::new), nanoseconds since 1970. A clock
    /// that is wrong, or 0, costs one more round trip at the first handshake.
    pub unix_time: u64,
    /// Continues the life of an earlier [instance](crate::Channel::instance), whose state the layers above have
    /// taken over: the peer will not see a restart.
    pub instance: Option<u64>,
    /// After this time without a packet in either direction, a probe asks the peer for an answer. It keeps
    /// address translators' entries, and finds an outage. Without it, only packets that the peer leaves
    /// unanswered for [`Config::UNANSWERED`] cause a probe. Default: 10 s. At least 1 s.
    pub keep_alive: Option<Duration>,
    /// The peer is reported as [lost](Event::Lost) when nothing has arrived for this long after a packet was
    /// sent. Default: 30 s.
    pub lost_after: Duration,
    /// A session is replaced when it is this old; it is dropped when it is half as old again. Default:
    /// 120 s, as in WireGuard. At least 1 s.
    pub rekey_after: Duration,
    /// A session is replaced when one end has sent this many packets. Default: 2^23, the limit of QUIC for
    /// AES-GCM (RFC 9001 §6.6).
    pub rekey_after_packets: u64,
    /// The lengths of datagrams, bytes of UDP payload: one that surely reaches the peer, and the longest that can.
    /// Between them, the longest that reaches the peer is searched for ([`Event::Datagrams`], RFC 8899). Default: both
    /// are 65,535, so that there is no search.
    pub datagrams: RangeInclusive<u16>,
}

impl Config {
    /// Without keep-alives, a probe is sent when the first packet that was sent after the peer's last has
    /// waited this long for one.
    pub const UNANSWERED: Duration = Duration::from_secs(10);

    /// Settings for the private key of this gateway and the public key of the other.
    #[must_use]
    pub fn new(secret: SecretKey, peer: PublicKey) -> Config {
        Config {
            secret,
            peer,
            preshared: None,
            address: None,
            unix_time: 0,
            instance: None,
            keep_alive: Some(Duration::from_secs(10)),
            lost_after: Duration::from_secs(30),
            rekey_after: Duration::from_secs(120),
            rekey_after_packets: 1 << 23,
            datagrams: u16::MAX..=u16::MAX,
        }
    }

    /// The same with each value in its range.
    pub(crate) fn in_range(self) -> Config {
        let second = Duration::from_secs(1);
        Config {
            keep_alive: self.keep_alive.map(|time| time.max(second)),
            // Until 2116; there must be later timestamps.
            unix_time: self.unix_time.min(1 << 62),
            rekey_after: self.rekey_after.max(second),
            rekey_after_packets: self.rekey_after_packets.max(1),
            ..self
        }
    }
}

/// Why there is no channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The peer's key is this gateway's own.
    #[error("the peer's public key is this gateway's own")]
    OwnKey,
    /// The peer's key is a point of small order, which belongs to no private key.
    #[error("the peer's public key is not one that a private key belongs to")]
    WeakKey,
    /// The source of randomness fails.
    #[error("there is no randomness")]
    Entropy,
}

/// What happened to the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first session with the peer: payloads can be sealed.
    Connected,
    /// A session with a peer that has lost its state. Payloads opened from now on were sealed after that.
    PeerRestarted,
    /// Packets of the peer come from here, and packets to it go here.
    AddressChanged(SocketAddr),
    /// Nothing has arrived for [`Config::lost_after`]. Handshakes are tried until something does.
    Lost,
    /// A packet has arrived from the peer that was lost. It has kept its state.
    Resumed,
    /// Datagrams of this length, bytes of UDP payload, and no longer ones, are known to reach the peer.
    Datagrams(u16),
}

/// Why a payload was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// There is no session with the peer.
    #[error("there is no session with the peer")]
    NoSession,
    /// The payload has more than 255 parts.
    #[error("the payload has too many parts")]
    TooLong,
    /// The packet has no room for header and tag.
    #[error("the packet is shorter than {} bytes", crate::OVERHEAD)]
    TooShort,
}

/// Counts since the channel was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Payloads sealed.
    pub sealed: u64,
    /// Payloads opened.
    pub opened: u64,
    /// Handshakes begun by this end.
    pub initiations: u64,
    /// Handshakes that this end answered.
    pub responses: u64,
    /// Sessions that both ends have proved to have.
    pub sessions: u64,
    /// Datagrams that are no packet: too short, or of a wrong length.
    pub malformed: u64,
    /// Datagrams of another version of the format.
    pub unknown_version: u64,
    /// Datagrams of an unknown type.
    pub unknown_type: u64,
    /// Transport packets, responses and answers that belong to no session or handshake of this end, or
    /// to one that is too old.
    pub unknown_session: u64,
    /// Transport packets that have arrived before, or far too late.
    pub replayed: u64,
    /// Packets whose tag or authentication code is wrong.
    pub forged: u64,
    /// Authentic initiations that are not newer than one before: replays, or of a peer whose clock is
    /// behind.
    pub stale: u64,
    /// Authentic initiations that came too soon after another.
    pub limited: u64,
    /// Handshakes that the source of randomness prevented.
    pub no_entropy: u64,
}

impl Statistics {
    /// Datagrams of others, and such as have arrived before.
    #[must_use]
    pub fn refused(&self) -> u64 {
        let Statistics { malformed, unknown_version, unknown_type, unknown_session, .. } = self;
        let Statistics { replayed, forged, stale, limited, .. } = self;
        let others = malformed + unknown_version + unknown_type + unknown_session;
        others + replayed + forged + stale + limited
    }
}
