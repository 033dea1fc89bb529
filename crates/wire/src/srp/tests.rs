use super::*;
use crate::{Body, EmitError, Header, Ip, Packet, Quote, Udp};

const TOKEN: u32 = 0x0a0b_0c0d;

fn packet(v6: bool, pdu: Pdu) -> Packet {
    let address = |n: u16| match v6 {
        false => IpAddr::from([10, 0, 0, n as u8]),
        true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]),
    };
    let srp = Srp { source_port: 7000, destination_port: Srp::PORT, token: TOKEN, pdu };
    let ip = Ip::new(address(1), address(2));
    Packet { ip, body: Body::Srp(srp), ..Packet::BLANK }
}

/// The bytes behind the UDP header, of a packet with this payload.
fn bytes(pdu: Pdu, payload: &[u8]) -> Vec<u8> {
    let mut packet = packet(false, pdu);
    packet.payload.len = payload.len() as u32;
    let mut out = Vec::new();
    packet.emit(payload, &mut out).unwrap();
    assert_eq!(out.len(), packet.len() as usize);
    let (read, place) = Packet::parse(&out).unwrap();
    assert_eq!((read, &out[place]), (packet, payload));
    out.split_off(28)
}

fn segment(chunk: Chunk) -> Pdu {
    Pdu::Data(Segment { number: 0x0102_0304, copy: 2, stream: 0x0506, chunk })
}

fn sack() -> Sack {
    let mut bitmap = [0; Sack::MOST_BYTES / 4];
    bitmap[0] = 0x0102_0385;
    bitmap[1] = 0x11;
    Sack {
        cumulative: 0x0102_0304,
        latest: 0x0506_0708,
        limit: 0x090a_0b0c,
        span: 0x0d0e,
        start: 0x0f10,
        probe: 0x1112,
        stream: 0x1314,
        copy: 3,
        length: 5,
        is_prompt: true,
        is_probe_prompt: true,
        bitmap,
    }
}

#[test]
fn each_message_has_these_bytes() {
    let limits = Limits { segments: 0x0102, window: 0x0304_0506, streams: 0x0708 };
    let open = [0x11, 0, 1, 2, 10, 11, 12, 13, 3, 4, 5, 6, 7, 8];
    assert_eq!(bytes(Pdu::Open(limits), &[]), open);
    let mut opened = open;
    opened[0] = 0x12;
    assert_eq!(bytes(Pdu::Opened(limits), &[]), opened);
    let mut renew = [&open[..], &[9, 10, 11, 12]].concat();
    renew[0] = 0x17;
    assert_eq!(bytes(Pdu::Renew { first: 0x090a_0b0c, limits }, &[]), renew);
    assert_eq!(bytes(Pdu::Probe { number: 258 }, &[]), [0x15, 0, 1, 2, 10, 11, 12, 13]);
    let reset = Pdu::Reset { reason: Reason::Unknown };
    assert_eq!(bytes(reset, &[]), [0x16, 4, 0, 0, 10, 11, 12, 13]);
    let expected = [
        &[0x14, 5, 0x11, 0x12, 10, 11, 12, 13][..],
        &[1, 2, 3, 4, 5, 6, 7, 8, 0xd, 0xe, 0xf, 0x10, 0x13, 0x14, 0xc3, 0, 9, 10, 11, 12],
        &[0x85, 3, 2, 1, 0x11],
    ];
    assert_eq!(bytes(Pdu::Sack(sack()), &[]), expected.concat());
}

