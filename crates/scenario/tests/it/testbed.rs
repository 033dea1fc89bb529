//! What scenario files say of the testbed.

use crate::common::{LONG_LINK, rejects, scenario, shipped, with};
use scenario::{Corrupted, Experiment, Flow, ScenarioError, Source, Stack, Stacks, Style, Testbed};

const FLOW: &str = "from    = \"a\"";

/// The file with these lines at its flow and at its end.
fn file(flow: &str, end: &str) -> String {
    format!("{}{end}", with(&[(FLOW, &format!("{flow}\n{FLOW}"))]))
}

fn refused(text: &str) -> ScenarioError {
    let source = Source::new(text, "case.toml");
    let experiment = Experiment::read(&source).expect("it is well formed");
    experiment.scenario().expect("the lab can run it");
    experiment.testbed_scenario().expect_err("the testbed cannot run it")
}

#[test]
fn ends_use_our_stack_unless_a_word_or_a_table_says_otherwise() {
    let stacks = |text: &str| scenario(&file(text, "")).flows[0].stacks.clone();
    assert_eq!(stacks(""), Stacks::default());
    let both = Stacks { from: Stack::Linux, to: Stack::Linux, congestion: None };
    assert_eq!(stacks("stack = \"linux\""), both);
    let one =
        Stacks { from: Stack::Linux, congestion: Some("bbr".to_owned()), ..Stacks::default() };
    assert_eq!(stacks("stack = { from = \"linux\", congestion = \"bbr\" }"), one);
}

#[test]
fn a_run_on_real_packets_has_its_limits() {
    assert_eq!(scenario(LONG_LINK).testbed, Testbed::default());
    let text = "[testbed]\nlate = \"3 ms\"\nvoid_above = 0.05\ncorrupted = \"flip\"\n";
    let testbed = scenario(&file("", text)).testbed;
    assert_eq!((testbed.late.as_secs_f64(), testbed.void_above), (0.003, 0.05));
    assert_eq!(testbed.corrupted, Corrupted::Flip);
}

#[test]
fn an_invalid_stack_is_reported_at_its_place() {
    let at = |line: &str, marked: &str, message: &str| {
        rejects((FLOW, &format!("{line}\n{FLOW}")), marked, message);
    };
    at(
        "stack = \"bsd\"",
        "\"bsd\"",
        "`flows.0.stack = \"bsd\"`: expected \"lasthop\", \"linux\", or { from = one of them, ... }",
    );
    at(
        "stack = { congestion = \"bbr\" }",
        "\"bbr\"",
        "`flows.0.stack.congestion = \"bbr\"`: only ends with the kernel's TCP have it: expected \"linux\" at `from` or `to`",
    );
    at(
        "stack = { from = \"linux\", congestion = \"a b\" }",
        "\"a b\"",
        "`flows.0.stack.congestion = \"a b\"`: expected the name of one of the kernel's congestion \
         controls, such as \"bbr\"",
    );
}

#[test]
fn features_of_the_lab_alone_are_reported_at_their_place() {
    let eten = |value: &str| LONG_LINK.replace("eten = \"none\"", &format!("eten = {value}"));
    let linux = |text: &str| text.replace(FLOW, &format!("stack = \"linux\"\n{FLOW}"));
    let flipping = |text: &str| format!("{text}[testbed]\ncorrupted = \"flip\"\n");
    let delayed = "mechanisms = [{ mechanism = \"delayed-dupacks\" }]";
    let delayed = LONG_LINK.replace("eten = \"none\"", delayed);
    let knowing = "b = { boxes = [{ box = \"esp\", loss_causes = \"link\" }] }";
    let cases = [
        (flipping(&LONG_LINK.replace("b = {}", knowing)), "\"flip\"", "a box of `b` must be told"),
        (eten("\"oracle\""), "\"oracle\"", "cannot run the oracle"),
        (linux(&eten("\"backward\"")), "\"backward\"", "does not understand notices"),
        (flipping(&eten("\"backward\"")), "\"flip\"", "no node detects a corruption"),
        (flipping(&eten("\"forward\"")), "\"flip\"", "no node detects a corruption"),
        (linux(&delayed), "[{ mechanism", "the kernel's TCP does not have this mechanism"),
    ];
    for (text, marked, message) in cases {
        let error = refused(&text);
        let report = error.render(Style::Plain);
        assert!(report.contains(message), "{report}");
        let before = &text[..text.find(marked).unwrap()];
        let line = before.matches('\n').count() + 1;
        assert!(report.contains(&format!("╭▸ case.toml:{line}:")), "{report}");
    }
}

#[test]
fn more_flows_than_ports_stay_in_the_lab() {
    let flow = "[[flows]]\nfrom = \"a\"\nto = \"b\"\n";
    let error = refused(&(LONG_LINK.to_owned() + &flow.repeat(Flow::PORTS)));
    let message = "expected at most 60000 flows: the testbed's nodes have one address";
    assert!(error.to_string().contains(message), "{error}");
}

/// What the testbed lacks: a report without delay, links that decode.
const LACKS: [&str; 2] =
    ["no hardware reports without delay", "no link hardware that corrects packets"];

#[test]
fn every_shipped_scenario_runs_on_the_testbed_or_names_what_it_lacks() {
    let (mut run, mut refused) = (0, 0);
    for (name, text) in shipped() {
        let source = Source::new(text, name.clone());
        let Err(error) = Experiment::read(&source).unwrap().testbed_scenario() else {
            run += 1;
            continue;
        };
        let report = error.render(Style::Plain);
        assert!(LACKS.iter().any(|lack| report.contains(lack)), "{name}: {report}");
        refused += 1;
    }
    eprintln!("{run} run, {refused} are refused");
    assert!(run > refused && refused > 0);
}
