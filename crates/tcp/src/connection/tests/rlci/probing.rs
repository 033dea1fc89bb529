//! Beginning anew (§3.3), resending (§3.4), and which acknowledgments count.

use super::*;

/// Stalled since 1100 ms: what was sent again at 1100 and 3100 has not been acknowledged.
fn stalled(rlci: Rlci) -> Diagram {
    let mut t = flowing(with(rlci));
    t.time(1100);
    t.recv([data(1)]);
    t.time(3100);
    t.recv([data(1)]);
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(4));
    t.time(5000);
    t
}

/// It has begun anew at 5000 ms, and everything goes with this option.
fn resumes(mut t: Diagram, change: ConnectivityChange) {
    t.recv(each_with(1..=10, change));
    assert_eq!(t.windows(), (segments(10), u64::MAX), "the initial window, no threshold");
    assert_eq!(t.connection.vitals().srtt, None);
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(1), "initial, no back-off");
    t.time(5999);
    t.silent();
    t.time(6000);
    t.recv([data(1).change(change)]);
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(2), "backed off once");
    assert_eq!(t.statistics().reprobes, 1);
}

#[test]
fn a_stalled_connection_resumes_at_once_at_a_local_indication() {
    for rlci in [strict(), corrected()] {
        let mut t = stalled(rlci);
        t.connectivity(MOVED);
        resumes(t, INDICATION);
    }
}

#[test]
fn a_stalled_connection_resumes_at_once_at_a_remote_indication() {
    for rlci in [strict(), corrected()] {
        let mut t = stalled(rlci);
        answer(&mut t, ack(1).change(INDICATION));
        resumes(t, ECHO);
    }
}

/// Stalled since 1100 ms, without signals; the peer perhaps has the option, and offers it.
fn stalled_alone(offers: bool) -> Diagram {
    let mut t = Diagram::new(&with(rlci(|rlci| rlci.signal = false)), Side::Active);
    // Timestamps take 12 octets of it.
    t.offer.mss = Some(if offers { 1012 } else { 1000 });
    if offers {
        t.offer.connectivity = IDLE.into();
        t.stamp = Some(100);
    }
    t.recv([syn()]);
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.write(1 << 40);
    t.recv(each(1..=10));
    t.time(1100);
    t.recv([data(1)]);
    t.time(3100);
    t.recv([data(1)]);
    t.time(5000);
    t
}

#[test]
fn without_signals_it_resumes_alone_and_no_segment_has_the_option() {
    for offers in [false, true] {
        let mut t = stalled_alone(offers);
        t.connectivity(MOVED);
        t.recv(each(1..=10));
        assert_eq!(t.windows(), (segments(10), u64::MAX), "the initial window, no threshold");
        assert_eq!(t.connection.vitals().rto, Duration::from_secs(1), "initial, no back-off");
        if offers {
            // What the peer signals has no effect.
            answer(&mut t, ack(1).change(INDICATION));
        }
        t.time(5999);
        t.silent();
        assert_eq!(t.statistics().reprobes, 1);
    }
}

#[test]
fn what_does_not_come_alone_is_not_held_for_stalled() {
    // After a timeout, something was acknowledged: the connection is under way again.
    let mut t = flowing(with(strict()));
    t.time(1100);
    t.recv([data(1)]);
    t.time(1200);
    answer(&mut t, ack(2));
    t.recv(each(2..=3));
    t.connectivity(MOVED);
    let new = data(11).change(INDICATION);
    assert_eq!(t.unseen.pop_front(), Some((t.now, new)), "new data, and then what fits the window");
}

#[test]
fn in_steady_state_strictly_one_new_segment_goes_beyond_the_window() {
    // §3.5.1
    let mut t = flowing(with(strict()));
    t.time(150);
    t.connectivity(MOVED);
    t.recv([data(11).change(INDICATION)]);
    assert_eq!(t.windows(), (segments(10), u64::MAX));
    assert_eq!(t.connection.vitals().flight, segments(11));
    let mut t = flowing(with(strict()));
    t.time(150);
    answer(&mut t, ack(1).change(INDICATION));
    t.recv([data(11).change(ECHO)]);
}

#[test]
fn it_never_goes_beyond_the_peers_window_and_a_pure_acknowledgment_does() {
    let mut t = offered(with(strict()));
    t.window = 10_000;
    t.time(100);
    t.stamp = Some(100);
    t.send(syn_ack());
    t.peer_shift = 4;
    answer(&mut t, ack(1));
    t.unseen.clear();
    t.write(1 << 40);
    t.recv(each(1..=10));
    t.time(150);
    t.connectivity(MOVED);
    t.recv([ack(1).seq(at(11)).change(INDICATION)]);
    // Nor is there new data everywhere.
    let mut t = agreed(with(strict()));
    t.write(3000);
    t.recv(each(1..=3));
    t.time(150);
    t.connectivity(MOVED);
    t.recv([ack(1).seq(at(4)).change(INDICATION)]);
}

