//! Local addresses: whose packets a host takes, and from which address it answers.

use super::*;
use core::net::{Ipv4Addr, SocketAddr};

/// An address that neither host has.
const FOREIGN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

fn whole(address: IpAddr) -> Prefix {
    Prefix::new(address, 32)
}

/// A SYN of the client's to port 80 of an address.
fn syn_to(address: IpAddr) -> Packet {
    let mut client = host(CLIENT);
    client.open(Opening { remote: address, ..transfer(Time::ZERO, 80, 0, 1000) });
    client.handle_timeout(Time::ZERO);
    sent(&mut client, Time::ZERO)[0]
}

#[test]
fn connections_that_differ_only_in_the_local_address_are_two() {
    let (mut client, mut server) = (host(CLIENT), host(SERVER));
    server.listen(80, || (Config::default(), Traffic::Sink(Sink::of_any())));
    let mut ids = Vec::new();
    for (stream, local) in [(0, None), (1, Some(FOREIGN))] {
        let size = 1000 + u64::from(stream);
        let opening = transfer(Time::ZERO, 80, stream, size);
        ids.extend(
            client.connect(Time::ZERO, Opening { local, local_port: Some(5000), ..opening }),
        );
    }
    let tuples: Vec<_> = ids.iter().map(|&id| client.four_tuple(id).unwrap()).collect();
    assert_eq!(tuples[1], FourTuple { local: FOREIGN, ..tuples[0] });
    let again = Opening { local_port: Some(5000), ..transfer(Time::ZERO, 80, 2, 1) };
    assert_eq!(client.connect(Time::ZERO, again), None, "there is one already");

    converse(Time::ZERO, &mut client, &mut server);
    let mut sizes = received(&server);
    sizes.sort_unstable();
    assert_eq!(sizes, [(1000, 0), (1001, 0)]);
    let of_peer: Vec<_> = server.slots.iter().map(|slot| slot.tuple().remote).collect();
    assert!(of_peer.contains(&CLIENT) && of_peer.contains(&FOREIGN));
}

#[test]
fn their_numbers_have_nothing_in_common() {
    let mut client = host(CLIENT);
    for local in [None, Some(FOREIGN)] {
        let opening = transfer(Time::ZERO, 80, 0, 1);
        client.connect(Time::ZERO, Opening { local, local_port: Some(5000), ..opening }).unwrap();
    }
    let syns = sent(&mut client, Time::ZERO);
    assert_ne!(tcp_of(&syns[0]).seq, tcp_of(&syns[1]).seq);
}

#[test]
fn a_host_that_speaks_for_others_accepts_connections_to_them_and_answers_from_their_address() {
    for prefixes in [&[whole(FOREIGN)][..], &Prefix::ALL] {
        let mut server = server(80);
        prefixes.iter().for_each(|&prefix| server.add_prefix(prefix));
        let mut client = host(CLIENT);
        client.open(Opening { remote: FOREIGN, ..transfer(Time::ZERO, 80, 0, 100_000) });
        client.handle_timeout(Time::ZERO);
        let syn = sent(&mut client, Time::ZERO)[0];
        server.handle_packet(Time::ZERO, &syn);
        let answer = sent(&mut server, Time::ZERO)[0];
        assert_eq!((answer.ip.source, answer.ip.destination), (FOREIGN, CLIENT));
        client.handle_packet(Time::ZERO, &answer);
        run_until(millis(30_000), &mut client, &mut server);
        assert_eq!(received(&server), [(100_000, 0)]);
    }
}

#[test]
fn so_do_its_resets_and_its_cookies() {
    let mut server = host(SERVER);
    server.add_prefix(whole(FOREIGN));
    server.handle_packet(Time::ZERO, &syn_to(FOREIGN));
    let reset = sent(&mut server, Time::ZERO)[0];
    assert_eq!((reset.ip.source, tcp_of(&reset).flags), (FOREIGN, Flags::RST | Flags::ACK));

    let accept = |_| (Config::default(), Traffic::Sink(Sink::new(0)));
    server.add_listener(Listener::new(80, accept).backlog(0));
    let mut client = host(CLIENT);
    client.open(Opening { remote: FOREIGN, ..transfer(Time::ZERO, 80, 0, 1000) });
    client.handle_timeout(Time::ZERO);
    server.handle_packet(Time::ZERO, &sent(&mut client, Time::ZERO)[0]);
    let cookie = sent(&mut server, Time::ZERO)[0];
    assert_eq!((cookie.ip.source, server.statistics().cookies), (FOREIGN, 1));
    client.handle_packet(Time::ZERO, &cookie);
    let ack = sent(&mut client, Time::ZERO)[0];
    let mut to_another = ack;
    to_another.ip.destination = SERVER;
    server.handle_packet(Time::ZERO, &to_another);
    assert_eq!(server.statistics().cookies_accepted, 0, "it names the address, too");
    server.handle_packet(Time::ZERO, &ack);
    assert_eq!(server.statistics().cookies_accepted, 1);
}

#[test]
fn packets_to_addresses_that_are_not_owned_are_not_answered() {
    let mut server = server(80);
    server.add_prefix(Prefix::new(IpAddr::from([198, 51, 100, 0]), 24));
    for (port, flags) in [(80, Flags::SYN), (81, Flags::SYN), (80, Flags::ACK)] {
        let packet = changed(&syn_to(FOREIGN), |segment| {
            segment.destination_port = port;
            segment.flags = flags;
        });
        assert!(!server.takes(&packet));
        server.handle_packet(Time::ZERO, &packet);
    }
    assert!(sent(&mut server, Time::ZERO).is_empty());
    assert_eq!((server.connections().count(), server.statistics().no_connection), (0, 3));
    assert!(server.takes(&syn_to(SERVER)) && server.takes(&syn_to([198, 51, 100, 9].into())));
}

