//! Every kind of traffic between every kind of ends, on real packets.

use crate::common::{at_once, complete, run, with};

const STACK: &str = "stack   = \"lasthop\"";

/// Ours and the kernel's at either end.
const PAIRS: [&str; 4] = [
    "{ from = \"lasthop\", to = \"lasthop\" }",
    "{ from = \"lasthop\", to = \"linux\" }",
    "{ from = \"linux\", to = \"lasthop\" }",
    "{ from = \"linux\", to = \"linux\" }",
];

/// The keys of a flow between such ends.
fn between(pair: &str, more: &str) -> String {
    format!("stack   = {pair}\n{more}")
}

#[test]
fn a_transfer_arrives_whole_between_any_two_stacks_in_both_versions_of_ip() {
    at_once(PAIRS, |pair| {
        at_once(["ip = 4", "ip = 6"], |ip| {
            let Some(outcome) = run(&with(&[(STACK, &between(pair, ip))])) else { return };
            let row = &outcome.run.rows[0];
            complete(row, 1_000_000);
            assert!(row.sender.segments >= Some(684), "{pair} {ip}: {row:?}");
            // Two round trips of 20 ms, and 1 MB at 20 Mbit/s.
            let took = row.completed_s.unwrap();
            eprintln!("{pair} {ip}: {took:.3} s, {:?}, {:?}", row.sender, outcome.health);
            assert!((0.44..2.0).contains(&took), "{pair} {ip}: {row:?}");
        });
    });
}

#[test]
fn a_kernel_sends_and_reads_at_its_pace_and_out_of_its_buffer() {
    let traffic = "traffic = { size = \"1 MB\" }";
    at_once([PAIRS[1], PAIRS[2]], |pair| {
        let kinds = [
            // Ten chunks 100 ms apart.
            ("{ size = \"200 kB\", paced = { chunk = \"20 kB\", interval = \"100 ms\" } }", 0.9),
            // Ten chunks, the first 100 ms after the first byte.
            ("{ size = \"200 kB\", reader = { chunk = \"20 kB\", interval = \"100 ms\" } }", 1.0),
            ("{ size = \"200 kB\", send_buffer = \"16 KiB\" }", 0.1),
        ];
        at_once(kinds, |(carried, least)| {
            let changes =
                [(STACK, &*between(pair, "")), (traffic, &*format!("traffic = {carried}"))];
            let Some(outcome) = run(&with(&changes)) else { return };
            let row = &outcome.run.rows[0];
            complete(row, 200_000);
            assert!(row.completed_s > Some(least), "{pair} {carried}: {row:?}");
            eprintln!("{pair} {carried}: {:?}", row.completed_s);
        });
    });
}

#[test]
fn requests_are_answered_between_any_two_stacks() {
    let traffic = "traffic = { size = \"1 MB\" }";
    let requests = "traffic = { requests = { request = \"300 B\", response = \"20 kB\", \
                    think = \"20 ms\", count = 8 } }";
    at_once(PAIRS, |pair| {
        let changes = [(STACK, &*between(pair, "")), (traffic, requests)];
        let Some(outcome) = run(&with(&changes)) else { return };
        let row = &outcome.run.rows[0];
        complete(row, 160_000);
        assert_eq!((row.started, row.finished), (8, 8), "{pair}: {row:?}");
        let times = row.time_s.unwrap();
        eprintln!("{pair}: {times:?} {:?}", row.sender);
        assert!(times.median > 0.02 && row.sender.segments >= Some(8 * 14), "{pair}: {row:?}");
    });
}

#[test]
fn messages_are_timed_between_any_two_stacks() {
    let messages = "traffic = { application = \"messages\", count = 60 }";
    at_once(PAIRS, |pair| {
        let ends = between(pair, "tcp = { nagle = false }");
        let changes = [
            (STACK, &*ends),
            ("traffic = { size = \"1 MB\" }", messages),
            ("delay   = \"10 ms\"", "delay   = \"50 ms\""),
        ];
        let Some(outcome) = run(&with(&changes)) else { return };
        let row = &outcome.run.rows[0];
        complete(row, 60 * 160);
        assert_eq!((row.started, row.finished), (60, 60), "{pair}: {row:?}");
        let times = row.time_s.unwrap();
        eprintln!("{pair}: {times:?}");
        // Half a round trip of 100 ms, on a machine that may be late.
        assert!((0.05..0.09).contains(&times.median), "{pair}: {row:?}");
    });
}

