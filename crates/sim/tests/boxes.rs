//! Boxes in nodes have timers of their own.

mod common;

use base::{Duration, Time};
use common::*;
use core::net::IpAddr;
use host::{Context, Middlebox, Passage, Port};
use link::Queue;
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
