//! Gateways without a network between them.

use super::egress::decapsulated;
use super::*;
use crate::{Reading, Reporter};
use base::{Seed, Time};
use core::net::IpAddr;
use host::{LinkEvent, Middlebox, Outbox, Port, Verdict};
use wire::{
    Body, Causes, CopyId, CorruptionNotice, Ecn, Esp, EspNotice, Icmp, Ip, Packet, PathFields,
    Probability, Segment, SeqNumber,
};

const ECNS: [Ecn; 4] = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable, Ecn::Congested];

fn address(n: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, n])
}

fn address_v6(n: u8) -> IpAddr {
    IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n])
}

/// From gateway 3 to gateway 4.
fn association() -> Association {
    Association::new(Ends { source: address(3), destination: address(4), spi: 0x1234, key: 99 })
}

/// Segment `n` of a connection from host 1 to host 2.
fn segment(n: u32) -> Packet {
    let segment = Segment {
        source_port: 9,
        destination_port: 5001,
        seq: SeqNumber(1000 * n),
        copy: CopyId(700 + n),
        ..Segment::default()
    };
    let ip = Ip::new(address(1), address(2));
    let mut packet = Packet { ip, body: Body::Tcp(segment), ..Packet::BLANK };
    packet.payload.len = 536;
    packet
}

struct Gateways {
    ingress: Ingress,
    egress: Egress,
}

fn gateways() -> Gateways {
    let association = association();
    Gateways {
        ingress: Ingress::new(association.clone(), vec![address_v6(2), address(2)]),
        egress: Egress::new(association),
    }
}

/// Gateways whose ingress knows the connection, and remembers so many packets.
fn resolving(most: usize) -> Gateways {
    let Gateways { ingress, egress } = gateways();
    let mut ingress = ingress.resolves([address(3), address_v6(3)], most);
    ingress.register(address(1), address(2), 5001, 180);
    Gateways { ingress, egress }
}

/// What a box makes of a packet that came by a link, and what it sends.
fn pass(middlebox: &mut impl Middlebox, mut packet: Packet) -> (Option<Packet>, Vec<Packet>) {
    let mut outbox = Outbox::default();
    let mut cx = outbox.context();
    let verdict = middlebox.packet(Time::ZERO, Some(Port(0)), &mut packet, &mut cx);
    ((verdict == Verdict::Forward).then_some(packet), outbox.into_packets())
}

impl Gateways {
    fn enter(&mut self, packet: Packet) -> Packet {
        let (outer, sent) = pass(&mut self.ingress, packet);
        assert_eq!(sent, []);
        outer.expect("it enters")
    }

    fn leave(&mut self, packet: Packet) -> Option<Packet> {
        pass(&mut self.egress, packet).0
    }

    /// The notices that the ingress sends when this notice arrives; it consumes the latter.
    fn resolve(&mut self, notice: EspNotice) -> Vec<CorruptionNotice> {
        let ip = Ip::new(address(5), notice.source);
        let body = Body::Icmp(Icmp::EspCorruption { notice, size: 56 });
        let (left, sent) = pass(&mut self.ingress, Packet { ip, body, ..Packet::BLANK });
        assert_eq!(left, None);
        let notice = |packet: &Packet| {
            let Body::Icmp(Icmp::Corruption { notice, size: 180 }) = packet.body else {
                panic!("not a notice of 180 bytes: {packet:?}")
            };
            assert_eq!((packet.ip.source, packet.ip.destination), (address(3), notice.source));
            notice
        };
        sent.iter().map(notice).collect()
    }
}

fn esp(packet: &Packet) -> Esp {
    let Body::Esp(esp) = packet.body else { panic!("not ESP") };
    esp
}

fn notice_of(packet: &Packet) -> EspNotice {
    let Ip { source, destination, .. } = packet.ip;
    EspNotice { source, destination, esp: esp(packet) }
}

