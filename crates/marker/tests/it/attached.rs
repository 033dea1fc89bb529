//! The program at an interface of Ethernet, with packets of the kernel.

use crate::frames::ETHERNET;
use crate::lab::Lab;
use crate::permitted;
use base::Duration;
use live::{Namespace, Netlink};
use marker::{Marker, Settings};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read as _;
use std::net::{Ipv6Addr, SocketAddr};
use std::process::Command;

/// Destination options (RFC 8200 §4.6), as the next header of an IPv6 header.
const OPTIONS: i32 = 60;
/// As linux/if_ether.h, in the byte order of the network.
const ETH_P_ALL: u16 = 3_u16.to_be();

/// The station and the mobile host, with a cable between them.
struct Cable {
    station: Namespace,
    sender: Socket,
    receiver: Socket,
    settings: Settings,
    to: SocketAddr,
}

impl Cable {
    fn new(label: &str) -> Cable {
        let [station, mobile] = ["station", "mobile"]
            .map(|node| Namespace::create(&format!("{label}-{node}")).unwrap());
        let peer = mobile.name().to_owned();
        ip(&station, &format!("link add hop0 type veth peer name hop1 netns {peer}"));
        let [own, to] = [1, 2].map(|n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
        let set_up = |device: &str, address: Ipv6Addr| {
            // Its addresses can be used at once.
            live::netlink::set_sysctl(&format!("net.ipv6.conf.{device}.accept_dad"), "0").unwrap();
            let netlink = Netlink::open().unwrap();
            netlink.set_up(device).unwrap();
            netlink.add_address(device, address.into(), 64).unwrap();
            netlink
        };
        let protocol = Protocol::from(i32::from(ETH_P_ALL));
        let receiver = mobile.run(|| {
            set_up("hop1", to);
            Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol)).unwrap()
        });
        let receiver = receiver.unwrap();
        receiver.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
        let (interface, link_header, sender) = station
            .run(|| {
                let netlink = set_up("hop0", own);
                let (index, header) = (netlink.index("hop0"), netlink.link_header("hop0"));
                (index.unwrap(), header.unwrap(), sender())
            })
            .unwrap();
        let settings =
            Settings { flows: 16, idle: Duration::from_secs(60), interface, link_header };
        // The namespace of the mobile host is there as long as its socket.
        drop(mobile);
        Cable { station, sender, receiver, settings, to: SocketAddr::new(to.into(), 0) }
    }

    fn load(&self) -> Marker {
        self.station.run(|| Marker::load(&self.settings)).unwrap().unwrap()
    }

    fn attach(&self, marker: &mut Marker) {
        self.station.run(|| marker.attach()).unwrap().unwrap();
    }

    /// A bucket for a few packets, and a queue for a few more, which it empties in 100 ms.
    fn narrow(&self) {
        let mut tc = Command::new("tc");
        let words = "qdisc add dev hop0 root tbf rate 200kbit burst 1000 limit 2500";
        tc.args(["-n", self.station.name()]).args(words.split(' '));
        assert!(tc.status().unwrap().success());
    }

    /// Sends a packet with this number. The queue may refuse it.
    fn send(&self, sequence: u32) {
        self.send_by(&self.sender, 0x3e, sequence);
    }

    /// The same by this socket and with an option of this type.
    fn send_by(&self, sender: &Socket, option: u8, sequence: u32) {
        let mut packet = vec![50, 3, option, 24];
        packet.extend([0; 24]);
        packet.extend([1, 2, 0, 0, 0, 0, 0, 1]);
        packet.extend(sequence.to_be_bytes());
        packet.resize(300, 0);
        let _ = sender.send_to(&packet, &self.to.into());
    }

    /// The next packet as it arrives; `None` if there is none.
    fn arrived(&self) -> Option<Vec<u8>> {
        loop {
            let mut buffer = [0; 2000];
            let len = (&self.receiver).read(&mut buffer).ok()?;
            // Others are those of neighbour discovery, and those without the option.
            if buffer[6] == OPTIONS as u8 && buffer[42] == 0x3e {
                return Some(buffer[..len].to_vec());
            }
        }
    }

    /// The blocks of a packet with this number as it arrives.
    fn passes(&self, sequence: u32) -> [(u32, u32); 3] {
        self.send(sequence);
        let packet = self.arrived().unwrap();
        assert_eq!(sequence_of(&packet), sequence);
        [44, 52, 60].map(|at| (number(&packet, at), number(&packet, at + 4)))
    }
}

fn sender() -> Socket {
    Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::from(OPTIONS))).unwrap()
}

const NONE: [(u32, u32); 3] = [(0, 0); 3];

fn number(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*packet[at..].first_chunk().unwrap())
}

fn sequence_of(packet: &[u8]) -> u32 {
    number(packet, 76)
}

/// `ip` in a namespace.
fn ip(namespace: &Namespace, words: &str) {
    let mut command = Command::new("ip");
    command.args(["-n", namespace.name()]).args(words.split(' '));
    assert!(command.status().unwrap().success(), "ip {words}");
}

