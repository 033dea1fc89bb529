//! SRP, the selective-repeat protocol of one lossy hop (`yavatkar1994` §2.3), in UDP.

mod format;
#[cfg(test)]
mod tests;

use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// A UDP datagram that carries an SRP PDU.
///
/// A datagram from or to [`Srp::PORT`] is one if it parses as a PDU of [`Srp::VERSION`]; all others stay
/// [`Udp`](crate::Udp). So is one from or to [`Srp::CHANNEL_PORT`], behind [`Srp::CHANNEL`] bytes of 0. The publication
/// gives no format; this one is ours. All fields are big-endian:
///
/// ```text
/// |version| type  |    by type    |            by type            |
/// |                             token                             |
///
/// OPEN, OPENED:  0, segments; window (4 bytes), streams (2 bytes)
/// RENEW:         the same, and the token of the first association (4 bytes)
/// DATA:          end (1 bit), kind (3 bits), copy (4 bits); stream; segment (4 bytes), offset (4 bytes),
///                and in an opening chunk the ends of the stream's connection, in one that continues a stream
///                the limit (4 bytes) and perhaps the ends, otherwise the data
/// SACK:          length, probe; cumulative (4 bytes), latest (4 bytes), span, start, stream (2 bytes
///                each), probe is prompt (1 bit), prompt (1 bit), 0 (2 bits), copy (4 bits), 0 (1 byte),
///                limit (4 bytes), bitmap
/// PROBE:         0, number
/// RESET:         reason, 0
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Srp {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port. One of both is [`Srp::PORT`] or [`Srp::CHANNEL_PORT`].
    pub destination_port: u16,
    /// The association: a random number that its opener has chosen. A station finds the association by
    /// it, because the address of the mobile host's station changes with a handoff.
    pub token: u32,
    /// What is told.
    pub pdu: Pdu,
}

/// The message of an SRP PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Pdu {
    /// Opens an association.
    Open(Limits),
    /// Opens an association that takes the place of one between the same ends: its streams are continued
    /// ([`Chunk::Continue`]). The token is that of the first association plus the number of times that it
    /// was renewed; a later one supersedes all earlier ones.
    Renew {
        /// The token of the first association, which [`Pdu::Open`] has opened.
        first: u32,
        /// What the opener accepts.
        limits: Limits,
    },
    /// Answers [`Pdu::Open`] and [`Pdu::Renew`].
    Opened(Limits),
    /// A numbered segment, which is retransmitted until it has arrived.
    Data(Segment),
    /// What has arrived.
    Sack(Sack),
    /// Requests a SACK at once. Also the keep-alive.
    Probe {
        /// A number that the SACK echoes, not 0.
        number: u16,
    },
    /// Ends the association with all its streams at once.
    Reset {
        /// Why.
        reason: Reason,
    },
}

/// What an end of an association accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Segment numbers from the next one expected in sequence on.
    pub segments: u16,
    /// Bytes of each stream until its first [`Chunk::Credit`].
    pub window: u32,
    /// Streams that the peer may have open at a time.
    pub streams: u16,
}

/// A segment of [`Pdu::Data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// Its number in the association; the first is 0.
    pub number: u32,
    /// Which transmission of it this is, from 1 on; [`Segment::MOST_COPIES`] stands for all later
    /// ones, too.
    pub copy: u8,
    /// Its stream. The opener of the association opens streams with even numbers, its peer those with odd
    /// ones.
    pub stream: u16,
    /// What it brings.
    pub chunk: Chunk,
}

/// The content of a [`Segment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Chunk {
    /// Bytes of the stream, which are the packet's payload. Without bytes and without `end` it only fills
    /// the place of its number: its stream was reset.
    Data {
        /// The first byte's place in the stream, modulo 2^32.
        offset: u32,
        /// The stream ends with the last byte.
        end: bool,
    },
    /// Opens the stream.
    Open(Ends),
    /// The stream's far end has accepted the connection.
    Accept,
    /// The receiver of the stream has room for more.
    Credit {
        /// Bytes of the whole stream that may be sent, modulo 2^32.
        limit: u32,
    },
    /// The stream is over, in both directions, or was not accepted. The peer answers in kind.
    Reset {
        /// Why.
        reason: Reason,
    },
    /// All bytes of the stream have arrived, and its end.
    Finished,
    /// What an end has of a stream that an earlier association carried.
    Continue(Continue),
}

/// What the sender of [`Chunk::Continue`] has of a stream. The peer sends what follows, and nothing
/// before it knows this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Continue {
    /// Bytes of the stream that have arrived in order, modulo 2^32.
    pub received: u32,
    /// Bytes of the whole stream that may be sent, modulo 2^32.
    pub limit: u32,
    /// These are all bytes, and the end has arrived, too.
    pub is_whole: bool,
    /// The sender has opened the stream and does not know whether the peer has learned of it: if it has
    /// not, this opens it.
    pub ends: Option<Ends>,
}

/// The ends of the connection that a stream stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ends {
    /// The address of the end that opened it.
    pub client: IpAddr,
    /// The address of the other end, of the same IP version.
    pub server: IpAddr,
    /// The port of the end that opened it.
    pub client_port: u16,
    /// The port of the other end.
    pub server_port: u16,
}

