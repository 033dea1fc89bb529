//! Snapshots that are refused, and connections that move to a box without a hop.

use super::*;
use crate::{HopRate, Policy, Seen, Split};
use base::{Duration, Rate, Seed};
use core::net::{IpAddr, Ipv4Addr};
use host::Outlet;
use tcp::{Config, Handshake};
use wire::{Body, Flags, Ip, Options, Packet, Payload, Segment, SeqNumber};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const BOX: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
const MSS: u16 = 1000;

fn millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn relays(hop: Option<HopRate>) -> Relays {
    let mut relays = Relays::new(BOX, Seed(1).stream("box"));
    if let Some(rate) = hop {
        relays.set_hop(rate);
    }
    relays
}

/// A connection as its client names it.
fn client(port: u16) -> FourTuple {
    FourTuple { local: CLIENT, local_port: port, remote: SERVER, remote_port: 80 }
}

/// A segment from an end of the connection of this client's port.
fn segment(port: u16, from: Side, flags: Flags, (seq, ack): (u32, u32)) -> Segment {
    let ports = match from {
        Side::Client => (port, 80),
        Side::Server => (80, port),
    };
    Segment {
        source_port: ports.0,
        destination_port: ports.1,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: 60_000,
        ..Segment::default()
    }
}

/// Splits a connection whose ends begin with the numbers 1000 and 5000. The server is behind the hop.
fn split(relays: &mut Relays, port: u16) {
    let options = Options { mss: Some(MSS), ..Options::default() };
    let syn = segment(port, Side::Client, Flags::SYN, (999, 0));
    let syn_ack = segment(port, Side::Server, Flags::SYN | Flags::ACK, (4999, 1000));
    let handshake = Handshake {
        syn: Segment { options, ..syn },
        syn_at: millis(0),
        syn_ack: Segment { options, ..syn_ack },
        syn_ack_at: millis(10),
        is_repeated: false,
    };
    let seen = Seen { client: client(port), handshake, behind_hop: [false, true] };
    let configs = [Config::default(), Config::default()];
    assert!(relays.split(millis(20), &seen, &Split { configs, policy: Policy::default() }));
    let _ = transmitted(relays, 20);
}

/// Passes `len` bytes from an end, after those that it has sent before, and returns what the box sends.
fn pass(relays: &mut Relays, at: u64, from: Side, segment: Segment, len: u32) -> Vec<Packet> {
    let (source, destination) = match from {
        Side::Client => (CLIENT, SERVER),
        Side::Server => (SERVER, CLIENT),
    };
    let mut packet = Packet::BLANK;
    packet.ip = Ip::new(source, destination);
    let first = if from == Side::Client { 1000 } else { 5000 };
    let offset = u64::from(segment.seq.0 - first);
    packet.payload = Payload { stream: from as u32, offset, len };
    *packet.make_tcp() = segment;
    assert!(relays.handle_packet(millis(at), &packet));
    transmitted(relays, at)
}

#[derive(Default)]
struct Sent(Option<Packet>, Vec<Packet>);

impl Outlet<Half> for Sent {
    fn packet(&mut self) -> &mut Packet {
        self.0.get_or_insert(Packet::BLANK)
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&Half>) {
        self.1.extend(self.0);
    }
}

fn transmitted(relays: &mut Relays, at: u64) -> Vec<Packet> {
    let mut sent = Sent::default();
    relays.transmit(millis(at), &mut sent);
    sent.1
}

/// The bytes that went to the server, and whether their end did.
fn to_server(sent: &[Packet]) -> (u32, bool) {
    let to_server = sent.iter().filter(|packet| packet.ip.destination == SERVER);
    to_server.fold((0, false), |(bytes, ended), packet| {
        let Body::Tcp(segment) = &packet.body else { panic!("{packet:?}") };
        (bytes + packet.payload.len, ended || segment.flags.contains(Flags::FIN))
    })
}

/// 100 bytes of the client arrive; those that go on to the server.
fn relayed(relays: &mut Relays, at: u64, port: u16) -> u32 {
    let request = segment(port, Side::Client, Flags::ACK, (1000, 5000));
    to_server(&pass(relays, at, Side::Client, request, 100)).0
}

