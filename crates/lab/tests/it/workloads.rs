//! Many transfers, one after the other or at once.

use crate::common::{error, run, run_with, scenario, with};
use lab::{Row, Watch};
use proptest::prelude::*;

/// A round trip of 100 ms, no errors, today's TCP, 100 seconds.
fn path(rate: &str, traffic: &str) -> String {
    with(&[
        ("profile  = \"ns2-2001\"\n", ""),
        ("60 s", "100 s"),
        ("1.5 Mbit/s", rate),
        ("100 ms", "50 ms"),
        ("queue   = \"50 packets\"\nerrors  = { bit = 1e-5 }\n", ""),
        (", receive_window = \"20 segments\", eten = \"none\"", ""),
        ("to      =", &format!("traffic = {traffic}\nto =")),
    ])
}

fn row(rate: &str, traffic: &str) -> Row {
    run(&path(rate, traffic)).rows.remove(0)
}

fn close(value: f64, expected: f64, tolerance: f64) -> bool {
    (value / expected - 1.0).abs() < tolerance
}

#[test]
fn transfers_that_do_not_meet_take_as_long_as_one_alone() {
    let alone = row("100 Mbit/s", "{ size = \"10 kB\" }");
    let many = row("100 Mbit/s", "{ arrivals = { rate = 5 }, size = \"10 kB\" }");
    let (alone_s, many_s) = (alone.time_s.unwrap(), many.time_s.unwrap());
    assert!(close(many_s.median, alone_s.mean, 0.002), "{many_s:?} {alone_s:?}");
    // Seven segments of one window: SYN, SYN and ACK, data, as fast as can be.
    for row in [&alone, &many] {
        let slowdown = row.slowdown.unwrap();
        assert!((1.0..1.002).contains(&slowdown.median), "{slowdown:?}");
    }
    assert_eq!(many.payload_bytes / 10_000, many.finished);
}

#[test]
fn transfers_start_at_the_rate_of_the_process() {
    // 20,000 expected, with a deviation of 141.
    let row = row("100 Mbit/s", "{ arrivals = { rate = 200 }, size = \"1 kB\" }");
    assert!(row.started.abs_diff(20_000) < 500, "{}", row.started);
    assert!(row.started - row.finished < 100 && row.failed == 0, "{row:?}");
    assert_eq!(row.completed_s, None);
}

#[test]
fn on_a_path_without_a_queue_as_many_are_under_way_as_arrive_in_the_time_of_one() {
    // M/G/infinity: at the end of a run, those under way are Poisson with mean rate times time.
    let text = path("100 Gbit/s", "{ arrivals = { rate = 400 }, size = \"14 kB\" }");
    let text = text.replace("100 s", "3 s");
    let (mut under_way, mut expected) = (0.0, 0.0);
    for seed in 1..=40 {
        let row = run_with(&text, seed, &Watch::default()).rows.remove(0);
        under_way += (row.started - row.finished) as f64;
        expected += 400.0 * row.time_s.unwrap().mean;
    }
    // 2400 expected in all, with a deviation of 49.
    assert!((under_way - expected).abs() < 150.0, "{under_way} instead of {expected}");
}

#[test]
fn so_many_are_under_way_at_all_times() {
    let row = row("8 Mbit/s", "{ arrivals = { flows = 20 }, size = \"50 kB\" }");
    // Little's law: flows = rate times time.
    let rate = row.finished as f64 / 100.0;
    assert!(close(rate * row.time_s.unwrap().mean, 20.0, 0.1), "{row:?}");
    // Of some the receiver has all data, and its acknowledgment has not arrived yet.
    assert!((10..=20).contains(&(row.started - row.finished)), "{row:?}");
    assert!(row.goodput_bps > 7e6, "they fill the link: {}", row.goodput_bps);
    assert!(row.slowdown.unwrap().mean > 3.0, "and hinder each other: {row:?}");
}

#[test]
fn flows_that_think_are_idle_between_transfers() {
    let row = row("8 Mbit/s", "{ arrivals = { flows = 40, think = \"2 s\" }, size = \"20 kB\" }");
    // Each cycle is a transfer and a pause.
    let cycle = row.time_s.unwrap().mean + 2.0;
    let started = 40.0 * 100.0 / cycle;
    assert!(close(row.started as f64, started, 0.08), "{row:?} {started}");
}

#[test]
fn a_workload_of_a_given_number_ends() {
    for arrivals in ["rate = 50", "flows = 7", "flows = 7, think = \"50 ms\""] {
        let traffic = format!("{{ arrivals = {{ {arrivals} }}, size = 3000, count = 100 }}");
        let row = row("8 Mbit/s", &traffic);
        assert_eq!((row.started, row.finished, row.payload_bytes), (100, 100, 300_000));
        assert_eq!(row.completed_s, Some(row.duration_s));
        assert!(row.duration_s < 10.0, "{arrivals}: {row:?}");
    }
}

