use super::*;
use crate::{BlindAttacker, Forger, Guesser};
use base::{Seed, Time};
use host::{Middlebox, Outbox, Port, Verdict};
use wire::{Payload, Segment, Udp};

fn forgery() -> Forgery {
    let [attacker, source, destination] = [9, 1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    let target = source;
    Forgery { attacker, source, destination, destination_port: 5001, target, size: 180 }
}

/// A segment of 100 bytes from the victim, or an acknowledgment for it.
fn segment(seq: u32, ack: Option<u32>) -> Packet {
    let Forgery { source, destination, .. } = forgery();
    let mut packet = Packet::BLANK;
    let mut tcp = Segment { copy: CopyId(seq), ..Segment::default() };
    if let Some(ack) = ack {
        (packet.ip.source, packet.ip.destination) = (destination, source);
        (tcp.source_port, tcp.destination_port, tcp.ack) = (5001, 50_000, SeqNumber(ack));
    } else {
        (packet.ip.source, packet.ip.destination) = (source, destination);
        (tcp.source_port, tcp.destination_port, tcp.seq) = (50_000, 5001, SeqNumber(seq));
        packet.payload.len = 100;
    }
    packet.body = Body::Tcp(tcp);
    packet
}

fn forged() -> Packet {
    let Forgery { attacker, target, .. } = forgery();
    let body = Notices::default().blank(&forgery());
    Packet { ip: Ip::new(attacker, target), body, ..Packet::BLANK }
}

fn pass(middlebox: &mut impl Middlebox, mut packet: Packet) -> (Packet, Vec<Packet>) {
    let mut outbox = Outbox::default();
    let mut cx = outbox.context();
    assert_eq!(middlebox.packet(Time::ZERO, Some(Port(0)), &mut packet, &mut cx), Verdict::Forward);
    (packet, outbox.into_packets())
}

fn notice_in(packet: &Packet) -> CorruptionNotice {
    let Body::Icmp(Icmp::Corruption { notice, .. }) = packet.body else { panic!("no notice") };
    notice
}

#[test]
fn guesses_near_the_window_are_all_in_flight_and_reach_all_of_it() {
    let start = u32::MAX - 500; // It wraps.
    let random = Seed(1).stream("attack.0");
    let mut guesser = Guesser::new(forgery(), Notices::new(false), Aim::Window, random);
    for i in 0..20 {
        pass(&mut guesser, segment(start.wrapping_add(100 * i), None));
    }
    pass(&mut guesser, segment(0, Some(start.wrapping_add(1000))));
    let guesses: Vec<_> = (0..500).map(|_| notice_in(&pass(&mut guesser, forged()).0)).collect();
    assert!(guesses.iter().all(|n| (n.source_port, n.copy) == (50_000, CopyId::NONE)));
    let places = guesses.iter().map(|n| n.seq.beyond(SeqNumber(start)));
    let (least, most) = (places.clone().min(), places.max());
    assert!(least >= Some(1000) && least < Some(1050), "{least:?}");
    assert!(most < Some(2000) && most >= Some(1950), "{most:?}");
}

#[test]
fn guesses_anywhere_and_of_nonces_are_uniform() {
    let random = Seed(1).stream("attack.0");
    let mut guesser = Guesser::new(forgery(), Notices::new(true), Aim::Anywhere, random);
    pass(&mut guesser, segment(7, None));
    let guesses: Vec<_> = (0..4000).map(|_| notice_in(&pass(&mut guesser, forged()).0)).collect();
    let quarters = |number: fn(&CorruptionNotice) -> u32| {
        let mut counts = [0; 4];
        guesses.iter().for_each(|notice| counts[(number(notice) >> 30) as usize] += 1);
        counts
    };
    // 1000 each, with a standard deviation of 27.
    for count in [quarters(|n| n.seq.0), quarters(|n| n.copy.0)].concat() {
        assert!((870..=1130).contains(&count), "{count}");
    }
}

#[test]
fn datagrams_leave_the_forger_as_notices_of_the_same_size() {
    let Forgery { attacker, target, size, .. } = forgery();
    let udp = Udp { source_port: 9, destination_port: 9 };
    let payload = Payload { len: u32::from(size) - 28, ..Payload::default() };
    let inert =
        Packet { ip: Ip::new(attacker, target), body: Body::Udp(udp), payload, ..Packet::BLANK };
    let (mut leaving, mut outbox) = (inert, Outbox::default());
    let mut cx = outbox.context();
    BlindAttacker::new(forgery(), Notices::default(), 9).packet(
        Time::ZERO,
        None,
        &mut leaving,
        &mut cx,
    );
    assert_eq!((leaving, leaving.len()), (forged(), inert.len()));
    // What passes on its way from elsewhere is not the attacker's.
    assert_eq!(pass(&mut BlindAttacker::new(forgery(), Notices::default(), 9), inert).0, inert);
}

#[test]
fn notices_of_others_stay_as_they_are() {
    let random = Seed(1).stream("attack.0");
    let mut guesser = Guesser::new(forgery(), Notices::new(true), Aim::Window, random);
    pass(&mut guesser, segment(7, None));
    let mut honest = forged();
    honest.ip.source = IpAddr::from([10, 0, 0, 3]);
    assert_eq!(pass(&mut guesser, honest).0, honest);
}

#[test]
fn a_tap_claims_of_every_second_packet_of_data_that_it_was_corrupted() {
    let mut tap = Forger::new(forgery(), Notices::default(), 2, Time::ZERO, Time::NEVER);
    let mut sent = Vec::new();
    for i in 1..=6 {
        sent.extend(pass(&mut tap, segment(100 * i, None)).1);
        assert!(pass(&mut tap, segment(0, Some(100 * i))).1.is_empty());
    }
    let copies: Vec<_> = sent.iter().map(|packet| notice_in(packet).copy.0).collect();
    assert_eq!(copies, [200, 400, 600]);
    assert!(
        sent.iter().all(|packet| (packet.ip.destination, packet.len()) == (forgery().target, 180))
    );
}

#[test]
fn inert_datagrams_are_as_long() {
    let mut tap = Forger::new(forgery(), Notices::default(), 1, Time::ZERO, Time::NEVER).inert();
    let (_, sent) = pass(&mut tap, segment(100, None));
    assert!(matches!(sent[0].body, Body::Udp(_)) && sent[0].len() == 180);
}
