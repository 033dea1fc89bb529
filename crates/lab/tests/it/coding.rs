//! End-to-end erasure coding of flows.

use crate::common::{SACK_AND_AIMD, error, run_with, scenario};
use lab::{Outcome, Watch};
use middlebox::fec::Strength;
use scenario::Corruption;

/// A flow over a long link that corrupts 1 % of its packets, beside whatever `rest` says.
fn lossy(coding: &str, rest: &str) -> String {
    format!(
        r#"
title    = "coding"
duration = "60 s"
nodes    = {{ a = {{}}, b = {{}} }}

[[links]]
between = ["a", "b"]
rate    = "5 Mbit/s"
delay   = "50 ms"
queue   = "60 packets"
forward = {{ errors = {{ bit = 1.2e-6 }} }}

[[flows]]
from    = "a"
to      = "b"
tcp     = {{ {SACK_AND_AIMD}, mss = 1000, ecn = true, receive_window = "4 MiB" }}
coding  = {coding}
{rest}
"#
    )
}

fn outcome(text: &str, bytes: bool) -> Outcome {
    run_with(text, 1, &Watch { digest: true, bytes, ..Watch::default() })
}

#[test]
fn where_corruption_limits_a_flow_coding_brings_it_close_to_the_rate_of_the_link() {
    let goodput = |coding: &str| outcome(&lossy(coding, ""), false).rows[0].payload_bps / 1e6;
    let (off, coded) = (goodput("\"off\""), goodput("{ corruption = 0.01, signal = \"none\" }"));
    assert!(off < 2.0, "{off}");
    assert!(coded > 3.8, "{coded}");
}

#[test]
fn where_every_loss_must_be_taken_for_congestion_coding_gains_nothing() {
    let run = |coding: &str| outcome(&lossy(coding, ""), false).rows.remove(0);
    let off = run("\"off\"");
    let coded = run("{ corruption = 0.01 }");
    // Nothing is sent again, but the window comes down all the same.
    assert!(coded.coding.rebuilt > 30, "{coded:?}");
    assert!(coded.sender.reductions > Some(30), "{coded:?}");
    let ratio = coded.payload_bps / off.payload_bps;
    assert!(ratio < 1.1, "{ratio}");
}

#[test]
fn bytes_that_are_really_coded_give_the_same_run() {
    for ip in ["ip = 4", "ip = 6"] {
        let text = lossy("{ strength = 0.1, block = 10, signal = \"all\" }", ip);
        let (symbols, bytes) = (outcome(&text, false), outcome(&text, true));
        assert!(symbols.rows[0].coding.rebuilt > 10, "{:?}", symbols.rows);
        assert_eq!(symbols, bytes);
    }
}

#[test]
fn a_code_that_follows_corruption_costs_nothing_where_there_is_none() {
    let clean = |coding: &str| lossy(coding, "").replace("bit = 1.2e-6", "bit = 0.0");
    let off = outcome(&clean("\"off\""), false);
    let coded = outcome(&clean("{ corruption = 0.0 }"), false);
    assert_eq!(off, coded);
    let fixed = outcome(&clean("{ strength = 0.1 }"), false);
    let ratio = fixed.rows[0].payload_bps / off.rows[0].payload_bps;
    assert!((0.85..0.95).contains(&ratio), "{ratio}");
}

#[test]
fn a_coded_flow_yields_to_congestion_unless_coding_hides_it() {
    let beside = r#"
[[flows]]
from = "a"
to   = "b"
tcp  = { recovery = "sack", mss = 1000, ecn = true, receive_window = "4 MiB" }
"#;
    let share = |coding: &str| {
        let text = lossy(coding, beside).replace("bit = 1.2e-6", "bit = 0.0");
        let rows = outcome(&text, false).rows;
        rows[0].payload_bps / (rows[0].payload_bps + rows[1].payload_bps)
    };
    let (signalled, hidden) =
        (share("{ strength = 0.2 }"), share("{ strength = 0.2, signal = \"none\" }"));
    assert!(signalled < 0.5 && hidden > 0.5, "{signalled} {hidden}");
}

