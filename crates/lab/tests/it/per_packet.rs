//! Codes within packets: every node corrects wrong bytes before it forwards a packet.

use crate::common::{error, run_with, scenario};
use lab::{Outcome, Watch};
use middlebox::fec::PacketStrength;

/// A flow over two links with bit errors, coded as `coding` says.
fn path(bit: f64, coding: &str, tcp: &str) -> String {
    format!(
        r#"
title    = "codes in packets"
duration = "30 s"
nodes    = {{ a = {{}}, b = {{}}, c = {{}} }}

[[links]]
between = ["a", "b"]
rate    = "5 Mbit/s"
delay   = "20 ms"
queue   = "60 packets"
forward = {{ errors = {{ bit = {bit:e} }} }}

[[links]]
between = ["b", "c"]
rate    = "5 Mbit/s"
delay   = "20 ms"
queue   = "60 packets"
forward = {{ errors = {{ bit = {bit:e} }} }}

[[flows]]
from    = "a"
to      = "c"
tcp     = {{ recovery = "sack", mss = 1000, receive_window = "100 kB"{tcp} }}
coding  = {coding}
"#
    )
}

const CETEN: &str = r#", eten = { report = "cumulative", strategy = "loss-ratio" }"#;

fn outcome(text: &str, bytes: bool) -> Outcome {
    run_with(text, 1, &Watch { digest: true, bytes, ..Watch::default() })
}

fn rate(text: &str) -> f64 {
    outcome(text, false).rows[0].payload_bps / 1e6
}

/// The probability that more than `corrects` of `bytes` are wrong.
fn beyond(bytes: u32, corrects: u32, bit: f64) -> f64 {
    let power = |x: f64, n: u32| (0..n).fold(1.0, |product, _| product * x);
    let p = 1.0 - power(1.0 - bit, 8);
    let mut exactly = power(1.0 - p, bytes);
    let mut at_most = exactly;
    for wrong in 0..corrects {
        exactly *= f64::from(bytes - wrong) / f64::from(wrong + 1) * p / (1.0 - p);
        at_most += exactly;
    }
    1.0 - at_most
}

#[test]
fn a_code_that_corrects_nothing_is_none() {
    for tcp in ["", CETEN] {
        let off = outcome(&path(1e-5, "\"off\"", tcp), false);
        assert_eq!(off, outcome(&path(1e-5, "{ per_packet = 0 }", tcp), false));
        assert!(off.totals.corrupted > 0 && off.totals.corrected == 0);
    }
}

#[test]
fn what_packets_codes_correct_does_not_slow_tcp_down() {
    // A tenth of packets has a wrong byte on each link.
    let coded = |corrects: u8| rate(&path(1.2e-5, &format!("{{ per_packet = {corrects} }}"), ""));
    let rates = [0, 1, 2, 4].map(coded);
    assert!(rates[0] < 0.5 && rates[1] < 2.0, "{rates:?}");
    // Two are enough; more only cost.
    assert!(rates[2] > 4.6 && (4.6..rates[2]).contains(&rates[3]), "{rates:?}");
}

#[test]
fn every_link_damages_as_many_packets_as_have_more_wrong_bytes_than_their_code_corrects() {
    let bit = 1.2e-4;
    let text = path(bit, "{ per_packet = 2 }", "").replace("\"30 s\"", "\"1000 s\"");
    let outcome = outcome(&text, false);
    for (name, link) in &outcome.links {
        let packets = link.packets as f64;
        if !["a->b", "b->c"].contains(&name.as_str()) {
            assert_eq!((link.corrupted, link.corrected), (0, 0), "{name}");
            continue;
        }
        // Packets of 1040 bytes, but for a few: what a link corrects, the next has not to correct.
        let [any, lost] = [beyond(1040, 0, bit), beyond(1040, 2, bit)];
        for (found, expected) in [(link.corrupted, lost), (link.corrected, any - lost)] {
            let sigma = (expected * (1.0 - expected) / packets).sqrt();
            let distance = (found as f64 / packets - expected).abs();
            assert!(packets > 10_000.0 && distance < 5.0 * sigma, "{name} {found} {expected}");
        }
    }
}

