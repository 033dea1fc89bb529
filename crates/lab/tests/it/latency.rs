//! Round trips and queueing delays in rows.

use crate::common::{floats, sweep, with};
use lab::{Column, Outcome, Watch};
use std::sync::atomic::AtomicBool;

const BITS_PER_SECOND: f64 = 1_500_000.0;

fn run(text: &str) -> Outcome {
    let watch = Watch { latency: true, ..Watch::default() };
    lab::run(&crate::common::scenario(text), 1, &watch, &AtomicBool::new(false)).unwrap()
}

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.001, "{value} instead of {expected}");
}

#[test]
fn on_an_empty_path_a_round_trip_is_propagation_and_serialisation() {
    // One segment of 536 bytes at a time, each acknowledged at once.
    let text = with(&[("errors  = { bit = 1e-5 }\n", ""), ("20 segments", "1 segments")]);
    let outcome = run(&text);
    let rtt = outcome.rows[0].rtt_s.unwrap();
    let expected = 2.0 * 0.1 + (576 + 40) as f64 * 8.0 / BITS_PER_SECOND;
    for value in [rtt.median, rtt.p95, rtt.p99] {
        assert_near(value, expected);
    }
    // That of the SYN, which is shorter.
    assert!(rtt.min > 2.0 * 0.1 && rtt.min < rtt.median, "{rtt:?}");
    let delays = outcome.queue_delays_s.iter().map(|delays| delays.unwrap().p99);
    assert_eq!(delays.collect::<Vec<_>>(), [0.0, 0.0]);
}

#[test]
fn a_full_queue_of_b_bytes_at_rate_r_delays_packets_by_b_over_r() {
    let bytes = 60_000.0;
    // A link with a plain queue, and one that has dequeue events.
    for more in ["", "duplication = 1e-9"] {
        let text = with(&[
            ("errors  = { bit = 1e-5 }", more),
            ("\"50 packets\"", "\"60000 bytes\""),
            (
                "to      = \"b\"",
                "to      = \"b\"\ntraffic = { udp = { rate = \"3 Mbit/s\", packet = 600 } }",
            ),
            (
                "tcp     = { recovery = \"sack\", receive_window = \"20 segments\", eten = \"none\" }",
                "",
            ),
        ]);
        let outcome = run(&text);
        let delays = outcome.queue_delays_s[0].unwrap();
        // The packet itself is part of the queue, and one may be in transmission.
        let (most, least) =
            ((bytes - 600.0) * 8.0 / BITS_PER_SECOND, (bytes - 1200.0) * 8.0 / BITS_PER_SECOND);
        for value in [delays.median, delays.p95, delays.p99] {
            assert!(value > least * 0.999 && value < most * 1.001, "{more}: {delays:?}");
        }
        assert_eq!(outcome.queue_delays_s[1], None, "nothing was sent there");
        assert_eq!(outcome.rows[0].rtt_s, None);
        // The row has those of the worst direction.
        let rows = outcome.table(1);
        assert_eq!(floats(&rows, "queue_delay_p95_s"), [delays.p95]);
    }
}

/// Packets of 600 bytes at a rate, instead of the transfer.
fn datagrams(rate: &str, more: &str) -> String {
    let traffic = format!(
        "to      = \"b\"\ntraffic = {{ udp = {{ rate = \"{rate}\", packet = 600{more} }} }}"
    );
    with(&[
        ("errors  = { bit = 1e-5 }\n", ""),
        ("to      = \"b\"", &traffic),
        (
            "tcp     = { recovery = \"sack\", receive_window = \"20 segments\", eten = \"none\" }",
            "",
        ),
    ])
}

#[test]
fn the_delay_of_a_datagram_is_that_of_the_path_and_its_queue() {
    let serialisation = 600.0 * 8.0 / BITS_PER_SECOND;
    let idle = run(&datagrams("100 kbit/s", "")).rows[0].delay_s.unwrap();
    for value in [idle.min, idle.median, idle.p99] {
        assert_near(value, 0.1 + serialisation);
    }
    // Twice the rate of the link: all but the first wait for the 50 packets before them.
    let full = run(&datagrams("3 Mbit/s", "")).rows[0].delay_s.unwrap();
    assert_near(full.median, 0.1 + 50.0 * serialisation);
    assert!(full.min < 0.1 + 1.1 * serialisation, "{full:?}");
    // When a burst begins is not known to who receives it.
    let bursts = run(&datagrams("100 kbit/s", ", on = \"1 s\", off = \"1 s\""));
    assert_eq!(bursts.rows[0].delay_s, None);
    let without = crate::common::run(&datagrams("100 kbit/s", ""));
    assert_eq!(without.rows[0].delay_s, None);
}

#[test]
fn the_round_trip_of_a_flow_that_fills_a_queue_shows_the_queue() {
    let text = with(&[("errors  = { bit = 1e-5 }\n", ""), ("20 segments", "90 segments")]);
    let outcome = run(&text);
    let (rtt, delays) = (outcome.rows[0].rtt_s.unwrap(), outcome.queue_delays_s[0].unwrap());
    let empty = 2.0 * 0.1 + (576 + 40) as f64 * 8.0 / BITS_PER_SECOND;
    assert_near(rtt.median, empty + delays.median);
    assert!(delays.median > 0.05, "{delays:?}");
}

#[test]
fn measuring_changes_no_packet_and_keeps_the_fast_path() {
    for text in [with(&[]), with(&[("errors  = { bit = 1e-5 }\n", "")])] {
        let digest = Watch { digest: true, ..Watch::default() };
        let of = |watch: &Watch| {
            lab::run(&crate::common::scenario(&text), 1, watch, &AtomicBool::new(false)).unwrap()
        };
        let (without, with) = (of(&digest), of(&Watch { latency: true, ..digest.clone() }));
        assert_eq!((without.digest, without.paths), (with.digest, with.paths));
        let general = of(&Watch { latency: true, general_path: true, ..digest });
        assert_eq!(general.rows, with.rows);
        assert_eq!(general.queue_delays_s, with.queue_delays_s);
        assert_eq!((without.rows[0].rtt_s, without.queue_delays_s), (None, Vec::new()));
    }
}

#[test]
fn a_sweep_measures_latency_if_its_scenario_says_so() {
    let swept = "[sweep]\n\"links.0.delay\" = [\"10 ms\", \"50 ms\"]\n";
    let plain = sweep(&(with(&[]) + swept), 1);
    assert_eq!(plain.column("rtt_min_s"), Some(&Column::Float(vec![None, None])));
    let measured = with(&[("profile", "latency = true\nprofile")]) + swept;
    let table = sweep(&measured, 1);
    let min = floats(&table, "rtt_min_s");
    assert!(min[0] > 0.02 && min[0] < 0.025 && min[1] > 0.1 && min[1] < 0.105, "{min:?}");
    for column in ["rtt_median_s", "rtt_p95_s", "rtt_p99_s", "queue_delay_p99_s"] {
        assert_eq!(floats(&table, column).len(), 2);
    }
}

#[test]
fn the_round_trips_of_many_connections_are_one_distribution() {
    let text = with(&[
        ("errors  = { bit = 1e-5 }\n", ""),
        (
            "to      = \"b\"",
            "to      = \"b\"\ntraffic = { size = \"2 kB\", arrivals = { rate = 1 } }",
        ),
    ]);
    let outcome = run(&text);
    let rtt = outcome.rows[0].rtt_s.unwrap();
    assert!(rtt.min > 0.2 && rtt.p99 < 0.22, "{rtt:?}");
}
