//! ESP (RFC 4303): the header in front of an encrypted packet.

use crate::checksum::Tail;
use crate::icmp::emit_address;
use crate::ip::{array, u32_at};
use crate::{EmitError, Header, ParseError, ipv4, ipv6};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// The header of ESP (RFC 4303 §2), and the initialization vector that AES-GCM and AES-GMAC put
/// behind it (RFC 4106 §3, RFC 4543 §3).
///
/// It is all that nodes on the path see besides the IP header. The packet's payload is the
/// encrypted packet, its trailer and the integrity check value; in the lab, which encrypts nothing,
/// the gateways keep the inner packet beside it.
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
        Ok(Esp { spi: u32_at(bytes, 0), sequence: u32_at(bytes, 4), iv: array(bytes, 8) })
    }

    /// Writes the header, and the payload behind it.
    pub(crate) fn emit(&self, tail: Tail<'_>, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let Tail::Bytes(payload) = tail else {
            return Err(EmitError::NoChecksum { header: Header::Esp });
        };
        out.extend_from_slice(&self.spi.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.iv);
        out.extend_from_slice(payload);
        Ok(())
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
mod tests {
    use super::*;
    use crate::{Body, CorruptionNotice, Icmp, Ip, Packet, Vouched};

    const ESP: Esp =
        Esp { spi: 0x01020304, sequence: 0x05060708, iv: [9, 10, 11, 12, 13, 14, 15, 16] };

    fn address(v6: bool, n: u8) -> IpAddr {
        match v6 {
            false => IpAddr::from([10, 0, 0, n]),
            true => IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]),
        }
    }

    fn between(v6: bool, body: Body) -> Packet {
        Packet { ip: Ip::new(address(v6, 1), address(v6, 2)), body, ..Packet::BLANK }
    }

    #[test]
    fn a_packet_of_576_bytes_is_hidden_in_one_of_632() {
        // 576 and the trailer are padded to 580 bytes; 20 + 8 + 8 are before, 16 behind.
        let mut packet = between(false, Body::Esp(ESP));
        packet.payload.len = Esp::sealed_len(576);
        assert_eq!(packet.len(), 632);
        // No more than 3 bytes of padding.
        assert_eq!([38, 39, 40, 41, 42].map(Esp::sealed_len), [56, 60, 60, 60, 60]);
    }

    #[test]
    fn the_header_is_that_of_the_standard() {
        for (v6, at) in [(false, 20), (true, 40)] {
            let mut packet = between(v6, Body::Esp(ESP));
            packet.payload.len = 3;
            let mut bytes = Vec::new();
            packet.emit(b"abc", &mut bytes).unwrap();
            assert_eq!(bytes[if v6 { 6 } else { 9 }], 50);
            assert_eq!(
                bytes[at..],
                *b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10abc"
            );
            let (read, payload) = Packet::parse(&bytes).unwrap();
            assert_eq!((read, payload), (packet, at + 16..at + 19));
            let error = EmitError::NoChecksum { header: Header::Esp };
            assert_eq!(packet.emit_headers(&mut bytes), Err(error));
            assert_eq!(bytes.len(), at + 19);
        }
    }

    #[test]
    fn a_notice_names_the_header_and_has_the_size_it_is_given() {
        let sizes = [(false, CorruptionNotice::SMALLEST), (true, CorruptionNotice::SMALLEST_V6)];
        for (v6, smallest) in sizes {
            let (source, destination) = (address(v6, 2), address(v6, 3));
            let notice = EspNotice { source, destination, esp: ESP };
            for size in [smallest, 180] {
                let packet = between(v6, Body::Icmp(Icmp::EspCorruption { notice, size }));
                let mut bytes = Vec::new();
                packet.emit(&[], &mut bytes).unwrap();
                assert_eq!(bytes.len(), usize::from(size));
                assert_eq!(Packet::parse(&bytes).unwrap().0, packet);
            }
        }
    }

    #[test]
    fn nothing_vouches_for_a_damaged_header() {
        for v6 in [false, true] {
            let mut packet = between(v6, Body::Esp(ESP));
            packet.payload.len = 4;
            let mut bytes = Vec::new();
            packet.emit(&[0; 4], &mut bytes).unwrap();
            let start = bytes.len() - 20;
            // A bit of the sequence number.
            bytes[start + 7] ^= 1;
            match Packet::parse_damaged(&mut bytes) {
                Some((read, vouched)) => {
                    assert_eq!((v6, vouched), (false, Vouched::Addresses));
                    let wrong = Esp { sequence: ESP.sequence ^ 1, ..ESP };
                    assert_eq!(read.body, Body::Esp(wrong));
                }
                None => assert!(v6),
            }
        }
    }
}