/// Why a stream or an association has ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The application or the far end has reset it.
    Aborted,
    /// The far end has refused the connection.
    Refused,
    /// The far end is unreachable.
    Unreachable,
    /// The far end does not answer.
    TimedOut,
    /// The association is unknown to the sender.
    Unknown,
    /// The sender has no room for another stream.
    Full,
}

/// A selective acknowledgment (`yavatkar1994` §2.3): the last segment received in sequence, the latest
/// received, and a bitmap of the missing ones. We add the highest received, which copy of the latest it
/// was, and the echo of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sack {
    /// The next segment expected in sequence: all before it have arrived.
    pub cumulative: u32,
    /// The segment that arrived last.
    pub latest: u32,
    /// Bytes of the stream that may be sent, modulo 2^32 ([`Chunk::Credit`]).
    pub limit: u32,
    /// Segments from `cumulative` up to the highest received; 0 if none beyond `cumulative` has arrived.
    pub span: u16,
    /// The first segment of the bitmap, counted from `cumulative`.
    pub start: u16,
    /// The number of the latest probe; 0 if there was none.
    pub probe: u16,
    /// The stream whose `limit` this is.
    pub stream: u16,
    /// Which copy of the latest segment arrived ([`Segment::copy`]); 0 if none has arrived.
    pub copy: u8,
    /// Bytes of the bitmap, at most [`Sack::MOST_BYTES`].
    pub length: u8,
    /// The SACK was sent as soon as the latest segment had arrived.
    pub is_prompt: bool,
    /// The SACK was sent as soon as the latest probe had arrived.
    pub is_probe_prompt: bool,
    /// The bits of `start` and of the segments that follow, the lowest bit of the first word first: a
    /// segment whose bit is set and that is not beyond the highest received is missing.
    pub bitmap: [u32; Sack::MOST_BYTES / 4],
}

impl Srp {
    /// The port, of the dynamic range (RFC 6335 §6).
    pub const PORT: u16 = 51_994;
    /// The version of the format.
    pub const VERSION: u8 = 1;
    /// Bytes before what depends on the type.
    pub const COMMON: usize = 8;
    /// Bytes of the header of [`Pdu::Data`] before its data.
    pub const DATA: usize = 16;
    /// Bytes of [`Pdu::Sack`] before its bitmap.
    pub const SACK: usize = 28;

    /// The port of PDUs that stand for those in the encrypted channel of two gateways, and are as long.
    pub const CHANNEL_PORT: u16 = 51_995;
    /// Bytes that the channel adds.
    pub const CHANNEL: usize = 30;

    /// Bytes of the PDU's header, behind that of UDP.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a PDU has a header")]
    pub const fn len(&self) -> usize {
        Srp::channel(self.source_port, self.destination_port) + self.pdu.len()
    }

    /// Bytes of the channel in a datagram with these ports.
    const fn channel(source_port: u16, destination_port: u16) -> usize {
        let is_in_channel =
            source_port == Srp::CHANNEL_PORT || destination_port == Srp::CHANNEL_PORT;
        if is_in_channel { Srp::CHANNEL } else { 0 }
    }

    /// Whether a datagram with these ports may carry a PDU.
    #[must_use]
    pub const fn has_port(source_port: u16, destination_port: u16) -> bool {
        source_port == Srp::PORT
            || destination_port == Srp::PORT
            || Srp::channel(source_port, destination_port) > 0
    }
}

impl Pdu {
    /// Bytes of the header, behind that of UDP.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a PDU has a header")]
    pub const fn len(&self) -> usize {
        match self {
            Pdu::Open(_) | Pdu::Opened(_) => Srp::COMMON + 6,
            Pdu::Renew { .. } => Srp::COMMON + 10,
            Pdu::Data(Segment { chunk: Chunk::Open(ends), .. }) => Srp::DATA + ends.len(),
            Pdu::Data(Segment { chunk: Chunk::Continue(it), .. }) => match it.ends {
                Some(ends) => Srp::DATA + 4 + ends.len(),
                None => Srp::DATA + 4,
            },
            Pdu::Data(_) => Srp::DATA,
            Pdu::Sack(sack) => Srp::SACK + sack.length as usize,
            Pdu::Probe { .. } | Pdu::Reset { .. } => Srp::COMMON,
        }
    }

    /// Whether the data of a stream follows, as far as there is any.
    #[must_use]
    pub const fn carries_data(&self) -> bool {
        matches!(self, Pdu::Data(Segment { chunk: Chunk::Data { .. }, .. }))
    }
}

impl Segment {
    /// The last copy that is counted.
    pub const MOST_COPIES: u8 = 15;
}

impl Ends {
    /// Bytes in an opening chunk.
    const fn len(&self) -> usize {
        4 + match self.client {
            IpAddr::V4(_) => 8,
            IpAddr::V6(_) => 32,
        }
    }
}

impl Sack {
    /// The most bytes of a bitmap.
    pub const MOST_BYTES: usize = 60;
    /// The most segments of a bitmap.
    pub const MOST_SEGMENTS: u16 = 8 * Sack::MOST_BYTES as u16;
}

// As large as a TCP segment may be, so that the packet stays in its cache lines.
const _: () = assert!(size_of::<Srp>() <= 96);
