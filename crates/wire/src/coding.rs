//! End-to-end erasure coding: places in an encoded stream, and repair packets.

use crate::checksum::{Sum, Tail};
use crate::ip::{protocol, u16_at, u32_at};
use crate::{EmitError, Header, Packet, ParseError, Rare, ipv6};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// A packet's place in an encoded stream, which numbers all packets of a flow that are coded, source
/// and repair, as they are sent: whoever receives them sees every loss, repaired or not
/// (`bbn8333` §5).
///
/// A source packet carries its place as an IP option of a type for experiments: in IPv4 222
/// (RFC 4727 §2.2), in IPv6 0x1e in destination options (RFC 4727 §3.4: who does not know it skips
/// it; its length tells it from others of the type). It comes behind all other options.
///
/// ```text
/// IPv4: 222, 6,        then 4 bytes, end, end
/// IPv6: next, 0, 30, 4, then 4 bytes
/// ```
///
/// The four bytes are 24 bits of the sequence number and 8 of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The packet's number in the stream, modulo [`Place::MODULUS`].
    pub sequence: u32,
    /// The packet's number in its block, from 0 on; repair packets follow source packets.
    pub index: u8,
}

impl Place {
    /// Sequence numbers are less.
    pub const MODULUS: u32 = 1 << 24;
    /// Bytes that a source packet is longer.
    pub const LEN: u32 = 8;

    const KIND_V4: u8 = 222;
    const KIND_V6: u8 = 0x1e;

    fn word(self) -> u32 {
        (self.sequence % Place::MODULUS) << 8 | u32::from(self.index)
    }

    fn from_word(word: u32) -> Place {
        Place { sequence: word >> 8, index: word as u8 }
    }

    /// The place of a source packet; `None` if it has none.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Place> {
        // It is all of the last eight bytes.
        let (_, last) = packet.rare.ip().split_last_chunk::<8>()?;
        let word = match (packet.ip.source, last) {
            (IpAddr::V4(_), &[Place::KIND_V4, 6, a, b, c, d, 0, 0]) => [a, b, c, d],
            (IpAddr::V6(_), &[_, 0, Place::KIND_V6, 4, a, b, c, d]) => [a, b, c, d],
            _ => return None,
        };
        Some(Place::from_word(u32::from_be_bytes(word)))
    }

    /// Tags a packet as a source packet, behind what options it has; where these leave no room, it
    /// stays as it is, and the error says so.
    ///
    /// # Errors
    /// If there is no room.
    pub fn tag(self, packet: &mut Packet) -> Result<(), ParseError> {
        let [a, b, c, d] = self.word().to_be_bytes();
        let mut options = [0; Rare::MOST_IP + Place::LEN as usize];
        let len = packet.rare.ip().len();
        options[..len].copy_from_slice(packet.rare.ip());
        let (before, rest) = options.split_at_mut(len);
        if packet.ip.source.is_ipv4() {
            end_to_nop(before);
            rest[..8].copy_from_slice(&[Place::KIND_V4, 6, a, b, c, d, 0, 0]);
            return packet.rare.set_ipv4_options(&options[..len + 8]);
        }
        let first = packet.rare.first_extension();
        let last = ipv6::last_extension(first, before)?;
        if let Some(last) = last {
            before[last] = protocol::DESTINATION_OPTIONS;
        }
        rest[..8].copy_from_slice(&[0, 0, Place::KIND_V6, 4, a, b, c, d]);
        let first = if last.is_some() { first } else { protocol::DESTINATION_OPTIONS };
        packet.rare.set_ipv6_extensions(first, &options[..len + 8])
    }
}

/// Options of IPv4 that more shall follow: their end becomes padding.
fn end_to_nop(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        at += match kind {
            0 => {
                options[at..].fill(1);
                return;
            }
            1 => 1,
            // Options that are kept are well-formed: a length of 0 cannot be.
            _ => usize::from(options.get(at + 1).copied().unwrap_or(0)).max(1),
        };
    }
}

/// A repair packet of an erasure code: from as many packets of a block as it has source packets,
/// whichever they are, all of these can be rebuilt. Its symbol travels beside it as the packet's
/// payload.
///
/// Its protocol number is 253 (RFC 3692).
///
/// ```text
/// |             port              |           checksum            |
/// |                sequence number                |     index     |
/// |    sources    |    repairs    |  symbol ...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Repair {
    /// Which encoded stream between its source and destination it belongs to: the port that the
    /// flow's data goes to.
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
        let repair = Repair { port: u16_at(bytes, 0), place, sources: bytes[8], repairs: bytes[9] };
        repair.check().map_err(|(field, found, expected)| ParseError::Field {
            header,
            field,
            found,
            expected,
        })?;
        Ok(repair)
    }

    /// The field that makes no sense, its value, and what it ought to be.
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
mod tests {
    use super::*;
    use crate::Ip;

    fn packet(v6: bool) -> Packet {
        let ends = |host: u16| match v6 {
            false => IpAddr::from([10, 0, 0, host as u8]),
            true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host]),
        };
        let mut packet = Packet { ip: Ip::new(ends(1), ends(2)), ..Packet::BLANK };
        packet.make_tcp();
        packet
    }

    #[test]
    fn a_tag_survives_the_wire_behind_whatever_options_there_are() {
        for v6 in [false, true] {
            for occupied in [false, true] {
                let mut packet = packet(v6);
                match (occupied, v6) {
                    (false, _) => {}
                    // A router alert with the end of options behind it.
                    (true, false) => packet.rare.set_ipv4_options(&[7, 3, 4, 0]).unwrap(),
                    (true, true) => {
                        let chain = [6, 0, 1, 4, 0, 0, 0, 0];
                        packet.rare.set_ipv6_extensions(0, &chain).unwrap();
                    }
                }
                let before = packet.len();
                let place = Place { sequence: Place::MODULUS - 1, index: 17 };
                place.tag(&mut packet).unwrap();
                assert_eq!(packet.len(), before + Place::LEN);
                let mut bytes = Vec::new();
                packet.emit(&[], &mut bytes).unwrap();
                let (read, _) = Packet::parse(&bytes).unwrap();
                assert_eq!(Place::of(&read), Some(place), "IPv6: {v6}, others: {occupied}");
            }
        }
    }

    #[test]
    fn what_has_no_tag_has_no_place() {
        let mut plain = packet(false);
        assert_eq!(Place::of(&plain), None);
        plain.rare.set_ipv4_options(&[222, 5, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(Place::of(&plain), None);
    }

    #[test]
    fn a_packet_full_of_options_stays_as_it_is() {
        let mut full = packet(false);
        full.rare.set_ipv4_options(&[1; 36]).unwrap();
        let before = full;
        assert!(Place::default().tag(&mut full).is_err());
        assert_eq!(full, before);
    }
}