#[test]
fn between_the_gateways_nothing_is_seen_but_the_outer_headers() {
    let mut gateways = gateways();
    let before = segment(7);
    let outer = gateways.enter(before);
    assert_eq!((outer.ip.source, outer.ip.destination), (address(3), address(4)));
    assert_eq!((esp(&outer).spi, esp(&outer).sequence), (0x1234, 1));
    assert_eq!((before.len(), outer.len(), outer.ip.hop_limit), (576, 632, 64));
    assert_eq!(esp(&gateways.enter(segment(8))).sequence, 2);
    let mut after = gateways.leave(outer).expect("it leaves");
    // The ingress was a hop.
    after.ip.hop_limit += 1;
    assert_eq!(after, before);
}

#[test]
fn what_is_not_for_the_other_side_does_not_enter() {
    let mut gateways = gateways();
    let mut other = segment(1);
    other.ip.destination = address(9);
    assert_eq!(pass(&mut gateways.ingress, other), (Some(other), Vec::new()));
    // Nor does what is no packet of this association leave.
    let mut outer = gateways.enter(segment(1));
    outer.body = Body::Esp(Esp { spi: 0x1235, ..esp(&outer) });
    assert_eq!(gateways.leave(outer), Some(outer));
    assert_eq!(gateways.leave(segment(1)), Some(segment(1)));
}

#[test]
fn the_last_hop_of_a_packet_is_not_into_the_tunnel() {
    let mut packet = segment(1);
    packet.ip.hop_limit = 1;
    assert_eq!(pass(&mut gateways().ingress, packet).0, None);
}

#[test]
fn each_packet_leaves_once_and_none_that_is_64_behind() {
    let mut gateways = gateways();
    let outer: Vec<Packet> = (1..=200).map(|n| gateways.enter(segment(n))).collect();
    let at = |n: usize| outer[n - 1];
    assert!(gateways.leave(at(100)).is_some());
    assert_eq!(gateways.leave(at(100)), None, "a replay");
    // RFC 4303 §3.4.3: of 64 numbers the highest is the last.
    assert_eq!(gateways.leave(at(36)), None);
    for n in [37, 99, 38] {
        assert!(gateways.leave(at(n)).is_some(), "{n}");
        assert_eq!(gateways.leave(at(n)), None, "{n} again");
    }
    assert!(gateways.leave(at(200)).is_some());
    assert_eq!(gateways.leave(at(98)), None);
    // The ingress has not sent this one yet.
    let mut forged = at(200);
    forged.body = Body::Esp(Esp { sequence: 201, ..esp(&forged) });
    assert_eq!(gateways.leave(forged), None);
    assert_eq!(esp(&gateways.enter(segment(0))).sequence, 201);
}

#[test]
fn ends_have_as_many_packets_as_are_under_way() {
    let mut gateways = gateways();
    for n in 0..10_000 {
        let outer = gateways.enter(segment(n));
        // Every tenth gets lost.
        if n % 10 > 0 {
            assert!(gateways.leave(outer).is_some());
        }
    }
    let kept = format!("{:?}", gateways.egress).matches("Some(Packet").count();
    assert!(kept <= 7, "{kept}");
}

#[test]
fn marks_of_congestion_go_in_and_out_as_rfc_6040_says() {
    // Figure 4, by inner mark; outer: not capable, ECT(1), ECT(0), CE.
    let figure = [
        [Some(Ecn::NotCapable), Some(Ecn::NotCapable), Some(Ecn::NotCapable), None],
        [Some(Ecn::Capable1), Some(Ecn::Capable1), Some(Ecn::Capable1), Some(Ecn::Congested)],
        [Some(Ecn::Capable), Some(Ecn::Capable1), Some(Ecn::Capable), Some(Ecn::Congested)],
        [Some(Ecn::Congested); 4],
    ];
    for (inner, row) in ECNS.into_iter().zip(figure) {
        assert_eq!(ECNS.map(|outer| decapsulated(inner, outer)), row, "{inner:?}");
        let mut gateways = gateways();
        let mut packet = segment(1);
        packet.ip.ecn = inner;
        let mut outer = gateways.enter(packet);
        assert_eq!(outer.ip.ecn, inner);
        outer.ip.ecn = Ecn::Congested;
        assert_eq!(gateways.leave(outer).map(|packet| packet.ip.ecn), row[3]);
    }
}

