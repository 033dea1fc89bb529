//! Silent peers, lost ends: keep-alive, the user timeout, TIME-WAIT.

use super::*;
use crate::KeepAlive;

/// After ten seconds of silence a probe each second, three in all.
fn asking() -> Config {
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(1), probes: 3 };
    Config { keep_alive: Some(keep_alive), ..config() }
}

#[test]
fn keep_alive_death() {
    // RFC 9293 §3.8.4: an octet before the window asks for an acknowledgment.
    let mut t = established(asking());
    for millis in [10_100, 11_100, 12_100] {
        t.time(millis);
        t.recv([ack(1).seq(0)]);
    }
    t.time(13_100);
    t.recv([ack(1).rst()]);
    assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn keep_alive_life() {
    let mut t = established(asking());
    for start in [100, 10_150, 20_200] {
        t.time(start + 10_000);
        t.recv([ack(1).seq(0)]);
        t.time(start + 10_050);
        t.send(ack(1));
        t.silent();
    }
    t.time(35_000);
    t.send(data(1)); // Whatever the peer says, it says that it lives.
    t.recv([ack(2)]);
    t.time(44_999);
    t.silent();
    t.time(45_000);
    t.recv([ack(2).seq(0)]);
}

#[test]
fn what_is_outstanding_asks_by_itself() {
    let mut t = established(asking());
    t.write(500);
    t.recv([bytes(0, 500)]);
    for millis in [1100, 3100, 7100, 15_100, 31_100] {
        t.time(millis);
        t.recv([bytes(0, 500)]);
    }
    t.send(ack(1).acking(501));
    t.time(41_100);
    t.recv([ack(1).seq(500)]);
}

#[test]
fn the_probe_of_a_peer_is_answered() {
    // With and without the octet of garbage that old implementations send (RFC 9293 §3.8.4).
    let mut t = established(config());
    t.send(ack(1).seq(0));
    t.recv([ack(1)]);
    t.send(Seg { len: 1, ..ack(1).seq(0) });
    t.recv([ack(1)]);
    assert_eq!(t.read(0), 0);
}

#[test]
fn keep_alive_is_off_unless_asked_for() {
    // RFC 9293 §3.8.4, MUST-25.
    let t = established(config());
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

fn impatient() -> Config {
    Config { user_timeout: Some(Duration::from_secs(5)), ..config() }
}

#[test]
fn the_user_timeout_ends_what_is_not_acknowledged_in_time() {
    // RFC 9293 §3.10.8
    let mut t = sending_only(2, impatient());
    for millis in [1100, 3100] {
        t.time(millis);
        t.recv([data(1)]);
    }
    t.send(ack(2)); // Progress renews it.
    t.recv([data(2)]);
    t.time(7100);
    t.recv([data(2)]);
    t.time(8099);
    assert_eq!(t.state(), State::Established);
    t.time(8100);
    t.silent();
    assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
    // The peer, if it is there, learns it from an abort.
    t.abort();
    t.recv([ack(1).seq(at(3)).rst()]);
}

#[test]
fn the_user_timeout_counts_from_when_something_is_outstanding() {
    let mut t = established(impatient());
    t.time(60_000);
    t.write(500);
    t.recv([bytes(0, 500)]);
    t.time(61_000);
    t.recv([bytes(0, 500)]);
    t.send(ack(1).acking(501));
    t.time(200_000); // Nothing is.
    assert_eq!(t.state(), State::Established);
}

#[test]
fn the_user_timeout_ends_an_open_without_an_answer() {
    let mut t = Diagram::new(&impatient(), Side::Active);
    t.recv([syn()]);
    for millis in [1000, 3000] {
        t.time(millis);
        t.recv([syn()]);
    }
    t.time(5000);
    assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
    t.abort();
    t.silent();
}

#[test]
fn the_user_timeout_can_be_changed_at_any_time() {
    for (later, ends_at) in [(Some(Duration::from_secs(5)), 5100), (None, 7100)] {
        // Of the two ends that give up after 5 s, one has not been told at once, and the other not for long.
        let first = if later.is_some() { config() } else { impatient() };
        let mut t = established(first);
        t.write(500);
        t.recv([bytes(0, 500)]);
        t.connection.set_user_timeout(later);
        for millis in [1100, 3100] {
            t.time(millis);
            t.recv([bytes(0, 500)]);
        }
        t.time(ends_at);
        if later.is_some() {
            t.silent();
            assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
        } else {
            t.recv([bytes(0, 500)]);
            assert_eq!(t.state(), State::Established);
        }
    }
}

/// Both sides have closed, this one first, at 300 ms.
fn waiting(config: Config) -> Diagram {
    let mut t = established(config);
    t.send(data(1));
    t.recv([ack(2)]);
    t.close();
    t.recv([ack(2).fin()]);
    t.time(300);
    t.send(ack(1).seq(1001).acking(2).fin());
    t.recv([ack(1).seq(2).acking(1002)]);
    assert_eq!(t.state(), State::TimeWait);
    t
}

#[test]
fn time_wait_is_not_assassinated() {
    // RFC 1337 §2: an old duplicate makes TIME-WAIT send an acknowledgment, the peer that has
    // forgotten the connection answers with a reset, and the reset must not end TIME-WAIT.
    let mut t = waiting(config());
    // The last one stands right before what is expected, and announces more than ever.
    let last = ack(1).seq(1001).acking(2).window(1 << 18);
    for old in [data(1), syn(), syn().seq(1 << 30), ack(1).seq(700).acking(2), last] {
        t.send(old);
        t.recv([ack(1).seq(2).acking(1002)]);
        t.send(reset(1002));
        t.silent();
        assert_eq!(t.state(), State::TimeWait);
    }
}

#[test]
fn what_the_peer_sends_again_starts_time_wait_again() {
    // RFC 9293 §3.10.7.4, eighth: the FIN. A peer whose data before it was not acknowledged either
    // sends that first.
    for again in [ack(1).seq(1001).acking(2).fin(), data(1).acking(2)] {
        let mut t = waiting(config());
        t.time(40_000);
        t.send(again);
        t.recv([ack(1).seq(2).acking(1002)]);
        t.time(99_999);
        assert_eq!(t.state(), State::TimeWait);
        t.time(100_000);
        assert_eq!(t.connection.take_events() & Events::CLOSED, Events::CLOSED);
    }
}

#[test]
fn time_wait_yields_to_a_syn_that_is_later_than_all_of_it() {
    // RFC 9293 §3.6.1, MAY-2: beyond the last sequence number; RFC 6191 §2: or of a later timestamp.
    let ask = |t: &Diagram, seq: u32, stamp: Option<u32>| {
        let timestamps = stamp.map(|value| wire::Timestamps { value, echo: 0 });
        let options = wire::Options { timestamps, ..wire::Options::default() };
        let seq = PEER_ISS + seq;
        t.connection.yields_to(&Segment { seq, flags: Flags::SYN, options, ..Segment::default() })
    };
    let t = waiting(config());
    assert!(ask(&t, 1002, None) && ask(&t, 1 << 30, None));
    assert!(!ask(&t, 1001, None) && !ask(&t, 0, None));
    assert!(!ask(&established(config()), 1 << 30, None), "only TIME-WAIT yields");

    let mut t = stamped(config());
    t.close();
    t.stamp = Some(200);
    t.send(ack(1).acking(2).fin());
    t.unseen.clear();
    assert!(ask(&t, 0, Some(201)) && !ask(&t, 1 << 30, Some(199)));
    assert!(ask(&t, 2, Some(200)) && !ask(&t, 1, Some(200)), "of the same tick");
    assert!(ask(&t, 2, None));
}
