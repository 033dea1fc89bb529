//! Hosts that send datagrams, with and without connections beside them.

use super::*;
use crate::{DatagramFlow, DatagramSource, OnOff};
use base::Rate;

/// A host with sources of 210-byte packets at 1 Mbit/s, one every 1.68 ms, that start at these
/// times; the ports are 0, 1, 2, ...
fn sender(starts: &[u64], bursts: Option<OnOff>) -> Host<Traffic> {
    let mut host = host(CLIENT);
    for (port, &start) in (0..).zip(starts) {
        let flow = DatagramFlow {
            stream: u32::from(port),
            remote: SERVER,
            remote_port: port,
            local_port: 1000 + port,
            payload: 182,
            rate: Rate::from_bps(1_000_000).unwrap(),
            start: millis(start),
            stop: Time::NEVER,
            bursts,
        };
        let random = Seed(1).stream(&port.to_string());
        host.send_datagrams(DatagramSource::new(flow, random));
    }
    host
}

/// Destination port and offset of datagrams.
fn datagrams(packets: &[Packet]) -> Vec<(u16, u64)> {
    let datagram = |packet: &Packet| match packet.body {
        Body::Udp(udp) => (udp.destination_port, packet.payload.offset),
        _ => panic!("not UDP"),
    };
    packets.iter().map(datagram).collect()
}

#[test]
fn a_datagram_says_where_it_comes_from_and_goes() {
    let mut host = sender(&[1], None);
    host.handle_timeout(millis(1));
    let packets = sent(&mut host, millis(1));
    let expected = Packet {
        ip: Ip::new(CLIENT, SERVER),
        body: Body::Udp(wire::Udp { source_port: 1000, destination_port: 0 }),
        payload: wire::Payload { stream: 0, offset: 0, len: 182 },
        ..Packet::BLANK
    };
    assert_eq!(packets, [expected]);
    assert_eq!(packets[0].len(), 210);
}

#[test]
fn datagrams_of_one_instant_go_in_the_order_of_their_sources() {
    let mut host = sender(&[7, 5, 7, 5, 7, 7], None);
    for (at, ports) in [(5, vec![(1, 0), (3, 0)]), (7, vec![(0, 0), (2, 0), (4, 0), (5, 0)])] {
        // Those of the others that are due meanwhile.
        while host.poll_timeout() < millis(at) {
            let now = host.poll_timeout();
            host.handle_timeout(now);
            sent(&mut host, now);
        }
        host.handle_timeout(millis(at));
        assert_eq!(datagrams(&sent(&mut host, millis(at))), ports);
        assert!(sent(&mut host, millis(at)).is_empty());
    }
}

#[test]
fn a_host_that_is_woken_late_sends_datagrams_in_the_order_of_their_times() {
    let mut host = sender(&[2, 1], None);
    host.handle_timeout(millis(4));
    let expected = [(1, 0), (0, 0), (1, 182), (0, 182)];
    assert_eq!(datagrams(&sent(&mut host, millis(4))), expected);
    assert_eq!(host.poll_timeout(), Time::from_nanos(1_000_000 + 2 * 1_680_000));
}

#[test]
fn serving_a_host_is_its_three_calls_in_one() {
    let span = Duration::from_millis(20);
    let hosts = || {
        let mut host = sender(&[0, 3, 3, 10], Some(OnOff { on: span, off: span }));
        // Two connections that get no answer, and time out now and then.
        for (at, port) in [(3, 80), (500, 81)] {
            host.open(transfer(millis(at), port, 9, 1000));
        }
        host
    };
    let (mut one, mut three) = (hosts(), hosts());
    let (mut now, mut segments) = (one.poll_timeout(), 0);
    while now < millis(20_000) {
        let mut tray = Tray { next: Packet::BLANK, sent: Vec::new() };
        let Served { next, was_due } = one.serve(now, &mut tray);
        assert_eq!(three.handle_timeout(now), was_due, "{now}");
        assert_eq!(tray.sent, sent(&mut three, now), "{now}");
        assert_eq!((next, next), (one.poll_timeout(), three.poll_timeout()), "{now}");
        segments += tray.sent.iter().filter(|packet| matches!(packet.body, Body::Tcp(_))).count();
        now = next;
    }
    assert!(segments > 5 && one.datagram_sources()[3].sent > 1000, "{segments}");
}
