//! The numbers of associations.

use super::*;
use base::Seed;
use host::Outbox;
use wire::Ip;

/// The SPI and the sequence number of the next packet of a connection.
fn next(protector: &mut dyn Middlebox) -> (u32, u32) {
    let [source, destination] = [1, 2].map(|n| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]));
    let mut packet = Packet { ip: Ip::new(source, destination), ..Packet::BLANK };
    packet.make_tcp();
    let outbox = &mut Outbox::default();
    let verdict = protector.packet(Time::ZERO, None, &mut packet, &mut outbox.context());
    assert_eq!(verdict, Verdict::Forward);
    let esp = packet.esp().unwrap();
    // RFC 4106 §3.1: it never repeats with the keys of the association.
    assert_eq!(esp.iv, u64::from(esp.sequence).to_be_bytes());
    (esp.spi, esp.sequence)
}

#[test]
fn an_association_whose_numbers_are_used_up_is_followed_by_another() {
    let settings =
        TransportEsp { first_spi: 300, first_sequence: u32::MAX - 1, ..Default::default() };
    let mut protector = settings.of_all_packets(Seed(1).stream("esp"));
    let numbers = [0; 4].map(|_| next(&mut *protector));
    let (last, first) = (u32::MAX, u32::MAX - 1);
    assert_eq!(numbers, [(300, first), (300, last), (301, first), (301, last)]);
}
