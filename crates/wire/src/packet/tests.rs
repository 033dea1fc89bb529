//! Packets as bytes, to the bit.

use super::*;
use crate::{Ecn, Flags, SeqNumber, Timestamps};

const A: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1));
const B: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2));

fn segment() -> Packet {
    let mut packet = Packet { ip: Ip::new(A, B), ..Packet::BLANK };
    *packet.make_tcp() = Segment {
        source_port: 49152,
        destination_port: 80,
        seq: SeqNumber(0x01020304),
        ack: SeqNumber(0x05060708),
        flags: Flags::ACK | Flags::PSH,
        window: 512,
        ..Segment::default()
    };
    packet
}

fn bytes_of(packet: &Packet, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(payload, &mut bytes).unwrap();
    assert_eq!(bytes.len(), packet.len() as usize);
    bytes
}

#[test]
fn a_full_segment_of_536_bytes_is_a_packet_of_576() {
    let mut packet = segment();
    packet.payload.len = 536;
    assert_eq!(packet.len(), 576);
    assert_eq!(bytes_of(&packet, &[0; 536]).len(), 576);
}

#[test]
fn every_field_has_its_place() {
    let mut packet = segment();
    packet.ip.ecn = Ecn::Capable;
    packet.ip.dscp = 46;
    packet.ip.identification = 0xbeef;
    packet.payload.len = 3;
    let bytes = bytes_of(&packet, b"abc");
    #[rustfmt::skip]
    let expected = [
        0x45, 0xba, 0, 43, 0xbe, 0xef, 0x40, 0, 64, 6, 0x67, 0x23, 10, 0, 0, 1, 10, 0, 0, 2,
        0xc0, 0, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 2, 0, 0, 0, 0, 0, b'a', b'b', b'c',
    ];
    assert_eq!(bytes[..10], expected[..10]);
    assert_eq!(bytes[12..36], expected[12..36]);
    assert_eq!(bytes[38..], expected[38..]);
    let (parsed, payload) = Packet::parse(&bytes).unwrap();
    assert_eq!((parsed, &bytes[payload]), (packet, &b"abc"[..]));
}

#[test]
fn all_twelve_control_bits_are_kept() {
    let mut packet = segment();
    for bit in 0..12 {
        packet.make_tcp().flags = Flags::from_bits(1 << bit).unwrap();
        let bytes = bytes_of(&packet, &[]);
        assert_eq!(crate::ip::u16_at(&bytes, 32), 0x5000 | 1 << bit);
        assert_eq!(Packet::parse(&bytes).unwrap().0, packet);
    }
}

#[test]
fn a_bit_that_flips_is_noticed() {
    let mut packet = segment();
    packet.make_tcp().options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    packet.payload.len = 5;
    let right = bytes_of(&packet, b"hello");
    for bit in 0..right.len() * 8 {
        let mut wrong = right.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(Packet::parse(&wrong).is_err(), "bit {bit}");
    }
}

#[test]
fn a_wrong_checksum_is_reported_with_the_right_one() {
    let mut bytes = bytes_of(&segment(), &[]);
    let right = crate::ip::u16_at(&bytes, 36);
    crate::ip::put_u16(&mut bytes, 36, right ^ 0x0f00);
    let (header, found) = (Header::Tcp, right ^ 0x0f00);
    let expected = right;
    assert_eq!(Packet::parse(&bytes), Err(ParseError::Checksum { header, found, expected }));
}

#[test]
fn padding_of_the_link_is_ignored_and_a_lack_of_bytes_is_an_error() {
    let mut packet = segment();
    packet.payload.len = 1;
    let mut bytes = bytes_of(&packet, b"x");
    let (header, expected) = (Header::Ipv4, bytes.len());
    bytes.extend_from_slice(&[0xff; 5]);
    let (parsed, payload) = Packet::parse(&bytes).unwrap();
    assert_eq!((parsed, payload), (packet, 40..41));
    let found = expected - 1;
    let short = ParseError::Truncated { header, expected, found };
    assert_eq!(Packet::parse(&bytes[..found]), Err(short));
    assert_eq!(short.to_string(), "IPv4: expected 41 bytes or more, found 40");
}

#[test]
fn fragments_have_an_error_of_their_own() {
    for (field, offset, more) in [(0x2000, 0, true), (0x0001, 8, false), (0x3fff, 0xfff8, true)] {
        let mut bytes = bytes_of(&segment(), &[]);
        crate::ip::put_u16(&mut bytes, 6, field);
        crate::ip::put_u16(&mut bytes, 10, 0);
        let mut sum = crate::checksum::Sum::default();
        sum.add(&bytes[..20]);
        crate::ip::put_u16(&mut bytes, 10, sum.checksum());
        assert_eq!(Packet::parse(&bytes), Err(ParseError::Fragment { offset, more }));
    }
}

