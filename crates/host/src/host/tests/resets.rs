//! Packets of no connection: resets, and ICMP errors.

use super::*;
use core::net::Ipv4Addr;
use wire::{Payload, Quote};

/// The answer of a host without connections to a segment.
fn answer(host: &mut Host<Traffic>, packet: &Packet) -> Option<Segment> {
    host.handle_packet(Time::ZERO, packet);
    let answers = sent(host, Time::ZERO);
    assert!(answers.len() <= 1);
    let answer = answers.first()?;
    assert_eq!((answer.ip.source, answer.ip.destination), (SERVER, CLIENT));
    assert_eq!(answer.payload, Payload::default());
    Some(tcp_of(answer))
}

/// A segment from the client to port 80 with these control bits and ten bytes.
fn segment(flags: Flags) -> Packet {
    let mut packet = syn(Time::ZERO, &mut host(CLIENT));
    packet.payload = Payload { stream: 0, offset: 0, len: 10 };
    changed(&packet, |segment| {
        segment.flags = flags;
        segment.seq = SeqNumber(u32::MAX);
        segment.ack = SeqNumber(777);
    })
}

#[test]
fn a_segment_of_no_connection_is_reset() {
    // RFC 9293 §3.10.7.1
    for (flags, reset) in [
        (Flags::ACK, (Flags::RST, 777, 0)),
        (Flags::SYN | Flags::ACK, (Flags::RST, 777, 0)),
        (Flags::FIN | Flags::ACK, (Flags::RST, 777, 0)),
        (Flags::empty(), (Flags::RST | Flags::ACK, 0, 9)),
        (Flags::SYN, (Flags::RST | Flags::ACK, 0, 10)),
        (Flags::SYN | Flags::FIN, (Flags::RST | Flags::ACK, 0, 11)),
    ] {
        let mut closed = host(SERVER);
        let answer = answer(&mut closed, &segment(flags)).unwrap();
        assert_eq!((answer.flags, answer.seq.0, answer.ack.0), reset, "{flags:?}");
        assert_eq!(answer.source_port, 80);
        assert_eq!((closed.statistics().no_connection, closed.statistics().resets), (1, 1));
    }
}

#[test]
fn a_reset_is_not_answered() {
    for flags in [Flags::RST, Flags::RST | Flags::ACK, Flags::RST | Flags::SYN] {
        for mut host in [host(SERVER), server(80)] {
            assert_eq!(answer(&mut host, &segment(flags)), None);
            assert_eq!((host.statistics().no_connection, host.statistics().resets), (1, 0));
        }
    }
}

#[test]
fn a_listener_resets_acknowledgments_and_drops_invalid_segments() {
    // RFC 9293 §3.10.7.2
    for flags in [Flags::ACK, Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK] {
        let answer = answer(&mut server(80), &segment(flags)).unwrap();
        assert_eq!((answer.flags, answer.seq.0), (Flags::RST, 777));
    }
    for flags in [Flags::empty(), Flags::FIN, Flags::FIN | Flags::SYN] {
        assert_eq!(answer(&mut server(80), &segment(flags)), None);
    }
}

#[test]
fn a_refused_connection_ends_at_once() {
    let (mut client, mut server) = (host(CLIENT), host(SERVER));
    client.open(transfer(Time::ZERO, 80, 0, 1));
    run_until(Time::ZERO, &mut client, &mut server);
    assert!(client.is_quiet());
}

#[test]
fn what_comes_for_a_closed_connection_is_reset() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    let syn = syn(Time::ZERO, &mut client);
    server.handle_packet(Time::ZERO, &syn);
    converse(Time::ZERO, &mut client, &mut server);
    assert_eq!(server.open_connections(), 0);
    let late = changed(&syn, |segment| {
        segment.flags = Flags::ACK;
        segment.ack = SeqNumber(5);
    });
    assert_eq!(answer(&mut server, &late).map(|answer| answer.seq), Some(SeqNumber(5)));
}

