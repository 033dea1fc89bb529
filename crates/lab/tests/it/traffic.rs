//! What flows may carry, and what their rows say of it.

use crate::common::{error, run, run_with, scenario, with};
use base::Time;
use lab::{Row, Watch};
use proptest::prelude::*;
use scenario::{Flow, port};
use std::sync::atomic::AtomicBool;

/// A megabyte a second, a round trip of 100 ms, no errors, today's TCP.
fn clean(traffic: &str) -> String {
    with(&[
        ("profile  = \"ns2-2001\"\n", ""),
        ("1.5 Mbit/s", "8 Mbit/s"),
        ("100 ms", "50 ms"),
        ("queue   = \"50 packets\"\nerrors  = { bit = 1e-5 }\n", ""),
        (", receive_window = \"20 segments\", eten = \"none\"", ""),
        ("to      =", &format!("traffic = {traffic}\nto =")),
    ])
}

fn row(traffic: &str) -> Row {
    run(&clean(traffic)).rows.remove(0)
}

fn close(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.02
}

#[test]
fn what_is_left_out_is_bulk() {
    let bulk = crate::common::digest(&clean("\"bulk\""));
    assert_eq!(crate::common::digest(&clean("{}")), bulk);
    let row = row("\"bulk\"");
    assert_eq!((row.started, row.finished, row.time_s, row.completed_s), (1, 0, None, None));
}

#[test]
fn an_application_is_given_by_its_name_or_by_the_short_form_of_old() {
    let digest = |traffic: &str| crate::common::digest(&clean(traffic));
    let pace = "{ chunk = \"8 kB\", interval = \"50 ms\" }";
    for (short, named) in [
        ("", "application = \"transfer\""),
        ("size = \"100 kB\"", "application = \"transfer\", size = 100000"),
        (
            "size = \"1 MB\", send_buffer = 5000",
            "application = \"transfer\", size = \"1 MB\", send_buffer = 5000",
        ),
        (&format!("paced = {pace}"), &format!("application = \"transfer\", paced = {pace}")),
        (&format!("reader = {pace}"), &format!("application = \"transfer\", reader = {pace}")),
        (
            "requests = { request = 300, response = \"9 kB\", think = \"1 s\", count = 4 }",
            "application = \"requests\", response = \"9 kB\", think = \"1 s\", count = 4",
        ),
    ] {
        let (short, named) = (format!("{{ {short} }}"), format!("{{ {named} }}"));
        assert_eq!(digest(&short), digest(&named), "{short}");
    }
}

#[test]
fn what_is_wrong_with_an_application_is_reported_at_its_place() {
    let rejects = |traffic: &str, message: &str| {
        let error = error(&clean(traffic)).to_string();
        assert!(error.starts_with(message), "{error}");
    };
    rejects(
        "{ application = \"ftp\" }",
        "`flows.0.traffic.application = \"ftp\"`: unknown name `ftp`, expected",
    );
    rejects(
        "{ application = \"transfer\", size = \"5 packets\" }",
        "`flows.0.traffic.size = \"5 packets\"`: expected at least 1 byte and at most 1 EiB",
    );
    rejects(
        "{ application = \"transfer\", paced = { chunk = 5 } }",
        "`flows.0.traffic.paced`: missing key `interval`",
    );
    rejects(
        "{ application = \"transfer\", send_buffer = 5, paced = { chunk = 5, interval = \"1 s\" } }",
        "`flows.0.traffic`: expected either `paced` or `send_buffer`",
    );
    rejects(
        "{ application = \"requests\", count = 0 }",
        "`flows.0.traffic.count = 0`: expected a whole number, 1 or more",
    );
    rejects(
        "{ application = \"requests\", think = \"0 s\" }",
        "`flows.0.traffic.think = \"0 s\"`: expected more than 0 s",
    );
    rejects(
        "{ application = \"requests\", size = 3 }",
        "`flows.0.traffic.size`: unknown key `size`",
    );
}

