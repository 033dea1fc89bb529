//! Links that go down, and nodes that move: which hosts and boxes are notified, which routes
//! packets take, and that TCP completes its transfers.

use crate::common::*;
use base::{Duration, Time};
use core::net::IpAddr;
use host::{Context, LinkEvent, Middlebox, Port};
use link::{Config, Interval, Intervals, Outages, Queue, WhenDown};
use sim::{LinkId, NodeId, Roaming};
use std::sync::{Arc, Mutex};

fn hop() -> Config {
    let delay = Duration::from_millis(20);
    Config { rate: mbps(4), delay, queue: Queue::Packets(20), ..Config::default() }
}

fn interval<T>(start: u64, end: u64, value: T) -> Interval<T> {
    Interval { start: Duration::from_millis(start), end: Duration::from_millis(end), value }
}

fn outage(start: u64, end: u64) -> Outages {
    Outages::At(Intervals::new([interval(start, end, ())], None).expect("it makes sense"))
}

fn path() -> Path {
    Path { size: Some(1_000_000), ..Path::default() }
}

/// Records the link events that it gets.
#[derive(Clone, Default)]
struct LinkLog(Arc<Mutex<Vec<(Time, bool, IpAddr)>>>);

impl LinkLog {
    fn events(&self) -> Vec<(Time, bool, IpAddr)> {
        self.0.lock().expect("not poisoned").clone()
    }
}

impl Middlebox for LinkLog {
    fn inspects_packets(&self) -> bool {
        false
    }

    fn link(&mut self, now: Time, _: Port, event: LinkEvent<'_>, _: &mut Context<'_>) {
        let (up, peer) = match event {
            LinkEvent::Up { peer } => (true, peer),
            LinkEvent::Down { peer } => (false, peer),
            LinkEvent::Corrupted(_)
            | LinkEvent::Corrected(_)
            | LinkEvent::Dropped(_)
            | LinkEvent::Mtu { .. } => return,
        };
        self.0.lock().expect("not poisoned").push((now, up, peer));
    }
}

/// A path of one link that is down from 500 to 1500 ms.
fn interrupted(when_down: Option<WhenDown>) -> Lab {
    let link = Config { when_down, ..hop() };
    path().build_over(vec![(link.clone(), link)], |network, _, links| {
        network.add_outages(links[0].0, outage(500, 1500));
    })
}

#[test]
fn boxes_at_both_ends_are_notified_of_an_outage_once() {
    let mut lab = interrupted(None);
    let logs = [lab.sender(), lab.receiver()].map(|node| {
        let log = LinkLog::default();
        lab.world.add_box(node, Box::new(log.clone()));
        log
    });
    lab.run_to_peace(100_000);
    let peers = [lab.receiver().address(), lab.sender().address()];
    for (log, peer) in logs.iter().zip(peers) {
        assert_eq!(log.events(), [(millis(500), false, peer), (millis(1500), true, peer)]);
    }
}

#[test]
fn nothing_passes_a_link_that_is_down() {
    for when_down in [None, Some(WhenDown::DROP)] {
        let mut lab = interrupted(when_down);
        // What was flying arrives within 20 ms.
        lab.world.run_until(millis(521));
        let before = lab.received();
        lab.world.run_until(millis(1519));
        assert_eq!(lab.received(), before, "{when_down:?}");
        lab.run_to_peace(100_000);
        assert_eq!(lab.received(), 1_000_000, "{when_down:?}");
    }
}

#[test]
fn a_pause_loses_nothing_and_a_cut_loses_what_was_under_way() {
    let discarded = |when_down| {
        let mut lab = interrupted(when_down);
        lab.run_to_peace(100_000);
        assert_eq!(lab.world.in_flight(), 0);
        let (forward, backward) = lab.links[0];
        let (forward, backward) = (lab.world.link(forward), lab.world.link(backward));
        (forward.discarded + backward.discarded, lab.statistics().timeouts)
    };
    assert_eq!(discarded(Some(WhenDown::KEEP)).0, 0);
    let (lost, timeouts) = discarded(Some(WhenDown::DROP));
    assert!(lost > 10 && timeouts > 0, "{lost} {timeouts}");
}

#[test]
fn random_outages_are_the_same_for_the_same_seed() {
    let run = || {
        let mut lab = path().build_over(vec![(hop(), hop())], |network, _, links| {
            let (up, down) = (Duration::from_millis(300), Duration::from_millis(200));
            network.add_outages(links[0].1, Outages::Random { up, down });
        });
        lab.world.digest();
        lab.world.run_until(secs(30));
        assert_eq!(lab.received(), 1_000_000);
        lab.world.observations().1
    };
    assert_eq!(run(), run());
}

/// A sender, a router, two base stations, and a mobile that is at the first until 1 s and at the
/// second from `from` on.
struct Mobile {
    lab: Lab,
    /// In the mobile.
    log: LinkLog,
    stations: [NodeId; 2],
    /// From the stations to the mobile.
    links: [LinkId; 2],
}

fn mobile(from: u64) -> Mobile {
    let mut places = None;
    let mut lab = path().build_over(vec![(hop(), hop()); 3], |network, nodes, path| {
        let stations = [nodes[2], network.add_node("other")];
        network.add_link(nodes[1], stations[1], hop(), hop());
        let links = [path[2].0, network.add_link(stations[1], nodes[3], hop(), hop()).0];
        let when = [interval(0, 1000, links[0]), interval(from, 1_000_000, links[1])];
        let when = Intervals::new(when, None).expect("it makes sense");
        network.add_roaming(Roaming::new(nodes[3], when));
        places = Some((stations, links));
    });
    let (stations, links) = places.expect("they were just built");
    let log = LinkLog::default();
    lab.world.add_box(lab.receiver(), Box::new(log.clone()));
    Mobile { lab, log, stations, links }
}

#[test]
fn a_mobile_is_attached_to_one_station_after_another() {
    let Mobile { mut lab, log, stations, links: [first, second] } = mobile(2000);
    lab.world.run_until(millis(1001));
    let (left, received) = (lab.world.link(first), lab.received());
    assert!(received > 0 && left.discarded > 0);
    lab.world.run_until(millis(1999));
    assert_eq!(lab.received(), received, "attached to no station");
    assert!(lab.world.link(first).dropped > 0, "the old route is kept until there is a new one");
    assert_eq!(lab.world.link(second), link::Statistics::default());
    lab.world.run_until(secs(900));
    assert_eq!(lab.received(), 1_000_000);
    assert_eq!(lab.world.link(first).packets, left.packets);
    assert_eq!(lab.world.unroutable(), 0);
    let [old, new] = stations.map(NodeId::address);
    assert_eq!(log.events(), [(millis(1000), false, old), (millis(2000), true, new)]);
}

#[test]
fn a_handoff_without_a_gap_goes_down_and_up_at_once() {
    let Mobile { mut lab, log, stations, .. } = mobile(1000);
    lab.world.run_until(secs(900));
    assert_eq!(lab.received(), 1_000_000);
    let [old, new] = stations.map(NodeId::address);
    assert_eq!(log.events(), [(millis(1000), false, old), (millis(1000), true, new)]);
}
