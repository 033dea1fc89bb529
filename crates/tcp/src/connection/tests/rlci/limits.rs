//! When an indication is not acted on: suppression (§3.5.4) and the limit of the rate (§3.6).

use super::*;

fn unlimited(strict: bool, suppress: bool) -> Config {
    with(rlci(|rlci| {
        (rlci.strict, rlci.suppress, rlci.rate_limit) = (strict, Some(suppress), Some(false));
    }))
}

/// The peer signals its own indication during our handshake.
const BOTH: ConnectivityChange = ConnectivityChange { ec: true, ecs: true, ..INDICATION };

#[test]
fn both_ends_signal_the_same_change_and_restart_once() {
    for strict in [true, false] {
        for suppress in [true, false] {
            let mut t = flowing(unlimited(strict, suppress));
            t.time(150);
            t.connectivity(MOVED);
            t.unseen.clear();
            t.time(160);
            answer_to(&mut t, 5100, ack(1).change(INDICATION));
            assert_eq!(t.statistics().reprobes, if suppress { 1 } else { 2 });
            // It is echoed at once all the same, by one segment of new data if that alone is to go.
            if suppress {
                let next = if strict { 12 } else { 11 };
                t.recv([data(next).change(BOTH)]);
                // What was sent since the first is of the present path.
                answer_to(&mut t, 5151, ack(3).change(INDICATION));
                assert_eq!(t.windows().0, segments(11));
            }
        }
    }
}

#[test]
fn strictly_what_the_report_only_suggests_is_not_done() {
    // §3.5.4: "it can be avoided"; §3.6: "one possible defense".
    let mut t = flowing(with(strict()));
    t.time(150);
    t.connectivity(MOVED);
    t.unseen.clear();
    t.time(160);
    answer_to(&mut t, 5100, ack(1).change(INDICATION));
    assert_eq!(t.statistics().reprobes, 2, "twice for one change");
    t.unseen.clear();
    let mut t = agreed(with(strict()));
    for n in 1..=100_u32 {
        t.time(200 + u64::from(n) * 100);
        let change = ConnectivityChange { c: n % 2 == 1, ..INDICATION };
        answer(&mut t, ack(1).change(change));
        t.unseen.clear();
    }
    assert_eq!(t.statistics().reprobes, 100);
    // Named, it is.
    let both = |rlci: &mut Rlci| {
        (rlci.strict, rlci.suppress, rlci.rate_limit) = (true, Some(true), Some(true));
    };
    let mut t = agreed(with(rlci(both)));
    for n in 1..=100_u32 {
        t.time(200 + u64::from(n) * 100);
        let change = ConnectivityChange { c: n % 2 == 1, ..INDICATION };
        answer(&mut t, ack(1).change(change));
        t.unseen.clear();
    }
    assert_eq!(t.statistics().reprobes, 4);
}

#[test]
fn strictly_a_connection_that_probes_begins_no_second_time() {
    for strict in [true, false] {
        let mut t = flowing(unlimited(strict, true));
        t.time(150);
        t.connectivity(MOVED);
        t.unseen.clear();
        t.time(1150);
        t.unseen.clear();
        t.time(1200);
        answer_to(&mut t, 5100, ack(1).change(INDICATION));
        // The corrected protocol signals again after an indication that led only to a timeout.
        assert_eq!(t.statistics().reprobes, if strict { 1 } else { 2 });
    }
}

#[test]
fn a_change_after_the_probing_is_another() {
    for strict in [true, false] {
        let mut t = agreed(unlimited(strict, true));
        t.time(200);
        t.connectivity(MOVED);
        t.recv([ack(1).change(INDICATION)]);
        t.time(300);
        // This acknowledges all that there was before the change.
        answer(&mut t, ack(1).change(ECHO));
        t.unseen.clear();
        t.time(400);
        answer(&mut t, ack(1).change(INDICATION));
        assert_eq!(t.statistics().reprobes, 2);
    }
}