/// What the fields of a packet say at the end of a tunnel in which one packet in two survives.
fn fields_behind(copies: bool, zero_size: bool) -> (u32, Causes<Probability>) {
    let Gateways { mut ingress, mut egress } = gateways();
    if copies {
        (ingress, egress) = (ingress.copying_fields(), egress.copying_fields());
    }
    let mut gateways = Gateways { ingress, egress };
    let mut packet = segment(1);
    let fields = PathFields::Exact { forward: Causes::SURVIVES, echoed: Causes::SURVIVES };
    fields.put(false, &mut packet.unparsed);
    packet.unparsed.set_zero_size(zero_size);
    let mut outer = gateways.enter(packet);
    let len = outer.len();
    if let Some(PathFields::Exact { mut forward, echoed }) = PathFields::of(&outer) {
        forward.corruption = forward.corruption.and(0.5);
        PathFields::Exact { forward, echoed }.renew(&mut outer);
    }
    let inner = gateways.leave(outer).expect("it leaves");
    let Some(PathFields::Exact { forward, .. }) = PathFields::of(&inner) else {
        panic!("no fields")
    };
    (len, forward)
}

#[test]
fn fields_include_the_tunnel_if_the_gateways_copy_them() {
    let half = Causes { corruption: Probability::ONE.and(0.5), ..Causes::SURVIVES };
    assert_eq!(fields_behind(false, true), (632, Causes::SURVIVES));
    assert_eq!(fields_behind(true, true), (632, half));
    // In either header they take 20 bytes if they take any.
    assert_eq!(fields_behind(false, false), (652, Causes::SURVIVES));
    assert_eq!(fields_behind(true, false), (672, half));
}

#[test]
fn the_detecting_node_notifies_the_ingress_which_notifies_the_source() {
    let mut gateways = resolving(10);
    let ends = gateways.ingress.association.ends();
    let mut reporter = Reporter::new(address(5), 180, Reading::Whole);
    // Whose packets are inside does not help it.
    reporter.register(address(1), address(2), 5001);
    let outer = gateways.enter(segment(7));
    assert_eq!(detected(&mut reporter, &outer), []);
    reporter.register_tunnel(ends);
    let [sent] = detected(&mut reporter, &outer)[..] else { panic!("not one") };
    assert_eq!((sent.ip.source, sent.ip.destination, sent.len()), (address(5), address(3), 180));
    let Body::Icmp(Icmp::EspCorruption { notice, .. }) = sent.body else { panic!("not a notice") };
    assert_eq!(notice, notice_of(&outer));

    let [notice] = gateways.resolve(notice)[..] else { panic!("not one") };
    assert_eq!((notice.source, notice.destination), (address(1), address(2)));
    assert_eq!((notice.source_port, notice.destination_port), (9, 5001));
    assert_eq!((notice.seq, notice.len, notice.copy), (SeqNumber(7000), 536, CopyId(707)));
}

/// What a reporter sends about a corrupted packet.
fn detected(reporter: &mut Reporter, packet: &Packet) -> Vec<Packet> {
    let mut outbox = Outbox::default();
    let mut cx = outbox.context();
    reporter.link(Time::ZERO, Port(0), LinkEvent::Corrupted(packet), &mut cx);
    outbox.into_packets()
}

#[test]
fn without_encryption_the_node_notifies_the_source_itself() {
    let mut gateways = gateways();
    let mut reporter = Reporter::new(address(5), 180, Reading::Whole);
    reporter.read(gateways.ingress.association.clone());
    let outer = gateways.enter(segment(7));
    assert_eq!(detected(&mut reporter, &outer), []);
    reporter.register(address(1), address(2), 5001);
    let [sent] = detected(&mut reporter, &outer)[..] else { panic!("not one") };
    assert_eq!(sent.ip.destination, address(1));
    let Body::Icmp(Icmp::Corruption { notice, .. }) = sent.body else { panic!("not a notice") };
    assert_eq!((notice.seq, notice.copy), (SeqNumber(7000), CopyId(707)));
}

