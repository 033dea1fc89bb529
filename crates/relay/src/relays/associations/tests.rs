//! Boxes with many associations.

use super::*;
use base::{Duration, Seed};
use core::net::Ipv4Addr;
use wire::srp::{Limits, Pdu};

const BOX: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// What was sent last, and how many packets were sent.
struct Sent {
    packet: Packet,
    count: u32,
}

impl Outlet<Half> for Sent {
    fn packet(&mut self) -> &mut Packet {
        &mut self.packet
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&Half>) {
        self.count += 1;
    }
}

fn sent() -> Sent {
    Sent { packet: Packet::BLANK, count: 0 }
}

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

fn pdu(token: u32, pdu: Pdu) -> Packet {
    let remote = IpAddr::from((0x0a01_0000 + token).to_be_bytes());
    let srp = Srp { source_port: Srp::PORT, destination_port: Srp::PORT, token, pdu };
    Packet { ip: Ip::new(remote, BOX), body: Body::Srp(srp), ..Packet::BLANK }
}

const OPEN: Pdu = Pdu::Open(Limits { segments: 100, window: 100_000, streams: 10 });

/// A box with associations that peers have opened, a microsecond apart.
fn with(count: u32) -> Associations {
    let mut associations = Associations::default();
    associations.enable(Config::default(), Seed(1).stream("box"));
    for token in 0..count {
        associations.handle(at(token.into()), &pdu(token, OPEN), true);
        associations.transmit(at(token.into()), &mut sent());
    }
    associations
}

#[test]
fn a_packet_concerns_one_association_of_ten_thousand() {
    const COUNT: u32 = 10_000;
    let mut associations = with(COUNT);
    let keep_alive = Config::default().keep_alive.expect("it is the default");
    assert_eq!(associations.poll_timeout(), at(0) + keep_alive);
    for n in 0..COUNT {
        let (now, mut outlet) = (at(u64::from(COUNT + n)), sent());
        let token = n * 7 % COUNT;
        associations.handle(now, &pdu(token, Pdu::Probe { number: 1 }), true);
        assert!(associations.poll_incoming().is_none() && associations.poll_events().is_none());
        associations.transmit(now, &mut outlet);
        assert_eq!(outlet.count, 1, "a SACK");
        assert!(associations.poll_timeout() > now);
    }
}

#[test]
fn only_those_that_were_used_are_asked() {
    let mut associations = with(100);
    associations.handle(at(200), &pdu(42, Pdu::Probe { number: 1 }), true);
    let mut asked = Vec::new();
    associations.peers.find_used(|token, _| {
        asked.push(token);
        None::<()>
    });
    assert_eq!(asked, [42]);
    associations.transmit(at(200), &mut sent());
    // The first ten keep-alives are due.
    let later = at(9) + Config::default().keep_alive.expect("it is the default");
    associations.handle_timeout(later);
    let mut outlet = sent();
    associations.peers.for_used(|_| outlet.count += 1);
    assert_eq!(outlet.count, 10);
    associations.transmit(later, &mut outlet);
    assert_eq!(outlet.count, 20, "a probe each");
}

#[test]
fn the_deadline_is_the_first_of_all_whatever_happens() {
    let mut associations = with(40);
    let mut random = Seed(5).stream("steps");
    let mut now = at(1000);
    for _ in 0..2000 {
        let token = (random.bits() % 40) as u32;
        match random.bits() % 5 {
            0 => associations.handle(now, &pdu(token, OPEN), true),
            1 => associations.handle(now, &pdu(token, Pdu::Probe { number: 3 }), true),
            2 => {
                associations.handle(now, &pdu(token, Pdu::Reset { reason: Reason::Aborted }), true)
            }
            3 => associations.remove(token),
            _ => {
                now = now.max(associations.poll_timeout().min(now + Duration::from_secs(9)));
                associations.handle_timeout(now);
            }
        }
        while associations.poll_events().is_some() {}
        associations.transmit(now, &mut sent());
        let deadlines = associations.peers.iter().map(|peer| peer.association.poll_timeout());
        let first = deadlines.min().unwrap_or(Time::NEVER);
        assert_eq!(associations.poll_timeout(), first);
        assert!(first > now);
    }
}

