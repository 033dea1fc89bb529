//! Packets and bytes are the same thing; any bytes are a packet or a typed error.
//! `PROPTEST_CASES` says how many of each, and a failure prints the packet.

use crate::common::packet;
use proptest::prelude::*;
use wire::{Body, FlowKey, LinkReport, Packet, ParseError, Payload, Ports, Srp, Udp};

fn emitted(packet: &Packet, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(payload, &mut bytes).expect("the packet can be written");
    bytes
}

/// What is read can be written, and is then read as the same.
fn settles(bytes: &[u8]) -> Result<Packet, ParseError> {
    let (packet, payload) = Packet::parse(bytes)?;
    let again = emitted(&packet, &bytes[payload.clone()]);
    let (second, place) = Packet::parse(&again).expect("it was read before");
    assert_eq!(second, packet);
    assert_eq!(again[place], bytes[payload]);
    assert_eq!(again.len(), packet.len() as usize);
    Ok(packet)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::common::cases(), ..ProptestConfig::default() })]

    #[test]
    fn a_packet_survives_the_wire((packet, payload) in packet()) {
        let bytes = emitted(&packet, &payload);
        prop_assert_eq!(bytes.len(), packet.len() as usize);
        let (parsed, place) = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(parsed, packet);
        prop_assert_eq!(&bytes[place], &payload[..]);
    }

    #[test]
    fn the_report_of_a_damaged_frame_says_what_was_in_its_headers((packet, payload) in packet()) {
        let mut report = Vec::new();
        LinkReport::write_damaged(&emitted(&packet, &payload), &mut report);
        let expected = match packet.body {
            Body::Tcp(_) => Some(Box::new(packet)),
            _ => None,
        };
        prop_assert_eq!(LinkReport::parse(&report), Ok(LinkReport::Damaged(expected)));
    }

    #[test]
    fn a_report_of_any_bytes_is_read_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        is_one in any::<bool>(),
    ) {
        if is_one && bytes.len() > 1 {
            bytes[0] = 1;
            bytes[1] &= 1;
        }
        if let Ok(LinkReport::Damaged(Some(packet))) = LinkReport::parse(&bytes) {
            prop_assert!(matches!(packet.body, Body::Tcp(_)) && packet.len() <= 65_575);
        }
    }

    #[test]
    fn a_packet_and_its_bytes_are_of_the_same_flow((packet, payload) in packet()) {
        prop_assert_eq!(FlowKey::read(&emitted(&packet, &payload)), packet.flow_key());
    }

    #[test]
    fn all_fragments_of_a_packet_are_of_the_same_flow(
        (packet, payload) in packet(),
        offset in 0u16..0x1fff,
        more in any::<bool>(),
    ) {
        let mut bytes = emitted(&packet, &payload);
        let whole = packet.flow_key();
        if packet.ip.source.is_ipv4() {
            let field = offset | u16::from(more || offset == 0) << 13;
            bytes[6..8].copy_from_slice(&field.to_be_bytes());
        } else {
            // RFC 8200 §4.5: between the IPv6 header and the rest.
            let mut header = [bytes[6], 0, 0, 0, 1, 2, 3, 4];
            header[2..4].copy_from_slice(&(offset << 3 | u16::from(more)).to_be_bytes());
            bytes[6] = 44;
            bytes.splice(40..40, header);
        }
        let key = FlowKey::read(&bytes);
        let first = if packet.ip.source.is_ipv4() { whole.protocol } else { bytes[40] };
        let label = if first == 50 { whole.label } else { 0 };
        prop_assert_eq!(key, FlowKey { ports: Ports::NONE, protocol: first, label, ..whole });
    }

    #[test]
    fn any_bytes_have_a_flow(bytes in prop::collection::vec(any::<u8>(), 0..100), v6: bool) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = if v6 { 0x60 } else { 0x40 } | *first & 0xf;
        }
        let key = FlowKey::read(&bytes);
        let header = if v6 { 40 } else { 20 };
        prop_assert!(key == FlowKey::UNKNOWN || bytes.len() >= header);
    }

    #[test]
    fn what_follows_a_packet_is_ignored((packet, payload) in packet(), more in any::<[u8; 3]>()) {
        let mut bytes = emitted(&packet, &payload);
        bytes.extend_from_slice(&more);
        prop_assert_eq!(Packet::parse(&bytes).unwrap().0, packet);
    }

    #[test]
    fn a_packet_that_is_cut_short_is_refused(
        (packet, payload) in packet(),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = emitted(&packet, &payload);
        let left = &bytes[..cut.index(bytes.len())];
        let error = Packet::parse(left).unwrap_err();
        prop_assert!(matches!(error, ParseError::Truncated { .. }), "{}", error);
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = settles(&bytes);
    }

    #[test]
    fn damage_is_seen_or_harmless(
        (packet, payload) in packet(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = emitted(&packet, &payload);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = settles(&bytes);
    }

    /// Whatever a datagram of SRP's port carries is written as it was read.
    #[test]
    fn any_payload_at_the_port_of_srp_keeps_its_bytes(
        kind in 0u8..8,
        payload in prop::collection::vec(any::<u8>(), 0..100),
        flips in prop::collection::vec(0usize..160, 0..3),
        (real, real_payload) in packet(),
    ) {
        let udp = Udp { source_port: 7, destination_port: Srp::PORT };
        let mut payload = payload;
        if let Some(first) = payload.first_mut() {
            *first = Srp::VERSION << 4 | kind;
        }
        // Or a real one with some bits flipped.
        if let Body::Srp(_) = real.body {
            let start = (real.ip.len() + real.unparsed.ip().len()) + Udp::HEADER;
            payload = emitted(&real, &real_payload).split_off(start);
            for bit in flips {
                if let Some(byte) = payload.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
        }
        let ip = wire::Ip::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let len = payload.len() as u32;
        let payload_of = Payload { len, ..Payload::default() };
        let packet = Packet { ip, body: Body::Udp(udp), payload: payload_of, ..Packet::BLANK };
        let bytes = emitted(&packet, &payload);
        let (read, place) = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(emitted(&read, &bytes[place]), bytes);
    }

    #[test]
    fn a_packet_survives_a_snapshot((packet, _) in packet()) {
        let text = serde_json::to_string(&packet).unwrap();
        prop_assert_eq!(serde_json::from_str::<Packet>(&text).unwrap(), packet);
    }

    #[test]
    fn a_protected_packet_survives_the_wire(
        (packet, payload) in packet(),
        (esp, high) in any::<((u32, u32, [u8; 8]), u32)>(),
        algorithm in prop::sample::select(&wire::EspAlgorithm::ALL[..]),
        is_extended: bool,
    ) {
        let material = vec![7; algorithm.material()];
        let keys = wire::EspKeys::new(algorithm, &material).unwrap();
        let keys = if is_extended { keys.extended() } else { keys };
        let (spi, sequence, iv) = esp;
        let mut packet = packet;
        if !packet.protect(wire::Esp { spi, sequence, iv }) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        keys.seal(&packet, high, &payload, &mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), packet.len() as usize);
        prop_assert_eq!(FlowKey::read(&bytes), packet.flow_key());
        let (read, place) = Packet::parse(&bytes).unwrap();
        let sealed = &mut bytes[place];
        let (opened, place) = keys.open(&read, high, sealed).unwrap();
        // The last header that is not encrypted says that ESP follows.
        let chain = |packet: &Packet| (packet.unparsed.first_extension(), packet.unparsed.ip().len());
        prop_assert_eq!(chain(&opened), chain(&packet));
        prop_assert_eq!(&sealed[place], &payload[..]);
        let mut expected = packet;
        expected.unparsed = opened.unparsed;
        prop_assert_eq!(opened, expected);
        prop_assert_eq!(opened.unparsed.tcp_options(), packet.unparsed.tcp_options());
        prop_assert_eq!(opened.esp(), packet.esp());
    }

    #[test]
    fn a_protected_packet_survives_a_snapshot_and_is_unprotected_as_it_was(
        (packet, _) in packet(),
        (spi, sequence, iv) in any::<(u32, u32, [u8; 8])>(),
    ) {
        let esp = wire::Esp { spi, sequence, iv };
        let mut protected = packet;
        if protected.protect(esp) {
            let text = serde_json::to_string(&protected).unwrap();
            prop_assert_eq!(serde_json::from_str::<Packet>(&text).unwrap(), protected);
            prop_assert_eq!(protected.unprotect(), Some(esp));
        }
        prop_assert_eq!(protected, packet);
    }
}
