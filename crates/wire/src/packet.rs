//! IP packets and the identity of their payload.

use crate::{CorruptionNotice, Segment};
use core::net::{IpAddr, Ipv4Addr};
use serde::{Deserialize, Serialize};

/// Which bytes a packet carries: `len` bytes of stream `stream`, from `offset` on.
///
/// The source application sets it and the sink checks it, so that a byte lost, doubled or moved
/// is noticed although no byte is ever copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Payload {
    /// The stream, unique in a run.
    pub stream: u32,
    /// Bytes.
    pub len: u32,
    /// The first byte's place in the stream.
    pub offset: u64,
}

impl Payload {
    /// The byte after the last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// This payload without its first `bytes` bytes.
    #[must_use]
    pub fn skip(self, bytes: u32) -> Payload {
        let bytes = bytes.min(self.len);
        Payload { offset: self.offset + u64::from(bytes), len: self.len - bytes, ..self }
    }

    /// The first `bytes` bytes of this payload.
    #[must_use]
    pub fn take(self, bytes: u32) -> Payload {
        Payload { len: self.len.min(bytes), ..self }
    }

    /// Whether `next` continues this payload.
    #[must_use]
    pub fn continues(&self, next: &Payload) -> bool {
        self.stream == next.stream && self.end() == next.offset
    }
}

/// What the network says of congestion in an IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand the others.
    #[default]
    NotCapable = 0b00,
    /// ECT(1)
    Capable1 = 0b01,
    /// ECT(0): the transport understands.
    Capable = 0b10,
    /// CE: congestion was experienced on the way.
    Congested = 0b11,
}

/// An IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ip {
    /// Where the packet comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// Hops it may still take.
    pub hop_limit: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
}

impl Ip {
    /// The hop limit that hosts set (RFC 1700's default).
    pub const HOP_LIMIT: u8 = 64;

    /// Bytes of the header.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.source {
            IpAddr::V4(_) => 20,
            IpAddr::V6(_) => 40,
        }
    }

    /// Never: a header has bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// What an IP packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Body {
    /// A TCP segment; its bytes are the packet's payload.
    Tcp(Segment),
    /// A notice of corruption to a source, `size` bytes with all headers (ICMP-like).
    Notice {
        /// What happened.
        notice: CorruptionNotice,
        /// Bytes of the whole packet: 180 for ns-2's message agent, 56 for a real ICMP.
        size: u16,
    },
}

/// A packet as a node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Packet {
    /// The network header.
    pub ip: Ip,
    /// What is inside.
    pub body: Body,
    /// Which bytes the transport carries.
    pub payload: Payload,
}

impl Packet {
    /// Something to overwrite.
    pub const BLANK: Packet = Packet {
        ip: Ip {
            source: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            hop_limit: 0,
            ecn: Ecn::NotCapable,
        },
        body: Body::Notice {
            notice: CorruptionNotice {
                source: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                source_port: 0,
                destination_port: 0,
                seq: crate::SeqNumber(0),
                len: 0,
                copy: crate::CopyId(0),
            },
            size: 0,
        },
        payload: Payload { stream: 0, offset: 0, len: 0 },
    };

    /// Makes the body a TCP segment without options, whose other fields are to be overwritten.
    #[inline]
    pub fn make_tcp(&mut self) -> &mut Segment {
        if !matches!(self.body, Body::Tcp(_)) {
            self.body = Body::Tcp(Segment::default());
        }
        match &mut self.body {
            Body::Tcp(segment) => {
                segment.options = crate::Options::default();
                segment
            }
            Body::Notice { .. } => unreachable!("it has just been made a segment"),
        }
    }

    /// Bytes on the wire, from the IP header on.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u32 {
        match &self.body {
            Body::Tcp(segment) => (self.ip.len() + segment.header_len()) as u32 + self.payload.len,
            Body::Notice { size, .. } => u32::from(*size),
        }
    }

    /// Never: a packet has a header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

// Packets are written once into a slab and edited in place; two fit into five cache lines.
const _: () = assert!(size_of::<Packet>() <= 256);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_segment_of_536_bytes_is_a_packet_of_576() {
        let mut packet = Packet::BLANK;
        packet.body = Body::Tcp(Segment::default());
        packet.payload.len = 536;
        assert_eq!(packet.len(), 576);
    }

    #[test]
    fn slices_of_a_payload_keep_its_identity() {
        let whole = Payload { stream: 3, offset: 100, len: 50 };
        let (head, tail) = (whole.take(20), whole.skip(20));
        assert!(head.continues(&tail));
        assert_eq!(tail.end(), whole.end());
        assert_eq!(whole.skip(90).len, 0);
    }
}
