//! ESP (RFC 4303): the header in front of an encrypted packet or transport.

#[cfg(feature = "aead")]
mod keys;
mod replay;

#[cfg(feature = "aead")]
pub use keys::{EspAlgorithm, EspKeys, MaterialLength, OpenError};
pub use replay::ReplayWindow;

use crate::checksum::Tail;
use crate::icmp::emit_address;
use crate::ip::{array, u32_at};
use crate::{Body, EmitError, Header, Packet, ParseError, Segment, Tfrc, Udp, ipv4, ipv6};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// The header of ESP (RFC 4303 §2), and the initialization vector that AES-GCM and AES-GMAC put
/// behind it (RFC 4106 §3, RFC 4543 §3).
///
/// It is all that nodes on the path see besides the IP header and its extension headers.
///
/// In a packet with [`Body::Esp`](crate::Body::Esp), the payload is what is encrypted, its trailer and
/// the integrity check value; in the lab, which encrypts nothing, the gateways of a tunnel keep the
/// inner packet beside it. In a packet with [`Body::EspTransport`](crate::Body::EspTransport), what is
/// encrypted is in the body.
///
/// ```text
/// |            security parameters index          |
/// |                sequence number                |
/// |        initialization vector, 8 octets        |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Esp {
    /// The security parameters index (SPI): which association at the destination.
    pub spi: u32,
    /// The packet's number, from 1 on.
    pub sequence: u32,
    /// The initialization vector (IV): no other packet of the association has it.
    pub iv: [u8; 8],
}

impl Esp {
    /// Bytes of the header with the initialization vector.
    pub const HEADER: usize = 16;
    /// Bytes of the integrity check value (ICV) of AES-GCM-16.
    pub const ICV: u32 = 16;

    /// The header of the packet with this number, or the lower half of an extended one, with the number as
    /// initialization vector: a counter, which never repeats (RFC 4106 §3.1, RFC 7634 §2).
    #[must_use]
    pub fn numbered(spi: u32, number: u64) -> Esp {
        Esp { spi, sequence: number as u32, iv: number.to_be_bytes() }
    }

    /// Bytes of an ESP packet's payload that hides `inner` bytes: these, padding to a multiple of 4
    /// bytes with the 2 bytes of the trailer (RFC 4303 §2.4), and the integrity check value.
    #[must_use]
    pub const fn sealed_len(inner: u32) -> u32 {
        (inner + 2).next_multiple_of(4) + Esp::ICV
    }

    /// Reads the header at the start of `bytes`. It is verified only by the integrity check value,
    /// for which the association's keys are needed.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Esp, ParseError> {
        let (header, expected, found) = (Header::Esp, Esp::HEADER, bytes.len());
        if found < expected {
            return Err(ParseError::Truncated { header, expected, found });
        }
        Ok(Esp::read(bytes))
    }

    /// Reads a header that is there.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Esp {
        Esp { spi: u32_at(bytes, 0), sequence: u32_at(bytes, 4), iv: array(bytes, 8) }
    }

    /// The header as it is on the wire.
    #[inline]
    pub(crate) fn bytes(&self) -> [u8; Esp::HEADER] {
        let mut bytes = [0; Esp::HEADER];
        bytes[..4].copy_from_slice(&self.spi.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..].copy_from_slice(&self.iv);
        bytes
    }

    /// Writes the header, and the payload behind it, unless that is elsewhere.
    pub(crate) fn emit(&self, tail: Tail<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
        if let Tail::Bytes(payload) = tail {
            out.extend_from_slice(payload);
        }
    }
}

/// The transport that ESP hides in transport mode (RFC 4303 §3.1.1); its bytes are the packet's
/// payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protected {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Udp),
    /// A packet of TFRC in a UDP datagram.
    Tfrc(Tfrc),
}

impl Packet {
    /// The ESP header of a packet in either mode: what nodes on the path can read of it.
    #[must_use]
    #[inline]
    pub fn esp(&self) -> Option<Esp> {
        match self.body {
            Body::Esp(esp) => Some(esp),
            Body::EspTransport(_) => self.unparsed.esp(),
            _ => None,
        }
    }

    /// Hides the packet's transport, TCP or UDP, behind ESP in transport mode. The payload stays the
    /// identity of the transport's bytes. False, without effect, if it has another transport, or
    /// more than [`crate::UnparsedOptions::MOST_TCP_IN_ESP`] bytes of unknown TCP options.
    #[must_use]
    pub fn protect(&mut self, esp: Esp) -> bool {
        let protected = match self.body {
            Body::Tcp(segment) => Protected::Tcp(segment),
            Body::Udp(udp) => Protected::Udp(udp),
            Body::Tfrc(tfrc) => Protected::Tfrc(tfrc),
            _ => return false,
        };
        let has_room = self.unparsed.set_esp(esp);
        if has_room {
            self.body = Body::EspTransport(protected);
        }
        has_room
    }

    /// Undoes [`Packet::protect`] and returns the ESP header; `None`, without effect, if the packet is
    /// not in transport mode.
    pub fn unprotect(&mut self) -> Option<Esp> {
        let Body::EspTransport(protected) = self.body else { return None };
        let esp = self.unparsed.esp()?;
        self.unparsed.clear_esp();
        self.body = match protected {
            Protected::Tcp(segment) => Body::Tcp(segment),
            Protected::Udp(udp) => Body::Udp(udp),
            Protected::Tfrc(tfrc) => Body::Tfrc(tfrc),
        };
        Some(esp)
    }
}

/// A report to the source of an ESP packet that it arrived corrupted (`bbn8333` §7.2).
///
/// The node that detects it cannot read the inner packet. It identifies the ESP packet by the whole
/// ESP header; the initialization vector shows that the reporter has seen that packet. On the wire
/// the notice is an ICMP message of the type and length of [`crate::CorruptionNotice`], with
/// another code:
///
/// ```text
///  0                   1                   2                   3
/// |  type 253/100 |    code 2     |           checksum            |
/// |                   security parameters index                   |
/// |               source address, then destination address        |
/// |                        sequence number                        |
/// |                initialization vector, 8 octets                |
/// |                            padding                            |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EspNotice {
    /// The ESP packet's source, to which the notice goes.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// Its ESP header.
    pub esp: Esp,
}

impl EspNotice {
    /// Bytes behind the ICMP header, without padding.
    pub(crate) fn bytes(&self) -> usize {
        if self.source.is_ipv6() { 44 } else { 20 }
    }

    /// Reads what follows type, code and checksum, if it is long enough.
    pub(crate) fn parse(bytes: &[u8], v6: bool) -> Option<EspNotice> {
        let width = if v6 { 16 } else { 4 };
        let address = if v6 { ipv6::address } else { ipv4::address };
        let sequence = 4 + 2 * width;
        if bytes.len() < sequence + 12 {
            return None;
        }
        Some(EspNotice {
            source: address(bytes, 4),
            destination: address(bytes, 4 + width),
            esp: Esp {
                spi: u32_at(bytes, 0),
                sequence: u32_at(bytes, sequence),
                iv: array(bytes, sequence + 4),
            },
        })
    }

    /// Writes what follows the security parameters index.
    pub(crate) fn emit(&self, v6: bool, out: &mut Vec<u8>) -> Result<(), EmitError> {
        emit_address(self.source, v6, out)?;
        emit_address(self.destination, v6, out)?;
        out.extend_from_slice(&self.esp.sequence.to_be_bytes());
        out.extend_from_slice(&self.esp.iv);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
