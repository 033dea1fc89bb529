//! Forged changes of connectivity: which attackers hold the victim at its initial window, and which do
//! not (`koutsianas2007` §3.6).

use crate::common::{error, run_with};
use lab::{Row, Watch};

/// A transfer past a router at which an attacker may sit, and another attacker with a link of its own.
const VICTIM: &str = r#"title = "forged changes of connectivity"
duration = "120 s"
[nodes]
source = {}
router = {}
sink = {}
mallory = {}
[[links]]
between = ["source", "router"]
rate = "100 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[links]]
between = ["router", "sink"]
rate = "2 Mbit/s"
delay = "45 ms"
queue = "40 packets"
[[links]]
between = ["mallory", "source"]
rate = "100 Mbit/s"
delay = "1 ms"
queue = "1000 packets"
[[flows]]
name = "victim"
from = "source"
to = "sink"
tcp = { mss = 1000, timestamps = true, mechanisms = MECHANISMS }
"#;

const LIMITED: &str = "[{ mechanism = \"rlci\", rate_limit = true }]";
const UNLIMITED: &str = "[{ mechanism = \"rlci\", rate_limit = false }]";
const NOTHING: &str = "[]";

/// Of so many acknowledgments one is forged again, with a change.
fn on_path(every: u32) -> String {
    format!("at = \"router\"\nknowledge = \"on-path\"\nevery = {every}\n")
}

fn blind(rate: u32, aim: &str) -> String {
    format!("at = \"mallory\"\nrate = {rate}\naim = \"{aim}\"\n")
}

fn victim(mechanisms: &str, attack: &str) -> String {
    let victim = VICTIM.replace("MECHANISMS", mechanisms);
    format!("{victim}[[attacks]]\nflow = \"victim\"\nkind = \"changes\"\n{attack}")
}

fn row(mechanisms: &str, attack: &str) -> Row {
    run_with(&victim(mechanisms, attack), 1, &Watch::default()).rows.remove(0)
}

/// The goodput over that of a victim without the mechanism under the same attack.
fn left(mechanisms: &str, attack: &str) -> f64 {
    row(mechanisms, attack).goodput_bps / row(NOTHING, attack).goodput_bps
}

/// The share of what was sent that had been sent before.
fn again(row: &Row) -> f64 {
    let [again, all] = [row.sender.retransmissions, row.sender.segments].map(Option::unwrap);
    again as f64 / all as f64
}

#[test]
fn without_a_limit_an_attacker_on_the_path_holds_the_victim_at_its_initial_window() {
    // It restarts before its window has grown, most often with data that it has sent before.
    for every in [1, 10] {
        let row = row(UNLIMITED, &on_path(every));
        assert!(row.goodput_bps < 0.4e6 && again(&row) > 0.8, "1 of {every}: {row:?}");
    }
    let left = left(UNLIMITED, &on_path(100));
    assert!((0.5..0.8).contains(&left), "{left}");
}

#[test]
fn with_a_limit_an_attacker_on_the_path_costs_the_victim_little() {
    for every in [1, 10, 100] {
        let left = left(LIMITED, &on_path(every));
        assert!(left > 0.9, "1 of {every}: {left}");
    }
}

#[test]
fn an_attacker_that_must_guess_sequence_numbers_has_no_effect() {
    let attack = blind(1000, "anywhere");
    let [unlimited, limited] = [UNLIMITED, LIMITED].map(|rlci| row(rlci, &attack));
    assert_eq!(unlimited.sender, limited.sender);
    let left = left(UNLIMITED, &attack);
    assert!((left - 1.0).abs() < 0.02, "{left}");
}

#[test]
fn who_knows_the_numbers_without_seeing_them_is_limited_like_all() {
    for rate in [10, 100] {
        let attack = blind(rate, "window");
        let [unlimited, limited] = [UNLIMITED, LIMITED].map(|rlci| left(rlci, &attack));
        assert!(unlimited < 0.4 && limited > 0.9, "{rate} a second: {unlimited}, {limited}");
    }
}

#[test]
fn a_victim_that_knows_no_changes_is_none() {
    let plain = run_with(&VICTIM.replace("MECHANISMS", NOTHING), 1, &Watch::default());
    let attacked = row(NOTHING, &on_path(1));
    assert_eq!(attacked.sender, plain.rows[0].sender);
}

#[test]
fn forged_segments_are_the_same_in_bytes() {
    for (ip, attack) in [(4, on_path(10)), (4, blind(10, "window")), (6, on_path(10))] {
        let text = victim(UNLIMITED, &attack)
            .replace("120 s", "20 s")
            .replace("to = \"sink\"", &format!("to = \"sink\"\nip = {ip}"));
        let run = |bytes| run_with(&text, 1, &Watch { digest: true, bytes, ..Watch::default() });
        let (packets, bytes) = (run(false), run(true));
        assert!(again(&packets.rows[0]) > 0.3, "IPv{ip}: it is attacked");
        assert_eq!(packets, bytes, "IPv{ip}");
    }
}

#[test]
fn an_invalid_attack_is_reported_with_its_place() {
    let cases = [
        ("at = \"mallory\"\n", "missing key `rate`: packets per second"),
        (
            "at = \"router\"\nknowledge = \"on-path\"\nrate = 1\n",
            "`rate` has no effect with this `knowledge`",
        ),
        (
            "at = \"sink\"\nknowledge = \"receiver\"\n",
            "expected `knowledge = \"receiver\"` with `kind = \"echoes\"` and \"fields\" only",
        ),
    ];
    for (attack, message) in cases {
        let error = error(&victim(LIMITED, attack)).to_string();
        assert!(error.contains(message), "{error}");
    }
}
