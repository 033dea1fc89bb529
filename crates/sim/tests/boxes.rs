//! Boxes in nodes have timers of their own.

mod common;

use base::{Duration, Time};
use common::*;
use core::net::IpAddr;
use host::{Context, Middlebox, Passage, Port};
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

fn woken(size: Option<u64>) -> (Vec<Time>, u64) {
    let mut lab = Path { size, ..Path::default() }.build();
    let (sender, receiver) = (lab.sender(), lab.receiver());
    let woken = Arc::new(Mutex::new(Vec::new()));
    let to = (sender.address(), receiver.address());
    lab.world.add_box(sender, Alarm { at: millis(300), to, woken: woken.clone() });
    lab.world.run_until(secs(10));
    assert_eq!(lab.world.unroutable(), 0);
    let woken = woken.lock().expect("nobody panics with it").clone();
    (woken, lab.world.host(receiver).statistics().strays)
}

#[test]
fn a_box_is_woken_when_it_wants_to_be_and_what_it_sends_leaves_the_node() {
    // The flow never ends, but for 300 ms nothing is sent yet that the box would see: afterwards it
    // is put off for ever.
    let (alarms, arrived) = woken(Some(1000));
    assert!(!alarms.is_empty());
    assert_eq!(arrived, alarms.len() as u64);
    assert_eq!(alarms.last().copied(), alarms.iter().copied().max());
    assert!(alarms.windows(2).all(|pair| pair[1] - pair[0] >= SPAN), "{alarms:?}");
    assert!(alarms.iter().all(|at| *at < secs(5)));
}

#[test]
fn a_box_that_hears_of_packets_all_the_time_is_not_woken_too_early() {
    let (alarms, _) = woken(None);
    assert_eq!(alarms, [], "segments follow each other within half a second");
}
