//! Links of a scenario: what each key does, and what is said of nonsense.

mod common;

use base::{Duration, Rate};
use common::{error, scenario, told, with};
use lab::Link;
use link::{Queue, Uniform};

/// The link of the scenario with other lines for its queue and errors.
fn link(lines: &str) -> Link {
    scenario(&with_link(lines)).links.remove(0)
}

fn with_link(lines: &str) -> String {
    with(&[("queue   = \"50 packets\"\nerrors  = { bit = 1e-5 }\n", lines)])
}

#[test]
fn what_is_said_of_both_directions_holds_for_each_that_says_nothing_else() {
    let link = link(
        "queue = \"50 packets\"\nerrors = { packet = 0.5 }\nforward = { errors = { bit = 1e-5 } }\n\
         [links.backward]\nrate = \"9600 bit/s\"\ndelay = \"1 s\"\nqueue = \"unlimited\"\nerrors = {}\n",
    );
    let link::Config { rate, delay, queue, errors, .. } = link.forward;
    assert_eq!((rate, delay), (Rate::from_bps(1_500_000), Duration::from_millis(100)));
    assert_eq!((queue, errors), (Queue::Packets(50), Uniform { bit: 1e-5, packet: 0.0 }.into()));
    let link::Config { rate, delay, queue, errors, .. } = link.backward;
    assert_eq!((rate, delay), (Rate::from_bps(9600), Duration::from_secs(1)));
    assert_eq!((queue, errors), (Queue::Unlimited, Uniform::default().into()));
}

#[test]
fn rate_and_delay_are_needed_for_both_directions_at_once_or_for_each() {
    let rate = "rate    = \"1.5 Mbit/s\"\n";
    let each = "forward = { rate = \"1 Mbit/s\" }\nbackward = { rate = \"2 Mbit/s\" }\n";
    assert_eq!(scenario(&with(&[(rate, each)])).links[0].backward.rate, Rate::from_bps(2_000_000));
    for (lines, missing) in [
        ("", "`links.0`: missing key `rate`"),
        ("backward = { rate = \"2 Mbit/s\" }\n", "`links.0`: missing key `rate`"),
        (
            "forward = { rates = \"1 Mbit/s\" }\nbackward = { rate = \"2 Mbit/s\" }\n",
            "`links.0`: missing key `rate`\n`links.0.forward.rates`: unknown key `rates`, expected \
             one of `rate`, `delay`, `queue`, `errors`",
        ),
    ] {
        assert_eq!(error(&with(&[(rate, lines)])).to_string(), missing);
    }
}

#[test]
fn a_key_of_one_direction_is_swept_like_any_other() {
    let text = with_link("") + "[sweep]\n\"links.0.backward.delay\" = [\"1 s\", \"2 s\"]\n";
    let source = lab::Source::new(text, "case.toml");
    let link = &lab::Experiment::read(&source).unwrap().scenario_at(1).unwrap().links[0];
    let millis = Duration::from_millis;
    assert_eq!((link.forward.delay, link.backward.delay), (millis(100), millis(2000)));
}

#[test]
fn links_join_two_nodes_that_are_there_once() {
    told(
        ("[\"a\", \"b\"]", "[\"a\", \"c\"]"),
        "\"c\"",
        "`links.0.between.1 = \"c\"`: there is no such node",
    );
    told(
        ("[\"a\", \"b\"]", "[\"a\", \"a\"]"),
        "[\"a\"",
        "`links.0.between`: expected two different nodes",
    );
    told(
        ("[\"a\", \"b\"]", "[\"a\"]"),
        "[\"a\"",
        "`links.0.between`: expected the names of two nodes",
    );
    let second = "[[links]]\nbetween = [\"b\", \"a\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n";
    told(
        ("[[flows]]", &format!("{second}[[flows]]")),
        "[\"b\", \"a\"]",
        "`links.1.between`: there is a link between these nodes already",
    );
}

#[test]
fn a_queue_holds_something() {
    for queue in ["0 packets", "0 B"] {
        told(
            ("50 packets", queue),
            &format!("\"{queue}\""),
            &format!(
                "`links.0.queue = \"{queue}\"`: nothing would ever pass: expected more than 0"
            ),
        );
    }
}

#[test]
fn probabilities_are_between_0_and_1() {
    for p in ["-0.1", "1.1", "nan", "inf"] {
        let message = format!("`links.0.errors.bit = {p}`: expected a probability, 0 to 1");
        told(("1e-5", p), &format!("{p} }}"), &message);
    }
}