#[test]
fn many_transfers_are_distinguished_between_any_two_stacks() {
    let traffic = "traffic = { size = \"1 MB\" }";
    let arrivals = [
        ("{ arrivals = { rate = 80 }, sizes = { exponential = { mean = \"10 kB\" } }, count = 60 }"),
        ("{ arrivals = { flows = 10 }, size = \"20 kB\", count = 60 }"),
    ];
    // Each kind of end sends at its times, and fills gaps.
    at_once([0, 1, 2, 3], |case| {
        let (pair, many) = (PAIRS[case], format!("traffic = {}", arrivals[case % 2]));
        let changes = [(STACK, &*between(pair, "")), (traffic, &*many)];
        let Some(outcome) = run(&with(&changes)) else { return };
        let row = &outcome.run.rows[0];
        eprintln!("{pair}: {row:?}");
        assert_eq!((row.started, row.finished, row.failed), (60, 60, 0), "{pair}: {row:?}");
        assert_eq!(row.misplaced, 0, "{pair}: {row:?}");
        assert!(row.slowdown.unwrap().median >= 1.0, "{pair}: {row:?}");
    });
}

#[test]
fn datagrams_arrive_but_for_those_that_the_link_loses() {
    let traffic = "traffic = { size = \"1 MB\" }";
    let udp = "traffic = { udp = { rate = \"2 Mbit/s\", packet = \"500 B\", lasts = \"1 s\" } }";
    at_once([0, 1, 2, 3], |case| {
        let (pair, ip) = (PAIRS[case], ["ip = 4", "ip = 6"][case % 2]);
        let lossy = "queue   = \"100 packets\"\nforward = { errors = { packet = 0.1 } }";
        let changes =
            [(STACK, &*between(pair, ip)), (traffic, udp), ("queue   = \"100 packets\"", lossy)];
        let Some(outcome) = run(&with(&changes)) else { return };
        let row = &outcome.run.rows[0];
        let (sent, received) = (row.datagrams.sent, row.datagrams.received);
        assert_eq!(sent, 500, "{pair} {ip}: {row:?}");
        let lost = outcome.run.totals.lost + outcome.run.totals.corrupted;
        assert!((20..90).contains(&lost), "{pair} {ip}: {:?}", outcome.run.totals);
        assert_eq!(sent - received, lost, "{pair} {ip}: {row:?}");
    });
}

#[test]
fn tfrc_finds_the_rate_of_a_link_and_yields_to_a_transfer() {
    let traffic = "traffic = { size = \"1 MB\" }";
    let udp =
        "traffic = { udp = { rate_control = \"tfrc\", rate = \"1 Gbit/s\", packet = \"1000 B\" } }";
    at_once([0, 1], |case| {
        let ip = ["ip = 4", "ip = 6"][case];
        let text =
            with(&[(STACK, &*between(PAIRS[0], ip)), (traffic, udp), ("\"2 s\"", "\"8 s\"")]);
        let beside = "[[flows]]\nfrom = \"a\"\nto = \"b\"\n[testbed]";
        let Some(alone) = run(&text) else { return };
        let row = &alone.run.rows[0];
        // From a packet a second to 20 Mbit/s, in round-trip times of 20 to 60 ms.
        assert!((12e6..20e6).contains(&row.goodput_bps), "{ip}: {row:?}");
        let Some(shared) = run(&text.replace("[testbed]", beside)) else { return };
        let [tfrc, tcp] = [0, 1].map(|flow: usize| shared.run.rows[flow].goodput_bps);
        // Of 48 runs, it had 1.4 to 5.5 Mbit/s: eight seconds are short for it.
        assert!(tfrc > 1e6 && tcp > 3e6 && tfrc + tcp > 14e6, "{ip}: {tfrc} {tcp}");
    });
}
