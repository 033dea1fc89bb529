//! The indication, its echo, the acknowledgment of the echo: what is sent, and when it is repeated.

use super::*;

/// The second indication.
const SECOND_INDICATION: ConnectivityChange = ConnectivityChange { cs: LocalStatus::New, ..IDLE };

/// Without limits, so that only the handshake decides.
fn unlimited(strict: bool) -> Config {
    with(rlci(|rlci| (rlci.strict, rlci.rate_limit) = (strict, Some(false))))
}

#[test]
fn every_segment_carries_the_option_until_the_echo_is_acknowledged() {
    for strict in [true, false] {
        let mut t = agreed(unlimited(strict));
        t.time(200);
        t.connectivity(MOVED);
        t.recv([ack(1).change(INDICATION)]);
        t.write(2000);
        t.recv(each_with(1..=2, INDICATION));
        t.time(300);
        answer(&mut t, ack(3).change(ECHO));
        // Strictly, that waits for a segment.
        t.recv((!strict).then_some(ack(1).seq(at(3)).change(ECHO_ACK)));
        t.write(2000);
        let first = if strict { data(3).change(ECHO_ACK) } else { data(3) };
        t.recv([first, data(4)]);
        // The acknowledgment was lost: the echo comes again.
        t.time(400);
        answer(&mut t, ack(5).change(ECHO));
        t.recv((!strict).then_some(ack(1).seq(at(5)).change(ECHO_ACK)));
        assert_eq!(t.statistics().reprobes, 1);
    }
}

#[test]
fn the_echo_is_repeated_in_every_segment_until_it_is_acknowledged() {
    for strict in [true, false] {
        let mut t = agreed(unlimited(strict));
        t.time(200);
        answer(&mut t, ack(1).change(INDICATION));
        t.recv([ack(1).change(ECHO)]);
        t.time(201);
        answer(&mut t, data(1).change(INDICATION)); // Nothing new.
        t.recv([ack(2).change(ECHO)]);
        t.time(202);
        answer(&mut t, data(2).change(ECHO_ACK));
        t.recv([ack(3)]);
        t.time(60_000);
        t.silent();
        assert_eq!(t.statistics().reprobes, 1);
    }
}

#[test]
fn what_is_not_answered_is_repeated_six_times_at_growing_intervals() {
    let mut t = agreed(unlimited(false));
    t.time(200);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    for at in [1200, 3200, 7200, 15_200, 31_200, 63_200] {
        t.time(at - 1);
        t.silent();
        t.time(at);
        t.recv([ack(1).change(INDICATION)]);
    }
    t.time(10_000_000);
    t.silent();
    t.write(1000); // It has not been forgotten.
    t.recv([data(1).change(INDICATION)]);

    let mut t = agreed(unlimited(false));
    t.time(200);
    answer(&mut t, ack(1).change(INDICATION));
    t.recv([ack(1).change(ECHO)]);
    t.time(1200);
    t.recv([ack(1).change(ECHO)]);
    answer(&mut t, ack(1).change(ECHO_ACK));
    t.time(60_000);
    t.silent();
}

#[test]
fn strictly_nothing_is_repeated() {
    let mut t = agreed(unlimited(true));
    t.time(200);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    t.time(10_000_000);
    t.silent();
}

#[test]
fn strictly_a_link_that_flaps_is_signalled_once() {
    // MECHANISMS.md section 7, (b) and (c)
    let mut t = agreed(unlimited(true));
    t.time(200);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    t.time(250);
    t.connectivity(MOVED);
    t.silent();
    t.time(300);
    answer(&mut t, ack(1).change(ECHO));
    t.time(350);
    t.connectivity(MOVED); // The echo has yet to be acknowledged.
    t.silent();
    assert_eq!(t.statistics().reprobes, 1);
}

#[test]
fn a_link_that_flaps_is_probed_at_once_and_signalled_after_the_echo() {
    let mut t = agreed(unlimited(false));
    t.time(200);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    t.time(250);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    assert_eq!(t.statistics().reprobes, 2);
    t.time(300);
    answer(&mut t, ack(1).change(ECHO));
    t.recv([ack(1).change(ECHO_ACK)]);
    t.time(300);
    t.recv([ack(1).change(SECOND_INDICATION)]);
    t.time(400);
    answer(&mut t, ack(1).change(ConnectivityChange { ec: false, ecs: true, ..IDLE }));
    let echo_ack = ConnectivityChange { cs: LocalStatus::EchoAck, ..IDLE };
    t.recv([ack(1).change(echo_ack)]);
    assert_eq!(t.statistics().reprobes, 2, "it was acted on when it came");
    t.time(60_000);
    t.silent();
}