#[test]
fn sizes_have_the_mean_of_their_distribution() {
    for sizes in [
        "exponential = { mean = \"10 kB\" }",
        "pareto = { mean = \"10 kB\", shape = 2.5 }",
        "pareto = { minimum = \"6 kB\", shape = 2.5 }",
        "log_normal = { mean = \"10 kB\", sigma = 1 }",
        "log_normal = { median = 6065, sigma = 1 }",
    ] {
        let traffic = format!("{{ arrivals = {{ rate = 300 }}, sizes = {{ {sizes} }} }}");
        let row = row("1 Gbit/s", &traffic);
        let mean = row.payload_bytes as f64 / row.finished as f64;
        assert!(close(mean, 10_000.0, 0.03), "{sizes}: {mean}");
    }
}

#[test]
fn a_workload_depends_on_its_name_and_the_seed_alone() {
    let text = path(
        "8 Mbit/s",
        "{ arrivals = { rate = 20 }, sizes = { exponential = { mean = \"9 kB\" } } }",
    );
    let named = text.replace("[[flows]]", "[[flows]]\nname = \"web\"");
    let watch = Watch { digest: true, ..Watch::default() };
    assert_eq!(run(&named), run(&named));
    assert_ne!(run(&named).digest, run_with(&named, 2, &watch).digest);
    // Another flow before it takes nothing from its luck, only from its time.
    let other = "[[flows]]\nfrom = \"b\"\nto = \"a\"\ntraffic = { size = 1 }\n[[flows]]\nname";
    let rows = run(&named.replace("[[flows]]\nname", other)).rows;
    let first = &run(&named).rows[0];
    assert_eq!((rows[1].started, rows[1].payload_bytes), (first.started, first.payload_bytes));
    assert_ne!(run(&text).rows[0].payload_bytes, first.payload_bytes);
}

#[test]
fn watching_a_workload_changes_nothing() {
    let text = path("8 Mbit/s", "{ arrivals = { flows = 5 }, size = 20000 }");
    let text = text.replace("to =", "ip = 6\nto =").replace("100 s", "10 s");
    let log = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("workload.jsonl");
    let watch = Watch {
        digest: true,
        series: true,
        bytes: true,
        log: Some(log.clone()),
        ..Watch::default()
    };
    let watched = run_with(&text, 1, &watch);
    let plain = run(&text);
    assert_eq!((watched.rows, watched.digest), (plain.rows, plain.digest));
    assert!(watched.series.unwrap().flows.is_empty());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.lines().count() > 1000, "every connection is in the log");
}

#[test]
fn transfers_that_are_given_up_have_failed() {
    let text = path("8 Mbit/s", "{ arrivals = { rate = 5 }, size = 1000, count = 100 }")
        .replace("recovery =", "user_timeout = \"3 s\", recovery =")
        .replace("delay   =", "errors = { packet = 1 }\ndelay =");
    let row = &run(&text).rows[0];
    assert_eq!((row.started, row.finished, row.failed), (100, 0, 100));
    assert_eq!((row.time_s, row.slowdown, row.payload_bytes), (None, None, 0));
}

#[test]
fn the_least_time_counts_every_link_of_the_way() {
    let second = "[[links]]\nbetween = [\"b\", \"c\"]\nrate = \"1 Mbit/s\"\ndelay = \"200 ms\"\n";
    let text = path("100 Mbit/s", "{ size = 1460 }")
        .replace("b = {}", "b = {}\nc = {}")
        .replace("[[flows]]", &format!("{second}[[flows]]"))
        .replace("to =      \"b\"", "to = \"c\"")
        .replace("to = \"b\"\ntcp", "to = \"c\"\ntcp");
    let row = &run(&text.replace(" \"b\"\ntcp", " \"c\"\ntcp")).rows[0];
    assert_eq!(row.to, "c");
    // 500 ms there and back, 250 ms there, a packet at the slowest link.
    let least = 0.75 + 1500.0 * 8.0 / 1e6;
    let slowdown = row.completed_s.unwrap() / least;
    assert!((row.slowdown.unwrap().mean - slowdown).abs() < 1e-5, "{row:?} {slowdown}");
    assert!((1.0..1.01).contains(&slowdown), "{slowdown}");
}

#[test]
fn very_many_transfers_leave_little_behind() {
    // What each leaves is forgotten: the ports alone would not suffice for all.
    let text = path("10 Gbit/s", "{ arrivals = { rate = 2000 }, size = 500 }");
    let text = text.replace("100 s", "20 s").replace("50 ms", "1 ms");
    let row = &run(&text).rows[0];
    assert!(row.started > 39_000 && row.failed == 0, "{row:?}");
}