#[test]
fn the_ingress_notifies_of_a_packet_once_and_only_of_the_last_packets() {
    let mut gateways = resolving(10);
    let outer: Vec<Packet> = (1..=11).map(|n| gateways.enter(segment(n))).collect();
    let copies = |notices: Vec<CorruptionNotice>| -> Vec<u32> {
        notices.iter().map(|notice| notice.copy.0).collect()
    };
    assert_eq!(copies(gateways.resolve(notice_of(&outer[0]))), []);
    assert_eq!(copies(gateways.resolve(notice_of(&outer[1]))), [702]);
    assert_eq!(copies(gateways.resolve(notice_of(&outer[1]))), []);
    assert_eq!(copies(gateways.resolve(notice_of(&outer[10]))), [711]);
}

#[test]
fn packets_of_unregistered_flows_cause_no_notices_and_are_not_stored() {
    let mut gateways = resolving(10);
    let first = gateways.enter(segment(1));
    for n in 2..100 {
        let mut other = segment(n);
        let Body::Tcp(segment) = &mut other.body else { panic!("not TCP") };
        segment.destination_port = 80;
        let outer = gateways.enter(other);
        assert_eq!(gateways.resolve(notice_of(&outer)), []);
    }
    assert_eq!(gateways.resolve(notice_of(&first)).len(), 1);
}

#[test]
fn a_guessed_notice_is_not_resolved() {
    let mut gateways = resolving(1000);
    let outer: Vec<Packet> = (1..=1000).map(|n| gateways.enter(segment(n))).collect();
    // Numbers follow each other, and can be guessed; those of another packet do not help.
    let seen = notice_of(&outer[500]);
    for sequence in (0..=1001).chain([u32::MAX]) {
        for iv in [seen.esp.iv, [0; 8], u64::from(sequence).to_be_bytes()] {
            let guess = EspNotice { esp: Esp { sequence, iv, ..seen.esp }, ..seen };
            let expected = usize::from(guess == seen);
            assert_eq!(gateways.resolve(guess).len(), expected, "{sequence}");
        }
    }
    // All that differ in one bit.
    let seen = notice_of(&outer[600]);
    for bit in 0..64 {
        let iv = (u64::from_be_bytes(seen.esp.iv) ^ 1 << bit).to_be_bytes();
        assert_eq!(gateways.resolve(EspNotice { esp: Esp { iv, ..seen.esp }, ..seen }), []);
    }
    assert_eq!(gateways.resolve(seen).len(), 1);
    let initial: std::collections::BTreeSet<[u8; 8]> = outer.iter().map(|p| esp(p).iv).collect();
    assert_eq!(initial.len(), 1000);
}

#[test]
fn garbage_comes_to_nothing_and_takes_no_room() {
    let mut gateways = resolving(100);
    let outer: Vec<Packet> = (1..=500).map(|n| gateways.enter(segment(n))).collect();
    let last = notice_of(&outer[499]);
    let mut random = Seed(1).stream("garbage");
    let before = format!("{:?}", gateways.ingress).len();
    for _ in 0..20_000 {
        let bits = random.bits();
        let sequence = if bits.is_multiple_of(2) { bits as u32 } else { (bits >> 32) as u32 % 600 };
        let esp = Esp { sequence, iv: random.bits().to_be_bytes(), ..last.esp };
        assert_eq!(gateways.resolve(EspNotice { esp, ..last }), []);
        if !(1..=500).contains(&sequence) {
            let mut packet = outer[0];
            packet.body = Body::Esp(esp);
            assert_eq!(gateways.leave(packet), None);
        }
    }
    assert_eq!(format!("{:?}", gateways.ingress).len(), before);
    assert_eq!(gateways.resolve(last).len(), 1);
    assert!(gateways.leave(outer[499]).is_some());
}

#[test]
fn notices_about_other_associations_are_forwarded() {
    let mut gateways = resolving(10);
    let right = notice_of(&gateways.enter(segment(1)));
    let other_spi = EspNotice { esp: Esp { spi: 1, ..right.esp }, ..right };
    let other_end = EspNotice { destination: address(8), ..right };
    for notice in [other_spi, other_end] {
        let ip = Ip::new(address(5), address(3));
        let body = Body::Icmp(Icmp::EspCorruption { notice, size: 56 });
        let packet = Packet { ip, body, ..Packet::BLANK };
        assert_eq!(pass(&mut gateways.ingress, packet), (Some(packet), Vec::new()));
    }
}
