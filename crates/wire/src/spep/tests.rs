//! The option on the wire, beside others.

use super::*;
use crate::{Body, Causes, Esp, Ip, PathFields, Segment};
use core::net::IpAddr;

const ESP: Esp = Esp { spi: 1, sequence: 2, iv: [3; 8] };
const BLOCKS: Spep = Spep { blocks: [(1, 2), (4, 0x01020304), (u32::MAX, 0)] };

fn packet(v6: bool) -> Packet {
    let address = |n: u8| match v6 {
        false => IpAddr::from([10, 0, 0, n]),
        true => IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]),
    };
    let body = Body::Tcp(Segment::default());
    Packet { ip: Ip::new(address(1), address(2)), body, ..Packet::BLANK }
}

fn fields() -> PathFields {
    let (forward, echoed) = (Causes::SURVIVES, Causes::SURVIVES);
    PathFields::Exact { forward, echoed }
}

#[test]
fn the_source_leaves_it_empty_and_the_base_station_writes_it() {
    let mut packet = packet(true);
    let len = packet.len();
    assert_eq!(Spep::of(&packet), None);
    assert!(Spep::put(&mut packet));
    assert_eq!((Spep::of(&packet), packet.len()), (Some(Spep::default()), len + Spep::LEN));
    assert!(packet.protect(ESP));
    BLOCKS.renew(&mut packet);
    assert_eq!(Spep::of(&packet), Some(BLOCKS));
    assert_eq!(packet.unprotect(), Some(ESP));
    assert_eq!(Spep::of(&packet), Some(BLOCKS));
}

#[test]
fn the_layout_is_that_of_the_standards() {
    let mut packet = packet(true);
    packet.body = Body::Esp(ESP);
    assert!(Spep::put(&mut packet));
    BLOCKS.renew(&mut packet);
    let mut bytes = Vec::new();
    packet.emit(&[], &mut bytes).unwrap();
    // IPv6, Destination Options, ESP.
    #[rustfmt::skip]
    let expected = [
        50, 3, 0x3e, 24, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4, 1, 2, 3, 4,
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 0, 0,
    ];
    assert_eq!((bytes[6], &bytes[40..72]), (60, &expected[..]));
    assert_eq!(bytes[72..], ESP.bytes());
    let (read, _) = Packet::parse(&bytes).unwrap();
    assert_eq!((read, Spep::of(&read)), (packet, Some(BLOCKS)));
}

#[test]
fn it_and_the_fields_of_cumulative_eten_are_not_taken_for_each_other() {
    let mut both = packet(true);
    both.body = Body::Esp(ESP);
    fields().put(true, &mut both.unparsed);
    assert_eq!(Spep::of(&both), None);
    assert!(Spep::put(&mut both));
    assert_eq!((both.unparsed.ip().len(), Spep::of(&both)), (56, Some(Spep::default())));
    BLOCKS.renew(&mut both);
    assert_eq!((Spep::of(&both), PathFields::of(&both)), (Some(BLOCKS), Some(fields())));
    let mut bytes = Vec::new();
    both.emit(&[], &mut bytes).unwrap();
    assert_eq!([bytes[6], bytes[40], bytes[64]], [0, 60, 50]);
    assert_eq!(Packet::parse(&bytes).unwrap().0, both);
    // Where nodes read the fields without their being on the wire, the option is on it.
    let mut beside = packet(true);
    fields().put(true, &mut beside.unparsed);
    beside.unparsed.set_zero_size(true);
    let len = beside.len();
    assert!(Spep::put(&mut beside));
    assert_eq!((beside.len(), PathFields::of(&beside)), (len + Spep::LEN, Some(fields())));

    let mut alone = packet(true);
    assert!(Spep::put(&mut alone));
    assert_eq!(PathFields::of(&alone), None);
    let before = alone;
    fields().renew(&mut alone);
    fields().put(true, &mut alone.unparsed);
    assert_eq!(alone, before);
}

#[test]
fn it_is_not_put_where_it_would_not_be_found() {
    let refused = |packet: Packet| {
        let mut with = packet;
        assert!(!Spep::put(&mut with));
        BLOCKS.renew(&mut with);
        assert_eq!(with, packet);
    };
    refused(packet(false));
    let mut twice = packet(true);
    assert!(Spep::put(&mut twice));
    assert!(!Spep::put(&mut twice) && Spep::of(&twice) == Some(Spep::default()));
    // Behind a routing header; behind two headers; behind too long ones.
    for (first, chain) in [
        (protocol::ROUTING, vec![0; 8]),
        (protocol::HOP_BY_HOP, [vec![protocol::ROUTING, 0], vec![0; 14]].concat()),
        (protocol::HOP_BY_HOP, [vec![0, 3], vec![0; 30]].concat()),
    ] {
        let mut other = packet(true);
        other.unparsed.set_ipv6_extensions(first, &chain).unwrap();
        refused(other);
    }
}

#[test]
fn an_option_that_does_not_end_within_its_header_is_none() {
    for (words, is_option) in [(0, false), (1, false), (2, false), (3, true)] {
        let mut chain = [0; 40];
        [chain[0], chain[1], chain[2], chain[3]] = [protocol::DESTINATION_OPTIONS, words, TYPE, 24];
        chain[8 * (1 + usize::from(words)) + 1] = 3 - words;
        let mut other = packet(true);
        other.unparsed.set_ipv6_extensions(protocol::DESTINATION_OPTIONS, &chain).unwrap();
        let before = other;
        BLOCKS.renew(&mut other);
        assert_eq!(
            (Spep::of(&other).is_some(), other != before),
            (is_option, is_option),
            "{words}"
        );
    }
}

#[test]
fn whatever_header_is_there_nothing_is_read_beyond_it() {
    let mut random = 1_u64;
    for len in [0, 8, 16, 24, 32, 40, 56] {
        for round in 0..2000 {
            let mut chain = [0; 56];
            for byte in &mut chain {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Small numbers, and those that mean something.
                *byte = [0, 1, 2, 3, 24, 43, 60, 0x3e][(random >> 61) as usize];
            }
            let mut other = packet(round % 2 == 0);
            let first = [0, 43, 60][round % 3];
            if other.unparsed.keep_ip(crate::Header::Extension, first, &chain[..len]).is_ok() {
                let found = Spep::of(&other);
                BLOCKS.renew(&mut other);
                assert_eq!(Spep::of(&other), found.map(|_| BLOCKS));
            }
        }
    }
}