#[test]
fn what_belongs_to_a_connection_from_a_foreign_address_is_taken_and_nothing_else_to_that_address() {
    let mut client = host(CLIENT);
    let opening = Opening { local: Some(FOREIGN), ..transfer(Time::ZERO, 80, 0, 100_000) };
    let id = client.connect(Time::ZERO, opening).unwrap();
    let mut server = server(80);
    let syn = sent(&mut client, Time::ZERO)[0];
    assert_eq!(syn.ip.source, FOREIGN);
    server.handle_packet(Time::ZERO, &syn);
    let answer = sent(&mut server, Time::ZERO)[0];
    assert!(!client.owns(FOREIGN));
    assert_eq!(client.connection_of(&answer), Some(id));
    assert!(client.takes(&answer));
    assert!(!client.takes(&changed(&answer, |segment| segment.source_port = 81)));

    // An ICMP error about it comes to the foreign address, too.
    let mut error = Packet::BLANK;
    error.ip = Ip::new(SERVER, FOREIGN);
    let quote = Quote {
        source: FOREIGN,
        destination: SERVER,
        len: 40,
        protocol: 6,
        source_port: tcp_of(&syn).source_port,
        destination_port: 80,
        seq: tcp_of(&syn).seq,
    };
    error.body = Body::Icmp(Icmp::Unreachable { code: 3, quote });
    assert_eq!(client.connection_of(&error), Some(id));
    client.handle_packet(Time::ZERO, &error);
    assert_eq!(client.connection(id).unwrap().state(), State::Closed);
}

#[test]
fn the_listener_with_the_most_particular_binding_accepts() {
    let mut server = host(SERVER);
    server.add_prefix(whole(FOREIGN));
    let bindings = [
        Binding::default(),
        Binding::from(80),
        Binding { address: Some(FOREIGN), port: None },
        Binding::from(SocketAddr::new(FOREIGN, 80)),
    ];
    for (backlog, binding) in (10..).zip(bindings) {
        // `accept` gets the 4-tuple.
        let accept = |tuple: FourTuple| {
            assert_eq!(tuple.remote, CLIENT);
            (Config::default(), Traffic::Sink(Sink::new(tuple.local_port.into())))
        };
        server.add_listener(Listener::new(binding, accept).backlog(backlog));
    }
    let mut accepts = |address, port| {
        let to = changed(&syn_to(address), |segment| segment.destination_port = port);
        server.handle_packet(Time::ZERO, &to);
        bindings.map(|binding| server.listeners.by_binding[&binding].half_open)
    };
    assert_eq!(accepts(SERVER, 22), [1, 0, 0, 0]);
    assert_eq!(accepts(SERVER, 80), [1, 1, 0, 0]);
    assert_eq!(accepts(FOREIGN, 22), [1, 1, 1, 0]);
    assert_eq!(accepts(FOREIGN, 80), [1, 1, 1, 1]);
    // What has no listener of its own any more counts for the next.
    server.unlisten(SocketAddr::new(FOREIGN, 80));
    server.unlisten(80);
    let counts = [0, 2].map(|of| server.listeners.by_binding[&bindings[of]].half_open);
    assert_eq!(counts, [2, 2]);
}

#[test]
fn a_restored_host_speaks_for_the_same_addresses() {
    let mut server = server(80);
    server.add_prefix(whole(FOREIGN));
    server.handle_packet(Time::ZERO, &syn_to(FOREIGN));
    let (id, ..) = server.connections().next().unwrap();
    let tuple = server.four_tuple(id).unwrap();
    assert_eq!((tuple.local, tuple.remote), (FOREIGN, CLIENT));
    let snapshot = server.snapshot(millis(1));
    let restored = Host::adopt(snapshot, millis(500)).unwrap();
    assert_eq!(restored.four_tuple(id), Some(tuple));
    assert!(restored.owns(FOREIGN) && restored.owns(SERVER) && !restored.owns(CLIENT));
}

#[test]
fn a_prefix_has_the_addresses_that_begin_like_it() {
    let prefix = |len| Prefix::new(IpAddr::from([10, 1, 2, 3]), len);
    for (len, inside, outside) in [
        (32, [10, 1, 2, 3], [10, 1, 2, 2]),
        (31, [10, 1, 2, 2], [10, 1, 2, 1]),
        (24, [10, 1, 2, 255], [10, 1, 3, 3]),
        (8, [10, 255, 0, 0], [11, 1, 2, 3]),
        (1, [127, 0, 0, 1], [128, 1, 2, 3]),
        (99, [10, 1, 2, 3], [10, 1, 2, 2]),
    ] {
        assert!(prefix(len).contains(inside.into()) && !prefix(len).contains(outside.into()));
    }
    let v6: IpAddr = "fd00::1".parse().unwrap();
    assert!(prefix(0).contains([255, 0, 0, 1].into()) && !prefix(0).contains(v6));
    assert!(Prefix::new(v6, 127).contains("fd00::".parse().unwrap()));
    assert!(!Prefix::new(v6, 128).contains("fd00::".parse().unwrap()));
    assert!(Prefix::ALL[1].contains(v6) && !Prefix::ALL[0].contains(v6));
}