#[test]
fn a_packet_that_becomes_a_segment_has_no_options_left() {
    let mut packet = segment();
    packet.make_tcp().options.mss = Some(5);
    packet.unparsed.set_ipv4_options(&[1, 1, 1, 1]).unwrap();
    packet.unparsed.set_tcp_options(&[99, 2]).unwrap();
    assert_eq!(packet.len(), 20 + 4 + 20 + 4 + 4);
    packet.make_tcp();
    assert_eq!(packet, segment());
}

#[test]
fn a_packet_that_cannot_be_written_is_an_error_and_nothing_is_written() {
    let error = |change: fn(&mut Packet), payload: &[u8]| {
        let mut packet = segment();
        change(&mut packet);
        let mut bytes = vec![7];
        let error = packet.emit(payload, &mut bytes).unwrap_err().to_string();
        assert_eq!(bytes, [7]);
        error
    };
    assert_eq!(error(|_| {}, b"x"), "expected 0 bytes of payload, found 1");
    let six = |packet: &mut Packet| packet.ip.destination = "::1".parse().unwrap();
    assert_eq!(error(six, &[]), "IP: expected addresses of one IP version, found both");
    assert_eq!(
        error(|packet| packet.ip.dscp = 64, &[]),
        "IPv4: expected DSCP of at most 63, found 64"
    );
    let long = |packet: &mut Packet| packet.payload.len = 65_500;
    assert_eq!(error(long, &[0; 65_500]), "IPv4: expected at most 65535 bytes, found 65540");
    let mixed = |packet: &mut Packet| {
        packet.unparsed.set_ipv6_extensions(60, &[6, 0, 1, 4, 0, 0, 0, 0]).unwrap();
    };
    assert!(error(mixed, &[]).starts_with("expected options or extension headers"));
}

#[test]
fn headers_whose_checksum_is_completed_are_those_that_are_written_at_once() {
    let six = |address: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, address]);
    for (ip, options) in [(Ip::new(A, B), false), (Ip::new(six(1), six(2)), true)] {
        let mut packet = Packet { ip, ..segment() };
        if options {
            packet.make_tcp().options.timestamps = Some(Timestamps { value: 1, echo: 2 });
        }
        packet.payload.len = 5;
        let udp = Body::Udp(Udp { source_port: 1, destination_port: 2 });
        let echo = Body::Icmp(Icmp::EchoRequest { id: 3, seq: 4 });
        for body in [packet.body, udp, echo] {
            packet.body = body;
            let mut bytes = vec![7; 3];
            let place = packet.emit_headers(&mut bytes).unwrap();
            let PartialChecksum { start, offset } = place.unwrap();
            bytes.extend_from_slice(b"hello");
            // As the kernel does it: the pseudo header's sum is there already.
            let start = 3 + usize::from(start);
            let mut sum = crate::checksum::Sum::default();
            sum.add(&bytes[start..]);
            let partial = bytes[3..].to_vec();
            crate::ip::put_u16(&mut bytes[start..], usize::from(offset), sum.checksum());
            assert_eq!(bytes[3..], bytes_of(&packet, b"hello"));

            let trusted = Packet::parse_trusted(&partial);
            if matches!(body, Body::Icmp(_)) {
                assert!(matches!(trusted, Err(ParseError::Checksum { .. })));
            } else {
                assert_eq!(trusted, Packet::parse(&bytes[3..]));
                assert!(matches!(Packet::parse(&partial), Err(ParseError::Checksum { .. })));
            }
        }
    }
}

#[test]
fn a_code_within_a_packet_takes_four_bytes_behind_it_for_each_that_it_corrects() {
    let mut packet = segment();
    packet.payload.len = 3;
    let plain = bytes_of(&packet, b"abc");
    for options in [&[][..], &[1; 8]] {
        packet.unparsed.set_ipv4_options(options).unwrap();
        let len = packet.len();
        for corrects in 0..=UnparsedOptions::MOST_CORRECTED {
            for zero_size in [false, true] {
                // Neither knows of the other.
                packet.unparsed.set_corrects(corrects);
                packet.unparsed.set_zero_size(zero_size);
                let options = if zero_size { options.len() as u32 } else { 0 };
                assert_eq!(packet.unparsed.corrects(), corrects);
                assert_eq!(packet.unparsed.is_zero_size(), options > 0);
                assert_eq!(packet.len(), len - options + 4 * u32::from(corrects));
                let bytes = bytes_of(&packet, b"abc");
                let (parsed, payload) = Packet::parse(&bytes).unwrap();
                assert_eq!((parsed.unparsed.corrects(), &bytes[payload]), (0, &b"abc"[..]));
            }
        }
        packet.unparsed.set_corrects(200);
        assert_eq!(packet.unparsed.corrects(), UnparsedOptions::MOST_CORRECTED);
        packet.unparsed.set_corrects(0);
        packet.unparsed.set_zero_size(false);
    }
    packet.unparsed.clear();
    assert_eq!((packet.unparsed, bytes_of(&packet, b"abc")), (UnparsedOptions::NONE, plain));
}
