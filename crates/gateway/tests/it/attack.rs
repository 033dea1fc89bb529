//! Attacks, in small: streams are whole, tables are bounded, what is refused is counted, and connections are split
//! afterwards.

use crate::common::{CLEAN, GATEWAY, USER, World, alone, beside_few, exchange};
use crate::pair::{Pair, wait_for_association};
use gateway::Daemon;
use live::inline::Side;
use live::{Netlink, Offload, Tun};
use relay::Relays;
use scenario::IpVersion;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;
use wire::{Flags, Ip, Packet, SeqNumber};

const INTERFACES: &str = "lan = [\"link0\", \"attack\"]\nwan = \"link1\"\n";
const OVERFLOW: &str = "connections not split: too many handshakes";
const PEER_PORT: u16 = 51_995;

/// A second LAN of the gateway's, whose only host is an attacker with many addresses.
fn attacker(world: &World) -> Tun {
    world.at(GATEWAY, || {
        let tun = Tun::open("attack", Offload::None, 1500).unwrap();
        let netlink = Netlink::open().unwrap();
        netlink.set_up("attack").unwrap();
        netlink.add_route(forged(0), 10, "attack", None).unwrap();
        tun
    })
}

/// One of four million addresses.
fn forged(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x6440_0000 + number).into()
}

/// A segment of a client to a server that does not exist.
fn segment(client: IpAddr, flags: Flags, seq: u32) -> Vec<u8> {
    let server = IpAddr::from([192, 0, 2, 1]);
    let mut packet = Packet { ip: Ip::new(client, server), ..Packet::BLANK };
    let segment = packet.make_tcp();
    (segment.source_port, segment.destination_port) = (4000, 80);
    (segment.seq, segment.flags, segment.window) = (SeqNumber(seq), flags, 1000);
    let mut bytes = Vec::new();
    packet.emit(&[], &mut bytes).unwrap();
    bytes
}

/// Waits until something is counted.
pub(crate) fn wait_until(counted: impl Fn() -> bool) {
    for _ in 0..5000 {
        if counted() {
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
    panic!("it is not counted");
}

/// Sends packets of an attacker, no more at a time than the gateway takes for an overload.
fn flood(daemon: &Daemon, tun: &Tun, packets: impl Iterator<Item = Vec<u8>>) {
    let read = || daemon.counts().unwrap().devices[Side::Lan as usize].read;
    let packets: Vec<_> = packets.collect();
    for some in packets.chunks(300) {
        let before = read();
        some.iter().for_each(|packet| tun.write(packet).unwrap());
        wait_until(|| read() >= before + some.len() as u64);
    }
}

fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap().get(name).copied().unwrap_or(0)
}

fn open_connections(daemon: &Daemon) -> u64 {
    daemon.observe().unwrap().gauges["split_connections"]
}

#[test]
fn where_handshakes_pass_connections_are_split_after_a_flood_of_syns() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "syns") else { return };
        let tun = attacker(&world);
        let daemon = world.gateway_at(GATEWAY, INTERFACES, "");
        let syns = (0..66_000).map(|number| segment(forged(number), Flags::SYN, number));
        flood(&daemon, &tun, syns);
        assert_eq!(count(&daemon, OVERFLOW), 66_000 - 65_536);
        exchange(&world, IpVersion::V4, [100_000, 500_000]);
        // All of one client, who has no room of others.
        let syns = (0..6000).map(|seq| segment(forged(7), Flags::SYN, seq));
        flood(&daemon, &tun, syns);
        exchange(&world, IpVersion::V6, [100_000, 500_000]);
        assert_eq!(count(&daemon, "split connections"), 2);
        daemon.stop();
    });
}

#[test]
fn where_the_gateway_makes_handshakes_a_flood_of_syns_takes_a_part_of_its_table_and_not_for_long() {
    beside_few(|| {
        for keys in ["mode = \"split\"", "mode = \"split\"\nconnect = \"at-once\""] {
            let Some(world) = World::new(CLEAN, "half-open") else { return };
            let tun = attacker(&world);
            let daemon = world.gateway_at(GATEWAY, INTERFACES, keys);
            let syns = (0..6000).map(|number| segment(forged(number), Flags::SYN, number));
            flood(&daemon, &tun, syns);
            assert_eq!(open_connections(&daemon), Relays::HALF_OPEN as u64, "{keys}");
            assert_eq!(count(&daemon, OVERFLOW), 0);
            // The handshakes of others pass, or they have a place again.
            let before = count(&daemon, "split connections");
            exchange(&world, IpVersion::V4, [100_000, 500_000]);
            thread::sleep(Duration::from_secs(5));
            exchange(&world, IpVersion::V4, [100_000, 500_000]);
            assert_eq!(count(&daemon, "split connections"), before + 2, "{keys}");
            daemon.stop();
        }
    });
}

