//! The receive buffer grows with what the application reads in a round trip.

use super::*;
use crate::Pressure;

/// A buffer of 20 segments that may become 1 MiB.
fn tuned() -> Config {
    Config { receive_window: ReceiveWindow { initial: 20_000, maximum: 1 << 20 }, ..config() }
}

/// The window that our last segment announces, in bytes.
fn window(t: &Diagram) -> u32 {
    u32::from(t.last().window) << SHIFT
}

/// The peer's segments `first` to `last` arrive, and are read at once.
fn arrive(t: &mut Diagram, first: u32, last: u32) {
    for n in first..=last {
        t.send(data(n));
        t.read(u64::from(n - 1) * u64::from(MSS));
    }
    t.unseen.clear();
}

#[test]
fn a_syn_has_the_scale_of_the_largest_buffer() {
    let t = Diagram::new(&tuned(), Side::Active);
    assert_eq!((t.last().window, t.last().options.window_scale), (20_000, Some(SHIFT)));
}

#[test]
fn a_buffer_holds_twice_what_was_read_in_a_round_trip_and_16_segments_and_what_that_grows_by() {
    let mut t = established(tuned()); // The round trip of the handshake is 100 ms.
    t.time(200);
    arrive(&mut t, 1, 15);
    t.time(299);
    arrive(&mut t, 16, 16);
    assert!(window(&t) <= 20_000);
    t.time(300);
    arrive(&mut t, 17, 17);
    // 16 segments instead of 10: 48 segments, and 2 * 6 / 10 of that ahead.
    assert!((105_600 - 2000..=105_600).contains(&window(&t)), "{}", window(&t));
    // It does not grow if no more is read, and does not shrink.
    for round in 4..10 {
        t.time(100 * round);
        let n = 10 + 2 * round as u32;
        arrive(&mut t, n, n + 1);
        assert!((105_600 - 3000..=105_600).contains(&window(&t)), "{}", window(&t));
    }
}

#[test]
fn it_grows_to_its_maximum() {
    let mut t = established(tuned());
    let (mut next, mut count) = (1, 10);
    for round in 2..12 {
        t.time(100 * round);
        arrive(&mut t, next, next + count - 1);
        next += count;
        count = (count * 2).min(500);
    }
    assert!((1_000_000..=1 << 20).contains(&window(&t)), "{}", window(&t));
}

#[test]
fn an_application_that_reads_slowly_keeps_it_small() {
    let mut t = established(tuned());
    let mut edge = 0;
    for n in 1..100 {
        t.time(100 + 10 * u64::from(n)); // Ten segments a round trip, if there is room.
        if at(n + 1) <= edge || edge == 0 {
            t.send(data(n));
        }
        t.connection.read_up_to(500);
        t.transmit();
        t.unseen.clear();
        edge = (t.last().ack - PEER_ISS) + window(&t);
    }
    let read = 99 * 500;
    assert!(edge <= 1 + read + 20_000, "{edge}");
}

#[test]
fn it_does_not_grow_under_memory_pressure() {
    let mut t = established(tuned());
    t.connection.set_pressure(Pressure::OutOfOrder);
    t.time(200);
    arrive(&mut t, 1, 15);
    t.time(300);
    arrive(&mut t, 16, 30);
    assert!(window(&t) <= 20_000);
    t.connection.set_pressure(Pressure::None);
    t.time(400);
    arrive(&mut t, 31, 31);
    assert!(window(&t) > 40_000, "{}", window(&t));
}

#[test]
fn the_age_of_echoed_timestamps_is_a_round_trip() {
    // The path becomes longer: 15 segments in 400 ms, of which 100 ms see a few at a time.
    let mut t = Diagram::new(&Config { timestamps: true, ..tuned() }, Side::Active);
    t.recv([syn()]);
    t.stamp = Some(77);
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    let mut next = 1;
    for round in 1..20 {
        for step in 0..15 {
            t.time(400 * round + 27 * step);
            // The peer's segments echo what left 400 ms before.
            t.echoes = Some(5000 + (400 * (round - 1) + 27 * step) as u32);
            arrive(&mut t, next, next);
            next += 1;
        }
    }
    assert!(window(&t) > 40_000, "{}", window(&t));
}
