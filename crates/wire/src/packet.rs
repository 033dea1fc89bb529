//! IP packets: structs, and bytes.

use crate::checksum::{PartialChecksum, Tail};
use crate::ip::{self, protocol};
use crate::{
    EmitError, Esp, Header, Icmp, Ip, Mobility, Options, ParseError, Payload, Ports, Protected,
    Repair, Segment, Srp, Tfrc, Udp, UnparsedOptions, ipv4, ipv6,
};
use core::hint::black_box;
use core::net::IpAddr;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// What an IP packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Body {
    /// A TCP segment; its bytes are the packet's payload.
    Tcp(Segment),
    /// A UDP datagram; its bytes are the packet's payload.
    Udp(Udp),
    /// A PDU of SRP in a UDP datagram; its data is the packet's payload.
    Srp(Srp),
    /// A packet of TFRC in a UDP datagram; its data is the packet's payload.
    Tfrc(Tfrc),
    /// A message of ICMP or ICMPv6, as the packet's addresses are.
    Icmp(Icmp),
    /// A repair packet of an erasure code; its symbol is the packet's payload.
    Repair(Repair),
    /// A packet that hides another, or its transport; what is encrypted is the packet's payload.
    Esp(Esp),
    /// A packet whose transport is hidden, for a node that knows it ([`Packet::protect`]): nodes on
    /// the path read only [`Packet::esp`]. Its payload is the hidden transport's.
    EspTransport(Protected),
    /// A message between a mobile host and a base station, in UDP.
    Mobility(Mobility),
}

/// A packet as a node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
// Four cache lines, the last of which is seldom touched.
#[repr(align(64))]
pub struct Packet {
    /// The network header.
    pub ip: Ip,
    /// What is inside.
    pub body: Body,
    /// Which bytes the transport carries.
    pub payload: Payload,
    /// Options and extension headers that are kept unparsed.
    pub unparsed: UnparsedOptions,
}

impl Packet {
    /// Bytes of redundancy for each wrong byte that a packet's own code corrects: a Reed-Solomon code
    /// over GF(2^16) has two symbols of two bytes for each wrong one, and a code word has room for any
    /// packet.
    pub const REDUNDANCY: u32 = 4;

    /// A packet to be overwritten.
    pub const BLANK: Packet = Packet {
        ip: Ip::BLANK,
        body: Body::Udp(Udp { source_port: 0, destination_port: 0 }),
        payload: Payload { stream: 0, offset: 0, len: 0 },
        unparsed: UnparsedOptions::NONE,
    };

    /// Makes the body a TCP segment without options, whose other fields are to be overwritten, as
    /// is the IP header. Nothing else is left of what the packet was.
    #[inline]
    pub fn make_tcp(&mut self) -> &mut Segment {
        self.unparsed.clear();
        if !matches!(self.body, Body::Tcp(_)) {
            self.body = Body::Tcp(Segment::default());
        }
        match &mut self.body {
            Body::Tcp(segment) => {
                segment.options.clear();
                segment
            }
            _ => {
                unreachable!("it has just been made a segment")
            }
        }
    }

    /// Makes the body a UDP header; the IP header and the payload are to be overwritten. Nothing else
    /// is left of what the packet was.
    #[inline]
    pub fn make_udp(&mut self, udp: Udp) {
        self.unparsed.clear();
        self.body = Body::Udp(udp);
    }

    /// Makes the body a packet of TFRC; the IP header and the payload are to be overwritten. Nothing else is
    /// left of what the packet was.
    #[inline]
    pub fn make_tfrc(&mut self, tfrc: Tfrc) {
        self.unparsed.clear();
        self.body = Body::Tfrc(tfrc);
    }

    /// The ports of the TCP segment, or [`Ports::NONE`].
    #[must_use]
    #[inline]
    pub fn ports(&self) -> Ports {
        match &self.body {
            Body::Tcp(segment) => Ports::new(segment.source_port, segment.destination_port),
            _ => Ports::NONE,
        }
    }

    /// Reads from each cache line that most packets need.
    #[inline]
    pub fn touch(&self) {
        black_box((self.ports(), self.unparsed.corrects()));
    }

