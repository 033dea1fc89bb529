//! Boxes in nodes have timers of their own.

mod common;

use base::{Duration, Time};
use common::*;
use core::net::IpAddr;
use host::{Context, LinkEvent, Middlebox, Passage, Port};
use link::{CoDel, Config, Discipline, Interval, Intervals, Outages, Queue, WhenDown};
use std::sync::{Arc, Mutex};
use wire::{Body, Ip, Packet, Udp};

/// Notes when it is woken, and sends a datagram then; every packet that it sees puts that off.
struct Alarm {
    at: Time,
    to: (IpAddr, IpAddr),
    woken: Arc<Mutex<Vec<Time>>>,
}

const SPAN: Duration = Duration::from_millis(500);

impl Middlebox for Alarm {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        _: &mut Packet,
        _: &mut Context<'_>,
    ) -> Passage {
        self.at = now + SPAN;
        Passage::Forward
    }

    fn next_wake(&self) -> Time {
        self.at
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.woken.lock().expect("nobody panics with it").push(now);
        self.at = if now < secs(2) { now + SPAN } else { Time::NEVER };
        let body = Body::Udp(Udp { source_port: 1, destination_port: 2 });
        let ip = Ip::new(self.to.0, self.to.1);
        cx.send.push(Packet { ip, body, ..Packet::BLANK });
    }
}

/// When the alarm of the sending node went off in ten seconds, and how many datagrams arrived.
fn woken(path: &Path) -> (Vec<Time>, u64) {
    let mut lab = path.build();
    let (sender, receiver) = (lab.sender(), lab.receiver());
    let woken = Arc::new(Mutex::new(Vec::new()));
    let to = (sender.address(), receiver.address());
    lab.world.add_box(sender, Alarm { at: millis(300), to, woken: woken.clone() });
    lab.world.run_until(secs(10));
    let woken = woken.lock().expect("nobody panics with it").clone();
    (woken, lab.world.host(receiver).statistics().strays)
}

#[test]
fn a_box_is_woken_when_it_wants_to_be_and_what_it_sends_leaves_the_node() {
    // A short flow, and then silence.
    let (alarms, arrived) = woken(&Path { size: Some(1000), ..Path::default() });
    assert_eq!(alarms.len(), 4, "{alarms:?}");
    assert!(alarms.windows(2).all(|pair| pair[0] + SPAN == pair[1]), "{alarms:?}");
    assert_eq!(arrived, 4);
}

#[test]
fn a_box_that_puts_its_wake_off_is_not_woken_before() {
    let busy = Path::over(Hop { rate: mbps(1), queue: Queue::Packets(20), ..Hop::default() });
    assert_eq!(woken(&busy).0, []);
}

#[test]
fn a_box_is_woken_although_its_host_does_nothing() {
    let mut lab = Path { size: Some(0), ..Path::default() }.build();
    let woken = Arc::new(Mutex::new(Vec::new()));
    let (idle, to) = (lab.sender(), (lab.sender().address(), lab.receiver().address()));
    lab.run_to_peace(1000);
    let at = lab.world.now() + SPAN;
    lab.world.add_box(idle, Alarm { at, to, woken: woken.clone() });
    lab.world.run_until(at);
    assert_eq!(*woken.lock().expect("nobody panics with it"), [at]);
}

/// Writes down the drops that it hears of, and on which link.
#[derive(Clone, Default)]
struct Drops(Arc<Mutex<Vec<(Port, Packet)>>>);

impl Middlebox for Drops {
    fn link(&mut self, _: Time, port: Port, event: LinkEvent<'_>, _: &mut Context<'_>) {
        if let LinkEvent::Dropped(packet) = event {
            self.0.lock().expect("nobody panics with it").push((port, *packet));
        }
    }
}

#[test]
fn a_box_hears_of_packets_that_codel_drops_as_of_those_that_find_no_room() {
    let config = |queue| Config {
        rate: mbps(1),
        delay: Duration::from_millis(20),
        queue: Queue::Packets(queue),
        discipline: Discipline::CoDel(CoDel::default()),
        ..Config::default()
    };
    for (queue, refuses) in [(1000, false), (8, true)] {
        let path = Path::default();
        let links = vec![(config(queue), config(queue)); 2];
        let mut lab = path.build_over(links, |_, _, _| {});
        let at = [lab.nodes[0], lab.nodes[1]];
        let drops = at.map(|node| {
            let drops = Drops::default();
            lab.world.add_box(node, drops.clone());
            drops
        });
        lab.world.run_until(secs(30));
        // All is dropped where the first link begins: the second is no slower.
        let told = drops.map(|drops| drops.0.lock().expect("nobody panics with it").clone());
        let link::Statistics { dropped, discarded, .. } = lab.world.link(lab.links[0].0);
        assert_eq!((told[0].len() as u64, told[1].len()), (dropped + discarded, 0));
        assert!(discarded > 3 && (dropped > 0) == refuses, "{discarded} {dropped}");
        let port = told[0][0].0;
        assert!(told[0].iter().all(|told| told.0 == port && told.1.payload.len > 0));
    }
}

#[test]
fn what_is_lost_with_a_link_that_goes_down_is_no_drop_of_its_queue() {
    let config = Config {
        rate: mbps(1),
        queue: Queue::Packets(1000),
        when_down: Some(WhenDown { accept: true, ..WhenDown::DROP }),
        ..Config::default()
    };
    let (start, end) = (Duration::from_millis(5000), Duration::from_millis(5100));
    let outages = Intervals::new([Interval { start, end, value: () }], None).expect("it is one");
    let mut lab =
        Path::default().build_over(vec![(config.clone(), config)], |network, _, links| {
            network.add_outages(links[0].0, Outages::At(outages));
        });
    let drops = Drops::default();
    let sender = lab.sender();
    lab.world.add_box(sender, drops.clone());
    lab.world.run_until(secs(10));
    assert!(lab.world.link(lab.links[0].0).discarded > 0);
    assert_eq!(drops.0.lock().expect("nobody panics with it").len(), 0);
}