#[test]
fn a_packet_with_its_code_is_as_long_as_one_without() {
    let sizes = |coding: &str| {
        let text = path(0.0, coding, "").replace("\"60 packets\"", "\"4160 bytes\"");
        let outcome = outcome(&text, false);
        let (_, link) = &outcome.links[0];
        (link.bytes as f64 / link.packets as f64, outcome.rows[0].payload_bps)
    };
    let ((off, plain), (fixed, coded)) = (sizes("\"off\""), sizes("{ per_packet = 15 }"));
    assert!((off - fixed).abs() < 1.0 && off > 1030.0, "{off} {fixed}");
    // Its redundancy costs its share.
    assert!((coded / plain / 0.94 - 1.0).abs() < 0.02, "{plain} {coded}");
}

#[test]
fn a_run_in_bytes_is_the_same() {
    for coding in
        ["{ per_packet = 3 }", "{ per_packet = 1, strength = 0.1, block = 10, signal = \"none\" }"]
    {
        for ip in ["", "ip = 6"] {
            let text = path(3e-5, coding, "") + ip;
            let plain = outcome(&text, false);
            assert!(plain.totals.corrected > 100, "{:?}", plain.totals);
            assert_eq!(plain, outcome(&text, true));
        }
    }
    let text = path(3e-5, "{ per_packet = \"cumulative\" }", CETEN);
    assert_eq!(outcome(&text, false), outcome(&text, true));
}

#[test]
fn a_code_that_follows_the_reports_of_the_path_finds_its_strength() {
    let corrupted = |bit, coding| {
        let outcome = outcome(&path(bit, coding, CETEN), false);
        let share = outcome.totals.corrupted as f64 / outcome.links[0].1.packets as f64;
        (share, outcome.rows[0].payload_bps / 1e6)
    };
    let cumulative = "{ per_packet = \"cumulative\" }";
    for bit in [1e-6, 1e-5, 1e-4] {
        let ((off, slow), (coded, fast)) = (corrupted(bit, "\"off\""), corrupted(bit, cumulative));
        assert!(coded < 1e-4 && off > 10.0 * coded, "{bit}: {off} {coded}");
        assert!(fast > slow && fast > 4.2, "{bit}: {slow} {fast}");
    }
    // It has room for the strongest code in its packets, but fills it only where there is corruption;
    // or where there may be, until many have shown that there is none.
    let clean = outcome(&path(0.0, cumulative, CETEN), false);
    let (_, link) = &clean.links[0];
    let mean = link.bytes as f64 / link.packets as f64;
    assert!((980.0 + 4.0..980.0 + 6.0).contains(&mean), "{mean}");
}

#[test]
fn a_flow_may_be_coded_within_and_across_packets() {
    let run = |coding: &str| outcome(&path(3e-5, coding, ", ecn = true"), false).rows.remove(0);
    let erasure = run("{ strength = 0.2, signal = \"none\" }");
    let both = run("{ per_packet = 1, strength = 0.2, signal = \"none\" }");
    assert!(both.coding.rebuilt > 0, "{both:?}");
    let share = |row: &lab::Row| row.coding.lost as f64 / row.coding.sources as f64;
    assert!(5.0 * share(&both) < share(&erasure), "{both:?} {erasure:?}");
    assert!(both.payload_bps > erasure.payload_bps);
}

#[test]
fn no_code_helps_where_whole_packets_are_lost() {
    let lossy = |coding| path(0.0, coding, "").replace("bit = 0e0", "packet = 0.01");
    let strong = rate(&lossy("{ per_packet = 15 }"));
    let weak = rate(&lossy("\"off\"").replace("mss = 1000", "mss = 940"));
    assert!((strong / weak - 1.0).abs() < 0.1, "{strong} {weak}");
}