#[test]
fn a_late_open_does_not_open_an_association_again() {
    let mut associations = with(1);
    associations.for_all(Association::abort);
    let mut outlet = sent();
    associations.transmit(at(10), &mut outlet);
    assert_eq!((outlet.count, associations.open_associations()), (1, 0), "it is reset");
    associations.handle(at(20), &pdu(0, OPEN), true);
    associations.transmit(at(20), &mut outlet);
    assert_eq!((outlet.count, associations.open_associations()), (1, 0), "no answer");
    // Others are opened, and the same one a long time later.
    associations.handle(at(30), &pdu(1, OPEN), true);
    assert_eq!(associations.open_associations(), 1);
    associations.handle(at(0) + Duration::from_secs(200), &pdu(0, OPEN), true);
    assert_eq!(associations.open_associations(), 2);
}

#[test]
fn an_association_that_is_adopted_has_the_rate_and_the_segments_of_the_new_hop() {
    let rate = |bps| base::Rate::from_bps(bps).expect("it is not 0");
    let mut old = Associations::default();
    let slow = Config { rate: Some(rate(1_000_000)), ..Config::default() };
    old.enable(slow.clone(), Seed(1).stream("old"));
    old.handle(at(0), &pdu(7, OPEN), true);
    for (name, config) in [
        ("given", Config { rate: Some(rate(3_000_000)), segment_size: 200, ..slow.clone() }),
        ("measured", Config { rate: None, segment_size: 200, ..slow }),
    ] {
        let snapshot = old.snapshot(at(5), 7).expect("it is there");
        let mut new = Associations::default();
        new.enable(config.clone(), Seed(2).stream("new"));
        assert!(new.adopt(at(9), BOX, (snapshot, Handoff::Restored)));
        let association = new.get_mut(7).expect("it is there");
        assert_eq!(association.rate(), config.rate, "{name}");
        let ends = Ends { client: BOX, server: BOX, client_port: 1, server_port: 2 };
        let id = association.open(at(9), ends).expect("there is room");
        assert_eq!(association.stream(id).expect("it is there").segment_size(), 200, "{name}");
    }
}

#[test]
fn pdus_of_an_association_that_was_renewed_find_it_and_earlier_ones_are_ignored() {
    let limits = Limits { segments: 100, window: 100_000, streams: 10 };
    // Of the peer that has opened association 5.
    let of_peer = |token, what| Packet { ip: pdu(5, OPEN).ip, ..pdu(token, what) };
    let mut associations = with(6);
    let mut answers = |token, what| {
        let mut outlet = sent();
        associations.handle(at(100), &of_peer(token, what), true);
        associations.transmit(at(100), &mut outlet);
        let Body::Srp(srp) = outlet.packet.body else { return None };
        Some((srp.token, srp.pdu))
    };
    let probe = Pdu::Probe { number: 1 };
    let renew = |first| Pdu::Renew { first, limits };
    assert!(matches!(answers(7, renew(5)), Some((7, Pdu::Opened(_)))));
    assert!(matches!(answers(7, probe), Some((7, Pdu::Sack(_)))));
    for earlier in [5, 6] {
        assert_eq!(answers(earlier, probe), None);
        assert_eq!(answers(earlier, renew(5)), None);
    }
    // Again, as the answer may be lost.
    assert!(matches!(answers(7, renew(5)), Some((7, Pdu::Opened(_)))));
    let refused = Pdu::Reset { reason: Reason::Unknown };
    assert_eq!(answers(8, probe), Some((8, refused)));
    assert_eq!(answers(21, renew(20)), Some((21, refused)));
}

/// Tokens are counted on from the largest number to 0.
#[test]
fn the_tokens_of_an_association_wrap_around() {
    let limits = Limits { segments: 100, window: 100_000, streams: 10 };
    let mut associations = with(0);
    let of_peer = |token, what| {
        let (source_port, destination_port) = (Srp::PORT, Srp::PORT);
        let srp = Srp { source_port, destination_port, token, pdu: what };
        Packet { body: Body::Srp(srp), ..pdu(5, what) }
    };
    associations.handle(at(1), &of_peer(u32::MAX, OPEN), true);
    associations.handle(at(2), &of_peer(1, Pdu::Renew { first: u32::MAX, limits }), true);
    associations.transmit(at(2), &mut sent());
    for (token, answers) in [(u32::MAX, 0), (0, 0), (1, 1)] {
        let mut outlet = sent();
        associations.handle(at(3), &of_peer(token, Pdu::Probe { number: 1 }), true);
        associations.transmit(at(3), &mut outlet);
        assert_eq!(outlet.count, answers, "{token}");
    }
}
