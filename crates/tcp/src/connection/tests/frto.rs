//! F-RTO: spurious timeouts (RFC 5682 §3).

use super::*;

fn frto() -> Config {
    Config { frto: true, initial_window: InitialWindow::Segments(8), ..config() }
}

#[test]
fn a_timeout_is_undone_if_what_was_sent_once_is_acknowledged_after_it() {
    let mut t = sending(frto());
    t.time(1100);
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(1), segments(4)));
    t.time(1150);
    t.send(ack(2)); // Step 2b.
    t.recv([data(9), data(10)]);
    t.send(ack(3)); // Step 3b: the second was never sent again.
    assert_eq!(t.statistics().undone, 1);
    assert_eq!(t.connection.info().recovery_state, RecoveryState::Open);
    assert!(t.windows().0 >= segments(8), "{:?}", t.windows());
    assert_eq!(t.windows().1, u64::MAX);
    assert_eq!(t.statistics().retransmissions, 1);
}

#[test]
fn a_timeout_is_real_if_new_data_arrives_behind_a_gap() {
    let mut t = sending(frto());
    t.time(1100);
    t.recv([data(1)]);
    t.time(1200);
    t.send(ack(2));
    t.recv([data(9), data(10)]);
    t.time(1300);
    t.send(ack(2).sack(9..=9)); // Step 3a.
    t.recv([data(2)]);
    t.send(ack(2).sack(9..=10));
    t.recv([data(3)]);
    assert_eq!(t.statistics().undone, 0);
    assert_eq!(t.connection.info().recovery_state, RecoveryState::Loss);
}

#[test]
fn sacked_segments_that_were_sent_once_show_it_too() {
    let mut t = sending(frto());
    t.time(1100);
    t.recv([data(1)]);
    t.time(1150);
    t.send(ack(1).sack(2..=2)); // The first is lost, and the rest was late.
    assert_eq!(t.statistics().undone, 1);
}

#[test]
fn without_new_data_the_rest_is_sent_again() {
    let mut t = sending_only(8, frto());
    t.time(1100);
    t.recv([data(1)]);
    t.time(1200);
    t.send(ack(2));
    t.recv([data(2), data(3)]);
}

#[test]
fn a_timeout_in_fast_recovery_is_real() {
    let mut t = sending(frto());
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.time(1200);
    t.recv([data(1)]);
    t.send(ack(5));
    t.recv([data(5), data(6)]);
    assert_eq!(t.statistics().undone, 0);
}
