//! Freeze-TCP (Goff and others, INFOCOM 2000): a receiver that closes its window in time.

use super::*;
use crate::mechanism::{Freeze, Mechanism};

const MOVED: Connectivity = Connectivity::Changed { window: None };

fn with() -> Config {
    Config { mechanisms: vec![Mechanism::Freeze(Freeze::default())], ..config() }
}

#[test]
fn a_receiver_that_is_warned_closes_its_window_and_opens_it_with_three_acknowledgments() {
    let mut t = established(with());
    t.send(data(1));
    t.recv([ack(2)]);
    assert!(t.last().window > 0);
    t.connectivity(Connectivity::Ending);
    t.recv([ack(2)]);
    assert_eq!(t.last().window, 0);
    t.send(data(2)); // Data in flight is accepted.
    t.recv([ack(3)]);
    assert_eq!(t.last().window, 0);
    t.send(data(3)); // As is a probe.
    t.recv([ack(4)]);
    assert_eq!((t.last().window, t.read(0)), (0, 3000));
    t.time(5000);
    t.silent();
    t.connectivity(MOVED);
    t.recv([ack(4), ack(4), ack(4)]);
    let reopened = t
        .sent
        .iter()
        .rev()
        .take(3)
        .all(|packet| matches!(packet.body, wire::Body::Tcp(segment) if segment.window > 0));
    assert!(reopened);
}

#[test]
fn what_it_sends_itself_goes_on() {
    let mut t = established(with());
    t.connectivity(Connectivity::Ending);
    t.recv([ack(1)]);
    t.write(1000);
    t.recv([data(1)]);
    assert_eq!(t.last().window, 0);
}

#[test]
fn a_return_without_a_warning_sends_nothing() {
    let mut t = established(with());
    t.connectivity(MOVED);
    t.connectivity(Connectivity::Full);
    t.silent();
    t.connectivity(Connectivity::Ending);
    t.recv([ack(1)]);
    t.connectivity(MOVED);
    t.recv([ack(1), ack(1), ack(1)]);
    t.connectivity(MOVED);
    t.silent();
}

#[test]
fn a_frozen_connection_can_be_stored() {
    let mut t = established(with());
    t.connectivity(Connectivity::Ending);
    t.recv([ack(1)]);
    t.restore(1 << 30);
    t.send(data(1));
    t.recv([ack(2)]);
    assert_eq!(t.last().window, 0);
    t.connectivity(MOVED);
    t.recv([ack(2), ack(2), ack(2)]);
}

/// Three segments of ten have been acknowledged when the window is closed at 200 ms.
fn frozen() -> Diagram {
    let mut t = sending(config());
    t.time(200);
    t.send(ack(3).window(0));
    t.silent();
    t
}

#[test]
fn any_sender_keeps_its_window_while_it_is_frozen_and_does_not_back_off() {
    let mut t = frozen();
    let windows = t.windows();
    for probe in [1200, 3200, 7200] {
        t.time(probe - 1);
        t.silent();
        t.time(probe);
        t.recv([data(3)]);
    }
    assert_eq!(t.windows(), windows);
    assert_eq!((t.statistics().timeouts, t.statistics().reductions), (0, 0));
}

#[test]
fn any_sender_resumes_when_the_window_is_open_again() {
    let mut t = frozen();
    t.time(1200);
    t.recv([data(3)]);
    t.time(2000);
    t.send(ack(3));
    // What found no room, and all that the window lets out.
    assert_eq!(t.unseen.pop_front(), Some((t.now, data(3))));
    assert!(!t.unseen.is_empty());
    t.unseen.clear();
    for _ in 0..2 {
        t.send(ack(3));
    }
    t.unseen.clear();
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(1), "no back-off is left");
    assert_eq!((t.statistics().timeouts, t.statistics().reductions), (0, 0));
    t.send(ack(11));
    assert!(t.unseen.len() >= 8);
    t.unseen.clear();
}