#[test]
fn a_snapshot_of_another_version_is_refused() {
    let mut old = relays(None);
    split(&mut old, 4000);
    let mut snapshot = old.snapshot(millis(30), &client(4000)).unwrap();
    snapshot.version = 77;
    let mut new = relays(None);
    let error = AdoptError::Version { found: 77, expected: RelaySnapshot::VERSION };
    assert_eq!(new.adopt(millis(30), snapshot), Err(error));
    assert_eq!(error.to_string(), "the snapshot of the relay is of version 77, expected 3");
    assert_eq!((new.open_connections(), new.host().open_connections()), (0, 0));
}

#[test]
fn a_connection_that_is_there_already_is_not_adopted_again() {
    let mut relays = relays(None);
    split(&mut relays, 4000);
    let snapshot = relays.snapshot(millis(30), &client(4000)).unwrap();
    let taken = Err(AdoptError::Taken(client(4000)));
    assert_eq!(relays.adopt(millis(30), snapshot), taken);
    assert_eq!((relays.open_connections(), relays.statistics().adopted), (1, 0));
    assert_eq!(relayed(&mut relays, 40, 4000), 100);
}

#[test]
fn a_half_that_is_refused_leaves_nothing_behind_and_harms_no_other_connection() {
    let mut old = relays(None);
    split(&mut old, 4000);
    let right = old.snapshot(millis(30), &client(4000)).unwrap();
    let mut new = relays(None);
    // It has the number that the relay of the snapshot had in the other box.
    split(&mut new, 4001);
    let other = new.snapshot(millis(30), &client(4001)).unwrap();
    // One of its halves is that of a connection of this box.
    let mut forged = right.clone();
    forged.halves[1] = other.halves[1].clone();
    let tuple = client(4001);
    let refused = new.adopt(millis(30), forged);
    assert_eq!(refused, Err(AdoptError::Half(host::AdoptError::Taken(tuple))));
    assert_eq!(relayed(&mut new, 40, 4001), 100);
    assert_eq!((new.open_connections(), new.host().open_connections()), (1, 2));
    assert_eq!(new.adopt(millis(50), right), Ok(()));
    assert_eq!(relayed(&mut new, 60, 4000), 100);
}

#[test]
fn the_end_of_a_client_that_is_gone_follows_its_data_in_a_box_without_a_hop() {
    // The hop takes more than a second for a segment.
    let slow = Rate::from_bps(8000).unwrap();
    let mut old = relays(Some(HopRate::Given(slow)));
    split(&mut old, 4000);
    let mut sent = Vec::new();
    for number in 0..3 {
        let data = segment(4000, Side::Client, Flags::ACK, (1000 + 1000 * number, 5000));
        sent.extend(pass(&mut old, 30, Side::Client, data, 1000));
    }
    let (before, ended) = to_server(&sent);
    assert!(before < 3000 && !ended, "{before}");
    // Both ends close, the client first, so that its half has nothing more to do.
    let fin = segment(4000, Side::Client, Flags::FIN | Flags::ACK, (4000, 5000));
    let _ = pass(&mut old, 31, Side::Client, fin, 0);
    let fin = segment(4000, Side::Server, Flags::FIN | Flags::ACK, (5000, 1000 + before));
    let _ = pass(&mut old, 32, Side::Server, fin, 0);
    let last = segment(4000, Side::Client, Flags::ACK, (4001, 5001));
    let more = to_server(&pass(&mut old, 33, Side::Client, last, 0));
    assert_eq!(more, (0, false));
    let snapshot = old.snapshot(millis(33), &client(4000)).unwrap();
    assert!(snapshot.halves[0].is_none(), "the client's half is over");
    let mut new = relays(None);
    assert_eq!(new.adopt(millis(33), snapshot), Ok(()));
    let (after, ended) = to_server(&transmitted(&mut new, 33));
    assert_eq!((before + after, ended), (3000, true));
}
