//! When an indication is not acted on: suppression (§3.5.4) and the limit of the rate (§3.6).

use super::*;

fn unlimited(strict: bool, suppress: bool) -> Config {
    with(rlci(|rlci| {
        (rlci.strict, rlci.suppress, rlci.rate_limit) = (strict, Some(suppress), Some(false));
    }))
}

/// In the middle of ours, the peer tells of its own.
const BOTH: ConnectivityChange = ConnectivityChange { ec: true, ecs: true, ..TELLS };

#[test]
fn both_ends_tell_of_the_same_change_and_begin_anew_once() {
    for strict in [true, false] {
        for suppress in [true, false] {
            let mut t = flowing(unlimited(strict, suppress));
            t.time(150);
            t.tell(MOVED);
            t.unseen.clear();
            t.time(160);
            answer_to(&mut t, 5100, ack(1).change(TELLS));
            assert_eq!(t.statistics().reprobes, if suppress { 1 } else { 2 });
            // It is echoed at once all the same, by one segment of new data if that alone is to go.
            if suppress {
                let next = if strict { 12 } else { 11 };
                t.recv([data(next).change(BOTH)]);
                // What was sent since the first is of the present path.
                answer_to(&mut t, 5151, ack(3).change(TELLS));
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
    t.tell(MOVED);
    t.unseen.clear();
    t.time(160);
    answer_to(&mut t, 5100, ack(1).change(TELLS));
    assert_eq!(t.statistics().reprobes, 2, "twice for one change");
    t.unseen.clear();
    let mut t = agreed(with(strict()));
    for n in 1..=100_u32 {
        t.time(200 + u64::from(n) * 100);
        let change = ConnectivityChange { c: n % 2 == 1, ..TELLS };
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
        let change = ConnectivityChange { c: n % 2 == 1, ..TELLS };
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
        t.tell(MOVED);
        t.unseen.clear();
        t.time(1150);
        t.unseen.clear();
        t.time(1200);
        answer_to(&mut t, 5100, ack(1).change(TELLS));
        // Mended, what the first has led to nothing but a timeout is told anew.
        assert_eq!(t.statistics().reprobes, if strict { 1 } else { 2 });
    }
}

#[test]
fn a_change_after_the_probing_is_another() {
    for strict in [true, false] {
        let mut t = agreed(unlimited(strict, true));
        t.time(200);
        t.tell(MOVED);
        t.recv([ack(1).change(TELLS)]);
        t.time(300);
        // This acknowledges all that there was before the change.
        answer(&mut t, ack(1).change(ECHOES));
        t.unseen.clear();
        t.time(400);
        answer(&mut t, ack(1).change(TELLS));
        assert_eq!(t.statistics().reprobes, 2);
    }
}

#[test]
fn what_comes_too_often_is_echoed_and_not_acted_on() {
    let mut t = flowing(with(mended()));
    t.time(200);
    answer_to(&mut t, 5100, ack(11)); // A round trip of 100 ms.
    t.unseen.clear();
    let mut told = IDLE;
    let mut tell = |t: &mut Diagram, ack: u32| {
        told.c = !told.c;
        told.cs = LocalStatus::New;
        let before = t.sent.len();
        let last = t.last().options.timestamps.unwrap().value;
        answer_to(t, last, super::ack(ack).change(told));
        t.unseen.clear();
        (t.sent.len() - before, told.c)
    };
    let echoed = |t: &Diagram| t.last().options.connectivity.map(|option| (option.ec, option.ecs));
    t.time(300);
    let (sent, c) = tell(&mut t, 11);
    assert!(sent > 1);
    assert_eq!((t.statistics().reprobes, echoed(&t)), (1, Some((c, true))));
    t.time(400);
    let (sent, c) = tell(&mut t, 11);
    assert_eq!((t.statistics().reprobes, sent), (1, 0));
    let last = t.last().options.timestamps.unwrap().value;
    answer_to(&mut t, last, ack(12));
    t.unseen.clear();
    assert_eq!(echoed(&t), Some((c, true)), "by the next that goes out");
    // Ten round trips later.
    t.time(1299);
    t.unseen.clear();
    tell(&mut t, 11);
    assert_eq!(t.statistics().reprobes, 1);
    t.time(1300);
    t.unseen.clear();
    tell(&mut t, 11);
    assert_eq!(t.statistics().reprobes, 2);
}

#[test]
fn a_stream_of_forged_indications_costs_four_beginnings_a_minute() {
    let mut t = agreed(with(mended()));
    for n in 1..=590_u32 {
        t.time(200 + u64::from(n) * 100);
        t.unseen.clear();
        let change = ConnectivityChange { c: n % 2 == 1, ..TELLS };
        answer(&mut t, ack(1).change(change));
        t.unseen.clear();
    }
    assert_eq!(t.statistics().reprobes, 4);
}

#[test]
fn local_indications_are_limited_alike_and_told() {
    let mut t = agreed(with(mended()));
    t.time(200);
    t.tell(MOVED);
    t.recv([ack(1).change(TELLS)]);
    t.time(300);
    answer(&mut t, ack(1).change(ECHOES));
    t.recv([ack(1).change(HEARD)]);
    t.time(400);
    t.tell(MOVED);
    t.recv([ack(1).change(ConnectivityChange { c: false, ..TELLS })]);
    assert_eq!(t.statistics().reprobes, 1);
}

#[test]
fn every_mechanism_hears_of_it_and_has_its_say_in_what_arrives() {
    use crate::mechanism::{ForwardEten, Freeze};
    let freeze = || Mechanism::Freeze(Freeze::default());
    for freeze_first in [true, false] {
        let mut mechanisms = vec![freeze(), Mechanism::Rlci(mended())];
        if !freeze_first {
            mechanisms.reverse();
        }
        let mut t = agreed(Config { mechanisms, ..with(mended()) });
        t.tell(Connectivity::Ending);
        t.recv([ack(1)]);
        assert_eq!(t.last().window, 0);
        t.tell(MOVED);
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
        t.tell(MOVED);
        t.recv([data(11).change(TELLS)]);
        t.time(160);
        let copy = t.copy(3).0;
        answer_to(&mut t, 5100, ack(1).echoes(3, copy));
        assert_eq!(t.statistics().notices, 1);
        assert!(t.unseen.iter().any(|(_, seg)| seg.seq == at(3)), "{:?}", t.unseen);
        assert_eq!(t.windows().0, segments(10), "not of the present path");
    }
}