#[test]
fn packets_of_no_connection_pass_and_leave_nothing_behind() {
    alone(|| {
        for keys in ["mode = \"spoof\"", "mode = \"split\""] {
            let Some(world) = World::new(CLEAN, "strays") else { return };
            let tun = attacker(&world);
            let daemon = world.gateway_at(GATEWAY, INTERFACES, keys);
            let kinds = [Flags::ACK, Flags::ACK | Flags::FIN, Flags::RST, Flags::SYN | Flags::ACK];
            let strays = (0..20_000_u32)
                .map(|number| segment(forged(number), kinds[number as usize % 4], number));
            let passed = daemon.counts().unwrap().passed;
            flood(&daemon, &tun, strays);
            assert!(daemon.counts().unwrap().passed >= passed + 20_000, "{keys}");
            assert_eq!(open_connections(&daemon), 0);
            exchange(&world, IpVersion::V4, [100_000, 500_000]);
            assert_eq!(count(&daemon, "split connections"), 1, "{keys}");
            daemon.stop();
        }
    });
}

/// What was heard of the datagrams to the gateway's port.
fn heard(packets: &mut Socket) -> Vec<Vec<u8>> {
    let (mut found, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(len) = packets.read(&mut buffer) {
        let packet = &buffer[..len];
        // IPv4 and UDP, to the port.
        if packet[0] == 0x45 && packet[9] == 17 && packet[22..24] == PEER_PORT.to_be_bytes() {
            found.push(packet[28..].to_vec());
        }
    }
    found
}

#[test]
fn datagrams_of_others_at_the_port_of_a_pair_are_counted_and_change_nothing() {
    beside_few(|| {
        let Some(world) = World::pair(CLEAN, "datagrams") else { return };
        let pair = Pair::new("datagrams", "rate = \"50 Mbit/s\"");
        let tun = attacker(&world);
        let of_ip = Some(Protocol::from(i32::from(0x0003_u16.to_be())));
        let mut packets =
            world.at(GATEWAY, || Socket::new(Domain::PACKET, Type::DGRAM, of_ip).unwrap());
        packets.set_nonblocking(true).unwrap();
        let far = pair.far(&world);
        let near = world.gateway_at(GATEWAY, INTERFACES, &pair.near_keys(&world, IpVersion::V4));
        wait_for_association(&world, &near);
        let first = heard(&mut packets);
        exchange(&world, IpVersion::V4, [100_000, 500_000]);
        let recent = heard(&mut packets);

        let of_type = |datagrams: &[Vec<u8>], kind: u8| {
            let mut found = datagrams.iter().rev().filter(|datagram| datagram[..2] == [2, kind]);
            found.next().cloned().unwrap()
        };
        let data = of_type(&recent, 4);
        let mut forged_data = data.clone();
        // A number far ahead, and the code and the tag of another one.
        forged_data[6..10].copy_from_slice(&(1_u32 << 30).to_be_bytes());
        let mut of_no_session = data.clone();
        of_no_session[2..6].copy_from_slice(&[0xee; 4]);
        let mut forged_handshake = vec![7; 86];
        forged_handshake[..2].copy_from_slice(&[2, 1]);
        let kinds = [
            ("garbage", vec![7; 100]),
            ("replayed", data),
            ("forged", forged_data),
            ("of no session", of_no_session),
            ("forged handshakes", forged_handshake),
            ("replayed handshakes", of_type(&first, 1)),
        ];
        let attacker = world.at(USER, || UdpSocket::bind("0.0.0.0:0").unwrap());
        let to = SocketAddr::new(world.address(GATEWAY, IpVersion::V4), PEER_PORT);
        let refused = || near.counts().unwrap().refused;
        thread::scope(|scope| {
            let victim = scope.spawn(|| exchange(&world, IpVersion::V4, [500_000, 5_000_000]));
            for (kind, datagram) in &kinds {
                let before = refused();
                for _ in 0..500 {
                    attacker.send_to(datagram, to).unwrap();
                }
                wait_until(|| refused() >= before + 500);
                assert!(refused() < before + 520, "{kind}");
            }
            victim.join().unwrap();
        });
        let split = count(&near, "split connections");

        // Streams over the hop are opened for no more than a part of those who ask.
        let syns = (0..6000).map(|number| segment(forged(number), Flags::SYN, number));
        flood(&near, &tun, syns);
        let open = open_connections(&near);
        assert!(open <= Relays::HALF_OPEN as u64, "{open}");
        exchange(&world, IpVersion::V4, [100_000, 500_000]);
        thread::sleep(Duration::from_secs(5));
        let before = count(&near, "split connections");
        exchange(&world, IpVersion::V4, [100_000, 500_000]);
        assert_eq!(count(&near, "split connections"), before + 1);
        assert!(before > split);
        assert_eq!(near.observe().unwrap().gauges["associations"], 1);
        near.stop();
        far.stop();
    });
}