#[test]
fn resets_are_limited_per_second_and_can_be_turned_off() {
    for (resets, expected) in [(3, 3), (1, 1), (0, 0)] {
        let mut host = host(SERVER);
        host.set(Settings { resets, ..Settings::default() });
        let mut flood = |at: u64| {
            (0..10).for_each(|_| host.handle_packet(millis(at), &segment(Flags::ACK)));
            sent(&mut host, millis(at)).len() as u64
        };
        assert_eq!([5, 999, 1005, 1006].map(&mut flood), [expected, 0, expected, 0]);
        let statistics = host.statistics();
        assert_eq!(
            (statistics.resets, statistics.resets_limited),
            (2 * expected, 40 - 2 * expected)
        );
    }
}

#[test]
fn what_no_single_host_can_have_sent_is_ignored() {
    // RFC 9293 §3.9.2, MUST-57 and MUST-63
    for source in [Ipv4Addr::BROADCAST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(224, 0, 0, 1)] {
        for flags in [Flags::SYN, Flags::ACK] {
            let mut server = server(80);
            let mut packet = segment(flags);
            packet.ip.source = IpAddr::V4(source);
            assert_eq!(answer(&mut server, &packet), None);
            assert_eq!((server.connections().count(), server.statistics().no_connection), (0, 1));
        }
    }
}

/// A client that has sent a SYN, and an ICMP error about that.
fn unreachable(code: u8) -> (Host<Traffic>, Packet) {
    let mut client = host(CLIENT);
    let syn = syn(Time::ZERO, &mut client);
    let mut error = Packet::BLANK;
    error.ip = Ip::new(SERVER, CLIENT);
    let quote = Quote::of(&syn).unwrap();
    error.body = Body::Icmp(Icmp::Unreachable { code, quote });
    (client, error)
}

#[test]
fn an_icmp_error_reaches_the_connection_whose_segment_it_quotes() {
    // RFC 5461 §2.1: 0 net, 1 host; 2 protocol, 3 port.
    for (code, ends) in [(0, false), (1, false), (2, true), (3, true)] {
        let (mut client, error) = unreachable(code);
        client.handle_packet(millis(1), &error);
        assert!(sent(&mut client, millis(1)).is_empty());
        assert_eq!(client.is_quiet(), ends, "code {code}");
        assert_eq!(client.statistics().unmatched, 0);
    }
}

#[test]
fn an_icmp_error_about_what_was_never_sent_is_ignored() {
    let (_, error) = unreachable(3);
    let Body::Icmp(Icmp::Unreachable { quote, .. }) = error.body else { panic!("not that") };
    for (quote, unmatched) in [
        (Quote { source_port: 1, ..quote }, 1),
        (Quote { destination_port: 1, ..quote }, 1),
        (Quote { destination: CLIENT, ..quote }, 1),
        (Quote { source: SERVER, ..quote }, 1),
        (Quote { protocol: 17, ..quote }, 1),
        (Quote { seq: quote.seq + 1, ..quote }, 0), // Its connection's to judge (RFC 5927 §4.1).
    ] {
        let (mut client, mut error) = unreachable(3);
        error.body = Body::Icmp(Icmp::Unreachable { code: 3, quote });
        client.handle_packet(millis(1), &error);
        assert_eq!(client.open_connections(), 1);
        assert_eq!(client.statistics().unmatched, unmatched);
    }
}

#[test]
fn fragments_and_what_is_no_packet_are_dropped_and_counted() {
    let mut bytes = Vec::new();
    segment(Flags::ACK).emit(&[7; 10], &mut bytes).unwrap();
    let mut host = host(SERVER);
    // More fragments follow, at an offset, and the checksum moves along (RFC 1624); then what is cut
    // off, and nothing at all.
    let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
    bytes[6..8].copy_from_slice(&0x2001_u16.to_be_bytes());
    let less = 0x2001 - 0x4000_i32; // DF was set.
    let moved = (i32::from(!checksum) + less).rem_euclid(0xffff) as u16;
    bytes[10..12].copy_from_slice(&(!moved).to_be_bytes());
    for bytes in [bytes.as_slice(), &bytes[..19], &[]] {
        host.refuse(&Packet::parse(bytes).unwrap_err());
    }
    let statistics = host.statistics();
    assert_eq!((statistics.fragments, statistics.malformed, statistics.no_connection), (1, 2, 0));
}