#[test]
fn workloads_that_make_no_sense_are_refused() {
    let size = "size = 1";
    for (traffic, key, message) in [
        ("arrivals = {}, size = 1", "arrivals`", "expected either `rate` or `flows`"),
        (
            "arrivals = { rate = 1, flows = 2 }, size = 1",
            "arrivals`",
            "expected either `rate` or `flows`",
        ),
        ("arrivals = { rate = 0 }, size = 1", "arrivals.rate = 0`", "a number above 0"),
        ("arrivals = { rate = -1.5 }, size = 1", "arrivals.rate = -1.5`", "a number above 0"),
        ("arrivals = { rate = inf }, size = 1", "arrivals.rate = inf`", "a number above 0"),
        (
            "arrivals = { rate = 1, think = \"1 s\" }, size = 1",
            "arrivals.think = \"1 s\"`",
            "expected `flows` beside `think`",
        ),
        ("arrivals = { flows = 0 }, size = 1", "arrivals.flows = 0`", "whole number, at least 1"),
        (
            "arrivals = { flows = 10001 }, size = 1",
            "arrivals.flows = 10001`",
            "expected at most 10000 flows",
        ),
        ("arrivals = { rate = 1 }", "arrivals`", "expected either `size` or `sizes` beside it"),
        (
            "arrivals = { rate = 1 }, size = 1, sizes = {}",
            "arrivals`",
            "expected either `size` or `sizes` beside it",
        ),
        ("size = 1, count = 3", "count = 3`", "expected `arrivals` beside `count`"),
        ("sizes = { exponential = { mean = 1 } }", "sizes`", "expected `arrivals` beside `sizes`"),
        (
            "arrivals = { rate = 1 }, size = 1, send_buffer = 1",
            "arrivals`",
            "expected either `arrivals` or `send_buffer`",
        ),
        (
            "requests = { request = 1, response = 1 }, arrivals = { rate = 1 }",
            "requests`",
            "expected either `requests` or `arrivals`",
        ),
        (
            "arrivals = { rate = 1 }, sizes = {}",
            "sizes`",
            "expected either `exponential`, `pareto` or `log_normal`",
        ),
        (
            "arrivals = { rate = 1 }, sizes = { exponential = { mean = \"0 B\" } }",
            "sizes.exponential.mean = \"0 B\"`",
            "at least 1 byte",
        ),
        (
            "arrivals = { rate = 1 }, sizes = { pareto = { mean = 10 } }",
            "sizes.pareto`",
            "missing key `shape`",
        ),
        (
            "arrivals = { rate = 1 }, sizes = { pareto = { mean = 10, shape = 1 } }",
            "sizes.pareto.shape = 1`",
            "have no mean: expected more than 1, or `minimum`",
        ),
        (
            "arrivals = { rate = 1 }, sizes = { pareto = { shape = 1 } }",
            "sizes.pareto`",
            "expected either `mean` or `minimum`",
        ),
        (
            "arrivals = { rate = 1 }, sizes = { log_normal = { mean = 1, median = 1, sigma = 1 } }",
            "sizes.log_normal`",
            "expected either `mean` or `median`",
        ),
        (
            "arrivals = { rate = 1 }, sizes = { log_normal = { mean = 1, sigma = 11 } }",
            "sizes.log_normal.sigma = 11`",
            "expected at most 10",
        ),
    ] {
        let found = error(&path("1 Mbit/s", &format!("{{ {traffic} }}"))).to_string();
        assert!(found.starts_with(&format!("`flows.0.traffic.{key}")), "{traffic}: {found}");
        assert!(found.contains(message), "{traffic}: {found}");
    }
    assert_eq!(scenario(&path("1 Mbit/s", &format!("{{ {size} }}"))).flows.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the path does: every byte of every transfer arrives once, in order, or the run
    /// fails; and in the end all is said and done.
    #[test]
    fn every_byte_of_every_transfer_arrives_once(
        arrivals in prop_oneof![
            (1..100u32).prop_map(|rate| format!("rate = {rate}")),
            (1..40u32).prop_map(|flows| format!("flows = {flows}")),
            (1..40u32).prop_map(|flows| format!("flows = {flows}, think = \"300 ms\"")),
        ],
        mean in 1..30_000u64,
        count in 1..150u64,
        loss in 0.0..0.1,
        seed in 1..1000u64,
    ) {
        let sizes = format!("sizes = {{ exponential = {{ mean = {mean} }} }}");
        let text = path("8 Mbit/s", &format!("{{ arrivals = {{ {arrivals} }}, {sizes}, count = {count} }}"))
            .replace("100 s", "5000 s")
            .replace("delay   =", &format!("errors = {{ packet = {loss} }}\ndelay ="));
        let row = run_with(&text, seed, &Watch::default()).rows.remove(0);
        prop_assert_eq!((row.started, row.finished, row.failed), (count, count, 0));
        prop_assert!(row.completed_s.is_some());
        prop_assert!(row.slowdown.unwrap().median >= 1.0);
    }
}
