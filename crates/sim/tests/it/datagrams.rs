//! Traffic that does not respond: it fills what it is given, and TCP gets the rest.

use crate::common::*;
use base::{Duration, Rate, Seed};
use host::{DatagramFlow, DatagramSink, DatagramSource, OnOff};
use link::Queue;

const UDP_PORT: u16 = 9;

/// A path of 1 Mbit/s with datagrams of 1000 bytes beside the flow, or without it.
fn lab(datagrams: u64, bursts: Option<OnOff>, size: u64) -> Lab {
    let hop = Hop { rate: mbps(1), queue: Queue::Packets(20), ..Hop::default() };
    let mut lab = Path { size: Some(size), ..Path::over(hop) }.build();
    let (sender, receiver) = (lab.sender(), lab.receiver());
    let flow = DatagramFlow {
        stream: 1,
        remote: receiver.address(),
        remote_port: UDP_PORT,
        local_port: 1009,
        payload: 972,
        rate: Rate::from_bps(datagrams).expect("it is not 0"),
        start: millis(40),
        stop: secs(30),
        bursts,
    };
    lab.world.host_mut(receiver).take_datagrams(UDP_PORT);
    let source = DatagramSource::new(flow, Seed(1).stream("datagrams"));
    lab.world.host_mut(sender).send_datagrams(source);
    lab.world.wake(sender);
    lab
}

fn ends(lab: &Lab) -> (u64, DatagramSink) {
    let sink = lab.world.host(lab.receiver()).datagram_sink(UDP_PORT);
    let sources = lab.world.host(lab.sender()).datagram_sources();
    (sources[0].sent, sink.expect("it takes datagrams").clone())
}

#[test]
fn every_datagram_arrives_or_finds_the_queue_full() {
    let mut lab = lab(3_000_000, None, 0);
    lab.run_to_peace(100_000);
    let (sent, sink) = ends(&lab);
    // One of 1000 bytes every 8/3 ms for 29.96 s.
    assert!(sent.abs_diff(11_235) <= 1, "{sent}");
    let link = lab.world.link(lab.links[0].0);
    // Some of what the queue refused are the few segments of the flow.
    let segments = link.packets + link.dropped - sent;
    assert!(segments < 20);
    assert!((sent..=sent + segments).contains(&(sink.received + link.dropped)));
    assert_eq!(sink.bytes, sink.received * 972);
    assert_eq!(sink.late, 0);
    // The link carries 125 a second, and at the end what is queued.
    assert!(sink.received.abs_diff(3_745 + 20) < 10, "{}", sink.received);
}

#[test]
fn tcp_gets_what_on_off_traffic_leaves() {
    let [on, off] = [500, 500].map(Duration::from_millis);
    let received = |datagrams, bursts| {
        let mut lab = lab(datagrams, bursts, 100_000_000);
        lab.world.run_until(secs(30));
        assert!(ends(&lab).1.received > 0);
        lab.received()
    };
    let (little, much) = (received(100_000, None), received(1_500_000, Some(OnOff { on, off })));
    assert!(little > 2 * much && much > 50_000, "{little} {much}");
}

#[test]
fn datagrams_are_bytes_as_well() {
    let digest = |bytes: bool| {
        let mut lab = lab(400_000, None, 100_000);
        if bytes {
            lab.world.byte_mode();
        }
        lab.world.digest();
        lab.run_to_peace(100_000);
        assert_eq!(lab.world.byte_fault(), None);
        assert_eq!(ends(&lab).1.late, 0);
        lab.world.observations().1
    };
    assert_eq!(digest(true), digest(false));
}

#[test]
fn datagrams_without_a_receiver_are_unmatched() {
    let mut lab = lab(400_000, None, 0);
    let (sender, receiver) = (lab.sender(), lab.receiver());
    let other = *lab.world.host(sender).datagram_sources()[0].flow();
    let flow = DatagramFlow { remote_port: 10, stop: secs(1), ..other };
    let source = DatagramSource::new(flow, Seed(1).stream("no_connection"));
    lab.world.host_mut(sender).send_datagrams(source);
    lab.world.wake(sender);
    lab.run_to_peace(100_000);
    let sent = lab.world.host(sender).datagram_sources()[1].sent;
    assert_eq!(lab.world.host(receiver).statistics().no_connection, sent);
}
