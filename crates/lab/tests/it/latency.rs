//! Round trips and queueing delays in rows.

use crate::common::{floats, sweep, texts, with};
use base::Quantiles;
use lab::{Column, Outcome, Tail, Watch};
use scenario::Latency;
use std::sync::atomic::AtomicBool;

const BITS_PER_SECOND: f64 = 1_500_000.0;

fn run(text: &str) -> Outcome {
    let watch = Watch { latency: Latency::Summary, ..Watch::default() };
    lab::run(&crate::common::scenario(text), 1, &watch, &AtomicBool::new(false)).unwrap()
}

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.001, "{value} instead of {expected}");
}

/// The scenario with one segment at a time on an empty path, and estimates without a clock's ticks.
fn one_by_one(latency: &str) -> String {
    with(&[
        ("errors  = { bit = 1e-5 }\n", ""),
        ("\"20 segments\"", "\"1 segments\", rto = { estimator = \"exact\" }"),
        ("profile", &format!("latency = {latency}\nprofile")),
    ])
}

#[test]
fn on_an_empty_path_a_round_trip_is_propagation_and_serialisation() {
    // One segment of 536 bytes at a time, each acknowledged at once.
    let outcome = run(&one_by_one("false"));
    let (rtt, srtt) = (outcome.rows[0].rtt_s.unwrap(), outcome.rows[0].srtt_s.unwrap());
    let expected = 2.0 * 0.1 + (576 + 40) as f64 * 8.0 / BITS_PER_SECOND;
    for value in [rtt.mean, rtt.median, rtt.p95, rtt.p99, srtt.mean, srtt.median, srtt.p99] {
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

#[test]
fn distributions_count_every_sample() {
    let run = |latency| {
        let watch = Watch { latency, ..Watch::default() };
        let scenario = crate::common::scenario(&one_by_one("false"));
        lab::run(&scenario, 1, &watch, &AtomicBool::new(false)).unwrap()
    };
    let outcome = run(Latency::Distributions);
    let row = &outcome.rows[0];
    let kept = row.distributions.as_deref().unwrap();
    assert_eq!((Tail::of(&kept.rtt), Tail::of(&kept.srtt)), (row.rtt_s, row.srtt_s));
    // Every segment was acknowledged, the SYN too, but for the last and the SYN's own count.
    let segments = row.sender.segments.unwrap();
    assert!(kept.rtt.count().abs_diff(segments) <= 1, "{} of {segments}", kept.rtt.count());
    assert_eq!(kept.srtt.count(), kept.rtt.count());
    // RFC 6298 §2.3: the second sample, of a full segment, counts for an eighth.
    let least =
        |times: &Quantiles| times.counts().map(|(nanos, _)| nanos as f64).collect::<Vec<_>>();
    let (rtt, srtt) = (least(&kept.rtt), least(&kept.srtt));
    assert_eq!(srtt[0], rtt[0]);
    assert_near(srtt[1], rtt[0] + (rtt[1] - rtt[0]) / 8.0);
    // All samples, by what they are of.
    let found: Vec<_> =
        outcome.distributions().into_iter().map(|(what, of, _)| (what, of.to_owned())).collect();
    let names = ["rtt", "srtt", "queue_delay", "queue_delay"];
    assert_eq!(found.iter().map(|(what, _)| *what).collect::<Vec<_>>(), names);
    assert_eq!([&found[0].1, &found[2].1, &found[3].1], [&row.flow, "a->b", "b->a"]);
    let summary = run(Latency::Summary);
    assert_eq!(summary.rows[0].distributions, None);
    assert_eq!(
        (summary.rows[0].rtt_s, &summary.queue_delays_s),
        (row.rtt_s, &outcome.queue_delays_s)
    );
    assert!(summary.queue_delays.is_empty() && summary.distributions().is_empty());
}

#[test]
fn a_sweep_keeps_distributions_if_its_scenario_says_so() {
    let swept = "[sweep]\n\"links.0.delay\" = [\"10 ms\", \"50 ms\"]\n";
    let names = ["rtt_counts", "srtt_counts", "delay_counts", "queue_delay_counts"];
    let summary = sweep(&(one_by_one("true") + swept), 1);
    assert!(names.iter().all(|name| summary.column(name).is_none()));
    let table = sweep(&(one_by_one("\"distributions\"") + swept), 1);
    let last = table.columns().iter().map(|(name, _)| name.as_str()).rev().take(4);
    assert_eq!(last.collect::<Vec<_>>(), [names[3], names[2], names[1], names[0]]);
    let sum = |text: &str| {
        let pairs: Vec<(u64, u64)> = serde_json::from_str(text).unwrap();
        let total = |(sum, of): (f64, u64), (nanos, count): (u64, u64)| {
            (sum + (nanos * count) as f64, of + count)
        };
        pairs.into_iter().fold((0.0, 0), total)
    };
    let means: Vec<f64> = texts(&table, "rtt_counts")
        .iter()
        .map(|text| {
            let (sum, of) = sum(text);
            sum / of as f64 / 1e9
        })
        .collect();
    assert_near(means[0], floats(&table, "rtt_mean_s")[0]);
    assert_near(means[1], floats(&table, "rtt_mean_s")[1]);
    // No datagrams; no packet waits.
    assert_eq!(texts(&table, "delay_counts"), ["[]", "[]"]);
    assert!(texts(&table, "queue_delay_counts").iter().all(|text| text.starts_with("[[0,")));
    // Swept itself, it is written where it is asked for.
    let both = "[sweep]\nlatency = [true, \"distributions\"]\n";
    let table = sweep(&(one_by_one("true") + both), 1);
    assert_eq!(
        texts(&table, "rtt_counts").iter().map(|text| *text == "[]").collect::<Vec<_>>(),
        [true, false]
    );
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
        let (without, with) =
            (of(&digest), of(&Watch { latency: Latency::Summary, ..digest.clone() }));
        assert_eq!((without.digest, without.paths), (with.digest, with.paths));
        let general = of(&Watch { latency: Latency::Summary, general_path: true, ..digest });
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
    for column in ["rtt_mean_s", "srtt_median_s", "rtt_p99_s", "queue_delay_mean_s"] {
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