#[test]
fn an_option_counts_only_inside_the_window() {
    let old = |t: &mut Diagram| answer(t, ack(1).change(INDICATION)); // Before what has arrived.
    let beyond = |t: &mut Diagram| answer(t, ack(1).seq(5_000_000).change(INDICATION));
    let stale = |t: &mut Diagram| {
        t.stamp = Some(99);
        t.send(ack(1).seq(at(2)).change(INDICATION));
    };
    let of_nothing = |t: &mut Diagram| answer(t, ack(1).seq(at(2)).acking(77).change(INDICATION));
    let wrong: [&dyn Fn(&mut Diagram); 4] = [&old, &beyond, &stale, &of_nothing];
    for send in wrong {
        let mut t = agreed(unlimited(false));
        t.time(200);
        answer(&mut t, data(1));
        t.recv([ack(2)]);
        send(&mut t);
        t.recv([ack(2)]); // It says where it stands, and nothing of a change.
        assert_eq!(t.statistics().reprobes, 0);
        answer(&mut t, ack(1).seq(at(2)).change(INDICATION));
        t.recv([ack(2).change(ECHO)]);
    }
}

#[test]
fn sack_blocks_get_what_is_left_of_the_header() {
    for (encoding, blocks) in [(Encoding::Experimental, 2), (Encoding::Draft, 3)] {
        let mut t = offered(unlimited(false));
        t.offer.connectivity = ConnectivityChange { encoding, ..IDLE }.into();
        t.time(100);
        t.stamp = Some(100);
        t.send(syn_ack());
        t.recv([ack(1)]);
        t.connectivity(MOVED);
        t.unseen.clear();
        for n in [2, 4, 6, 8] {
            answer(&mut t, data(n));
        }
        let options = t.last().options;
        assert!(options.connectivity.is_some());
        assert_eq!((options.sack.as_slice().len(), options.len()), (blocks, 40));
        assert_eq!(options.sack.as_slice()[0].start, PEER_ISS + at(8), "the latest first");
        let mut bytes = Vec::new();
        t.sent.last().unwrap().emit(&[], &mut bytes).unwrap();
    }
}

#[test]
fn a_reset_ends_it() {
    for strict in [true, false] {
        let mut t = agreed(unlimited(strict));
        t.time(200);
        t.connectivity(MOVED);
        t.recv([ack(1).change(INDICATION)]);
        answer(&mut t, ack(1).rst());
        assert_eq!(t.state(), State::Closed);
        assert_eq!(t.connection.poll_timeout(), Time::NEVER);
        t.connectivity(MOVED);
        t.silent();
    }
}

#[test]
fn a_connection_that_is_stored_in_the_middle_of_it_goes_on() {
    let mut t = agreed(unlimited(false));
    t.restore(1 << 30);
    t.time(200);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    t.restore(7);
    t.time(1199);
    t.silent();
    t.restore(1 << 40);
    t.time(1200);
    t.recv([ack(1).change(INDICATION)]);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    t.restore(1);
    t.time(1300);
    answer(&mut t, ack(1).change(ECHO));
    t.recv([ack(1).change(ECHO_ACK)]);
    t.restore(0);
    t.time(1300);
    t.recv([ack(1).change(SECOND_INDICATION)]);
}

#[test]
fn an_indication_while_closing_leaves_nothing_behind() {
    let mut t = agreed(unlimited(false));
    t.close();
    t.recv([ack(1).fin()]);
    t.time(200);
    t.connectivity(MOVED);
    t.recv([ack(1).fin().change(INDICATION)]);
    t.time(300);
    answer(&mut t, ack(1).fin().acking(2).change(ECHO));
    t.recv([ack(1).seq(2).acking(2).change(ECHO_ACK), ack(1).seq(2).acking(2)]);
    assert_eq!(t.state(), State::TimeWait);
    t.connectivity(MOVED);
    t.recv([ack(1).seq(2).acking(2).change(SECOND_INDICATION)]);
    while t.state() == State::TimeWait {
        t.unseen.clear();
        t.time(t.now.as_nanos() / 1_000_000 + 1000);
    }
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}