#[test]
fn settings_are_read_with_their_defaults() {
    let flow = |coding: &str| scenario(&path(0.0, coding, CETEN)).flows.remove(0);
    let fixed = flow("{ per_packet = 4 }");
    assert_eq!((fixed.packet_code, fixed.coding), (Some(PacketStrength::Fixed(4)), None));
    assert_eq!((fixed.sender.mss, fixed.receiver.mss), (984, 984));
    let following = flow("{ per_packet = \"cumulative\" }");
    assert_eq!(following.packet_code, Some(PacketStrength::Following(1e-6)));
    assert_eq!(following.sender.mss, 940);
    let choosy = flow("{ per_packet = \"cumulative\", packet_target = 0.01 }");
    assert_eq!(choosy.packet_code, Some(PacketStrength::Following(0.01)));
    assert_eq!(flow("{ per_packet = 0 }").sender.mss, 1000);
}

#[test]
fn an_error_has_its_place() {
    let range = "\"cumulative\" or a whole number from 0 to 15";
    for (coding, key, message) in [
        ("{ per_packet = 16 }", "per_packet", range),
        ("{ per_packet = 1.5 }", "per_packet", range),
        ("{ per_packet = -1 }", "per_packet", range),
        ("{ per_packet = \"strong\" }", "per_packet", range),
        ("{ per_packet = \"cumulative\" }", "per_packet", "eten = \"cumulative\""),
        ("{ per_packet = 1, packet_target = 0.1 }", "packet_target", "or no `packet_target`"),
        ("{ per_packet = 15, signal = \"none\", block = 3 }", "", "expected `strength`"),
        ("{ per_packet = 1, wait = \"1 ms\" }", "", "ecn = true"),
    ] {
        let found = error(&path(0.0, coding, ""));
        let finding = &found.findings()[0];
        let at = finding.key.clone().unwrap_or_default();
        let key = if key.is_empty() { "" } else { &format!(".{key}") };
        assert_eq!(at, format!("flows.0.coding{key}"), "{}", finding.message);
        assert!(finding.message.contains(message), "{}", finding.message);
    }
    let refused = |coding: &str, of: &str, to: &str| {
        error(&path(0.0, coding, CETEN).replace(of, to)).to_string()
    };
    let zero = "{ per_packet = \"cumulative\", packet_target = 0 }";
    assert!(refused(zero, "", "").contains("more than 0"));
    let small = refused("{ per_packet = 15 }", "mss = 1000", "mss = 120");
    assert!(small.contains("`mss` of the flow's `tcp` to be more than 120"), "{small}");
    let share = "{ per_packet = 1, strength = 0.1, signal = \"share\" }";
    let share = refused(share, "mss = 1000", "mss = 1000, ecn = true");
    assert!(share.contains("expected `signal` \"all\" or \"none\""), "{share}");
}

#[test]
fn a_path_whose_errors_are_all_corrected_is_one_without_errors() {
    // Packets that are corrected and those that are marked besides are no others than these.
    let red = "queue   = { red = { min = 5, max = 15, weight = 0.1, ecn = true } }";
    for tcp in [", ecn = true", ", ecn = true, timestamps = true"] {
        for queue in ["queue   = \"60 packets\"", red] {
            let run = |bit| {
                let text = path(bit, "{ per_packet = 15 }", tcp);
                // In a watched run, the observer handles marks before the nodes do.
                run_with(&text.replace("queue   = \"60 packets\"", queue), 1, &Watch::default())
            };
            let (clean, corrected) = (run(0.0), run(1e-5));
            assert_eq!(clean.rows, corrected.rows);
            assert_eq!((corrected.totals.corrupted, clean.totals.corrected), (0, 0));
            assert!(corrected.totals.corrected > 1000, "{:?}", corrected.totals);
            let marked = |outcome: &Outcome| outcome.links[0].1.marked;
            assert_eq!(marked(&clean), marked(&corrected));
            assert_eq!(marked(&clean) > 10, queue == red, "{}", marked(&clean));
        }
    }
}
