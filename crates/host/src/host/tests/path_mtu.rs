//! Path MTUs: ICMP messages that are true, and that are forged.

use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The ICMP message of a router whose next link takes `mtu` bytes, about this packet.
fn too_big(packet: &Packet, mtu: u32) -> Packet {
    let mut error = Packet::BLANK;
    error.ip = Ip::new(packet.ip.destination, packet.ip.source);
    error.body = Body::Icmp(Icmp::TooBig { mtu, quote: Quote::of(packet).unwrap() });
    error
}

/// Carries packets both ways through a router that takes `mtu` bytes towards the server, until
/// neither side has anything to say. Returns how many were too big.
fn through(mtu: u32, now: Time, client: &mut Host<Traffic>, server: &mut Host<Traffic>) -> u32 {
    let mut refused = 0;
    loop {
        let (there, back) = (sent(client, now), sent(server, now));
        if there.is_empty() && back.is_empty() {
            return refused;
        }
        for packet in there {
            if packet.len() > mtu {
                refused += 1;
                client.handle_packet(now, &too_big(&packet, mtu));
            } else {
                server.handle_packet(now, &packet);
            }
        }
        back.iter().for_each(|packet| client.handle_packet(now, packet));
    }
}

/// A client that has ten segments of 1448 bytes in flight, and these.
fn sending(client: IpAddr, server: IpAddr) -> (Host<Traffic>, Vec<Packet>) {
    let (mut client, mut peer) = (host(client), host(server));
    peer.listen(80, || (Config::default(), Traffic::Sink(Sink::new(0))));
    client.open(Opening { remote: server, ..transfer(Time::ZERO, 80, 0, 100_000) });
    client.handle_timeout(Time::ZERO);
    for syn in sent(&mut client, Time::ZERO) {
        peer.handle_packet(Time::ZERO, &syn);
    }
    for answer in sent(&mut peer, Time::ZERO) {
        client.handle_packet(Time::ZERO, &answer);
    }
    let flight = sent(&mut client, Time::ZERO);
    assert_eq!(flight.len(), 10);
    (client, flight)
}

/// The longest packet that a host has to send.
fn longest(host: &mut Host<Traffic>, now: Time) -> u32 {
    sent(host, now).iter().map(Packet::len).max().unwrap_or(0)
}

#[test]
fn a_transfer_passes_a_small_link_and_the_next_connection_knows_it_for_ten_minutes() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    let mut transfer_at = |minutes: u64, stream| {
        let now = millis(60_000 * minutes);
        client.open(transfer(now, 80, stream, 50_000));
        client.handle_timeout(now);
        let refused = through(1000, now, &mut client, &mut server);
        assert_eq!(received(&server)[stream as usize], (50_000, 0));
        client = Host::adopt(client.snapshot(now), now).unwrap(); // It keeps what it knows.
        refused
    };
    let refused = [(0, 0), (9, 1), (11, 2)].map(|(minutes, stream)| transfer_at(minutes, stream));
    assert_eq!(refused, [10, 0, 10]);
}

#[test]
fn only_a_message_about_a_segment_in_flight_that_is_larger_counts() {
    let (_, flight) = sending(CLIENT, SERVER);
    let with = |change: &dyn Fn(&mut Quote)| {
        let mut error = too_big(&flight[3], 1000);
        if let Body::Icmp(Icmp::TooBig { quote, .. }) = &mut error.body {
            change(quote);
        }
        error
    };
    for (error, unmatched) in [
        (too_big(&flight[3], 1500), 0), // It takes that.
        (too_big(&flight[3], 9000), 0),
        (too_big(&flight[3], u32::from(u16::MAX)), 0),
        (with(&|quote| quote.seq = quote.seq + 1), 0),
        (with(&|quote| quote.seq = quote.seq + 1_000_000), 0),
        (with(&|quote| quote.seq = quote.seq + (1 << 31)), 0),
        (with(&|quote| quote.source_port ^= 1), 1),
        (with(&|quote| quote.destination = CLIENT), 1),
        (with(&|quote| quote.protocol = 17), 1),
    ] {
        let (mut client, _) = sending(CLIENT, SERVER);
        client.handle_packet(millis(1), &error);
        assert_eq!(longest(&mut client, millis(1)), 0, "{error:?}");
        assert_eq!(client.statistics().unmatched, unmatched);
        client.open(transfer(millis(2), 80, 1, 1)); // Nor does the host believe it.
        client.handle_timeout(millis(2));
        assert!(client.path_mtus.mss(millis(2), SERVER).is_none());
    }
}

#[test]
fn an_mtu_has_a_lower_bound() {
    // RFC 1191 §3 and §5, as Linux bounds it; RFC 8201 §4.
    for (mtu, minimum, length) in
        [(1, 552, 552), (551, 552, 552), (600, 552, 600), (0, 552, 576), (1, 0, 88), (200, 68, 200)]
    {
        let (mut client, flight) = sending(CLIENT, SERVER);
        client.set(Settings { minimum_path_mtu: minimum, ..client.settings() });
        client.handle_packet(millis(1), &too_big(&flight[0], mtu));
        // With less than 68, the connection's own least MSS decides.
        assert_eq!(longest(&mut client, millis(1)), length, "{mtu}");
    }
    let v6 = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
    for (mtu, length) in [(0, 0), (1279, 0), (1280, 1280), (1400, 1400), (70_000, 0)] {
        let (mut client, flight) = sending(v6(1), v6(2));
        client.handle_packet(millis(1), &too_big(&flight[0], mtu));
        assert_eq!(longest(&mut client, millis(1)), length, "{mtu}");
    }
}

#[test]
fn once_full_sized_segments_have_arrived_a_message_alone_changes_nothing() {
    // RFC 5927 §7.2
    let (mut client, mut server) = (host(CLIENT), server(80));
    client.open(transfer(Time::ZERO, 80, 0, 1 << 30));
    client.handle_timeout(Time::ZERO);
    for _ in 0..6 {
        for packet in sent(&mut client, Time::ZERO) {
            server.handle_packet(Time::ZERO, &packet);
        }
        for packet in sent(&mut server, millis(1)) {
            client.handle_packet(millis(1), &packet);
        }
    }
    let flight = sent(&mut client, millis(1));
    for packet in &flight {
        client.handle_packet(millis(2), &too_big(packet, 600));
    }
    assert_eq!(longest(&mut client, millis(2)), 0);
    assert!(client.path_mtus.mss(millis(2), SERVER).is_none());
    // It is true: nothing arrives.
    let mut now;
    let again = loop {
        now = client.poll_timeout();
        client.handle_timeout(now);
        match longest(&mut client, now) {
            // The loss probe is as long as before.
            0 | 1500 => {}
            length => break length,
        }
    };
    assert_eq!(again, 600);
    assert_eq!(client.path_mtus.mss(now, SERVER), Some(560));
}

#[test]
fn a_flood_of_path_mtus_takes_bounded_memory() {
    let mut known = path_mtu::PathMtus::default();
    let address = |n: u64| IpAddr::V4(Ipv4Addr::from_bits(n as u32));
    for n in 0..3000 {
        known.learn(millis(n), address(n), 500);
        known.learn(millis(n), address(n), 700); // The smaller one stays.
    }
    let left = (0..3000).filter(|&n| known.mss(millis(3000), address(n)) == Some(500));
    assert_eq!(left.collect::<Vec<_>>(), (3000 - 1024..3000).collect::<Vec<_>>());
}
