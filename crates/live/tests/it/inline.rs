//! A middlebox between two devices of the kernel.

use crate::common::permitted;
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use live::inline::{Inline, Side};
use live::{Clock, Namespace, Netlink, Offload, Tun, netlink};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, SocketAddr};
use std::thread::sleep;
use std::time::Duration;
use wire::{Flags, Ip, Packet, SeqNumber};

/// Its connections are all whose segments carry data.
struct Carrying;

impl Middlebox for Carrying {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if packet.payload.len > 0 { Verdict::Consume } else { Verdict::Forward }
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    fn wake(&mut self, _: Time, _: &mut Context<'_>) {}
}

const OWN: [u8; 4] = [10, 1, 2, 1];
const PEER: [u8; 4] = [10, 1, 2, 9];

/// A segment of a host to the peer.
fn segment(source: u32, flags: Flags, data: &[u8]) -> Vec<u8> {
    let source = IpAddr::from((0x6440_0000 + source).to_be_bytes());
    let mut packet = Packet { ip: Ip::new(source, IpAddr::from(PEER)), ..Packet::BLANK };
    packet.ip.hop_limit = 1; // What passes, the kernel would send back.
    packet.payload.len = data.len() as u32;
    let segment = packet.make_tcp();
    (segment.source_port, segment.destination_port) = (4000, 80);
    (segment.seq, segment.flags, segment.window) = (SeqNumber(7), flags, 1000);
    let mut bytes = Vec::new();
    packet.emit(data, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_flood_of_syns_costs_syns_and_no_packet_of_a_connection() {
    const SYNS: u32 = 3000;
    const DATA: u32 = 200;
    if !permitted("flood") {
        return;
    }
    let namespace = Namespace::create("flood").unwrap();
    // All packets wait in the kernel's queue before the first is read.
    let tuns = namespace.run(|| {
        netlink::prepare_node().unwrap();
        let netlink = Netlink::open().unwrap();
        let tuns = ["link0", "link1"].map(|name| {
            let tun = Tun::open(name, Offload::Full, 1500).unwrap();
            netlink.set_queue_length(name, 4096).unwrap();
            netlink.set_up(name).unwrap();
            tun
        });
        netlink.add_address("link0", OWN.into(), 24).unwrap();
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).unwrap();
        let to = SocketAddr::from((PEER, 0)).into();
        let send = |packet: &[u8]| assert_eq!(raw.send_to(packet, &to).unwrap(), packet.len());
        for number in 0..SYNS {
            send(&segment(number, Flags::SYN, &[]));
            if number % (SYNS / DATA) == 0 {
                send(&segment(number, Flags::ACK, &[7; 100]));
            }
        }
        assert_eq!(netlink.counts("link0").unwrap().send_dropped, 0);
        tuns
    });
    let running =
        Inline::new(Carrying, tuns.unwrap(), &[], Clock::start()).unwrap().start().unwrap();
    let counts = (0..5000).find_map(|_| {
        sleep(Duration::from_millis(2));
        let counts = running.call(|_, _, counts| *counts).unwrap();
        let read = counts.devices[Side::Lan as usize].read;
        (read == u64::from(SYNS + DATA)).then_some(counts)
    });
    let Some(counts) = counts else {
        panic!("{:?}", running.call(|_, _, counts| *counts));
    };
    assert_eq!(counts.consumed, u64::from(DATA), "{counts:?}");
    assert_eq!(counts.passed + counts.overload, u64::from(SYNS), "{counts:?}");
    // What is read before there is an overload passes, and then four to one of sixteen.
    assert!((1500..2700).contains(&counts.overload), "{counts:?}");
}