#[test]
fn packets_are_marked_as_long_as_the_marker_is_there() {
    if !permitted() {
        return;
    }
    let cable = Cable::new("marker");
    assert_eq!(cable.passes(7), NONE);
    let mut marker = cable.load();
    assert_eq!((cable.passes(8), marker.is_attached()), (NONE, false), "not yet");
    cable.attach(&mut marker);
    assert!(marker.is_attached());
    assert_eq!(
        [cable.passes(9), cable.passes(10)],
        [[(9, 9), (0, 0), (0, 0)], [(9, 10), (0, 0), (0, 0)]]
    );
    assert_eq!((marker.counts().unwrap().marked, marker.flows().unwrap()), (2, 1));
    drop(marker);
    assert_eq!(cable.passes(11), NONE, "no more");
}

#[test]
fn a_marker_whose_interface_is_gone_says_so() {
    if !permitted() {
        return;
    }
    let cable = Cable::new("gone");
    let nowhere = Settings { interface: 9999, ..cable.settings };
    assert!(cable.station.run(|| Marker::load(&nowhere).unwrap().attach()).unwrap().is_err());
    let mut marker = cable.load();
    cable.attach(&mut marker);
    ip(&cable.station, "link delete hop0");
    assert!(!marker.is_attached());
}

#[test]
fn what_the_queue_of_the_interface_refuses_has_not_been_sent() {
    if !permitted() {
        return;
    }
    let cable = Cable::new("queue");
    cable.narrow();
    let mut marker = cable.load();
    cable.attach(&mut marker);
    assert!(marker.sees_drops());
    for burst in 0..6 {
        (1..=20).for_each(|packet| cable.send(20 * burst + packet));
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    let mut lab = Lab::new(&cable.settings);
    let mut arrived = 0;
    while let Some(packet) = cable.arrived() {
        arrived += 1;
        // As one that has seen no more than what has arrived, none of which was lost, would have left it.
        let mut came = [&[0; ETHERNET][..], &packet].concat();
        came[ETHERNET + 44..ETHERNET + 68].fill(0);
        assert_eq!(lab.left(&came)[ETHERNET..], packet, "packet {}", sequence_of(&packet));
    }
    let counts = marker.counts().unwrap();
    assert!(arrived > 20 && arrived < 100, "{arrived} arrived, {counts:?}");
    assert_eq!((counts.marked, counts.dropped), (120, 120 - arrived));
}

#[test]
fn a_packet_that_is_taken_back_gives_back_the_run_that_it_has_pushed_out() {
    if !permitted() {
        return;
    }
    let cable = Cable::new("back");
    cable.narrow();
    let mut marker = cable.load();
    cable.attach(&mut marker);
    let drain = || std::thread::sleep(std::time::Duration::from_millis(300));
    let refused = |sequence| {
        drain();
        (0..20).for_each(|_| cable.send_by(&cable.sender, 0x1e, 0));
        cable.send(sequence);
        drain();
    };
    assert_eq!([1, 11, 21].map(|sequence| cable.passes(sequence))[2], [(1, 1), (11, 11), (21, 21)]);
    refused(31);
    assert_eq!(cable.passes(22), [(1, 1), (11, 11), (21, 22)], "31 begins a run, and is refused");
    refused(23);
    assert_eq!(
        cable.passes(24),
        [(11, 11), (21, 22), (24, 24)],
        "23 extends a run, and is refused"
    );
    assert_eq!(marker.counts().unwrap().dropped, 2);
}

#[test]
fn packets_of_a_flow_that_several_processors_send_are_each_the_latest_when_they_are_marked() {
    if !permitted() {
        return;
    }
    const EACH: u32 = 20_000;
    let cable = Cable::new("both");
    let mut marker = cable.load();
    cable.attach(&mut marker);
    let seen = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut seen = 0;
            while let Some(packet) = cable.arrived() {
                let blocks = [60, 52, 44].map(|at| (number(&packet, at), number(&packet, at + 4)));
                let latest = blocks.into_iter().find(|block| *block != (0, 0)).unwrap();
                assert_eq!(latest.1, sequence_of(&packet), "{blocks:?}");
                assert!(blocks.iter().all(|(first, last)| first <= last), "{blocks:?}");
                seen += 1;
            }
            seen
        });
        // Some of the packets of each continue a run, and the others begin one.
        let senders = [1, 1_000_000].map(|first| {
            let cable = &cable;
            // Each has a socket of its own, which is locked while it sends.
            let sender = cable.station.run(sender).unwrap();
            let send = move |sequence| cable.send_by(&sender, 0x3e, sequence);
            scope.spawn(move || (first..first + EACH).for_each(send))
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        receiving.join().unwrap()
    });
    let counts = marker.counts().unwrap();
    assert!(seen > EACH / 10, "{seen} arrived, {counts:?}");
    assert_eq!(counts.marked + counts.contended, u64::from(2 * EACH));
    assert_eq!((counts.contended, marker.flows().unwrap()), (0, 1));
}
