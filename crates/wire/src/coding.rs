//! End-to-end erasure coding: places in an encoded stream, and repair packets.

use crate::checksum::{Sum, Tail};
use crate::ip::{protocol, u16_at, u32_at};
use crate::{EmitError, Header, Packet, ParseError, UnparsedOptions, ipv6};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// A packet's place in an encoded stream (`bbn8333` §5). The encoder numbers all coded packets of a
/// flow, source and repair packets, in the order of sending, so that their receiver sees every
/// loss, repaired or not.
///
/// A source packet carries its place as an IP option of a type for experiments: in IPv4 222 (RFC
/// 4727 §2.2), in IPv6 0x1e in destination options (RFC 4727 §3.4: skipped if unknown). Corruption
/// reports have the same type; their first byte is less than 128. The option comes behind all
/// others.
///
/// ```text
/// IPv4: 222, 6,        then 4 bytes, end, end
/// IPv6: next, 0, 30, 4, then 4 bytes
/// ```
///
/// The four bytes are a bit that is set in IPv6 and clear in IPv4, 23 bits of the sequence number and
/// 8 of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The packet's number in the stream, modulo [`Place::MODULUS`].
    pub sequence: u32,
    /// The packet's number in its block, from 0 on; repair packets follow source packets.
    pub index: u8,
}

impl Place {
    /// Sequence numbers are modulo this.
    pub const MODULUS: u32 = 1 << 23;
    /// Bytes that it adds to a source packet.
    pub const LEN: u32 = 8;

    const KIND_V4: u8 = 222;
    const KIND_V6: u8 = 0x1e;
    /// The bit that distinguishes a place from other options of its type.
    const IS_PLACE: u32 = 1 << 31;

    fn word(self) -> u32 {
        (self.sequence % Place::MODULUS) << 8 | u32::from(self.index)
    }

    fn from_word(word: u32) -> Place {
        Place { sequence: word >> 8, index: word as u8 }
    }

    /// The place of a source packet; `None` if it has none.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Place> {
        let options = packet.unparsed.ip();
        let (bytes, is_place) = match packet.ip.source {
            IpAddr::V4(_) => {
                let &[_, 6, a, b, c, d, 0, 0] = &options[find(Place::KIND_V4, options)?..] else {
                    return None;
                };
                ([a, b, c, d], 0)
            }
            IpAddr::V6(_) => {
                let first = packet.unparsed.first_extension();
                let (kind, at) = ipv6::last_extension(first, options).ok()??;
                let &[_, 0, Place::KIND_V6, 4, a, b, c, d] = &options[at..] else { return None };
                if kind != protocol::DESTINATION_OPTIONS {
                    return None;
                }
                ([a, b, c, d], Place::IS_PLACE)
            }
        };
        let place = Place::from_word(u32::from_be_bytes(bytes) ^ is_place);
        (place.sequence < Place::MODULUS).then_some(place)
    }

    /// Tags a packet as a source packet, behind its other options.
    ///
    /// # Errors
    /// If these leave no room; the packet stays as it is.
    pub fn tag(self, packet: &mut Packet) -> Result<(), ParseError> {
        let mut options = [0; UnparsedOptions::MOST_IP + Place::LEN as usize];
        let len = packet.unparsed.ip().len();
        options[..len].copy_from_slice(packet.unparsed.ip());
        let (before, rest) = options.split_at_mut(len);
        if packet.ip.source.is_ipv4() {
            end_to_nop(before);
            let [a, b, c, d] = self.word().to_be_bytes();
            rest[..8].copy_from_slice(&[Place::KIND_V4, 6, a, b, c, d, 0, 0]);
            return packet.unparsed.set_ipv4_options(&options[..len + 8]);
        }
        let first = packet.unparsed.first_extension();
        let last = ipv6::last_extension(first, before)?;
        if let Some((_, last)) = last {
            before[last] = protocol::DESTINATION_OPTIONS;
        }
        let [a, b, c, d] = (Place::IS_PLACE | self.word()).to_be_bytes();
        rest[..8].copy_from_slice(&[0, 0, Place::KIND_V6, 4, a, b, c, d]);
        let first = if last.is_some() { first } else { protocol::DESTINATION_OPTIONS };
        packet.unparsed.set_ipv6_extensions(first, &options[..len + 8])
    }
}

