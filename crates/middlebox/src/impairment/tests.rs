use super::*;
use base::{Duration, Seed};
use core::net::IpAddr;
use host::{Boxes, Outbox};
use wire::{Icmp, Ip, MobilityMessage, Outcome, Segment, Udp};

const PORT: Option<Port> = Some(Port(2));

fn ms(ms: u64) -> Span {
    Span(Duration::from_millis(ms))
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn packet(body: Body) -> Packet {
    let [source, destination] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    Packet { ip: Ip::new(source, destination), body, ..Packet::BLANK }
}

fn segment(source_port: u16, destination_port: u16) -> Packet {
    packet(Body::Tcp(Segment { source_port, destination_port, ..Segment::default() }))
}

fn resume() -> Packet {
    let message = MobilityMessage::Resume { outcome: Outcome::Complete, incarnation: 1 };
    packet(Body::Mobility(Mobility::new(1, message)))
}

fn impaired(settings: Impairment, from: Option<Vec<Port>>) -> Impaired {
    Impaired::new(settings, from, Seed(1).stream("impairment"))
}

/// Whether packets pass at a time.
fn passes(settings: &Impairment, from: Option<Vec<Port>>, now: Time, packet: &Packet) -> bool {
    let mut middlebox = impaired(settings.clone(), from);
    let mut outbox = Outbox::default();
    let verdict = middlebox.packet(now, PORT, &mut packet.clone(), &mut outbox.context());
    assert!(outbox.is_empty());
    verdict == Verdict::Forward
}

#[test]
fn packets_are_selected_by_protocol_port_neighbour_and_time() {
    let all = Impairment { loss: 1.0, ..Impairment::default() };
    let udp = Impairment { protocol: Protocol::Udp, ..all.clone() };
    let handover = Impairment { ports: vec![59_434], ..udp.clone() };
    let transfers = Impairment { protocol: Protocol::Tcp, ..handover.clone() };
    let icmp = Impairment { protocol: Protocol::Icmp, ..all.clone() };
    let datagram = packet(Body::Udp(Udp { source_port: 9, destination_port: 53 }));
    let echo = packet(Body::Icmp(Icmp::EchoRequest { id: 1, seq: 1 }));
    let packets = [resume(), datagram, segment(4000, 59_434), segment(59_434, 4000), segment(1, 2)];
    let packets = packets.into_iter().chain([echo]);
    let lost = |settings: &Impairment| -> Vec<bool> {
        let lost = packets.clone().map(|packet| !passes(settings, None, at(0), &packet));
        lost.collect()
    };
    assert_eq!(lost(&all), [true; 6]);
    assert_eq!(lost(&udp), [true, true, false, false, false, false]);
    assert_eq!(lost(&handover), [true, false, false, false, false, false]);
    assert_eq!(lost(&transfers), [false, false, true, true, false, false]);
    assert_eq!(lost(&icmp), [false, false, false, false, false, true]);
    // By the link, and by the time.
    assert!(passes(&all, Some(vec![Port(4)]), at(0), &resume()));
    assert!(!passes(&all, Some(vec![Port(4), Port(2)]), at(0), &resume()));
    let for_a_while = Impairment { start: Some(ms(10)), stop: Some(ms(20)), ..all };
    let passed = [9, 10, 19, 20].map(|ms| passes(&for_a_while, None, at(ms), &resume()));
    assert_eq!(passed, [true, false, false, true]);
}

#[test]
fn the_ports_of_a_protocol_without_ports_are_refused() {
    let settings = Impairment { ports: vec![7], ..Impairment::default() };
    assert!(settings.check().is_err());
    assert!(Impairment { protocol: Protocol::Udp, ..settings }.check().is_ok());
}

/// When, and which, packets come out of a box that gets one each millisecond.
fn outcome(settings: Impairment, packets: u32) -> (Vec<(Time, u32)>, Impaired) {
    let mut middlebox = impaired(settings, None);
    let mut outbox = Outbox::default();
    let mut out = Vec::new();
    for n in 0..=packets + 1000 {
        let now = at(n.into());
        while middlebox.next_wake() <= now {
            middlebox.wake(now, &mut outbox.context());
        }
        if n < packets {
            let mut packet = resume();
            packet.payload.len = n;
            let verdict = middlebox.packet(now, PORT, &mut packet, &mut outbox.context());
            if verdict == Verdict::Forward {
                out.push((now, n));
            }
        }
        out.extend(outbox.passed.drain(..).map(|(_, packet)| (now, packet.payload.len)));
    }
    (out, middlebox)
}

#[test]
fn a_delay_keeps_the_order() {
    let (out, _) = outcome(Impairment { delay: Some(ms(30)), ..Impairment::default() }, 100);
    assert!(out.into_iter().eq((0..100).map(|n| (at(u64::from(n) + 30), n))));
}

#[test]
fn the_shares_of_lost_duplicated_and_reordered_packets_are_as_set() {
    let settings = Impairment {
        loss: 0.3,
        duplication: 0.2,
        reordering: 0.1,
        reordering_delay: ms(5),
        ..Impairment::default()
    };
    let (out, middlebox) = outcome(settings, 10_000);
    let Counts { selected, lost, duplicated, reordered } = middlebox.counts;
    assert_eq!(selected, 10_000);
    // Standard deviations are 46, 33 and 28.
    assert!((2800..=3200).contains(&lost), "{lost}");
    assert!((1270..=1530).contains(&duplicated), "{duplicated}");
    assert!((730..=950).contains(&reordered), "{reordered}");
    assert_eq!(out.len() as u64, selected - lost + duplicated);
    let late = out.iter().filter(|&&(now, n)| now != at(n.into()));
    let late: Vec<_> = late.collect();
    assert_eq!(late.len() as u64, reordered);
    assert!(late.iter().all(|&&(now, n)| now == at(u64::from(n) + 5)));
}

#[test]
fn boxes_behind_it_get_the_packets_that_were_delayed() {
    let mut boxes = Boxes::default();
    let delay = Impairment { delay: Some(ms(10)), ..Impairment::default() };
    let kept = packet(Body::Tcp(Segment::default()));
    for _ in 0..2 {
        boxes.add(Box::new(impaired(delay.clone(), None)));
    }
    assert_eq!(boxes.packet(at(0), PORT, &mut kept.clone()), Verdict::Consume);
    let mut held = 0;
    boxes.held_payloads(&mut |_| held += 1);
    assert_eq!(held, 1);
    for now in [at(10), at(20)] {
        assert_eq!(boxes.next_wake(), now);
        assert!(boxes.outbox.is_empty());
        boxes.wake(now);
    }
    assert_eq!(boxes.outbox.clone().into_packets(), [kept]);
}
