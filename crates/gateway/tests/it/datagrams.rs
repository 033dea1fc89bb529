//! What does not go to the gateway, and the messages of ICMP, which do.

use crate::common::{CLEAN, FAR, GATEWAY, SERVER, USER, World, alone, beside, content, exchange};
use gateway::Daemon;
use live::inline::Side;
use live::{Netlink, Offload, Tun};
use scenario::IpVersion;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;
use wire::{Body, Flags, Ip, Packet, Udp};

const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// A socket at a node.
fn socket(world: &World, node: usize, ip: IpVersion) -> UdpSocket {
    let address = SocketAddr::new(world.address(node, ip), 0);
    let socket = world.at(node, || UdpSocket::bind(address).unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// The user and the server send each other datagrams, some of which are cut up on their way. The address that the
/// server sees.
pub(crate) fn talk(world: &World, ip: IpVersion) -> IpAddr {
    let [user, server] = [USER, SERVER].map(|node| socket(world, node, ip));
    let mut buffer = [0; 5000];
    let mut seen = BTreeSet::new();
    for number in 0..20 {
        for len in [1, 1000, 4000] {
            let (there, back) = (content(number, len), content(number + 100, len));
            user.send_to(&there, server.local_addr().unwrap()).unwrap();
            let (len, from) = server.recv_from(&mut buffer).unwrap();
            assert!(buffer[..len] == there);
            server.send_to(&back, from).unwrap();
            seen.insert(from.ip());
            let (len, from) = user.recv_from(&mut buffer).unwrap();
            assert!(buffer[..len] == back && from == server.local_addr().unwrap());
        }
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
    seen.pop_first().unwrap()
}

/// The user sends to a port that the server has closed, and then the server to one that the user has closed. Each is
/// told by ICMP.
pub(crate) fn refuse(world: &World, ip: IpVersion) {
    let [user, server] = [USER, SERVER].map(|node| socket(world, node, ip));
    let address = server.local_addr().unwrap();
    user.connect(address).unwrap();
    user.send(b"to the server").unwrap();
    let (_, seen) = server.recv_from(&mut [0; 100]).unwrap();
    server.connect(seen).unwrap();
    drop(user);
    server.send(b"closed port").unwrap();
    assert_eq!(server.recv(&mut [0; 100]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    drop(server);
    let user = socket(world, USER, ip);
    user.connect(address).unwrap();
    user.send(b"closed port").unwrap();
    assert_eq!(user.recv(&mut [0; 100]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// The packets that the gateway has read and written.
fn packets(daemon: &Daemon) -> u64 {
    daemon.counts().unwrap().devices.iter().map(|device| device.read + device.written).sum()
}

#[test]
fn datagrams_pass_whole_in_both_directions_and_not_through_the_gateway() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "udp") else { return };
        let daemon = world.gateway("");
        let mut count = packets(&daemon);
        for ip in BOTH {
            assert_eq!(talk(&world, ip), world.address(USER, ip));
            assert_eq!(packets(&daemon), count);
            // What ICMP says of them does, read once and written once.
            refuse(&world, ip);
            count += 4;
            assert_eq!(packets(&daemon), count);
        }
        exchange(&world, IpVersion::V4, [1000, 1000]);
        assert!(packets(&daemon) > count);
        daemon.stop();
    });
}

#[test]
fn a_path_with_a_smaller_mtu_behind_the_gateway_is_told_to_it() {
    beside(|| {
        for keys in ["", "mode = \"split\""] {
            let Some(world) = World::pair(CLEAN, "too-big") else { return };
            let mut shrink = Command::new("ip");
            shrink.args(["link", "set", "link2", "mtu", "1300"]);
            assert!(world.at(FAR, || shrink.status()).unwrap().success());
            let daemon = world.gateway(keys);
            for ip in BOTH {
                exchange(&world, ip, [1_000_000, 100_000]);
            }
            assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&2));
            daemon.stop();
        }
    });
}

/// A segment or a datagram over IPv6, as bytes.
fn packet(from: IpAddr, to: IpAddr, is_tcp: bool) -> Vec<u8> {
    let mut packet = Packet { ip: Ip::new(from, to), ..Packet::BLANK };
    if is_tcp {
        let segment = packet.make_tcp();
        (segment.source_port, segment.destination_port) = (4000, 80);
        segment.flags = Flags::ACK;
    } else {
        packet.body = Body::Udp(Udp { source_port: 4000, destination_port: 80 });
    }
    let mut bytes = Vec::new();
    packet.emit(&[], &mut bytes).unwrap();
    bytes
}

/// The packet with an extension header of a kind, which it has before the others.
fn extended(mut packet: Vec<u8>, kind: u8) -> Vec<u8> {
    let next = std::mem::replace(&mut packet[6], kind);
    let header = match kind {
        // One of four bytes of options, a route without addresses, a fragment that is the whole packet, and 24 bytes
        // of authentication (RFC 8200 §4, RFC 4302 §2).
        HOPS | DESTINATION => vec![next, 0, 1, 4, 0, 0, 0, 0],
        ROUTING => vec![next, 0, 4, 0, 0, 0, 0, 0],
        FRAGMENT => vec![next, 0, 0, 0, 0, 0, 0, 9],
        _ => [&[next, 4][..], &[1; 22]].concat(),
    };
    let len = u16::from_be_bytes([packet[4], packet[5]]) + header.len() as u16;
    packet[4..6].copy_from_slice(&len.to_be_bytes());
    packet.splice(40..40, header);
    packet
}

const HOPS: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

#[test]
fn segments_behind_extension_headers_of_ipv6_go_to_the_gateway_and_only_these() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "extended") else { return };
        let tun = world.at(GATEWAY, || {
            let tun = Tun::open("lan9", Offload::None, 1500).unwrap();
            Netlink::open().unwrap().set_up("lan9").unwrap();
            tun
        });
        let interfaces = "lan = [\"link0\", \"lan9\"]\nwan = \"link1\"\n";
        let daemon = world.gateway_at(GATEWAY, interfaces, "");
        let user = "2001:db8:9::1".parse().unwrap();
        let of = |is_tcp| packet(user, world.address(SERVER, IpVersion::V6), is_tcp);
        // Those of UDP, and those whose segment the kernel does not look for.
        let others = [
            of(false),
            extended(of(false), DESTINATION),
            extended(of(true), AUTHENTICATION),
            extended(extended(of(true), DESTINATION), FRAGMENT),
        ];
        let split = [
            of(true),
            extended(of(true), HOPS),
            extended(of(true), DESTINATION),
            extended(of(true), ROUTING),
            extended(of(true), FRAGMENT),
            extended(extended(of(true), FRAGMENT), DESTINATION),
        ];
        let read = || daemon.counts().unwrap().devices[Side::Lan as usize].read;
        for (number, packet) in others.iter().chain(&split).enumerate() {
            let before = read();
            tun.write(packet).unwrap();
            let is_split = number >= others.len();
            let is_read = (0..if is_split { 1000 } else { 50 }).any(|_| {
                thread::sleep(Duration::from_millis(2));
                read() > before
            });
            assert_eq!(is_read, is_split, "{packet:?}");
        }
        daemon.stop();
    });
}
