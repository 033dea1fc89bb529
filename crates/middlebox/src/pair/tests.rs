//! Connections that enter the hop: which are split, and which pass, and why.

use super::*;
use base::Seed;
use core::net::Ipv4Addr;
use host::Outbox;
use wire::{Ip, Segment, SeqNumber};

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const GATEWAYS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2))];
const LAN: Port = Port(0);
const HOP: Port = Port(1);

/// The gateway with one of both addresses.
fn gateway(own: usize, pair: &Pair) -> Gateway {
    let mut relays = Relays::new(GATEWAYS[own], Seed(own as u64).stream("box"));
    relays.set_limits(pair.limits());
    let srp = pair.srp(srp::Config::default().overhead);
    relays.enable_srp(srp.clone(), Seed(own as u64).stream("tokens"));
    Gateway {
        relays,
        split: pair.split(&Config::default()),
        srp,
        own: GATEWAYS[own],
        peer: Some(GATEWAYS[1 - own]),
        hop: vec![HOP],
        limit: pair.connections,
        next_attempt: Time::ZERO,
        left: LeftAlone::default(),
    }
}

/// Two gateways with an association.
fn connected(pair: &Pair) -> Gateway {
    let [mut near, mut far] = [0, 1].map(|own| gateway(own, pair));
    let mut outbox = Outbox::default();
    near.wake(Time::ZERO, &mut outbox.context());
    let mut packets = outbox.into_packets();
    for turn in 0..4 {
        let to = if turn % 2 == 0 { &mut far } else { &mut near };
        packets = packets.into_iter().flat_map(|packet| pass(to, HOP, packet).1).collect();
    }
    assert_eq!(near.relays.open_associations(), 1);
    near
}

/// Passes a packet to the box; returns its verdict and what it sent.
fn pass(gateway: &mut Gateway, from: Port, mut packet: Packet) -> (Verdict, Vec<Packet>) {
    let mut outbox = Outbox::default();
    let verdict = gateway.packet(Time::ZERO, Some(from), &mut packet, &mut outbox.context());
    (verdict, outbox.into_packets())
}

/// The SYN of a client with this port.
fn syn(client: u8, source_port: u16) -> Packet {
    let mut packet = Packet::BLANK;
    packet.ip = Ip::new(IpAddr::V4(Ipv4Addr::new(10, 0, 1, client)), SERVER);
    let seq = SeqNumber(1000);
    *packet.make_tcp() = Segment {
        source_port,
        destination_port: 80,
        seq,
        flags: wire::Flags::SYN,
        window: 60_000,
        ..Segment::default()
    };
    packet
}

/// That a SYN passes, and is counted by this reason.
fn passes(gateway: &mut Gateway, syn: Packet, why: &str) {
    let name = format!("connections not split: {why}");
    let count = |gateway: &Gateway| {
        let mut found = None;
        gateway.counts(&mut |other, value| found = found.or((other == name).then_some(value)));
        found.unwrap()
    };
    let before = count(gateway);
    assert_eq!(pass(gateway, LAN, syn).0, Verdict::Forward, "{why}");
    assert_eq!(count(gateway), before + 1, "{why}");
}

#[test]
fn what_cannot_be_split_passes_and_is_counted() {
    let mut near = connected(&Pair::default());
    assert_eq!(pass(&mut near, LAN, syn(1, 4000)).0, Verdict::Consume);
    let cases: [(&[u8], &str); 3] = [
        (&[19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "authenticated"),
        (&[29, 4, 1, 1], "authenticated"),
        (&[30, 4, 1, 0], "Multipath TCP"),
    ];
    for (port, (options, why)) in (5000..).zip(cases) {
        let mut syn = syn(1, port);
        syn.unparsed.set_tcp_options(options).unwrap();
        passes(&mut near, syn, why);
    }
    let mut fast = syn(1, 6000);
    fast.payload.len = 10;
    passes(&mut near, fast, "data in the SYN");
    assert_eq!(near.relays.open_connections(), 1);
}

#[test]
fn without_the_other_gateway_connections_pass_and_are_counted() {
    let mut alone = gateway(0, &Pair::default());
    passes(&mut alone, syn(1, 4000), "no other gateway");
    assert_eq!(alone.relays.open_connections(), 0);
}

#[test]
fn connections_beyond_a_limit_pass_and_are_counted_by_it() {
    let limited = Pair { connections: 3, connections_per_user: Some(2), ..Pair::default() };
    let mut near = connected(&limited);
    for port in [4000, 4001] {
        assert_eq!(pass(&mut near, LAN, syn(1, port)).0, Verdict::Consume);
    }
    passes(&mut near, syn(1, 4002), "too many connections of a user");
    // A client that waits asks again: it is among those that are split.
    assert_eq!(pass(&mut near, LAN, syn(1, 4001)).0, Verdict::Consume);
    assert_eq!(pass(&mut near, LAN, syn(2, 4000)).0, Verdict::Consume);
    passes(&mut near, syn(3, 4000), "too many connections");
    assert_eq!(pass(&mut near, LAN, syn(2, 4000)).0, Verdict::Consume);
    assert_eq!(near.relays.open_connections(), 3);
}
