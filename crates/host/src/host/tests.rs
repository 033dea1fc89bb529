//! Hosts on a wire that takes no time: who gets what, and when they wake.

mod addresses;
mod connectivity;
mod cookies;
mod corruption;
mod datagrams;
mod events;
mod fast_open;
mod listening;
mod memory;
mod numbering;
mod path;
mod path_mtu;
mod ports;
mod resets;
mod rows;

use super::*;
use crate::{Sink, Source, Traffic};
use base::{Duration, Seed};
use tcp::mechanism::{Eten, Mechanism};
use tcp::{Config, Events, State};
use wire::{CopyId, CorruptionNotice, Flags, Icmp, Ip, Quote, Segment, SeqNumber};

const CLIENT: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2));

fn host(address: IpAddr) -> Host<Traffic> {
    let mut host = Host::new(address, Seed(1).stream(&address.to_string()));
    host.set(Settings { keep_closed: true, ..Settings::default() });
    host
}

/// A server that takes in streams 0, 1, 2, ... in the order of their connections.
fn server(port: u16) -> Host<Traffic> {
    let mut server = host(SERVER);
    let mut streams = 0..;
    server.listen(port, move || {
        (Config::default(), Traffic::Sink(Sink::new(streams.next().unwrap())))
    });
    server
}

/// A transfer of `size` bytes of `stream` to `port` at `at`.
fn transfer(at: Time, port: u16, stream: u32, size: u64) -> Opening<Traffic> {
    Opening {
        at,
        remote: SERVER,
        remote_port: port,
        local: None,
        local_port: None,
        config: Config::default(),
        application: Traffic::Source(Source::new(stream, Some(size))),
    }
}

fn millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Collects what is sent.
struct Tray {
    next: Packet,
    sent: Vec<Packet>,
}

impl<A> Outlet<A> for Tray {
    fn packet(&mut self) -> &mut Packet {
        &mut self.next
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.sent.push(self.next);
    }
}

impl Tray {
    /// Hands the packet that lies in it to a host, and keeps what that sends.
    fn exchange(&mut self, host: &mut Host<Traffic>, now: Time) {
        let _ = host.exchange(&mut Door { tray: self, now });
    }
}

/// One packet comes, and no more.
struct Door<'a> {
    tray: &'a mut Tray,
    now: Time,
}

impl<A> Outlet<A> for Door<'_> {
    fn packet(&mut self) -> &mut Packet {
        &mut self.tray.next
    }

    fn send(&mut self, segment_size: u32, route: &mut Option<u32>, application: Option<&A>) {
        self.tray.send(segment_size, route, application);
    }
}

impl<A> Inlet<A> for Door<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn arrived(&mut self) -> &mut Packet {
        &mut self.tray.next
    }

    fn release(&mut self) {}

    fn answer(&mut self, _: Option<u32>, len: u32, _: wire::Ecn) {
        assert_eq!(self.tray.next.len(), len);
        self.tray.sent.push(self.tray.next);
    }

    fn pass_on(&mut self) {
        panic!("it is for this host: {:?}", self.tray.next);
    }

    fn advance(&mut self) -> bool {
        false
    }
}

/// Everything that a host has to send.
fn sent(host: &mut Host<Traffic>, now: Time) -> Vec<Packet> {
    let mut tray = Tray { next: Packet::BLANK, sent: Vec::new() };
    let _ = host.transmit(now, &mut tray);
    tray.sent
}

/// Carries packets both ways until neither side has anything to say.
fn converse(now: Time, client: &mut Host<Traffic>, server: &mut Host<Traffic>) {
    loop {
        let (there, back) = (sent(client, now), sent(server, now));
        if there.is_empty() && back.is_empty() {
            return;
        }
        there.iter().for_each(|packet| server.handle_packet(now, packet));
        back.iter().for_each(|packet| client.handle_packet(now, packet));
    }
}

/// Serves both sides' timers as they come, and what follows, until `end`.
fn run_until(end: Time, client: &mut Host<Traffic>, server: &mut Host<Traffic>) {
    loop {
        let now = client.poll_timeout().min(server.poll_timeout());
        if now > end {
            return;
        }
        client.handle_timeout(now);
        server.handle_timeout(now);
        converse(now, client, server);
    }
}

/// The SYN of a connection that `client` opens to port 80 at `now`.
fn syn(now: Time, client: &mut Host<Traffic>) -> Packet {
    client.open(transfer(now, 80, 0, 1000));
    client.handle_timeout(now);
    sent(client, now).pop().unwrap()
}

/// A packet with other TCP fields.
fn changed(packet: &Packet, change: impl FnOnce(&mut Segment)) -> Packet {
    let mut packet = *packet;
    change(packet.tcp_mut().unwrap());
    packet
}

fn tcp_of(packet: &Packet) -> Segment {
    match packet.body {
        Body::Tcp(segment) => segment,
        _ => panic!("not TCP"),
    }
}

/// What each sink of a host has received, in the order of the connections.
fn received(host: &Host<Traffic>) -> Vec<(u64, u64)> {
    let sinks = host.connections().filter_map(|(_, _, application)| match application {
        Traffic::Sink(sink) => Some((sink.received, sink.misplaced)),
        _ => None,
    });
    sinks.collect()
}

