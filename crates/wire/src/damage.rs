//! Reading packets that arrived damaged.

use crate::checksum::Sum;
use crate::{Body, Header, Packet, ParseError, ip, ipv4};

/// The fields of a damaged packet's headers that a checksum verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// Addresses, ports and sequence numbers.
    Transport,
    /// The addresses; the other fields may be wrong.
    Addresses,
}

impl Packet {
    /// Reads a packet in which one checksum shows damage, if another checksum verifies its
    /// addresses (`bbn8333` §6). `bytes` are the packet's bytes; a wrong checksum of the IPv4
    /// header is corrected in them.
    ///
    /// IPv4's header checksum covers the addresses. TCP's covers them, too, in its pseudo header:
    /// if it is right, the damage is in other fields of the IP header. Over IPv6 there is only
    /// TCP's.
    #[must_use]
    pub fn parse_damaged(bytes: &mut [u8]) -> Option<(Packet, Vouched)> {
        match Packet::parse(bytes) {
            // RFC 4303 §2.8: only the ends of ESP can verify its integrity check value.
            Ok((packet, _)) if matches!(packet.body, Body::Esp(_)) => {
                packet.ip.source.is_ipv4().then_some((packet, Vouched::Addresses))
            }
            Ok((packet, _)) => Some((packet, Vouched::Transport)),
            Err(ParseError::Checksum { header: Header::Ipv4, .. }) => {
                correct_checksum(bytes)?;
                let (packet, _) = Packet::parse(bytes).ok()?;
                matches!(packet.body, Body::Tcp(_)).then_some((packet, Vouched::Transport))
            }
            Err(ParseError::Checksum { header: Header::Tcp, .. }) => {
                let (packet, _) = Packet::parse_trusted(bytes).ok()?;
                packet.ip.source.is_ipv4().then_some((packet, Vouched::Addresses))
            }
            Err(_) => None,
        }
    }
}

/// Writes the checksum of the present content of an IPv4 header.
fn correct_checksum(bytes: &mut [u8]) -> Option<()> {
    let (len, _) = ipv4::lengths(bytes).ok()?;
    ip::put_u16(bytes, 10, 0);
    let mut sum = Sum::default();
    sum.add(&bytes[..len]);
    ip::put_u16(bytes, 10, sum.checksum());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Ip, Segment, SeqNumber};
    use core::net::IpAddr;

    /// A packet with eight bytes of payload, one bit of which is flipped; what is left of it.
    fn flipped(v6: bool, bit: usize) -> (Packet, Option<(Packet, Vouched)>) {
        let address = |n: u8| match v6 {
            false => IpAddr::from([10, 0, 0, n]),
            true => IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]),
        };
        let segment = Segment {
            source_port: 5000,
            destination_port: 80,
            seq: SeqNumber(77),
            flags: Flags::ACK,
            ..Segment::default()
        };
        let ip = Ip::new(address(1), address(2));
        let mut packet = Packet { ip, body: Body::Tcp(segment), ..Packet::BLANK };
        packet.payload.len = 8;
        let mut bytes = Vec::new();
        packet.emit(&[7; 8], &mut bytes).unwrap();
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        (packet, Packet::parse_damaged(&mut bytes))
    }

    fn ends(packet: &Packet) -> (IpAddr, IpAddr) {
        (packet.ip.source, packet.ip.destination)
    }

    #[test]
    fn whatever_bit_is_flipped_what_is_vouched_for_is_right() {
        for (v6, len) in [(false, 48), (true, 68)] {
            for bit in 0..8 * len {
                let (packet, read) = flipped(v6, bit);
                let Some((read, vouched)) = read else { continue };
                assert_eq!(ends(&read), ends(&packet), "bit {bit}");
                if vouched == Vouched::Transport {
                    assert_eq!(read.body, packet.body, "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn what_is_left_depends_on_where_the_damage_is() {
        let left = |v6, byte: usize| flipped(v6, 8 * byte).1.map(|(_, vouched)| vouched);
        let (transport, addresses) = (Some(Vouched::Transport), Some(Vouched::Addresses));
        // Of IPv4: time to live, a checksum, an address, a port, the payload.
        assert_eq!(
            [8, 10, 12, 20, 47].map(|byte| left(false, byte)),
            [transport, transport, None, addresses, addresses]
        );
        // Of IPv6: hop limit, an address, a port, the payload.
        assert_eq!([7, 8, 40, 67].map(|byte| left(true, byte)), [transport, None, None, None]);
        // A port that was hit is read as it is.
        let (packet, read) = flipped(false, 8 * 20 + 7);
        let (Body::Tcp(sent), Some((Packet { body: Body::Tcp(read), .. }, _))) =
            (packet.body, read)
        else {
            panic!("not TCP")
        };
        assert_eq!(read.source_port, sent.source_port ^ 0x100);
    }
}