/// Where an option of this kind starts among those of IPv4, which are well-formed.
fn find(wanted: u8, options: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *options.get(at)? {
            kind if kind == wanted => return Some(at),
            0 => return None,
            1 => at += 1,
            // RFC 791 §3.1: no length is less than 2.
            _ => at += usize::from(*options.get(at + 1)?).max(2),
        }
    }
}

/// Replaces the end of IPv4 options by padding, so that another option can follow.
fn end_to_nop(options: &mut [u8]) {
    if let Some(end) = find(0, options) {
        options[end..].fill(1);
    }
}

/// A repair packet of an erasure code. Any packets of a block, as many as it has source packets,
/// are enough to rebuild all source packets. The repair symbol is the packet's payload.
///
/// Its protocol number is 253 (RFC 3692).
///
/// ```text
/// |             port              |           checksum            |
/// |0|              sequence number                |     index     |
/// |    sources    |    repairs    |  symbol ...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Repair {
    /// The encoded stream between its source and destination, by the port that the flow's data goes
    /// to.
    pub port: u16,
    /// Its place.
    pub place: Place,
    /// The source packets of the block, 1 or more.
    pub sources: u8,
    /// The repair packets of the block.
    pub repairs: u8,
}

impl Repair {
    /// Bytes of the header.
    pub const HEADER: usize = 10;
    /// The place of the checksum in the header.
    pub(crate) const CHECKSUM: usize = 2;

    /// Reads the header at the start of `bytes`; all that follows is the symbol. The checksum is
    /// verified unless it is `trusted`.
    pub(crate) fn parse(
        bytes: &[u8],
        (source, destination): (IpAddr, IpAddr),
        trusted: bool,
    ) -> Result<Repair, ParseError> {
        let (header, found) = (Header::Repair, bytes.len());
        if found < Repair::HEADER {
            return Err(ParseError::Truncated { header, expected: Repair::HEADER, found });
        }
        if !trusted {
            let mut sum = Sum::pseudo(source, destination, protocol::REPAIR, found);
            sum.add(bytes);
            sum.verify(header, u16_at(bytes, Repair::CHECKSUM))?;
        }
        let place = Place::from_word(u32_at(bytes, 4));
        if place.sequence >= Place::MODULUS {
            let (field, expected) = ("sequence number", "of less than 2^23");
            return Err(ParseError::Field { header, field, found: place.sequence, expected });
        }
        let repair = Repair { port: u16_at(bytes, 0), place, sources: bytes[8], repairs: bytes[9] };
        repair.check().map_err(|(field, found, expected)| ParseError::Field {
            header,
            field,
            found,
            expected,
        })?;
        Ok(repair)
    }

    /// The invalid field, its value, and the valid values.
    fn check(&self) -> Result<(), (&'static str, u32, &'static str)> {
        let [sources, repairs, index] =
            [self.sources, self.repairs, self.place.index].map(u32::from);
        if sources == 0 {
            return Err(("number of source packets", sources, "of 1 or more"));
        }
        if sources + repairs > 255 {
            return Err(("size of the block", sources + repairs, "of 255 or less"));
        }
        if !(sources..sources + repairs).contains(&index) {
            return Err(("index", index, "to be that of a repair packet"));
        }
        Ok(())
    }

    /// Writes the header, and the symbol behind it.
    pub(crate) fn emit(
        &self,
        (source, destination): (IpAddr, IpAddr),
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        if let Err((field, found, _)) = self.check() {
            let (header, most) = (Header::Repair, 255);
            return Err(EmitError::Field { header, field, found, most });
        }
        let start = out.len();
        out.extend_from_slice(&self.port.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.place.word().to_be_bytes());
        out.extend_from_slice(&[self.sources, self.repairs]);
        let len = Repair::HEADER + tail.len();
        let sum = Sum::pseudo(source, destination, protocol::REPAIR, len);
        tail.finish(sum, start, Repair::CHECKSUM, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
