//! Slow start, congestion avoidance, and the peer's window.

use super::*;

#[test]
fn slow_start_lets_out_two_segments_for_each_acknowledgment() {
    // RFC 5681 §3.1, equation 2.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(1), ..config() });
    t.time(200);
    t.send(ack(2));
    t.recv([data(2), data(3)]);
    t.time(300);
    t.send(ack(3));
    t.recv([data(4), data(5)]);
    t.send(ack(4));
    t.recv([data(6), data(7)]);
    assert_eq!(t.windows(), (segments(4), u64::MAX));
}

#[test]
fn an_acknowledgment_of_two_segments_adds_one_in_slow_start() {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(200);
    t.send(ack(3));
    t.recv(each(5..=7));
    assert_eq!(t.windows().0, segments(5));
}

#[test]
fn congestion_avoidance_adds_one_segment_a_round_trip() {
    // RFC 5681 §3.1, equation 3.
    let mut t = sending(Config {
        initial_window: InitialWindow::Segments(4),
        initial_ssthresh: Some(segments(4)),
        ..config()
    });
    t.time(200);
    for n in 1..=4 {
        t.send(ack(n + 1));
        t.recv([data(n + 4)]);
    }
    // 4 + 1/4 + 1/4.25 + ... is a little less than five.
    assert!((4900..=5000).contains(&t.windows().0), "{:?}", t.windows());
    t.time(300);
    t.send(ack(6));
    t.recv([data(9), data(10)]);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // RFC 9293 §3.8.2, RFC 7661.
    let mut t = established(config());
    for n in 1..=20 {
        t.write(segments(1));
        t.recv([data(n)]);
        t.time(100 + 100 * u64::from(n));
        t.send(ack(n + 1));
        t.silent();
    }
    assert_eq!(t.windows().0, segments(10));
}

#[test]
fn the_peers_window_is_never_exceeded() {
    let mut t = established(config());
    t.window = 3008;
    t.send(ack(1));
    t.write(1 << 30);
    t.recv(each(1..=3));
    t.time(200);
    t.send(ack(2)); // The window moves on with the acknowledgment ...
    t.recv([data(4)]);
    t.send(ack(3).window(2000)); // ... or stands still ...
    t.silent();
    t.send(ack(3).window(4000)); // ... or opens.
    t.recv([data(5), data(6)]);
    t.send(ack(4).window(0));
    t.silent();
    assert!(t.windows().0 >= segments(10), "it is not the congestion window that stops it");
}

#[test]
fn a_small_remainder_of_the_peers_window_is_left_unused() {
    // RFC 9293 §3.8.6.2.1: no segment that the window cuts short to less than half of itself.
    let mut t = established(config());
    t.send(ack(1).window(2496));
    t.write(1 << 30);
    t.recv(each(1..=2));
    t.time(200);
    t.send(ack(2).window(1504));
    t.silent();
    t.send(ack(3).window(496));
    t.silent();
    t.time(1200); // The window may stay like that: in the end a small one is better than none.
    t.recv([bytes(2000, 2496)]);
}

#[test]
fn a_write_sends_at_once_what_the_window_allows() {
    let mut t = established(Config { initial_window: InitialWindow::Segments(3), ..config() });
    t.write(500);
    t.recv([bytes(0, 500)]);
    t.write(2600);
    t.recv([bytes(500, 1500), bytes(1500, 2500)]);
    t.time(200);
    t.send(ack(1).acking(1 + 500));
    t.recv([bytes(2500, 3100)]);
}

#[test]
fn an_old_acknowledgment_says_nothing() {
    let mut t = sending(config());
    t.time(200);
    t.send(ack(4));
    t.recv(each(11..=14));
    for _ in 0..5 {
        t.send(ack(2));
        t.silent();
    }
    assert_eq!(t.statistics().retransmissions, 0);
}

#[test]
fn an_acknowledgment_of_what_was_never_sent_is_answered_and_not_believed() {
    // RFC 9293 §3.10.7.4: "If the ACK acks something not yet sent, then send an ACK, drop".
    let mut t = sending(config());
    t.time(200);
    t.send(ack(11).acking(at(11) + 1));
    t.recv([ack(1).seq(at(11))]);
    assert_eq!(t.connection.vitals().flight, segments(10));
    t.send(ack(11));
    t.recv(each(11..=21));
}

#[test]
fn an_acknowledgment_of_half_a_segment_counts_for_half() {
    let mut t = sending_only(2, config());
    t.time(200);
    t.send(ack(1).acking(1 + 500));
    t.silent();
    assert_eq!(t.connection.vitals().flight, 1500);
    t.time(1200); // The timer was started again; the rest is what goes out.
    t.recv([bytes(500, 1000)]);
}

#[test]
fn a_window_of_which_half_is_used_grows_in_slow_start_if_that_counts() {
    // RFC 7661 §4.2: ten segments out of ten, and no more to send.
    let run = |validation| {
        let config = Config { validation, byte_counting: Some(2), ..config() };
        let mut t = sending_only(10, config);
        t.time(200);
        for n in [3, 5, 7, 9, 11] {
            t.send(ack(n));
        }
        t.windows().0
    };
    assert_eq!(run(Validation::Full), segments(10));
    assert_eq!(run(Validation::Half), segments(20));
}

#[test]
fn a_window_of_which_less_than_half_is_used_does_not_grow() {
    let config = Config { validation: Validation::Half, ..config() };
    let mut t = established(config);
    for n in 1..=20_u32 {
        t.time(u64::from(100 * n));
        t.write(5 * u64::from(MSS));
        t.recv(each(5 * n - 4..=5 * n));
        t.time(u64::from(100 * n) + 50);
        for acked in 5 * n - 3..=5 * n + 1 {
            t.send(ack(acked));
        }
        assert_eq!(t.windows().0, segments(10), "round {n}");
    }
}
