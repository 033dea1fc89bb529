//! Links of the testbed: corruption, its notices, and paths over several hops.

use crate::common::{NOISY_HOP, WINDOW, at_once, complete, run, scenario, with};
use std::sync::atomic::AtomicBool;

const STACK: &str = "stack   = \"lasthop\"";
const QUEUE: &str = "queue   = \"100 packets\"";

/// Ours and the kernel's at either end.
const PAIRS: [&str; 4] = ["\"lasthop\"", "\"linux\"", "{ from = \"linux\" }", "{ to = \"linux\" }"];

#[test]
fn flipped_bits_are_noticed_by_checksums_and_repaired() {
    at_once(PAIRS, |pair| {
        let changes = [
            (STACK, &*format!("stack = {pair}")),
            ("\"2 s\"", "\"6 s\""),
            (QUEUE, "queue = \"100 packets\"\nforward = { errors = { bit = 1e-6 } }"),
            ("[testbed]", "[testbed]\ncorrupted = \"flip\""),
        ];
        let Some(outcome) = run(&with(&changes)) else { return };
        complete(&outcome.run.rows[0], 1_000_000);
        assert!(outcome.run.totals.corrupted > 2, "{:?}", outcome.run.totals);
        assert!(outcome.run.rows[0].sender.retransmissions > Some(0));
    });
}

#[test]
fn the_node_where_a_packet_arrives_corrupted_notifies_its_source() {
    at_once([4, 6], |ip| {
        let text = format!(
            "{NOISY_HOP}[[flows]]\nfrom = \"server\"\nto = \"mobile\"\nip = {ip}\ntraffic = {{ size = \
             \"3 MB\" }}\ntcp = {{ eten = \"backward\", recovery = \"sack\", {WINDOW} }}\n"
        );
        let Some(outcome) = run(&text) else { return };
        let row = &outcome.run.rows[0];
        eprintln!("IPv{ip}: {:?} {:?} {:?}", row.sender, outcome.run.totals, outcome.health);
        complete(row, 3_000_000);
        assert_eq!(outcome.run.totals.dropped, 0, "{:?}", outcome.run.totals);
        let (notices, corrupted) = (row.sender.notices.unwrap(), outcome.run.totals.corrupted);
        // Not those of copies that were not the last, nor those of what was reported lost before.
        assert!(corrupted >= 30 && notices * 10 >= corrupted * 9, "{notices} of {corrupted}");
        // What is known to be corrupted does not reduce the window.
        assert!(row.sender.reductions < Some(corrupted / 5), "{:?}", row.sender);
        // And the lab says the same of it, to a few milliseconds; a busy machine takes longer.
        let lab = lab::run(&scenario(&text), 1, &lab::Watch::default(), &AtomicBool::new(false));
        let [there, here] = [&lab.unwrap().rows[0], row].map(|row| row.completed_s.unwrap());
        eprintln!("IPv{ip}: {here:.3} s, in the lab {there:.3} s");
        assert!((0.9..2.0).contains(&(here / there)), "{here} s, in the lab {there} s");
    });
}

#[test]
fn both_stacks_react_to_a_queue_that_marks_packets() {
    let red = "queue = { limit = \"200 packets\", red = { min = 5, max = 20, weight = 0.01, \
               ecn = true } }";
    at_once(PAIRS, |pair| {
        let stack = format!("stack = {pair}\ntcp = {{ ecn = true }}");
        let changes = [(STACK, &*stack), (QUEUE, red)];
        let Some(outcome) = run(&with(&changes)) else { return };
        complete(&outcome.run.rows[0], 1_000_000);
        let marked = outcome.run.links[0].1.marked;
        eprintln!("{pair}: {marked} marked, {:?}", outcome.run.rows[0].sender);
        assert!(marked > 0, "{:?}", outcome.run.links);
        // The answer is a reduction, not a loss.
        assert_ne!(outcome.run.rows[0].sender.reductions, Some(0));
    });
}

#[test]
fn a_link_that_is_away_for_a_while_loses_nothing_that_waits() {
    let outages = "outages = { at = [{ start = \"200 ms\", end = \"700 ms\" }] }";
    let changes = [(QUEUE, &*format!("queue = \"1000 packets\"\n{outages}"))];
    let Some(outcome) = run(&with(&changes)) else { return };
    let row = &outcome.run.rows[0];
    complete(row, 1_000_000);
    assert!(row.completed_s > Some(0.9), "{row:?}");
    assert_eq!(outcome.run.totals.lost + outcome.run.totals.dropped, 0);
}

#[test]
fn users_share_a_hop_as_in_the_lab() {
    // Four flows to one phone, one to another.
    let mut text = String::from(
        r#"
title    = "two users"
duration = "4 s"
[nodes]
server = {}
station = {}
phone = {}
tablet = {}
[[links]]
between = ["server", "station"]
rate    = "5 Mbit/s"
delay   = "10 ms"
queue   = { limit = "60 packets", drr = { isolation = "dsthost" } }
[[links]]
between = ["station", "phone"]
rate    = "100 Mbit/s"
delay   = "1 ms"
[[links]]
between = ["station", "tablet"]
rate    = "100 Mbit/s"
delay   = "1 ms"
"#,
    );
    for to in ["phone", "phone", "phone", "phone", "tablet"] {
        text += &format!("[[flows]]\nfrom = \"server\"\nto = \"{to}\"\ntraffic = \"bulk\"\n");
    }
    let share = |rows: &[lab::Row]| {
        let bytes = rows.iter().map(|row| row.payload_bytes as f64);
        bytes.clone().next_back().unwrap_or(0.0) / bytes.sum::<f64>()
    };
    let cases = [
        ("drr = { isolation = \"dsthost\" }", 0.4, 0.6),
        ("drr = {}", 0.12, 0.28),
        ("fq_codel = { isolation = \"dual-dsthost\" }", 0.4, 0.6),
        ("fq_codel = {}", 0.12, 0.28),
    ];
    at_once(cases, |(queue, least, most)| {
        let text = text.replace("drr = { isolation = \"dsthost\" }", queue);
        let Some(outcome) = run(&text) else { return };
        let lab = lab::run(&scenario(&text), 1, &lab::Watch::default(), &AtomicBool::new(false));
        let shares = [share(&outcome.run.rows), share(&lab.unwrap().rows)];
        eprintln!("{queue}: {shares:?} {:?}", outcome.run.links[0].1);
        assert!(shares.iter().all(|share| (least..most).contains(share)), "{shares:?}");
        assert!(outcome.run.totals.dropped > 0, "{:?}", outcome.run.totals);
    });
}
