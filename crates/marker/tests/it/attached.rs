//! The program at an interface of Ethernet, with packets of the kernel.

use crate::permitted;
use base::Duration;
use live::{Namespace, Netlink};
use marker::{Marker, Settings};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read as _;
use std::net::{Ipv6Addr, SocketAddr};
use std::process::Command;

const SETTINGS: Settings = Settings { flows: 16, idle: Duration::from_secs(60), link_header: 14 };

/// Destination options (RFC 8200 §4.6), as the next header of an IPv6 header.
const OPTIONS: i32 = 60;
/// As linux/if_ether.h, in the byte order of the network.
const ETH_P_ALL: u16 = 3_u16.to_be();

/// The station and the mobile host, with a cable between them.
struct Cable {
    station: Namespace,
    sender: Socket,
    receiver: Socket,
    interface: u32,
    to: SocketAddr,
}

impl Cable {
    fn new(label: &str) -> Cable {
        let [station, mobile] = ["station", "mobile"]
            .map(|node| Namespace::create(&format!("{label}-{node}")).unwrap());
        let arguments = format!(
            "-n {} link add hop0 type veth peer name hop1 netns {}",
            station.name(),
            mobile.name()
        );
        assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success());
        let [own, to] = [1, 2].map(|n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
        let set_up = |device: &str, address: Ipv6Addr| {
            // Its addresses can be used at once.
            live::netlink::set_sysctl(&format!("net.ipv6.conf.{device}.accept_dad"), "0").unwrap();
            let netlink = Netlink::open().unwrap();
            netlink.set_up(device).unwrap();
            netlink.add_address(device, address.into(), 64).unwrap();
            netlink.index(device).unwrap()
        };
        let protocol = Protocol::from(i32::from(ETH_P_ALL));
        let receiver = mobile.run(|| {
            set_up("hop1", to);
            Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol)).unwrap()
        });
        let receiver = receiver.unwrap();
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let (interface, sender) = station
            .run(|| {
                let interface = set_up("hop0", own);
                let raw = Protocol::from(OPTIONS);
                (interface, Socket::new(Domain::IPV6, Type::RAW, Some(raw)).unwrap())
            })
            .unwrap();
        // Its namespace is there as long as its socket.
        drop(mobile);
        Cable { station, sender, receiver, interface, to: SocketAddr::new(to.into(), 0) }
    }

    /// The first block of a packet with this number as it arrives.
    fn passes(&self, sequence: u32) -> [u32; 2] {
        let mut packet = vec![50, 3, 0x3e, 24];
        packet.extend([0; 24]);
        packet.extend([1, 2, 0, 0, 0, 0, 0, 1]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0; 40]);
        self.sender.send_to(&packet, &self.to.into()).unwrap();
        let mut buffer = [0; 2000];
        loop {
            let len = (&self.receiver).read(&mut buffer).unwrap();
            // Others are those of neighbour discovery.
            if buffer[6] == 60 && buffer[76..80] == sequence.to_be_bytes() {
                assert_eq!(len, 40 + packet.len());
                let number = |at: usize| u32::from_be_bytes(*buffer[at..].first_chunk().unwrap());
                return [number(44), number(48)];
            }
        }
    }
}

#[test]
fn packets_are_marked_as_long_as_the_marker_is_there() {
    if !permitted() {
        return;
    }
    let cable = Cable::new("marker");
    assert_eq!(cable.passes(7), [0, 0]);
    let mut marker = Marker::load(&SETTINGS).unwrap();
    assert_eq!((cable.passes(8), marker.interface()), ([0, 0], None), "not yet");
    cable.station.run(|| marker.attach(cable.interface)).unwrap().unwrap();
    assert_eq!(marker.interface(), Some(cable.interface));
    assert_eq!([cable.passes(9), cable.passes(10)], [[9, 9], [9, 10]]);
    assert_eq!((marker.counts().unwrap().marked, marker.flows().unwrap()), (2, 1));
    drop(marker);
    assert_eq!(cable.passes(11), [0, 0], "no more");
}

#[test]
fn a_marker_whose_interface_is_gone_says_so_and_can_have_another() {
    if !permitted() {
        return;
    }
    let cable = Cable::new("gone");
    let mut marker = Marker::load(&SETTINGS).unwrap();
    assert!(cable.station.run(|| marker.attach(9999)).unwrap().is_err());
    cable.station.run(|| marker.attach(cable.interface)).unwrap().unwrap();
    let arguments = format!("-n {} link delete hop0", cable.station.name());
    assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success());
    assert_eq!(marker.interface(), None);
    let other = Cable::new("other");
    other.station.run(|| marker.attach(other.interface)).unwrap().unwrap();
    assert_eq!(other.passes(1), [1, 1]);
}