#[test]
fn where_there_are_more_flows_than_ports_further_addresses_have_them_again() {
    for traffic in [
        "{ size = \"100 kB\" }",
        "{ requests = { request = 300, response = \"10 kB\", count = 5 } }",
        "{ arrivals = { rate = 20 }, size = \"1 kB\" }",
    ] {
        let mut all = scenario(&clean(traffic));
        let flow = all.flows.remove(0);
        // The first and the last have one port; those between start after the end.
        let flows = (0..=Flow::PORTS).map(|index| {
            let starts = index % Flow::PORTS == 0;
            let start = if starts { flow.start } else { Time::NEVER };
            Flow { name: index.to_string(), start, ..flow.clone() }
        });
        all.flows = flows.collect();
        let ports = [port(0), port(Flow::PORTS)];
        assert_eq!(ports[0], ports[1]);
        let run = lab::run(&all, 1, &Watch::default(), &AtomicBool::new(false)).unwrap();
        for row in [&run.rows[0], &run.rows[Flow::PORTS]] {
            assert!(row.payload_bytes > 0 && row.failed == 0, "{traffic}: {row:?}");
        }
    }
}

#[test]
fn the_row_of_a_transfer_says_how_long_it_took() {
    let row = row("{ size = \"100 kB\" }");
    assert_eq!((row.payload_bytes, row.started, row.finished), (100_000, 1, 1));
    let time = row.time_s.unwrap();
    assert_eq!(Some(time.mean), row.completed_s);
    assert_eq!((time.median, time.p95), (time.mean, time.mean));
}

#[test]
fn a_paced_sender_is_as_fast_as_it_writes() {
    // 100 kB/s of nearly 1 MB/s.
    let chunk = "chunk = 2000, interval = \"20 ms\"";
    let ended = row(&format!("{{ size = \"1 MB\", paced = {{ {chunk} }} }}"));
    // Connected after 100 ms, the last of 500 chunks 499 intervals later.
    assert!(close(ended.completed_s.unwrap(), 0.1 + 499.0 * 0.02 + 0.05), "{ended:?}");
    let endless = row(&format!("{{ paced = {{ {chunk} }} }}"));
    assert!(close(endless.payload_bps, 800e3) && endless.completed_s.is_none(), "{endless:?}");
}

#[test]
fn a_send_buffer_is_what_goes_out_per_round_trip() {
    let row = row("{ send_buffer = \"28960 B\" }");
    // Twenty segments. Half a window may wait for a delayed acknowledgment, and none of this does.
    assert!(close(row.payload_bps, 28_960.0 * 8.0 / 0.1015), "{}", row.payload_bps);
}

#[test]
fn a_slow_reader_slows_the_sender() {
    let text = clean("{ reader = { chunk = \"1000 B\", interval = \"20 ms\" } }");
    let text = text.replace("recovery =", "receive_window = \"20 kB\", recovery =");
    let row = &run(&text).rows[0];
    assert!(close(row.payload_bps, 400e3), "{}", row.payload_bps);
}

#[test]
fn requests_are_answered_one_after_the_other() {
    let requests = "request = 300, response = \"10 kB\", think = \"1 s\", count = 5";
    let text = clean(&format!("{{ requests = {{ {requests} }} }}"));
    // Nagle would hold the end of a response back until the rest is acknowledged.
    let row = run(&text.replace("recovery =", "nagle = false, recovery =")).rows.remove(0);
    assert_eq!((row.started, row.finished, row.payload_bytes), (5, 5, 50_000));
    let time = row.time_s.unwrap();
    // A round trip and, with ten segments in the initial window, the transmission of both.
    let headers = 40.0;
    let expected = 0.1 + (300.0 + headers + 10_000.0 + 7.0 * headers) * 8.0 / 8e6;
    assert!(close(time.mean, expected) && close(time.p95, expected), "{time:?} {expected}");
    let completed = row.completed_s.unwrap();
    assert!(close(completed, 0.1 + 5.0 * time.mean + 4.0), "{completed}");
    assert!(row.sender.segments >= Some(5 * 7), "the responses are what it is about");
}