    /// The TCP segment, if it is one.
    pub fn tcp_mut(&mut self) -> Option<&mut Segment> {
        match &mut self.body {
            Body::Tcp(segment) => Some(segment),
            _ => None,
        }
    }

    /// Bytes on the wire, from the IP header on, with the redundancy of the packet's own code.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u32 {
        self.plain_len().unwrap_or_else(|| self.overhead_len() as u32 + self.payload.len)
    }

    /// The same for a TCP segment with no options but timestamps, else `None`.
    #[must_use]
    #[inline]
    pub fn plain_len(&self) -> Option<u32> {
        match &self.body {
            Body::Tcp(segment)
                if self.unparsed.is_empty() & segment.options.has_only_timestamps() =>
            {
                let stamps = segment.options.timestamps.map_or(0, |_| Options::TIMESTAMPS);
                let headers = self.ip.len() + Segment::HEADER + stamps;
                Some(headers as u32 + self.payload.len)
            }
            _ => None,
        }
    }

    /// Bytes of all headers, whatever is in them, and of the packet's own code.
    #[inline(never)]
    fn overhead_len(&self) -> usize {
        if let Body::Udp(_) = self.body
            && self.unparsed.is_empty()
        {
            return self.ip.len() + Udp::HEADER;
        }
        self.ip_len() + self.transport_len() + self.redundancy_len() as usize
    }

    /// Bytes of the packet's own code.
    #[inline]
    pub(crate) fn redundancy_len(&self) -> u32 {
        Packet::REDUNDANCY * u32::from(self.unparsed.corrects())
    }

    /// Never: a packet has a header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    #[inline]
    fn ip_len(&self) -> usize {
        self.ip.len() + self.unparsed.ip_on_wire().len()
    }

    #[inline]
    pub(crate) fn transport_len(&self) -> usize {
        match &self.body {
            Body::Tcp(segment) => self.segment_len(segment),
            Body::Udp(_) => Udp::HEADER,
            Body::Srp(srp) => Udp::HEADER + srp.len(),
            Body::Tfrc(tfrc) => Udp::HEADER + tfrc.len(),
            Body::Icmp(icmp) => icmp.len(self.ip_len()),
            Body::Repair(_) => Repair::HEADER,
            Body::Esp(_) => Esp::HEADER,
            // The trailer is counted, too.
            Body::EspTransport(protected) => {
                let header = match protected {
                    Protected::Tcp(segment) => self.segment_len(segment),
                    Protected::Udp(_) => Udp::HEADER,
                    Protected::Tfrc(tfrc) => Udp::HEADER + tfrc.len(),
                };
                let inner = header as u32 + self.payload.len;
                let sealed = Esp::sealed_len(inner) - self.payload.len;
                Esp::HEADER + sealed as usize
            }
            Body::Mobility(message) => message.len(),
        }
    }

    /// Bytes of a TCP header with all its options.
    #[inline]
    fn segment_len(&self, segment: &Segment) -> usize {
        Segment::HEADER + segment.options.len_with(self.unparsed.tcp_options().len())
    }

    /// Appends the packet to `out`, with these payload bytes and all checksums. Nothing is
    /// allocated if `out` has the capacity. Zeros follow in place of the redundancy of the packet's
    /// own code, not counted by the IP header.
    ///
    /// # Errors
    /// If the packet cannot be written as it is; `out` is then as it was.
    pub fn emit(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), EmitError> {
        let (start, expected) = (out.len(), self.payload.len as usize);
        if payload.len() != expected {
            return Err(EmitError::Payload { expected, found: payload.len() });
        }
        out.reserve(self.len() as usize);
        let written = self.emit_all(Tail::Bytes(payload), out);
        match written {
            Ok(()) => out.resize(out.len() + self.redundancy_len() as usize, 0),
            Err(_) => out.truncate(start),
        }
        written
    }

    /// Appends the packet's headers to `out`. The caller appends the payload; a network card or
    /// kernel completes the transport's checksum at the returned place. ESP has none.
    ///
    /// # Errors
    /// If the packet cannot be written as it is; `out` is then as it was.
    pub fn emit_headers(&self, out: &mut Vec<u8>) -> Result<Option<PartialChecksum>, EmitError> {
        let start = out.len();
        let written = self.emit_all(Tail::Elsewhere(self.payload.len as usize), out);
        if let Err(error) = written {
            out.truncate(start);
            return Err(error);
        }
        let offset = match self.body {
            Body::Tcp(_) => Segment::CHECKSUM,
            Body::Udp(_) | Body::Srp(_) | Body::Tfrc(_) => Udp::CHECKSUM,
            Body::Icmp(_) => Icmp::CHECKSUM,
            Body::Repair(_) => Repair::CHECKSUM,
            Body::Esp(_) => return Ok(None),
            Body::EspTransport(_) => return Err(EmitError::NoKeys),
            Body::Mobility(_) => {
                return Err(EmitError::NoChecksum { header: Header::Mobility });
            }
        };
        Ok(Some(PartialChecksum { start: self.ip_len() as u16, offset: offset as u16 }))
    }

    /// The number of the transport protocol.
    pub(crate) fn protocol(&self) -> u8 {
        match (&self.body, self.ip.source) {
            (Body::Tcp(_), _) => protocol::TCP,
            (Body::Udp(_) | Body::Srp(_) | Body::Tfrc(_) | Body::Mobility(_), _) => protocol::UDP,
            (Body::Icmp(_), IpAddr::V4(_)) => protocol::ICMP,
            (Body::Icmp(_), IpAddr::V6(_)) => protocol::ICMPV6,
            (Body::Repair(_), _) => protocol::REPAIR,
            (Body::Esp(_) | Body::EspTransport(_), _) => protocol::ESP,
        }
    }

    fn emit_all(&self, tail: Tail<'_>, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.emit_ip(self.protocol(), self.transport_len() + tail.len(), out)?;
        let ends = (self.ip.source, self.ip.destination);
        match &self.body {
            Body::Tcp(segment) => segment.emit(ends, &self.unparsed, tail, out),
            Body::Udp(udp) => udp.emit(ends, tail, out),
            Body::Srp(srp) => srp.emit(ends, tail, out),
            Body::Tfrc(tfrc) => tfrc.emit(ends, tail, out),
            Body::Icmp(icmp) => icmp.emit(ends, self.ip_len(), tail, out),
            Body::Repair(repair) => repair.emit(ends, tail, out),
            Body::Esp(esp) => {
                esp.emit(tail, out);
                Ok(())
            }
            Body::EspTransport(_) => Err(EmitError::NoKeys),
            Body::Mobility(message) => message.emit(ends, tail, out),
        }
    }

    /// Writes the IP header for `len` bytes of a transport.
    pub(crate) fn emit_ip(
        &self,
        protocol: u8,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let (header, inner) = ((&self.ip, &self.unparsed), (protocol, len));
        match (self.ip.source, self.ip.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                ipv4::emit(header, (source, destination), inner, out)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ipv6::emit(header, (source, destination), inner, out)
            }
            _ => Err(EmitError::Versions { header: Header::Ip }),
        }
    }

    /// Reads the packet at the start of `bytes`, and says where among them its payload is. What
    /// follows the packet is padding of the link, and ignored.
    ///
    /// Lengths and checksums are verified. The payload's stream and offset, and which copy a
    /// segment is, are not on the wire: they are 0.
    ///
    /// # Errors
    /// If it is no packet, or none that can be used: a fragment, an unknown transport.
    pub fn parse(bytes: &[u8]) -> Result<(Packet, Range<usize>), ParseError> {
        Packet::read(bytes, false)
    }

    /// Like [`Packet::parse`], but without verifying the checksum of TCP or UDP: the kernel that
    /// hands over the packet has verified it, or it is partial because the packet has never left
    /// the machine. The checksums of IPv4 and ICMP are verified.
    ///
    /// # Errors
    /// Those of [`Packet::parse`].
    pub fn parse_trusted(bytes: &[u8]) -> Result<(Packet, Range<usize>), ParseError> {
        Packet::read(bytes, true)
    }

    /// Reads the headers of a TCP packet whose payload need not be there: `bytes` may end anywhere behind
    /// them. The length of the payload is what the IP header says. Of the checksums, only that of the IPv4
    /// header is verified.
    ///
    /// # Errors
    /// Those of [`Packet::parse`]; a packet that is not of TCP is of an unknown protocol.
    pub fn parse_headers(bytes: &[u8]) -> Result<Packet, ParseError> {
        let mut packet = Packet::BLANK;
        let inner = packet.read_ip(bytes)?;
        if inner.protocol != protocol::TCP {
            return Err(ParseError::Protocol { found: inner.protocol });
        }
        let Packet { ip, unparsed, .. } = &mut packet;
        let transport = &bytes[inner.start..inner.end.min(bytes.len())];
        let (segment, len) =
            Segment::parse(transport, (ip.source, ip.destination), unparsed, true)?;
        packet.body = Body::Tcp(segment);
        packet.payload.len = (inner.end - inner.start - len) as u32;
        Ok(packet)
    }

    /// Reads the IP header; the packet need not be there to its end.
    fn read_ip(&mut self, bytes: &[u8]) -> Result<ip::Inner, ParseError> {
        let Packet { ip, unparsed, .. } = self;
        let version = match bytes.first() {
            Some(first) => first >> 4,
            None => {
                let header = Header::Ip;
                return Err(ParseError::Truncated { header, expected: 20, found: 0 });
            }
        };
        match version {
            4 => ipv4::parse(bytes, ip, unparsed),
            6 => ipv6::parse(bytes, ip, unparsed),
            _ => Err(ParseError::Field {
                header: Header::Ip,
                field: "version",
                found: u32::from(version),
                expected: "4 or 6",
            }),
        }
    }

    fn read(bytes: &[u8], trusted: bool) -> Result<(Packet, Range<usize>), ParseError> {
        let mut packet = Packet::BLANK;
        let inner = packet.read_ip(bytes)?;
        let Packet { ip, unparsed, .. } = &mut packet;
        let (version, ends) = (bytes[0] >> 4, (ip.source, ip.destination));
        if bytes.len() < inner.end {
            let header = if version == 4 { Header::Ipv4 } else { Header::Ipv6 };
            return Err(ParseError::Truncated { header, expected: inner.end, found: bytes.len() });
        }
        let transport = &bytes[inner.start..inner.end];
        let (body, payload) = match (inner.protocol, version) {
            (protocol::TCP, _) => {
                let (segment, len) = Segment::parse(transport, ends, unparsed, trusted)?;
                (Body::Tcp(segment), len..transport.len())
            }
            (protocol::UDP, _) => {
                let (udp, end) = Udp::parse(transport, ends, trusted)?;
                let payload = &transport[Udp::HEADER..end];
                if let Some((srp, len)) = Srp::parse(udp, payload) {
                    (Body::Srp(srp), Udp::HEADER + len..end)
                } else if let Some((tfrc, len)) = Tfrc::parse(udp, payload) {
                    (Body::Tfrc(tfrc), Udp::HEADER + len..end)
                } else if let Some(message) = Mobility::parse(udp, payload) {
                    (Body::Mobility(message), end..end)
                } else {
                    (Body::Udp(udp), Udp::HEADER..end)
                }
            }
            (protocol::ICMP, 4) | (protocol::ICMPV6, 6) => {
                let (icmp, len) = Icmp::parse(transport, ends, inner.start)?;
                (Body::Icmp(icmp), len..transport.len())
            }
            (protocol::REPAIR, _) => {
                let repair = Repair::parse(transport, ends, trusted)?;
                (Body::Repair(repair), Repair::HEADER..transport.len())
            }
            (protocol::ESP, _) => (Body::Esp(Esp::parse(transport)?), Esp::HEADER..transport.len()),
            (found, _) => return Err(ParseError::Protocol { found }),
        };
        packet.body = body;
        packet.payload.len = payload.len() as u32;
        Ok((packet, inner.start + payload.start..inner.start + payload.end))
    }
}

// Packets are written once into a slab and edited in place.
const _: () = assert!(size_of::<Packet>() <= 256);

#[cfg(test)]
mod tests;
