use super::*;
use crate::{Body, Ip, Packet, ParseError, Payload};

fn packet(message: TfrcMessage, len: u32) -> Packet {
    let (source_port, destination_port) = match message {
        TfrcMessage::Data { .. } => (Tfrc::PORT, 5001),
        TfrcMessage::Feedback { .. } => (5001, Tfrc::PORT),
    };
    let body = Body::Tfrc(Tfrc { source_port, destination_port, message });
    let payload = Payload { len, ..Payload::default() };
    let ip = Ip::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    Packet { ip, body, payload, ..Packet::BLANK }
}

const DATA: TfrcMessage =
    TfrcMessage::Data { sequence: 0x0102_0304, timestamp: 0x0506_0708, round_trip: 0x09_0a0b };
const FEEDBACK: TfrcMessage = TfrcMessage::Feedback {
    timestamp: 0x0102_0304,
    delay: 0x05_0607,
    receive_rate: 0x0809_0a0b,
    loss_event_rate: Probability(0x0c0d_0e0f),
};

fn emitted(packet: &Packet, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(payload, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_bytes_are_as_documented() {
    let data = emitted(&packet(DATA, 2), &[0xaa, 0xbb]);
    let expected = [0x11, 9, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8, 0xaa, 0xbb];
    assert_eq!(data[28..], expected);
    assert_eq!(data.len() as u32, packet(DATA, 2).len());
    let feedback = emitted(&packet(FEEDBACK, 0), &[]);
    let expected = [0x12, 5, 6, 7, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15];
    assert_eq!(feedback[28..], expected);
}

#[test]
fn what_is_no_message_stays_a_datagram() {
    for message in [DATA, FEEDBACK] {
        let real = packet(message, 0);
        let Body::Tfrc(tfrc) = real.body else { unreachable!("it was made so") };
        let bytes = emitted(&real, &[]).split_off(28);
        let udp = Udp { source_port: tfrc.source_port, destination_port: tfrc.destination_port };
        assert_eq!(Tfrc::parse(udp, &bytes), Some((tfrc, bytes.len())));
        // Cut short, of another version or type, or at other ports.
        (0..bytes.len()).for_each(|len| assert_eq!(Tfrc::parse(udp, &bytes[..len]), None));
        for first in [0x01, 0x21, 0x10, 0x13, 0x1f] {
            assert_eq!(Tfrc::parse(udp, &[&[first], &bytes[1..]].concat()), None);
        }
        let elsewhere = Udp { source_port: 5001, destination_port: 5002 };
        assert_eq!(Tfrc::parse(elsewhere, &bytes), None);
    }
    // Feedback with something behind it.
    let udp = Udp { source_port: 5001, destination_port: Tfrc::PORT };
    let mut long = emitted(&packet(FEEDBACK, 0), &[]).split_off(28);
    long.push(0);
    assert_eq!(Tfrc::parse(udp, &long), None);
}

#[test]
fn what_cannot_be_told_is_not_written() {
    let mut out = Vec::new();
    let late = TfrcMessage::Data { sequence: 0, timestamp: 0, round_trip: Tfrc::LONGEST + 1 };
    assert!(matches!(packet(late, 0).emit(&[], &mut out), Err(EmitError::Field { .. })));
    assert!(matches!(packet(FEEDBACK, 1).emit(&[0], &mut out), Err(EmitError::TooLong { .. })));
    let mut elsewhere = packet(DATA, 0);
    if let Body::Tfrc(tfrc) = &mut elsewhere.body {
        tfrc.source_port = 1;
    }
    assert!(matches!(elsewhere.emit(&[], &mut out), Err(EmitError::Port { .. })));
    assert!(out.is_empty());
}

#[test]
fn damage_is_found_by_the_checksum() {
    let bytes = emitted(&packet(FEEDBACK, 0), &[]);
    for place in 28..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        let found = Packet::parse(&damaged);
        assert!(matches!(found, Err(ParseError::Checksum { header: Header::Udp, .. })), "{place}");
    }
}