#[test]
fn what_comes_too_often_is_echoed_and_not_acted_on() {
    let mut t = flowing(with(corrected()));
    t.time(200);
    answer_to(&mut t, 5100, ack(11)); // A round trip of 100 ms.
    t.unseen.clear();
    let mut change = IDLE;
    let mut indicate = |t: &mut Diagram, ack: u32| {
        change.c = !change.c;
        change.cs = LocalStatus::New;
        let before = t.sent.len();
        let last = t.last().options.timestamps.unwrap().value;
        answer_to(t, last, super::ack(ack).change(change));
        t.unseen.clear();
        (t.sent.len() - before, change.c)
    };
    let echoed =
        |t: &Diagram| t.last().options.connectivity.get().map(|option| (option.ec, option.ecs));
    t.time(300);
    let (sent, c) = indicate(&mut t, 11);
    assert!(sent > 1);
    assert_eq!((t.statistics().reprobes, echoed(&t)), (1, Some((c, true))));
    t.time(400);
    let (sent, c) = indicate(&mut t, 11);
    assert_eq!((t.statistics().reprobes, sent), (1, 0));
    let last = t.last().options.timestamps.unwrap().value;
    answer_to(&mut t, last, ack(12));
    t.unseen.clear();
    assert_eq!(echoed(&t), Some((c, true)), "by the next that goes out");
    // Ten round trips later.
    t.time(1299);
    t.unseen.clear();
    indicate(&mut t, 11);
    assert_eq!(t.statistics().reprobes, 1);
    t.time(1300);
    t.unseen.clear();
    indicate(&mut t, 11);
    assert_eq!(t.statistics().reprobes, 2);
}

#[test]
fn a_stream_of_forged_indications_costs_four_beginnings_a_minute() {
    let mut t = agreed(with(corrected()));
    for n in 1..=590_u32 {
        t.time(200 + u64::from(n) * 100);
        t.unseen.clear();
        let change = ConnectivityChange { c: n % 2 == 1, ..INDICATION };
        answer(&mut t, ack(1).change(change));
        t.unseen.clear();
    }
    assert_eq!(t.statistics().reprobes, 4);
}

#[test]
fn local_indications_are_limited_alike_and_signalled() {
    let mut t = agreed(with(corrected()));
    t.time(200);
    t.connectivity(MOVED);
    t.recv([ack(1).change(INDICATION)]);
    t.time(300);
    answer(&mut t, ack(1).change(ECHO));
    t.recv([ack(1).change(ECHO_ACK)]);
    t.time(400);
    t.connectivity(MOVED);
    t.recv([ack(1).change(ConnectivityChange { c: false, ..INDICATION })]);
    assert_eq!(t.statistics().reprobes, 1);
}

#[test]
fn every_mechanism_gets_the_indication_and_every_arriving_segment() {
    use crate::mechanism::{ForwardEten, Freeze};
    let freeze = || Mechanism::Freeze(Freeze::default());
    for freeze_first in [true, false] {
        let mut mechanisms = vec![freeze(), Mechanism::Rlci(corrected())];
        if !freeze_first {
            mechanisms.reverse();
        }
        let mut t = agreed(Config { mechanisms, ..with(corrected()) });
        t.connectivity(Connectivity::Ending);
        t.recv([ack(1)]);
        assert_eq!(t.last().window, 0);
        t.connectivity(MOVED);
        assert_eq!(t.statistics().reprobes, 1);
        assert!(t.last().window > 0);
        t.unseen.clear();
    }
    // An echo of a corruption is heeded while the path is being probed.
    for eten_first in [true, false] {
        let eten = Mechanism::ForwardEten(ForwardEten::default());
        let mut mechanisms = vec![eten, Mechanism::Rlci(strict())];
        if !eten_first {
            mechanisms.reverse();
        }
        let mut t = flowing(Config { mechanisms, ..with(strict()) });
        t.time(150);
        t.connectivity(MOVED);
        t.recv([data(11).change(INDICATION)]);
        t.time(160);
        let copy = t.copy(3).0;
        answer_to(&mut t, 5100, ack(1).echoes(3, copy));
        assert_eq!(t.statistics().notices, 1);
        assert!(t.unseen.iter().any(|(_, seg)| seg.seq == at(3)), "{:?}", t.unseen);
        assert_eq!(t.windows().0, segments(10), "not of the present path");
    }
}
