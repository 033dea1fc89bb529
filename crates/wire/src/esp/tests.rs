use super::*;
use crate::{
    CorruptionNotice, FlowKey, Icmp, Ip, Payload, Ports, Quote, Timestamps, UnparsedOptions,
    Vouched,
};

const ESP: Esp = Esp { spi: 0x01020304, sequence: 0x05060708, iv: [9, 10, 11, 12, 13, 14, 15, 16] };

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
        let mut headers = Vec::new();
        assert_eq!(packet.emit_headers(&mut headers), Ok(None));
        assert_eq!(headers, bytes[..at + 16]);
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

/// A packet of TCP with 7 bytes of payload, and options of 12 and of 4 bytes, one of them unknown.
fn segment(v6: bool) -> Packet {
    let mut segment = Segment { source_port: 9, destination_port: 80, ..Segment::default() };
    segment.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    let mut packet = between(v6, Body::Tcp(segment));
    packet.unparsed.set_tcp_options(&[99, 2]).unwrap();
    packet.payload = Payload { stream: 3, offset: 4, len: 7 };
    packet
}

#[test]
fn a_protected_packet_has_the_length_that_it_has_on_the_wire() {
    for (v6, ip) in [(false, 20), (true, 40)] {
        let mut packet = segment(v6);
        assert!(packet.protect(ESP));
        // 20 + 16 + 7 bytes and 2 of the trailer are padded to 48; 16 before, 16 behind.
        assert_eq!(packet.len(), ip + 16 + 48 + 16);
        packet.payload.len += 4;
        assert_eq!(packet.len(), ip + 16 + 52 + 16);
        let mut datagram = between(v6, Body::Udp(Udp { source_port: 1, destination_port: 2 }));
        datagram.payload.len = 1;
        assert!(datagram.protect(ESP));
        // 8 + 1 and 2 are padded to 12.
        assert_eq!(datagram.len(), ip + 16 + 12 + 16);
    }
}

#[test]
fn what_was_protected_is_unprotected_as_it_was() {
    for v6 in [false, true] {
        let udp = between(v6, Body::Udp(Udp { source_port: 1, destination_port: 2 }));
        for plain in [segment(v6), udp] {
            let mut packet = plain;
            assert_eq!((packet.esp(), packet.unprotect()), (None, None));
            assert!(packet.protect(ESP));
            let protected = packet;
            assert_ne!(protected, plain);
            assert!(!packet.protect(Esp { sequence: 9, ..ESP }), "it is protected already");
            assert_eq!(
                (packet, packet.esp(), packet.payload),
                (protected, Some(ESP), plain.payload)
            );
            assert_eq!((packet.unprotect(), packet), (Some(ESP), plain));
        }
    }
}

#[test]
fn nodes_on_the_path_do_not_see_the_transport() {
    for v6 in [false, true] {
        let mut packet = segment(v6);
        packet.ip.flow_label = 7;
        assert!(packet.protect(ESP));
        assert_eq!((packet.ports(), packet.tcp_mut()), (Ports::NONE, None));
        let FlowKey { protocol, ports, label, .. } = packet.flow_key();
        assert_eq!((protocol, ports, label), (50, Ports::new(0x0102, 0x0304), 7));
        // They see the same in a packet that they have read.
        let mut read = between(v6, Body::Esp(ESP));
        read.ip.flow_label = 7;
        assert_eq!((read.flow_key(), read.esp()), (packet.flow_key(), packet.esp()));
        read.payload.len = packet.len() - read.len();
        assert_eq!(Quote::of(&packet), Quote::of(&read));
        // Without keys, it cannot be written.
        let mut bytes = vec![1];
        assert_eq!(packet.emit(&[0; 7], &mut bytes), Err(EmitError::NoKeys));
        assert_eq!(bytes, [1]);
    }
}

#[test]
fn two_protected_packets_differ_if_their_numbers_do() {
    let (mut one, mut other) = (segment(true), segment(true));
    assert!(one.protect(ESP) && other.protect(Esp { sequence: ESP.sequence + 1, ..ESP }));
    assert_ne!(one, other);
}

#[test]
fn unknown_tcp_options_may_leave_no_room_for_the_header() {
    for (len, has_room) in [(24, true), (25, false), (40, false)] {
        let mut options = vec![0xaa; len];
        options[..2].copy_from_slice(&[99, len as u8]);
        let mut packet = between(true, Body::Tcp(Segment::default()));
        packet.unparsed.set_tcp_options(&options).unwrap();
        let plain = packet;
        assert_eq!(packet.protect(ESP), has_room, "{len}");
        assert_eq!(packet.unprotect().is_some(), has_room);
        assert_eq!(packet, plain);
    }
    // Nor do they take it from a header that is there.
    let mut packet = segment(true);
    assert!(packet.protect(ESP));
    let mut options = [0; 26];
    options[..2].copy_from_slice(&[99, 26]);
    assert!(packet.unparsed.set_tcp_options(&options).is_err());
    assert!(packet.unparsed.keep_tcp(&options[..23]).is_err());
    assert!(packet.unparsed.keep_tcp(&options[..22]).is_ok());
    assert_eq!(packet.esp(), Some(ESP));
    packet.unparsed.set_tcp_options(&[]).unwrap();
    assert_eq!(packet.esp(), Some(ESP));
    // A packet that becomes another is not protected any more.
    packet.make_tcp();
    assert_eq!((packet.esp(), packet.unparsed), (None, UnparsedOptions::NONE));
}
