//! Boxes in nodes have timers of their own.

use crate::common::*;
use base::{Duration, Time};
use core::net::IpAddr;
use host::{Context, DropReason, HostIndication, LinkEvent, Middlebox, Port, Verdict};
use link::{CoDel, Config, Discipline, Interval, Intervals, Outages, Queue, WhenDown};
use std::sync::{Arc, Mutex};
use tcp::mechanism::Suppression;
use wire::{Body, CorruptionNotice, Ip, Packet, Udp};

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
    ) -> Verdict {
        self.at = now + SPAN;
        Verdict::Forward
    }

    fn next_wake(&self) -> Time {
        self.at
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.woken.lock().expect("not poisoned").push(now);
        self.at = if now < secs(2) { now + SPAN } else { Time::NEVER };
        let body = Body::Udp(Udp { source_port: 1, destination_port: 2 });
        let ip = Ip::new(self.to.0, self.to.1);
        cx.send(Packet { ip, body, ..Packet::BLANK });
    }
}

/// When the alarm of the sending node went off in ten seconds, and how many datagrams arrived.
fn woken(path: &Path) -> (Vec<Time>, u64) {
    let mut lab = path.build();
    let (sender, receiver) = (lab.sender(), lab.receiver());
    let woken = Arc::new(Mutex::new(Vec::new()));
    let to = (sender.address(), receiver.address());
    lab.world.add_box(sender, Box::new(Alarm { at: millis(300), to, woken: woken.clone() }));
    lab.world.run_until(secs(10));
    let woken = woken.lock().expect("not poisoned").clone();
    (woken, lab.world.host(receiver).statistics().no_connection)
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
    lab.world.add_box(idle, Box::new(Alarm { at, to, woken: woken.clone() }));
    lab.world.run_until(at);
    assert_eq!(*woken.lock().expect("not poisoned"), [at]);
}

/// Records the drops that are indicated to it, and the link of each.
#[derive(Clone, Default)]
struct Drops(Arc<Mutex<Vec<(Port, Packet)>>>);

impl Middlebox for Drops {
    fn link(&mut self, _: Time, port: Port, event: LinkEvent<'_>, _: &mut Context<'_>) {
        if let LinkEvent::Dropped(packet) = event {
            self.0.lock().expect("not poisoned").push((port, *packet));
        }
    }
}

#[test]
fn a_box_is_notified_of_packets_that_codel_drops_as_of_those_that_a_full_queue_refuses() {
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
            lab.world.add_box(node, Box::new(drops.clone()));
            drops
        });
        lab.world.run_until(secs(30));
        // All is dropped where the first link begins: the second is no slower.
        let drops = drops.map(|drops| drops.0.lock().expect("not poisoned").clone());
        let link::Statistics { dropped, discarded, .. } = lab.world.link(lab.links[0].0);
        assert_eq!((drops[0].len() as u64, drops[1].len()), (dropped + discarded, 0));
        assert!(discarded > 3 && (dropped > 0) == refuses, "{discarded} {dropped}");
        let port = drops[0][0].0;
        assert!(drops[0].iter().all(|drop| drop.0 == port && drop.1.payload.len > 0));
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
    lab.world.add_box(sender, Box::new(drops.clone()));
    lab.world.run_until(secs(10));
    assert!(lab.world.link(lab.links[0].0).discarded > 0);
    assert_eq!(drops.0.lock().expect("not poisoned").len(), 0);
}

/// A radio in the sender's own node: it loses every hundredth packet of data, and may indicate the
/// loss to its host.
struct Radio {
    passed: u64,
    indicates: bool,
}

impl Middlebox for Radio {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        let Body::Tcp(segment) = &packet.body else { return Verdict::Forward };
        if from.is_some() || packet.payload.len == 0 {
            return Verdict::Forward;
        }
        self.passed += 1;
        if !self.passed.is_multiple_of(100) {
            return Verdict::Forward;
        }
        if self.indicates {
            let (source, destination) = (packet.ip.source, packet.ip.destination);
            let len = packet.payload.len;
            let notice = CorruptionNotice::about(source, destination, segment, len);
            cx.indicate(HostIndication::Corruption(notice));
        }
        Verdict::Drop(DropReason::Loss)
    }
}

#[test]
fn a_boxs_indications_reach_its_host_and_its_drops_are_counted() {
    let run = |indicates| {
        let path = Path { size: Some(2_000_000), ..Path::over(Hop::default()) };
        let tcp = tcp::Config { mechanisms: eten(Suppression::All), ..path.tcp.clone() };
        let mut lab = Path { tcp, ..path }.build();
        let sender = lab.sender();
        lab.world.add_box(sender, Box::new(Radio { passed: 0, indicates }));
        lab.world.run_until(secs(100));
        assert_eq!(lab.received(), 2_000_000);
        (lab.statistics(), lab.world.box_drops(sender).collect::<Vec<_>>())
    };
    let (notified, drops) = run(true);
    let [(DropReason::Loss, dropped)] = drops[..] else { panic!("{drops:?}") };
    assert_eq!((notified.reductions, notified.timeouts), (0, 0));
    assert!(dropped >= 20 && notified.retransmissions == dropped, "{dropped} {notified:?}");
    let (uninformed, drops) = run(false);
    let [(DropReason::Loss, dropped)] = drops[..] else { panic!("{drops:?}") };
    assert!(dropped >= 20 && uninformed.reductions > 5, "{dropped} {uninformed:?}");
}