#[test]
fn nothing_is_sent_again_to_a_peer_without_room() {
    let mut t = flowing(with(corrected()));
    t.time(200);
    answer(&mut t, ack(3).window(0));
    t.silent();
    t.time(300);
    t.connectivity(MOVED);
    t.recv([ack(1).seq(at(11)).change(INDICATION)]);
    // Its window is probed as ever, with a fresh timer.
    t.time(1299);
    t.silent();
    t.time(1300);
    t.recv([data(3).change(INDICATION)]);
    assert_eq!(t.statistics().timeouts, 0);
}

#[test]
fn a_timer_that_is_not_running_is_not_started() {
    // Data was held, sent in place of a probe and acknowledged: nothing waits any more, and the peer's
    // segment was too old to say so.
    let mut t = agreed(with(corrected()));
    t.connection.write_more(3, 0, 10);
    t.transmit();
    t.time(500);
    answer(&mut t, data(2));
    t.recv([ack(1).sack(2..=2)]);
    t.time(1100);
    t.recv([bytes(0, 10).sack(2..=2)]);
    t.time(1200);
    answer(&mut t, data(1).acking(11));
    t.recv([ack(3).seq(11)]);
    t.connectivity(MOVED);
    t.recv([ack(3).seq(11).change(INDICATION)]);
    answer(&mut t, ack(1).seq(at(3)).acking(11).change(ECHO));
    t.recv([ack(3).seq(11).change(ECHO_ACK)]);
    t.time(60_000);
    t.silent();
    t.close();
    t.recv([ack(3).seq(11).fin()]);
}

#[test]
fn an_indicated_window_is_not_exceeded() {
    let mut t = stalled(corrected());
    t.connectivity(Connectivity::Changed { window: Some(2) });
    t.recv(each_with(1..=2, INDICATION));
    assert_eq!(t.windows(), (segments(2), u64::MAX));
    // Others have met the limits of the path.
    t.connectivity(Connectivity::Full);
    assert_eq!(t.windows(), (segments(2), segments(2)));
    t.silent();
}

#[test]
fn acknowledgments_of_the_old_path_widen_nothing_and_measure_nothing() {
    // §3.3
    for rlci in [strict(), corrected()] {
        let strict = rlci.strict;
        let mut t = flowing(with(rlci));
        t.time(150);
        t.connectivity(MOVED);
        t.unseen.clear();
        let present = t.last().options.timestamps.unwrap().value;
        assert_eq!(present, 5151, "the clock of the timestamps has moved by one");
        t.time(200);
        for n in 2..=10 {
            answer_to(&mut t, 5100, ack(n));
            assert_eq!(t.windows().0, segments(10));
            assert_eq!(t.connection.vitals().srtt, None);
        }
        t.unseen.clear();
        t.time(250);
        // The first segment of the new path; of the new one, too, is what is below CCI_SNDMAX.
        answer_to(&mut t, present, ack(if strict { 12 } else { 11 }));
        assert_eq!(t.windows().0, segments(11));
        assert_eq!(t.connection.vitals().srtt, Some(Duration::from_millis(100)));
        t.unseen.clear();
        // Everything counts again, however it is stamped.
        answer_to(&mut t, 5100, ack(13));
        assert_eq!(t.windows().0, segments(12));
    }
}

#[test]
fn below_the_highest_octet_sent_acknowledgments_of_the_new_path_count() {
    let mut t = flowing(with(corrected()));
    t.time(150);
    t.connectivity(MOVED);
    t.recv(each_with(1..=10, INDICATION));
    t.time(250);
    answer_to(&mut t, 5151, ack(3));
    assert_eq!(t.windows().0, segments(11));
    answer_to(&mut t, 5100, ack(4)); // Of the old one.
    assert_eq!(t.windows().0, segments(11));
}

#[test]
fn timestamps_of_the_path_wrap() {
    let offset = u32::MAX - 149; // At 150 ms it is 0.
    let identity = Identity { timestamp_offset: offset, ..IDENTITY };
    let mut t = Diagram::new(&with(strict()), Side::Active);
    t.connection = Connection::new(&with(strict()), Side::Active, identity);
    t.sent.clear();
    t.unseen.clear();
    t.transmit();
    t.offer.mss = Some(SIZE);
    t.offer.connectivity = IDLE.into();
    t.recv([syn().change(IDLE)]);
    t.time(100);
    t.stamp = Some(100);
    t.send(syn_ack());
    t.write(1 << 40);
    t.unseen.clear();
    t.time(150);
    t.connectivity(MOVED);
    t.recv([data(11).change(INDICATION)]);
    assert_eq!(t.last().options.timestamps.unwrap().value, 1);
    t.time(200);
    answer_to(&mut t, u32::MAX - 49, ack(5));
    assert_eq!(t.windows().0, segments(10), "from before the wrap");
    answer_to(&mut t, 1, ack(6));
    assert_eq!(t.windows().0, segments(11));
}