#[test]
fn each_chunk_has_these_bytes() {
    let check = |chunk, first: u8, word: [u8; 4], rest: &[u8], payload: &[u8]| {
        let header = [0x13, first, 5, 6, 10, 11, 12, 13, 1, 2, 3, 4];
        let expected = [&header[..], &word, rest, payload].concat();
        assert_eq!(bytes(segment(chunk), payload), expected, "{chunk:?}");
    };
    let offset = 0x1122_3344;
    check(Chunk::Data { offset, end: false }, 0x02, [0x11, 0x22, 0x33, 0x44], &[], &[7, 8]);
    check(Chunk::Data { offset, end: true }, 0x82, [0x11, 0x22, 0x33, 0x44], &[], &[]);
    check(Chunk::Accept, 0x22, [0; 4], &[], &[]);
    check(Chunk::Credit { limit: offset }, 0x32, [0x11, 0x22, 0x33, 0x44], &[], &[]);
    check(Chunk::Reset { reason: Reason::Refused }, 0x42, [0, 0, 0, 1], &[], &[]);
    check(Chunk::Finished, 0x52, [0; 4], &[], &[]);
    let ends = Ends {
        client: IpAddr::from([1, 2, 3, 4]),
        server: IpAddr::from([5, 6, 7, 8]),
        client_port: 0x090a,
        server_port: 0x0b0c,
    };
    let rest = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    check(Chunk::Open(ends), 0x12, [0, 0, 0, 4], &rest, &[]);
    let client = IpAddr::from([0x0102, 0, 0, 0, 0, 0, 0, 3]);
    let v6 = Ends { client, server: client, ..ends };
    let address = [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    let v6_rest = [&address[..], &address, &[9, 10, 11, 12]].concat();
    check(Chunk::Open(v6), 0x12, [0, 0, 0, 6], &v6_rest, &[]);
    let mut has = Continue { received: offset, limit: 0x0506_0708, is_whole: false, ends: None };
    let word = offset.to_be_bytes();
    check(Chunk::Continue(has), 0x62, word, &[5, 6, 7, 8], &[]);
    has.is_whole = true;
    check(Chunk::Continue(has), 0xe2, word, &[5, 6, 7, 8], &[]);
    for (ends, rest) in [(ends, &rest[..]), (v6, &v6_rest)] {
        has.ends = Some(ends);
        check(Chunk::Continue(has), 0xf2, word, &[&[5, 6, 7, 8], rest].concat(), &[]);
    }
}

/// What a datagram to these ports with this payload is.
fn read(ports: [u16; 2], payload: &[u8]) -> Body {
    let [source_port, destination_port] = ports;
    let body = Body::Udp(Udp { source_port, destination_port });
    let mut packet = Packet { body, ..packet(false, Pdu::Probe { number: 1 }) };
    packet.payload.len = payload.len() as u32;
    let mut out = Vec::new();
    packet.emit(payload, &mut out).unwrap();
    let (read, place) = Packet::parse(&out).unwrap();
    if matches!(read.body, Body::Udp(_)) {
        assert_eq!((read, &out[place]), (packet, payload));
    }
    read.body
}

#[test]
fn a_datagram_of_another_port_version_length_or_type_is_somebody_elses() {
    let (client, server) = (IpAddr::from([1, 2, 3, 4]), IpAddr::from([5, 6, 7, 8]));
    let ends = Ends { client, server, client_port: 1, server_port: 2 };
    let has = Continue { received: 1, limit: 2, is_whole: false, ends: None };
    let mut every = vec![
        bytes(Pdu::Open(Limits { segments: 1, window: 2, streams: 3 }), &[]),
        bytes(Pdu::Probe { number: 1 }, &[]),
        bytes(Pdu::Reset { reason: Reason::Full }, &[]),
        bytes(Pdu::Sack(sack()), &[]),
        bytes(segment(Chunk::Accept), &[]),
        bytes(segment(Chunk::Credit { limit: 1 }), &[]),
        bytes(Pdu::Renew { first: 1, limits: Limits { segments: 1, window: 2, streams: 3 } }, &[]),
        bytes(segment(Chunk::Continue(has)), &[]),
        bytes(segment(Chunk::Continue(Continue { ends: Some(ends), ..has })), &[]),
    ];
    for pdu in &every {
        let is_srp = |ports, bytes: &[u8]| matches!(read(ports, bytes), Body::Srp(_));
        assert!(is_srp([1, Srp::PORT], pdu) && is_srp([Srp::PORT, 1], pdu));
        assert!(!is_srp([1, Srp::PORT - 1], pdu), "another port");
        for first in [0, pdu[0] & 0xf, 0x20 | pdu[0] & 0xf, 0x10, 0x18, 0x1f] {
            let other = [&[first], &pdu[1..]].concat();
            assert!(!is_srp([1, Srp::PORT], &other), "first byte {first:#x}");
        }
        for len in 0..pdu.len() {
            assert!(!is_srp([1, Srp::PORT], &pdu[..len]), "{pdu:?} up to {len}");
        }
        assert!(!is_srp([1, Srp::PORT], &[pdu, &[0][..]].concat()), "{pdu:?} and more");
    }
    // Data may be of any length, but not without its header.
    every.clear();
    let data = bytes(segment(Chunk::Data { offset: 0, end: false }), &[1, 2, 3]);
    for len in 0..data.len() {
        let is_srp = matches!(read([1, Srp::PORT], &data[..len]), Body::Srp(_));
        assert_eq!(is_srp, len >= Srp::DATA, "{len}");
    }
}

#[test]
fn in_a_channel_a_pdu_follows_thirty_bytes_of_0() {
    let pdu = segment(Chunk::Data { offset: 0, end: false });
    let alone = bytes(pdu, &[8, 9]);
    let mut packet = packet(false, pdu);
    let Body::Srp(srp) = &mut packet.body else { unreachable!("it is made so") };
    srp.destination_port = Srp::CHANNEL_PORT;
    packet.payload.len = 2;
    let mut out = Vec::new();
    packet.emit(&[8, 9], &mut out).unwrap();
    assert_eq!(packet.len() as usize, out.len());
    assert_eq!(out[28..], [&[0; 30][..], &alone].concat());
    let (found, place) = Packet::parse(&out).unwrap();
    assert_eq!((found, &out[place]), (packet, &[8, 9][..]));
    // What is encrypted is no PDU.
    let mut encrypted = out[28..].to_vec();
    encrypted[29] = 1;
    for datagram in [&encrypted[..], &out[28..57], &alone] {
        assert!(matches!(read([1, Srp::CHANNEL_PORT], datagram), Body::Udp(_)));
    }
}

#[test]
fn what_has_no_format_is_not_written() {
    let emit = |packet: &Packet, payload: &[u8]| packet.emit(payload, &mut Vec::new());
    let mut other = packet(false, Pdu::Probe { number: 1 });
    let Body::Srp(srp) = &mut other.body else { unreachable!("it is made so") };
    srp.destination_port = 7;
    let (header, expected) = (Header::Srp, Srp::PORT);
    assert_eq!(emit(&other, &[]), Err(EmitError::Port { header, found: 7, expected }));
    let mixed = Ends {
        client: IpAddr::from([1, 2, 3, 4]),
        server: IpAddr::from([0; 16]),
        client_port: 1,
        server_port: 2,
    };
    let error = emit(&packet(false, segment(Chunk::Open(mixed))), &[]);
    assert_eq!(error, Err(EmitError::Versions { header }));
    let mut probe = packet(false, Pdu::Probe { number: 1 });
    probe.payload.len = 1;
    assert!(matches!(emit(&probe, &[0]), Err(EmitError::TooLong { .. })));
    let shorter = Sack { length: 4, ..sack() };
    assert!(matches!(emit(&packet(false, Pdu::Sack(shorter)), &[]), Err(EmitError::Field { .. })));
    for copy in [0, 16] {
        let chunk = Chunk::Accept;
        let pdu = Pdu::Data(Segment { number: 1, copy, stream: 1, chunk });
        assert!(matches!(emit(&packet(false, pdu), &[]), Err(EmitError::Field { .. })));
    }
}

#[test]
fn a_quote_and_a_flow_have_its_ports() {
    for v6 in [false, true] {
        let mut data = packet(v6, segment(Chunk::Data { offset: 0, end: false }));
        data.payload.len = 100;
        let quote = Quote::of(&data).unwrap();
        assert_eq!((quote.protocol, quote.destination_port), (17, Srp::PORT));
        assert_eq!(u32::from(quote.len), data.len());
        assert_eq!(quote.seq.0 >> 16, 8 + Srp::DATA as u32 + 100);
        let mut bytes = Vec::new();
        data.emit(&[0; 100], &mut bytes).unwrap();
        assert_eq!(crate::FlowKey::read(&bytes), data.flow_key());
    }
}
