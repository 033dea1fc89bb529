//! A middlebox between two devices of the kernel.

use crate::common::permitted;
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use live::inline::{Counts, Inline, Owners, Side};
use live::{Clock, Error, Namespace, Netlink, Offload, QueueProgram, Tun, netlink};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::sleep;
use std::time::Duration;
use wire::{Flags, Ip, Packet, SeqNumber};

/// Its connections are all whose segments carry data.
#[derive(Default)]
struct Carrying {
    /// Others that it has seen.
    others: u64,
    /// Those that it had seen before the last segment with data.
    before_data: u64,
}

impl Middlebox for Carrying {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if packet.payload.len > 0 {
            self.before_data = self.others;
            return Verdict::Consume;
        }
        self.others += 1;
        Verdict::Forward
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    fn wake(&mut self, _: Time, _: &mut Context<'_>) {}
}

const OWN: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 1, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
];
const PEER: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 1, 2, 9)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9)),
];

/// Packets for which each queue of a device has room.
const ROOM: u64 = 4096;

/// The forms of packets: IPv4, IPv4 with options, IPv6.
#[derive(Clone, Copy, Debug)]
enum Form {
    V4,
    V4WithOptions,
    V6,
}

/// A segment of a host to the peer.
fn segment(form: Form, source: u32, flags: Flags, data: &[u8]) -> Vec<u8> {
    let [(source, peer), v6] = [
        (IpAddr::V4((0x6440_0000 + source).into()), PEER[0]),
        (IpAddr::V6((0xfd01_u128 << 112 | u128::from(source)).into()), PEER[1]),
    ];
    let (source, peer) = if let Form::V6 = form { v6 } else { (source, peer) };
    let mut packet = Packet { ip: Ip::new(source, peer), ..Packet::BLANK };
    packet.ip.hop_limit = 1; // What passes, the kernel would send back.
    packet.payload.len = data.len() as u32;
    let segment = packet.make_tcp();
    (segment.source_port, segment.destination_port) = (4000, 80);
    (segment.seq, segment.flags, segment.window) = (SeqNumber(7), flags, 1000);
    let mut bytes = Vec::new();
    packet.emit(data, &mut bytes).unwrap();
    if let Form::V4WithOptions = form {
        // Eight no-operations. The kernel fills in the length and the checksum.
        bytes.splice(20..20, [1; 8]);
        bytes[0] += 2;
    }
    bytes
}

/// Sends packets of all forms by the kernel.
struct Sender([(Socket, SockAddr); 2]);

impl Sender {
    fn new() -> Sender {
        let socket = |domain, to| {
            let raw = Socket::new(domain, Type::RAW, Some(Protocol::from(255))).unwrap();
            (raw, SocketAddr::from((to, 0)).into())
        };
        Sender([socket(Domain::IPV4, PEER[0]), socket(Domain::IPV6, PEER[1])])
    }

    fn send(&self, packet: &[u8]) {
        let (socket, to) = &self.0[usize::from(packet[0] >> 4 == 6)];
        assert_eq!(socket.send_to(packet, to).unwrap(), packet.len());
    }
}

/// Devices in the namespace of the calling thread, the first of which is the way to the peer.
fn devices(open: impl Fn(&str) -> Result<Tun, Error>) -> [Tun; 2] {
    netlink::prepare_node().unwrap();
    let netlink = Netlink::open().unwrap();
    let tuns = ["link0", "link1"].map(|name| {
        let tun = open(name).unwrap();
        netlink.set_queue_length(name, ROOM as u32).unwrap();
        netlink.set_up(name).unwrap();
        tun
    });
    for (own, prefix) in OWN.into_iter().zip([24, 64]) {
        netlink.add_address("link0", own, prefix).unwrap();
    }
    tuns
}

/// The program that gives SYNs and RSTs queues of their own; `None`, and a word about it, where it may not be loaded.
fn program(test: &str) -> Option<QueueProgram> {
    let refused = |error: &Error| {
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {error}");
    };
    QueueProgram::load(&Owners::new(1, [0; 2])).inspect_err(refused).ok()
}