#[test]
fn requests_without_number_go_on_to_the_end() {
    let row = row("{ requests = { request = 1, response = 1 } }");
    assert!((570..600).contains(&row.finished), "{}", row.finished);
    assert!(row.started - row.finished <= 1);
    assert_eq!((row.completed_s, row.duration_s), (None, 60.0));
}

#[test]
fn data_of_a_dialogue_can_be_reported_as_corrupted() {
    let traffic = "{ requests = { request = 100, response = \"100 kB\" } }";
    let text = clean(traffic)
        .replace("delay   = \"50 ms\"", "delay = \"50 ms\"\nforward = { errors = { bit = 1e-5 } }")
        .replace("recovery =", "eten = \"backward\", recovery =");
    let row = &run(&text).rows[0];
    assert!(row.sender.notices > Some(100), "{row:?}");
}

#[test]
fn a_message_is_late_by_the_path_unless_the_connection_is_not_there_yet() {
    let text =
        clean("{ application = \"messages\", size = 160, interval = \"20 ms\", count = 50 }");
    let prompt = run(&text.replace("recovery =", "nagle = false, recovery =")).rows.remove(0);
    assert_eq!((prompt.started, prompt.finished, prompt.failed), (50, 50, 0));
    assert_eq!(prompt.payload_bytes, 8000);
    let (time, slowdown) = (prompt.time_s.unwrap(), prompt.slowdown.unwrap());
    assert!(close(time.median, 0.05 + 212.0 * 8.0 / 8e6), "{time:?}");
    assert!((1.0..1.01).contains(&slowdown.median), "{slowdown:?}");
    // Those of the first 100 ms, of the handshake, arrive together.
    let together = [150.0, 130.0, 110.0, 90.0, 70.0, 50.0].map(|ms: f64| ms / 1000.0);
    let mean = (together.iter().sum::<f64>() + 44.0 * 0.05) / 50.0;
    assert!(close(time.mean, mean), "{time:?} {mean}");
    assert!(close(prompt.completed_s.unwrap(), 49.0 * 0.02 + 0.05), "{prompt:?}");
    // Nagle's algorithm makes them wait for each other.
    let held = run(&text).rows[0].time_s.unwrap();
    assert!(held.median > 1.2 * time.median, "{held:?}");
    let endless = row("{ application = \"messages\", interval = \"0.1 s\" }");
    assert_eq!((endless.started, endless.completed_s), (601, None));
    assert!(endless.finished >= 598, "{endless:?}");
}

#[test]
fn watching_any_traffic_changes_nothing() {
    for traffic in [
        "{ paced = { chunk = 2000, interval = \"20 ms\" } }",
        "{ size = \"3 MB\", send_buffer = 10000 }",
        "{ reader = { chunk = 3000, interval = \"10 ms\" } }",
        "{ requests = { request = 300, response = 5000 } }",
        "{ application = \"messages\" }",
    ] {
        let watch = Watch { digest: true, series: true, bytes: true, ..Watch::default() };
        let watched = run_with(&clean(traffic), 1, &watch);
        assert_eq!(watched.digest, run(&clean(traffic)).digest, "{traffic}");
        assert!(!watched.series.unwrap().flows[0].1.columns()[0].1.is_empty(), "{traffic}");
    }
}