/// [`lossy`], with Cumulative ETEN.
fn cumulative(coding: &str, rest: &str) -> String {
    let eten = "ecn = true, eten = { report = \"cumulative\", strategy = \"loss-ratio\" }";
    lossy(coding, "").replace("ecn = true", eten) + rest
}

#[test]
fn a_code_that_follows_the_reports_of_the_path_finds_its_strength_and_the_congestion_losses() {
    let coding = "{ strength = \"cumulative\", signal = \"share\" }";
    let row = |text: &str| outcome(text, false).rows.remove(0);
    let (off, coded) = (row(&cumulative("\"off\"", "")), row(&cumulative(coding, "")));
    // A block of 20 needs three repair packets at 1 %.
    let share = coded.coding.repairs as f64 / coded.coding.sources as f64;
    assert!((0.1..0.3).contains(&share), "{coded:?}");
    // Next to nothing of what was lost is taken for congestion, and TCP sends less again.
    assert!(10 * coded.coding.marked < coded.coding.lost, "{coded:?}");
    assert!(coded.sender.retransmissions < off.sender.retransmissions, "{off:?} {coded:?}");
    let clean = |text: String| row(&text.replace("bit = 1.2e-6", "bit = 0.0"));
    let (off, coded) = (clean(cumulative("\"off\"", "")), clean(cumulative(coding, "")));
    assert_eq!(coded.coding.repairs, 0);
    assert_eq!(off, coded);
}

#[test]
fn a_code_that_follows_the_reports_of_the_path_is_the_same_in_bytes() {
    let text = cumulative("{ strength = \"cumulative\", signal = \"share\" }", "");
    assert_eq!(outcome(&text, false), outcome(&text, true));
    let real = text.replace("loss-ratio\"", "loss-ratio\", fields = \"real\"");
    assert_eq!(outcome(&real, false), outcome(&real, true));
}

#[test]
fn settings_are_read_with_their_defaults() {
    let flow = |coding: &str| scenario(&lossy(coding, "")).flows.remove(0).coding;
    assert_eq!(flow("\"off\""), None);
    let following = flow("{ corruption = 0.01 }").unwrap();
    assert_eq!(following.settings, middlebox::fec::Settings::default());
    assert_eq!(following.corruption, Corruption::Known(0.01));
    let fixed = flow("{ strength = 0.3, block = 7, wait = \"20 ms\" }").unwrap();
    assert_eq!(fixed.settings.strength, Strength::Fixed(0.3));
    assert_eq!((fixed.settings.block, fixed.settings.wait.as_nanos()), (7, 20_000_000));
}

#[test]
fn an_error_has_its_place() {
    let refused = |coding: &str| {
        let error = error(&lossy(coding, ""));
        let [finding] = error.findings() else { panic!("{:?}", error.findings()) };
        (finding.key.clone().unwrap_or_default(), finding.message.clone())
    };
    for (coding, key, message) in [
        ("1", "flows.0.coding", "\"off\" or { strength = 0.1, ... }"),
        ("{}", "flows.0.coding", "expected `strength`, or `corruption`"),
        ("{ strength = 2 }", "flows.0.coding.strength", "\"cumulative\" or a number from 0 to 1"),
        ("{ strength = 0.1, block = 201 }", "flows.0.coding.block", "at most 200"),
        ("{ strength = 0.1, wait = \"0 s\" }", "flows.0.coding.wait", "more than 0 s"),
        ("{ strength = 0.1, corruption = 0.1 }", "flows.0.coding.corruption", "either `strength`"),
        ("{ strength = 0.1, target = 0.1 }", "flows.0.coding.target", "no `target`"),
        ("{ strength = \"cumulative\" }", "flows.0.coding", "eten = \"cumulative\""),
        ("{ strength = 0.1, signal = \"share\" }", "flows.0.coding", "eten = \"cumulative\""),
        ("{ corruption = 0.1, target = 0 }", "flows.0.coding.target", "more than 0"),
    ] {
        let (at, says) = refused(coding);
        assert_eq!(at, key, "{says}");
        assert!(says.contains(message), "{says}");
    }
    let deaf = lossy("{ strength = 0.1 }", "").replace(", ecn = true", "");
    assert!(error(&deaf).to_string().contains("ecn = true"));
    scenario(&deaf.replace("strength = 0.1", "strength = 0.1, signal = \"none\""));
}