#[test]
fn connections_open_at_their_times_and_those_of_one_instant_in_order() {
    let mut client = host(CLIENT);
    for (at, port) in [(20, 3), (10, 1), (20, 4), (10, 2)] {
        client.open(transfer(millis(at), port, 0, 1));
    }
    assert_eq!(client.poll_timeout(), millis(10));
    for (at, ports) in [(10, [1, 2]), (20, [3, 4])] {
        client.handle_timeout(millis(at - 1));
        assert!(sent(&mut client, millis(at - 1)).is_empty());
        client.handle_timeout(millis(at));
        let mut opened: Vec<_> = sent(&mut client, millis(at)).iter().map(tcp_of).collect();
        assert!(opened.iter().all(|segment| segment.flags == Flags::SYN));
        opened.reverse(); // The latest is the first to send.
        assert_eq!(opened.iter().map(|s| s.destination_port).collect::<Vec<_>>(), ports);
    }
}

#[test]
fn each_connection_gets_its_own_segments() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    for (stream, size) in [(0, 100_000), (1, 1), (2, 0), (3, 50_000)] {
        client.open(transfer(millis(u64::from(stream)), 80, stream, size));
    }
    run_until(millis(100_000), &mut client, &mut server);
    assert_eq!(received(&server), [(100_000, 0), (1, 0), (0, 0), (50_000, 0)]);
    for host in [&client, &server] {
        assert!(host.connections().all(|(_, connection, _)| connection.state() == State::Closed));
        assert_eq!((host.poll_timeout(), host.statistics().no_connection), (Time::NEVER, 0));
        assert!(host.is_quiet());
    }
}

#[test]
fn packets_carry_the_addresses_of_both_ends() {
    let mut client = host(CLIENT);
    client.open(transfer(Time::ZERO, 80, 0, 1));
    client.handle_timeout(Time::ZERO);
    let packet = sent(&mut client, Time::ZERO)[0];
    assert_eq!((packet.ip.source, packet.ip.destination), (CLIENT, SERVER));
    assert_eq!(packet.ip.hop_limit, Ip::HOP_LIMIT);
    assert_eq!(client.address(), CLIENT);
}

#[test]
fn only_a_syn_to_a_port_that_listens_makes_a_connection() {
    let mut client = host(CLIENT);
    client.open(transfer(Time::ZERO, 80, 0, 1));
    client.handle_timeout(Time::ZERO);
    let syn = sent(&mut client, Time::ZERO)[0];

    let mut deaf = server(81);
    deaf.handle_packet(Time::ZERO, &syn);
    assert_eq!((deaf.connections().count(), deaf.statistics().no_connection), (0, 1));

    let mut server = server(80);
    for flags in [
        Flags::ACK,
        Flags::SYN | Flags::ACK,
        Flags::RST,
        Flags::FIN,
        Flags::SYN | Flags::FIN,
        Flags::SYN | Flags::RST,
    ] {
        let mut packet = syn;
        packet.body = Body::Tcp(Segment { flags, ..tcp_of(&syn) });
        server.handle_packet(Time::ZERO, &packet);
    }
    assert_eq!((server.connections().count(), server.statistics().no_connection), (0, 6));
    sent(&mut server, Time::ZERO);
    assert!(server.is_finished());
    server.handle_packet(Time::ZERO, &syn);
    assert!(!server.is_finished());
    assert_eq!((server.connections().count(), server.statistics().no_connection), (1, 6));
    server.handle_packet(Time::ZERO, &syn); // Again: it is the same connection.
    assert_eq!(server.connections().count(), 1);
}

#[test]
fn one_wake_serves_the_connections_that_are_due_and_no_others() {
    let mut client = host(CLIENT);
    for (at, port) in [(0, 80), (400, 81)] {
        client.open(transfer(millis(at), port, 0, 1));
        client.handle_timeout(millis(at));
        assert_eq!(sent(&mut client, millis(at)).len(), 1);
    }
    // There is no answer: the SYNs are retransmitted, each one second after the first.
    for (at, port) in [(1000, 80), (1400, 81), (3000, 80), (3400, 81)] {
        assert_eq!(client.poll_timeout(), millis(at));
        client.handle_timeout(millis(at));
        let again = sent(&mut client, millis(at));
        assert_eq!(again.iter().map(|p| tcp_of(p).destination_port).collect::<Vec<_>>(), [port]);
    }
}

#[test]
fn a_notice_reaches_the_connection_whose_segment_it_names() {
    let mut client = host(CLIENT);
    for port in [80, 81] {
        let mut opening = transfer(Time::ZERO, port, 0, 1);
        opening.config.mechanisms = vec![Mechanism::Eten(Eten::default())];
        client.open(opening);
    }
    client.handle_timeout(Time::ZERO);
    let syns = sent(&mut client, Time::ZERO);
    let corrupted = syns.iter().find(|packet| tcp_of(packet).destination_port == 81).unwrap();
    let notice = CorruptionNotice::about(CLIENT, SERVER, &tcp_of(corrupted), 0);

    // By a router, as a packet; then, about the copy that this led to, from the world itself.
    let mut packet = Packet::BLANK;
    packet.body = Body::Icmp(Icmp::Corruption { notice, size: 56 });
    client.handle_packet(millis(1), &packet);
    let again = sent(&mut client, millis(1));
    assert_eq!(again.iter().map(|p| tcp_of(p).destination_port).collect::<Vec<_>>(), [81]);
    let notice = CorruptionNotice::about(CLIENT, SERVER, &tcp_of(&again[0]), 0);
    client.notify(millis(2), &notice);
    assert_eq!(sent(&mut client, millis(2)).len(), 1);

    // Notices that match no connection or no copy.
    client.notify(millis(3), &CorruptionNotice { source_port: 7, ..notice });
    client.notify(millis(3), &CorruptionNotice { copy: CopyId(77), ..notice });
    assert!(sent(&mut client, millis(3)).is_empty());
    assert_eq!(client.statistics().no_connection, 1);
}