#[test]
fn traffic_that_makes_no_sense_is_refused() {
    let pace = "{ chunk = 1, interval = \"1 s\" }";
    for (traffic, key, message) in [
        ("{ size = 0 }", "size = 0", "at least 1 byte and at most 1 EiB"),
        ("{ sise = 1 }", "sise", "unknown key `sise`, expected one of `size`, `paced`"),
        ("{ paced = { chunk = 1 } }", "paced", "missing key `interval`"),
        (
            "{ paced = { chunk = 0, interval = \"1 s\" } }",
            "paced.chunk = 0",
            "at least 1 byte and at most 1 EiB",
        ),
        (
            "{ paced = { chunk = 1, interval = \"0 s\" } }",
            "paced.interval = \"0 s\"",
            "expected more than 0 s",
        ),
        (
            "{ reader = { chunk = \"5 GB\", interval = \"1 s\" } }",
            "reader.chunk = \"5 GB\"",
            "at most 4294967295 bytes",
        ),
        (
            "{ reader = { chunk = \"5 segments\", interval = \"1 s\" } }",
            "reader.chunk = \"5 segments\"",
            "a chunk is a number of bytes: expected a size such as \"3 MB\"",
        ),
        (
            &format!("{{ paced = {pace}, send_buffer = 1000 }}"),
            "send_buffer = 1000",
            "expected either `paced` or `send_buffer`",
        ),
        ("{ send_buffer = \"0 B\" }", "send_buffer = \"0 B\"", "at least 1 byte"),
        ("{ requests = { request = 1 } }", "requests", "missing key `response`"),
        ("{ requests = { request = 0, response = 1 } }", "requests.request = 0", "at least 1 byte"),
        (
            "{ requests = { request = 1, response = \"1 packet\" } }",
            "requests.response = \"1 packet\"",
            "a response is a number of bytes",
        ),
        (
            "{ requests = { request = 1, response = 1, count = 0 } }",
            "requests.count = 0",
            "expected a whole number, at least 1",
        ),
        (
            "{ size = 5, requests = { request = 1, response = 1 } }",
            "requests",
            "expected either `requests` or `size`",
        ),
    ] {
        let found = error(&clean(traffic)).to_string();
        assert!(found.starts_with(&format!("`flows.0.traffic.{key}")), "{traffic}: {found}");
        assert!(found.contains(message), "{traffic}: {found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every byte arrives once, in order, whatever the ends are like and the path does: the lab
    /// fails a run in which one does not. What can end, ends.
    #[test]
    fn every_byte_arrives_once_in_order(
        size in 1..60_000u64,
        sending in prop_oneof![
            Just(String::new()),
            (1..5000u64, 1..50u64).prop_map(|(chunk, ms)| {
                format!(", paced = {{ chunk = {}, interval = \"{ms} ms\" }}", chunk + 50)
            }),
            (1..20_000u64).prop_map(|buffer| format!(", send_buffer = {buffer}")),
        ],
        reading in prop_oneof![
            Just(String::new()),
            (1000..5000u64, 1..50u64).prop_map(|(chunk, ms)| {
                format!(", reader = {{ chunk = {chunk}, interval = \"{ms} ms\" }}")
            }),
        ],
        loss in 0.0..0.05,
        seed in 1..1000u64,
    ) {
        let text = clean(&format!("{{ size = {size}{sending}{reading} }}"))
            .replace("60 s", "3000 s")
            .replace("delay   =", &format!("errors = {{ packet = {loss} }}\ndelay ="));
        let row = run_with(&text, seed, &Watch::default()).rows.remove(0);
        prop_assert_eq!((row.payload_bytes, row.finished), (size, 1));
    }

    #[test]
    fn every_request_is_answered(
        request in 1..3000u64, response in 1..30_000u64, count in 1..20u64, loss in 0.0..0.05,
        think in 0..2000u64, seed in 1..1000u64,
    ) {
        let text = clean(&format!(
            "{{ requests = {{ request = {request}, response = {response}, count = {count}, \
             think = \"{think} ms\" }} }}"
        ))
        .replace("60 s", "10000 s")
        .replace("delay   =", &format!("errors = {{ packet = {loss} }}\ndelay ="));
        prop_assert_eq!(scenario(&text).flows.len(), 1);
        let row = run_with(&text, seed, &Watch::default()).rows.remove(0);
        prop_assert_eq!((row.payload_bytes, row.finished), (response * count, count));
    }
}
