//! Control messages of mobile hosts that are not authentic.

use base::{Duration, Random, Seed, Time};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use host::{Middlebox, Outbox, Port, Verdict};
use middlebox::mhp::{Answer, Exchange, Received, Request, Transferred};
use middlebox::{BaseStation, Contents, Mobile, MobileAgent, Station};
use std::collections::BTreeMap;
use tcp::Config;
use wire::{Body, Ip, Mobility, MobilityMessage, Outcome, Packet, Payload};

/// Both addresses of a node.
fn node(number: u8) -> [IpAddr; 2] {
    let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number.into());
    [Ipv4Addr::new(10, 0, 0, number).into(), v6.into()]
}

fn station() -> BaseStation {
    let random = Seed(1).stream("station");
    BaseStation::new(Station::default(), node(1), &Config::default(), Contents::default(), random)
}

/// What a base station sends when a packet arrives from a link.
fn answers(station: &mut BaseStation, mut packet: Packet) -> Vec<Packet> {
    let mut outbox = Outbox::default();
    let verdict = station.packet(Time::ZERO, Some(Port(0)), &mut packet, &mut outbox.context());
    assert_eq!(verdict, Verdict::Consume);
    outbox.into_packets()
}

fn counts(station: &BaseStation) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    station.counts(&mut |name, value| {
        counts.insert(name, value);
    });
    counts
}

/// The message by which a mobile host says that it is at the base station.
fn attach() -> Packet {
    let random = Seed(2).stream("mobile");
    let (settings, config) = (Mobile::default(), Config::default());
    let mut agent = MobileAgent::new(&settings, node(2), &config, random);
    agent.on_attached(Time::ZERO, node(1)[0]);
    let mut outbox = Outbox::default();
    agent.wake(Time::ZERO, &mut outbox.context());
    let sent =
        outbox.into_packets().into_iter().find(|packet| matches!(packet.body, Body::Mobility(_)));
    sent.expect("it says where it is")
}

#[test]
fn who_knows_an_address_of_the_link_alone_is_told_that_by_which_others_know_the_base_station() {
    let (settings, config) = (Mobile::default(), Config::default());
    let none = Ipv4Addr::UNSPECIFIED.into();
    let own = [none, node(2)[1]];
    let mut agent = MobileAgent::new(&settings, own, &config, Seed(2).stream("mobile"));
    let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into();
    agent.on_attached(Time::ZERO, router);
    let mut outbox = Outbox::default();
    agent.wake(Time::ZERO, &mut outbox.context());
    let [solicit] = outbox.into_packets()[..] else { panic!("one message") };
    assert_eq!(solicit.ip.destination, router);
    // The kernel sends it from the host's address of the link.
    let of_host = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2).into();
    let arrives = Packet { ip: Ip::new(of_host, node(1)[1]), ..solicit };
    let [advertise] = answers(&mut station(), arrives)[..] else { panic!("one answer") };
    assert_eq!(advertise.ip.destination, of_host);
    // A forged one is not believed.
    let Body::Mobility(authentic) = advertise.body else { unreachable!() };
    let message = MobilityMessage::Advertise { station: node(9)[1] };
    let forged = Packet { body: Body::Mobility(Mobility { message, ..authentic }), ..advertise };
    for (mut packet, told) in [(forged, None), (advertise, Some(node(1)[1]))] {
        let mut outbox = Outbox::default();
        agent.packet(Time::ZERO, Some(Port(0)), &mut packet, &mut outbox.context());
        let sent = outbox.into_packets();
        assert_eq!(sent.first().map(|packet| packet.ip.destination), told);
    }
}

/// One that notes who is forgotten.
#[derive(Default)]
struct Forgotten(Vec<IpAddr>);

impl Exchange for Forgotten {
    type Requester = ();

    fn anew(&self, _: Random) -> Forgotten {
        Forgotten::default()
    }

    fn ask(&mut self, _: Time, _: &Request, _: IpAddr) -> bool {
        false
    }

    fn answer(&mut self, _: Time, (): (), _: Answer, _: Vec<Payload>) {}

    fn poll(&mut self, _: Time) -> Option<Transferred<()>> {
        None
    }

    fn forget(&mut self, mobile: IpAddr) {
        self.0.push(mobile);
    }

    fn held_payloads(&self, _: &mut dyn FnMut(Payload)) {}

    fn received(&self) -> Received {
        Received::default()
    }

    fn open(&self) -> usize {
        0
    }
}

#[test]
fn a_host_that_says_nothing_for_long_is_forgotten_with_all_that_leads_to_it() {
    let (settings, config) = (Station::default(), Config::default());
    let random = Seed(1).stream("station");
    let mut station =
        BaseStation::with_exchange(settings, node(1), &config, random, |_| Forgotten::default());
    let mut outbox = Outbox::default();
    let cx = &mut outbox.context();
    assert_eq!(station.packet(Time::ZERO, Some(Port(0)), &mut attach(), cx), Verdict::Consume);
    assert!(station.exchange_mut().0.is_empty());
    let due = station.next_wake();
    assert!(due > Time::ZERO + Duration::from_secs(60) && due != Time::NEVER);
    station.wake(due, cx);
    assert_eq!(station.exchange_mut().0, [node(2)[0]]);
}

#[test]
fn a_forged_message_has_no_answer_changes_nothing_and_is_counted() {
    let mut station = station();
    let Body::Mobility(authentic) = attach().body else { unreachable!() };
    let end = (node(2)[0], 4000);
    let messages = [
        authentic.message,
        MobilityMessage::Resume { outcome: Outcome::Lost, incarnation: 1 },
        MobilityMessage::Reset { mobile: end, fixed: (node(9)[0], 80), is_done: false },
        MobilityMessage::Reset { mobile: end, fixed: (node(9)[0], 80), is_done: true },
    ];
    let mut random = Seed(3).stream("tags");
    let mut sent = 0;
    for round in 0..250_u64 {
        for message in messages {
            // A tag that is nearly right, and those of others.
            let mut tag = authentic.tag;
            match round {
                0 => tag[15] ^= 1,
                _ => tag[..8].copy_from_slice(&random.bits().to_be_bytes()),
            }
            let body = Body::Mobility(Mobility { attachment: round, message, tag });
            let from = node((2 + round % 200) as u8)[0];
            let packet = Packet { ip: Ip::new(from, node(1)[0]), body, ..Packet::BLANK };
            assert_eq!(answers(&mut station, packet), []);
            sent += 1;
        }
    }
    assert_eq!(station.next_wake(), Time::NEVER);
    let mut found = counts(&station);
    assert_eq!(found.remove("messages that are not authentic"), Some(sent));
    assert!(found.values().all(|&count| count == 0), "{found:?}");
}

#[test]
fn one_that_is_authentic_is_answered_but_not_from_another_host_or_with_other_contents() {
    let (mut station, packet) = (station(), attach());
    let Body::Mobility(authentic) = packet.body else { unreachable!() };
    let other = Packet { ip: Ip::new(node(3)[0], node(1)[0]), ..packet };
    assert_eq!(answers(&mut station, other), []);
    let later = Mobility { attachment: authentic.attachment + 1, ..authentic };
    assert_eq!(answers(&mut station, Packet { body: Body::Mobility(later), ..packet }), []);
    assert_eq!(counts(&station)["messages that are not authentic"], 2);
    let answer = answers(&mut station, packet);
    assert!(matches!(answer[..], [Packet { body: Body::Mobility(_), .. }]), "{answer:?}");
    assert_eq!(counts(&station)["attachments confirmed"], 1);
}
