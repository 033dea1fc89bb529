use super::*;
use crate::{Body, Ip, Packet};
use proptest::prelude::*;

fn v4(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn v6(last: u16) -> IpAddr {
    IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last])
}

fn packet(message: Mobility, is_ipv6: bool) -> Packet {
    let ip = if is_ipv6 { Ip::new(v6(1), v6(2)) } else { Ip::new(v4(1), v4(2)) };
    Packet { ip, body: Body::Mobility(message), ..Packet::BLANK }
}

fn messages() -> [MobilityMessage; 8] {
    [
        MobilityMessage::Attach {
            other: Some(v6(1)),
            station: v4(2),
            previous: Some(v4(3)),
            incarnation: Some(9),
        },
        MobilityMessage::Attach { other: None, station: v6(2), previous: None, incarnation: None },
        MobilityMessage::Resume { outcome: Outcome::Complete, incarnation: 1 << 31 },
        MobilityMessage::Resume { outcome: Outcome::Lost, incarnation: 7 },
        MobilityMessage::Reset { mobile: (v4(1), 4000), fixed: (v4(9), 80), is_done: false },
        MobilityMessage::Reset { mobile: (v6(1), 4000), fixed: (v6(9), 80), is_done: true },
        MobilityMessage::Solicit { mobile: v6(1) },
        MobilityMessage::Advertise { station: v6(1) },
    ]
}

#[test]
fn every_message_is_read_as_it_was_written() {
    for message in messages() {
        for is_ipv6 in [false, true] {
            let message = Mobility { attachment: 1 << 40, message, tag: [7; 16] };
            let packet = packet(message, is_ipv6);
            let mut bytes = Vec::new();
            packet.emit(&[], &mut bytes).unwrap();
            assert_eq!(bytes.len() as u32, packet.len());
            assert_eq!(Packet::parse(&bytes).unwrap().0, packet);
        }
    }
}

#[test]
fn an_attach_message_fits_the_smallest_wireless_mtu() {
    // 128 octets (`yavatkar1994` §3.1), over IPv4.
    for message in messages() {
        assert!(packet(Mobility::new(1, message), false).len() <= 128);
    }
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let message = MobilityMessage::Resume { outcome: Outcome::Lost, incarnation: 7 };
    let mut bytes = Vec::new();
    let packet = packet(Mobility { attachment: 0x0102, message, tag: [9; 16] }, false);
    packet.emit(&[], &mut bytes).unwrap();
    let expected = b"\x01\x82\x01\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x07";
    assert_eq!(bytes[28..44], *expected);
    assert_eq!(bytes[44..], [9; 16]);
}

#[test]
fn the_tag_covers_every_field_and_the_mobile_host() {
    let all = messages().map(|message| Mobility::new(1, message).authenticated(v4(1)));
    for (n, one) in all.iter().enumerate() {
        assert!(all[..n].iter().all(|other| other != one));
    }
    let [first, ..] = messages();
    assert_ne!(Mobility::new(2, first).authenticated(v4(1)), all[0]);
    assert_ne!(Mobility::new(1, first).authenticated(v4(2)), all[0]);
}

#[test]
fn another_datagram_of_the_port_stays_a_datagram() {
    let mut bytes = Vec::new();
    let message = Mobility::new(
        1,
        MobilityMessage::Resume { outcome: Outcome::Complete, incarnation: 1 << 31 },
    );
    packet(message, false).emit(&[], &mut bytes).unwrap();
    let payload = bytes[28..].to_vec();
    for (at, wrong) in [(0, 2), (1, 9), (2, 5), (3, 1)] {
        let mut payload = payload.clone();
        payload[at] = wrong;
        assert_eq!(read(&payload), Body::Udp(Mobility::UDP), "{at}");
    }
    for len in 0..payload.len() {
        assert_eq!(read(&payload[..len]), Body::Udp(Mobility::UDP), "{len}");
    }
    assert_eq!(read(&payload), Body::Mobility(message));
}

/// What a datagram from and to the port, with this payload, is read as.
fn read(payload: &[u8]) -> Body {
    let mut packet = Packet { ip: Ip::new(v4(1), v4(2)), ..Packet::BLANK };
    packet.make_udp(Mobility::UDP);
    packet.payload.len = payload.len() as u32;
    let mut bytes = Vec::new();
    packet.emit(payload, &mut bytes).unwrap();
    Packet::parse(&bytes).unwrap().0.body
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_that_is_written_the_same_or_a_datagram(
        start in 0..8_usize, message in prop::sample::select(messages().to_vec()),
        noise in prop::collection::vec(any::<u8>(), 0..100), flips in prop::collection::vec((0..92_usize, any::<u8>()), 0..3),
    ) {
        let mut payload = Mobility::new(3, message).untagged();
        payload.extend_from_slice(&[0; Mobility::TAG]);
        if start == 0 {
            payload.extend(&noise);
        }
        for (at, flip) in flips {
            if let Some(byte) = payload.get_mut(at) {
                *byte ^= flip;
            }
        }
        for payload in [&payload, &noise] {
            if let Body::Mobility(message) = read(payload) {
                let mut bytes = Vec::new();
                packet(message, false).emit(&[], &mut bytes).unwrap();
                prop_assert_eq!(&bytes[28..], &payload[..]);
            }
        }
    }
}
