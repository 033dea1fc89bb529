//! UDP (RFC 768).

use crate::checksum::{Sum, Tail};
use crate::ip::{self, protocol, u16_at};
use crate::{EmitError, Header, ParseError};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// A UDP header. Its payload travels beside it in the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Udp {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

impl Udp {
    /// Bytes of the header.
    pub const HEADER: usize = 8;
    /// The place of the checksum in the header.
    pub(crate) const CHECKSUM: usize = 6;

    /// Reads the datagram at the start of `bytes`, and its length with the header. What IP carries
    /// beyond that is ignored. Its checksum is verified unless it is `trusted`.
    pub(crate) fn parse(
        bytes: &[u8],
        (source, destination): (IpAddr, IpAddr),
        trusted: bool,
    ) -> Result<(Udp, usize), ParseError> {
        let found = bytes.len();
        let truncated = |expected| ParseError::Truncated { header: Header::Udp, expected, found };
        if found < Udp::HEADER {
            return Err(truncated(Udp::HEADER));
        }
        let field = |field, found, expected| ParseError::Field {
            header: Header::Udp,
            field,
            found,
            expected,
        };
        let len = usize::from(u16_at(bytes, 4));
        if len < Udp::HEADER {
            return Err(field("length", len as u32, "of 8 bytes or more"));
        }
        if found < len {
            return Err(truncated(len));
        }
        match u16_at(bytes, Udp::CHECKSUM) {
            _ if trusted => {}
            // The sender computed none; over IPv6 it must (RFC 8200 §8.1).
            0 if source.is_ipv4() => {}
            0 => return Err(field("checksum", 0, "not 0 over IPv6")),
            checksum => {
                let mut sum = Sum::pseudo(source, destination, protocol::UDP, len);
                sum.add(&bytes[..len]);
                sum.verify(Header::Udp, checksum)?;
            }
        }
        let ports = Udp { source_port: u16_at(bytes, 0), destination_port: u16_at(bytes, 2) };
        Ok((ports, len))
    }

    /// Writes the datagram.
    pub(crate) fn emit(
        &self,
        ends: (IpAddr, IpAddr),
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        self.emit_with(ends, (Header::Udp, &[]), tail, out)
    }

    /// Writes the datagram, with another header between its own and the payload.
    pub(crate) fn emit_with(
        &self,
        (source, destination): (IpAddr, IpAddr),
        (header, bytes): (Header, &[u8]),
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let (start, len) = (out.len(), Udp::HEADER + bytes.len() + tail.len());
        let Ok(field) = u16::try_from(len) else {
            let most = usize::from(u16::MAX);
            return Err(EmitError::TooLong { header, found: len, most });
        };
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&field.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(bytes);
        let sum = Sum::pseudo(source, destination, protocol::UDP, len);
        if tail.finish(sum, start, Udp::CHECKSUM, out) == 0 {
            // That would mean that there is none.
            ip::put_u16(&mut out[start..], Udp::CHECKSUM, 0xffff);
        }
        Ok(())
    }
}