/// What is counted once so many packets of the LAN were read, and [`Carrying::before_data`].
fn counts(tuns: [Tun; 2], read: u64) -> (Counts, u64) {
    let inline = Inline::new(Carrying::default(), tuns, &[], Clock::start()).unwrap();
    let running = inline.start().unwrap();
    let counts = || running.call(|_, carrying, counts| (*counts, carrying.before_data)).unwrap();
    let found = (0..5000).find_map(|_| {
        sleep(Duration::from_millis(2));
        let found = counts();
        (found.0.devices[Side::Lan as usize].read == read).then_some(found)
    });
    found.unwrap_or_else(|| panic!("{read}: {:?}", counts()))
}

#[test]
fn floods_of_syns_and_rsts_take_no_room_of_other_packets_in_a_device_and_few_are_read_before_them()
{
    const FLOOD: u64 = 10_000;
    const DATA: u64 = 200;
    if !permitted("room") {
        return;
    }
    let Some(program) = program("room") else { return };
    let floods: [&[Flags]; 4] =
        [&[Flags::SYN], &[Flags::RST], &[Flags::RST | Flags::ACK], &[Flags::SYN, Flags::RST]];
    let forms = [Form::V4, Form::V4WithOptions, Form::V6];
    for (form, floods) in forms.iter().flat_map(|form| floods.map(|flood| (*form, flood))) {
        let what = format!("{form:?}, {floods:?}");
        let queues = floods.len() as u64;
        let namespace = Namespace::create("room").unwrap();
        // Nothing is read meanwhile.
        let tuns = namespace.run(|| {
            let tuns = devices(|name| {
                Ok(Tun::open_with_program(name, Offload::Full, 1500, &program)?.remove(0))
            });
            let sender = Sender::new();
            for (flood, number) in
                floods.iter().flat_map(|flood| (0..FLOOD).map(move |n| (flood, n)))
            {
                sender.send(&segment(form, number as u32, *flood, &[]));
            }
            let dropped = || tuns[0].counts().unwrap().send_dropped;
            assert_eq!(dropped(), queues * (FLOOD - ROOM), "{what}");
            for _ in 0..DATA {
                sender.send(&segment(form, 1, Flags::ACK, &[7; 100]));
            }
            assert_eq!(dropped(), queues * (FLOOD - ROOM), "{what}: of the connection");
            tuns
        });
        let (counts, before_data) = counts(tuns.unwrap(), queues * ROOM + DATA);
        assert_eq!((counts.consumed, counts.passed), (DATA, queues * ROOM), "{what}: {counts:?}");
        // Four of each are read after sixteen others.
        assert_eq!(before_data, DATA / 16 * 4 * queues, "{what}");
    }
}

#[test]
fn where_syns_have_no_queue_a_flood_of_them_costs_syns_and_no_packet_of_a_connection() {
    const SYNS: u32 = 3000;
    const DATA: u32 = 200;
    if !permitted("flood") {
        return;
    }
    let namespace = Namespace::create("flood").unwrap();
    // All packets wait in the kernel's queue before the first is read.
    let tuns = namespace.run(|| {
        let tuns = devices(|name| Tun::open(name, Offload::Full, 1500));
        let sender = Sender::new();
        for number in 0..SYNS {
            sender.send(&segment(Form::V4, number, Flags::SYN, &[]));
            if number % (SYNS / DATA) == 0 {
                sender.send(&segment(Form::V4, number, Flags::ACK, &[7; 100]));
            }
        }
        assert_eq!(tuns[0].counts().unwrap().send_dropped, 0);
        tuns
    });
    let (counts, _) = counts(tuns.unwrap(), u64::from(SYNS + DATA));
    assert_eq!(counts.consumed, u64::from(DATA), "{counts:?}");
    assert_eq!(counts.passed + counts.overload, u64::from(SYNS), "{counts:?}");
    // What is read before there is an overload passes, and then four to one of sixteen.
    assert!((1500..2700).contains(&counts.overload), "{counts:?}");
}

#[test]
fn the_name_of_a_device_with_several_queues_is_taken() {
    if !permitted("taken") {
        return;
    }
    let Some(program) = program("taken") else { return };
    let namespace = Namespace::create("taken").unwrap();
    let errors = namespace.run(|| {
        let open = || Tun::open_with_program("link0", Offload::Full, 1500, &program);
        let _tun = open().unwrap();
        [open().err(), Tun::open("link0", Offload::Full, 1500).err()]
    });
    assert!(errors.unwrap().iter().all(Option::is_some));
}
