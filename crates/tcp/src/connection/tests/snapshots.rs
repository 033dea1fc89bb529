//! Connections that are stored, and go on under another clock.

use super::*;

#[test]
fn a_stored_connection_goes_on_where_it_was() {
    // Its peer, its timers and its timestamps do not notice.
    for ahead in [0, 1 << 20, 1 << 40] {
        let mut t = stamped(config());
        t.write(5000);
        t.unseen.clear();
        t.restore(ahead);
        t.time(1099);
        t.silent();
        t.restore(ahead / 2);
        t.time(1100); // The timer of the first segment.
        t.recv([bytes(0, 988)]);
        assert_eq!(t.last().options.timestamps.map(|stamp| stamp.value), Some(6100));
        t.restore(ahead);
        t.time(1150);
        t.send(ack(1).acking(989));
        assert_eq!(t.connection.vitals().srtt, Some(Duration::from_micros(93_750)));
        t.unseen.clear();
    }
}

#[test]
fn a_stored_connection_keeps_what_waits_to_be_sent_and_read() {
    let delayed_ack = Some(Duration::from_millis(40));
    let mut t = established(Config { delayed_ack, dsack: true, ..config() });
    t.send(data(1));
    t.send(data(3).fin());
    t.recv([ack(2).sack_bytes(at(3), at(4) + 1)]);
    t.restore(5);
    t.send(data(2));
    t.recv([ack(1).acking(at(4) + 1)]);
    t.restore(500);
    assert_eq!((t.state(), t.read(0)), (State::CloseWait, 3000));
    t.write(1500);
    t.restore(0);
    t.close();
    t.restore(7);
    t.unseen.clear();
    t.restore(9);
    t.send(ack(1).seq(at(4) + 1).acking(1502));
    assert_eq!(t.connection.take_events() & Events::CLOSED, Events::CLOSED);
}

#[test]
fn a_stored_connection_keeps_what_is_due_at_once() {
    // A reset that has not been handed out yet; TIME-WAIT; a delayed acknowledgment.
    let mut t = established(config());
    t.connection.abort();
    t.restore(1000);
    t.transmit();
    t.recv([ack(1).rst()]);

    let mut t = established(config());
    t.close();
    t.send(ack(1).acking(2).fin());
    t.unseen.clear();
    t.restore(1 << 30);
    t.time(60_099);
    assert_eq!(t.state(), State::TimeWait);
    t.time(60_100);
    assert_eq!(t.state(), State::Closed);

    let mut t = established(Config { delayed_ack: Some(Duration::from_millis(40)), ..config() });
    t.send(data(1));
    t.restore(77);
    t.time(140);
    t.recv([ack(2)]);
}

#[test]
fn a_snapshot_of_another_version_is_refused() {
    let t = established(config());
    let mut stored = json(t.connection.snapshot(t.now));
    let other = Snapshot::VERSION + 1;
    stored["version"] = other.into();
    let snapshot = snapshot_of(stored);
    let refused = Connection::adopt(snapshot, t.now).map(|_| ());
    assert_eq!(refused, Err(AdoptError::Version { found: other, expected: Snapshot::VERSION }));
}

#[test]
fn watching_has_to_be_requested_again_after_a_restore() {
    let mut t = established(config());
    t.connection.watch(true);
    t.write(500);
    assert!(t.connection.poll_event().is_some());
    t.restore(0);
    t.unseen.clear();
    t.write(500);
    t.unseen.clear();
    assert_eq!(t.connection.poll_event(), None);
}
