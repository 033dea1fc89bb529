//! What the emulator reads in a packet's bytes, and what a link changes in them.

use base::Random;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::Ecn;

/// What an IP packet says of congestion.
pub(super) fn ecn(packet: &[u8]) -> Ecn {
    let bits = match packet {
        [first, second, ..] if first >> 4 == 4 => *second,
        // Of the traffic class's 8 bits, the upper half is in the first byte (RFC 8200 §3).
        [first, second, ..] if first >> 4 == 6 => second >> 4,
        _ => 0,
    };
    match bits & 0b11 {
        0b00 => Ecn::NotCapable,
        0b01 => Ecn::Capable1,
        0b10 => Ecn::Capable,
        _ => Ecn::Congested,
    }
}

/// Where an IP packet is to go.
pub(super) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(16..)?.first_chunk().map(|&octets: &[u8; 4]| Ipv4Addr::from(octets).into()),
        6 => {
            packet.get(24..)?.first_chunk().map(|&octets: &[u8; 16]| Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

/// Marks an IP packet as having experienced congestion. IPv4's header checksum is updated (RFC 1624
/// §3); those of transports do not cover the mark.
pub(super) fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 0b11;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[1] |= 0b11 << 4,
        _ => {}
    }
}

/// Flips one bit. It is one because that is what bit errors of the usual rates do to a packet, and
/// because no checksum overlooks it.
pub(super) fn flip(packet: &mut [u8], random: &mut Random) {
    // The bias of the remainder is below 2^-44 for the longest packet.
    let bits = packet.len() as u64 * 8;
    if let Some(bit) = random.bits().checked_rem(bits) {
        packet[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use wire::{Body, Ip, Packet, ParseError, Udp};

    fn packets(ecn: Ecn) -> [Vec<u8>; 2] {
        [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")].map(|(from, to)| {
            let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let mut packet = Packet::BLANK;
            packet.ip = Ip { ecn, ..Ip::new(from, to) };
            packet.body = Body::Udp(Udp { source_port: 1, destination_port: 2 });
            let mut bytes = Vec::new();
            packet.emit(&[], &mut bytes).unwrap();
            bytes
        })
    }

    #[test]
    fn a_marked_packet_has_experienced_congestion_and_its_checksums_are_right() {
        for was in [Ecn::Capable, Ecn::Capable1, Ecn::Congested] {
            for mut bytes in packets(was) {
                assert_eq!(ecn(&bytes), was);
                mark(&mut bytes);
                assert_eq!(ecn(&bytes), Ecn::Congested);
                let (packet, _) = Packet::parse(&bytes).unwrap();
                assert_eq!(packet.ip.ecn, Ecn::Congested);
            }
        }
    }

    #[test]
    fn a_packet_says_where_it_is_to_go() {
        let found = packets(Ecn::NotCapable).map(|bytes| destination(&bytes).unwrap().to_string());
        assert_eq!(found, ["10.0.0.2", "fd00::2"]);
    }

    #[test]
    fn a_flip_is_of_one_bit_and_all_bits_have_their_turn() {
        let mut random = Seed(1).stream("flips");
        for bytes in packets(Ecn::NotCapable) {
            let mut hit = vec![false; bytes.len() * 8];
            for _ in 0..20_000 {
                let mut damaged = bytes.clone();
                flip(&mut damaged, &mut random);
                let changed =
                    |bit: &usize| (damaged[bit / 8] ^ bytes[bit / 8]) & 0x80 >> (bit % 8) != 0;
                let flipped: Vec<usize> = (0..hit.len()).filter(changed).collect();
                assert_eq!(flipped.len(), 1);
                hit[flipped[0]] = true;
            }
            assert!(hit.iter().all(|&hit| hit));
        }
    }

    #[test]
    fn a_flip_behind_the_ip_header_is_seen_by_the_checksum() {
        for bytes in packets(Ecn::NotCapable) {
            let header = if bytes[0] >> 4 == 4 { 20 } else { 40 };
            for bit in 8 * (header + 6)..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 0x80 >> (bit % 8);
                assert!(
                    matches!(Packet::parse(&damaged), Err(ParseError::Checksum { .. })),
                    "{bit}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_packet_is_left_alone() {
        let mut random = Seed(1).stream("flips");
        for bytes in [&[][..], &[0x45], &[0x45, 0, 0], &[0x60, 0], &[0x15, 0, 0, 0]] {
            let mut marked = bytes.to_vec();
            mark(&mut marked);
            assert_eq!(marked, bytes);
            flip(&mut marked, &mut random);
            let _ = ecn(bytes);
            assert_eq!(destination(bytes), None);
        }
    }
}
