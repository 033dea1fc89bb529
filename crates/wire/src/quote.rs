//! The start of a packet that an ICMP error quotes.

use crate::ip::{protocol, u16_at, u32_at};
use crate::{Body, EmitError, Header, Packet, ParseError, SeqNumber, ipv4, ipv6};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// The start of a packet that an ICMP error is about: enough to find its connection, and to verify
/// that the connection has sent the packet (RFC 5927 §4.1).
///
/// Of the quoted IP header nothing else is kept, and of the transport's header the first eight
/// octets; what is quoted beyond them is the message's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quote {
    /// Where the packet came from.
    pub source: IpAddr,
    /// Where it went.
    pub destination: IpAddr,
    /// The packet's length with its IP header, bytes.
    pub len: u16,
    /// The transport's number (6 for TCP).
    pub protocol: u8,
    /// The transport's first two octets: the source port.
    pub source_port: u16,
    /// The next two: the destination port.
    pub destination_port: u16,
    /// The next four: TCP's sequence number.
    pub seq: SeqNumber,
}

/// The error for a quoted fragment: it may lack the transport header.
fn unusable(field: &'static str, found: u32) -> ParseError {
    ParseError::Field { header: Header::Quote, field, found, expected: "of a whole packet" }
}

/// Octets of the transport's header that every error quotes (RFC 792).
const TRANSPORT: usize = 8;

impl Quote {
    /// The quote of a packet that carries TCP, UDP (SRP and TFRC, too) or ESP; `None` for ICMP, about which no errors
    /// are sent (RFC 1122 §3.2.2), and for packets that belong to no connection.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Quote> {
        let (protocol, source_port, destination_port, seq) = match &packet.body {
            Body::Tcp(tcp) => (protocol::TCP, tcp.source_port, tcp.destination_port, tcp.seq),
            Body::Udp(udp) => {
                // Length and checksum: the checksum need not be right in a quote.
                let len = crate::Udp::HEADER as u32 + packet.payload.len;
                (protocol::UDP, udp.source_port, udp.destination_port, SeqNumber(len << 16))
            }
            Body::Srp(srp) => {
                let len = (crate::Udp::HEADER + srp.len()) as u32 + packet.payload.len;
                let ports = (srp.source_port, srp.destination_port);
                (protocol::UDP, ports.0, ports.1, SeqNumber(len << 16))
            }
            Body::Tfrc(tfrc) => {
                let len = (crate::Udp::HEADER + tfrc.len()) as u32 + packet.payload.len;
                let ports = (tfrc.source_port, tfrc.destination_port);
                (protocol::UDP, ports.0, ports.1, SeqNumber(len << 16))
            }
            // RFC 4303 §2: SPI and sequence number are its first eight octets.
            Body::Esp(_) | Body::EspTransport(_) => {
                let esp = packet.esp()?;
                (protocol::ESP, (esp.spi >> 16) as u16, esp.spi as u16, SeqNumber(esp.sequence))
            }
            Body::Icmp(_) | Body::Repair(_) | Body::Mobility(_) => return None,
        };
        Some(Quote {
            source: packet.ip.source,
            destination: packet.ip.destination,
            len: packet.len().min(u32::from(u16::MAX)) as u16,
            protocol,
            source_port,
            destination_port,
            seq,
        })
    }

    /// Bytes in an ICMP message.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        TRANSPORT
            + match self.source {
                IpAddr::V4(_) => 20,
                IpAddr::V6(_) => 40,
            }
    }

    /// Reads a quote at the start of `bytes`, and how many of them it takes.
    pub(crate) fn parse(bytes: &[u8], v6: bool) -> Result<(Quote, usize), ParseError> {
        let version = bytes.first().map_or(0, |first| first >> 4);
        if version != if v6 { 6 } else { 4 } {
            return Err(ParseError::Field {
                header: Header::Quote,
                field: "version",
                found: u32::from(version),
                expected: if v6 { "6" } else { "4" },
            });
        }
        let (protocol, start, len, offset) = if v6 {
            let len = ipv6::total_len(bytes)?;
            let (protocol, start) = match ipv6::transport(bytes[6], bytes) {
                Err(ParseError::Fragment { .. }) => {
                    return Err(unusable("next header", u32::from(protocol::FRAGMENT)));
                }
                other => other?,
            };
            (protocol, start, len, 0)
        } else {
            let (start, len) = ipv4::lengths(bytes)?;
            (bytes[9], start, len, ipv4::fragment_offset(bytes))
        };
        if offset != 0 {
            return Err(unusable("fragment offset", u32::from(offset)));
        }
        let end = start + TRANSPORT;
        if bytes.len() < end {
            let (header, expected) = (Header::Quote, end);
            return Err(ParseError::Truncated { header, expected, found: bytes.len() });
        }
        let address = |v4, v6_at| match v6 {
            false => ipv4::address(bytes, v4),
            true => ipv6::address(bytes, v6_at),
        };
        let quote = Quote {
            source: address(12, 8),
            destination: address(16, 24),
            len: len.min(usize::from(u16::MAX)) as u16,
            protocol,
            source_port: u16_at(bytes, start),
            destination_port: u16_at(bytes, start + 2),
            seq: SeqNumber(u32_at(bytes, start + 4)),
        };
        Ok((quote, end))
    }

    /// Writes the quote with an IP header that has nothing special.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let packet = Packet { ip: crate::Ip::new(self.source, self.destination), ..Packet::BLANK };
        let header = packet.ip.len();
        let Some(inner) = usize::from(self.len).checked_sub(header) else {
            return Err(EmitError::TooLong {
                header: Header::Quote,
                found: header,
                most: usize::from(self.len),
            });
        };
        packet.emit_ip(self.protocol, inner, out)?;
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.seq.0.to_be_bytes());
        Ok(())
    }
}
