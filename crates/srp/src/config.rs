//! The settings of an association.

use base::{Duration, Rate};
use serde::{Deserialize, Serialize};

/// The settings of one end of an association. Both ends have their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Config {
    /// Bytes of data in a full segment: the hop's MTU less the headers of IP (20 or 40 bytes), UDP (8) and
    /// SRP (16). Default: 1436, for 1480 bytes over IPv4. At least 1.
    pub segment_size: u32,
    /// Bytes of a packet's headers before that of SRP: IP and UDP. Default: 28, for IPv4. Pacing counts
    /// them.
    pub overhead: u32,
    /// The receive buffer of each stream, bytes: as many may have arrived and not been read. The peer's
    /// rate is at most this in a round trip; where segments are lost, three times the bandwidth-delay
    /// product is needed. Default: 4 MiB. From one segment to 1 GiB.
    pub window: u64,
    /// Segments that may have arrived behind the first that is missing. It bounds the memory that a
    /// peer can claim. Default: 32768. From 64 to 32768.
    pub segments: u16,
    /// Streams that the peer may have open at a time. Default: 1024.
    pub streams: u16,
    /// The rate of the hop, counted in bytes of IP packets, if it is known: what is sent is paced at it.
    /// A rate above that of the hop fills the hop's queue. Default: it is measured.
    pub rate: Option<Rate>,
    /// The hop is shared with other traffic: a congestion window bounds the data in flight, with the
    /// additive increase and multiplicative decrease of RFC 5681, and `rate` is an upper bound.
    /// Default: false, the hop is dedicated.
    pub share: bool,
    /// A segment in sequence is acknowledged at the latest with the segment that is this many later. One that
    /// shows a new gap, and a probe, are acknowledged at once. Default: 2. At least 1.
    pub sack_every: u32,
    /// The longest delay of an acknowledgment. Default: 10 ms.
    pub sack_delay: Duration,
    /// The retransmission timeout before the first round trip is known (RFC 6298 §2.1). Default: 1 s.
    pub initial_timeout: Duration,
    /// The least time by which the retransmission timeout is longer than the smoothed round trip: more than the
    /// peer's `sack_delay`. What is sent then is a probe of some 40 bytes, so it is short. Default: 20 ms.
    pub minimum_margin: Duration,
    /// After this time without a sign of the peer, a probe asks for one. Default: 15 s.
    pub keep_alive: Option<Duration>,
    /// The association fails when the peer has not answered for this long. Time during which it is
    /// suspended does not count. Default: 60 s.
    pub give_up: Duration,
    /// On a dedicated hop that loses at least one of 256 packets, and until the fate of so many is known: what is sent
    /// last before there is nothing more to send, up to 32 segments, is sent once more, if an eighth of the rate is
    /// enough for that, and a probe follows. So the loss of a short message costs no timeout. On any dedicated hop, some of
    /// what an interruption may have lost is sent again before the peer answers ([`crate::Association::resume`]).
    /// Default: false.
    pub repeat: bool,
    /// A segment carries bytes of several writes although their payloads do not continue each other: its payload
    /// is [`Payload::GATHERED`](wire::Payload::GATHERED), and [`Association::gathered`](crate::Association::gathered)
    /// says which it has. Default: false. It belongs to the place of the association, not to its state.
    #[serde(skip)]
    pub gather: bool,
}

impl Config {
    /// The largest receive buffer: offsets have 32 bits on the wire.
    pub const MOST_WINDOW: u64 = 1 << 30;
    /// The most segments beyond the first that is missing: a SACK counts them in 16 bits.
    pub const MOST_SEGMENTS: u16 = 1 << 15;

    /// Whether tails are repeated.
    pub(crate) fn repeats_tail(&self) -> bool {
        self.repeat && !self.share
    }

    /// The same with each value in its range.
    #[must_use]
    pub(crate) fn in_range(&self) -> Config {
        let segment_size = self.segment_size.clamp(1, 65_000);
        Config {
            segment_size,
            overhead: self.overhead.min(1000),
            window: self.window.clamp(segment_size.into(), Config::MOST_WINDOW),
            segments: self.segments.clamp(64, Config::MOST_SEGMENTS),
            sack_every: self.sack_every.max(1),
            ..self.clone()
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            segment_size: 1436,
            overhead: 28,
            window: 4 << 20,
            segments: Config::MOST_SEGMENTS,
            streams: 1024,
            rate: None,
            share: false,
            sack_every: 2,
            sack_delay: Duration::from_millis(10),
            initial_timeout: Duration::from_secs(1),
            minimum_margin: Duration::from_millis(20),
            keep_alive: Some(Duration::from_secs(15)),
            give_up: Duration::from_secs(60),
            repeat: false,
            gather: false,
        }
    }
}
