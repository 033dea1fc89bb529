//! Cumulative error notification in scenarios (`bbn8333` §4).

use crate::common::{LONG_LINK, digest, error, rejects, run, run_with, scenario, with};
use lab::{Outcome, Watch};
use scenario::Report;
use tcp::mechanism::{CumulativeEten, Fields, Mechanism, Strategy, Transport};
use wire::PathForm;

/// [`LONG_LINK`] with this notification and these lines at its end.
fn file(eten: &str, end: &str) -> String {
    with(&[("eten = \"none\"", &format!("eten = {eten}"))]) + end
}

fn cumulative(settings: &str) -> String {
    format!("{{ report = \"cumulative\"{settings} }}")
}

/// The mechanisms of both ends, which know what nodes do.
fn mechanism(text: &str) -> CumulativeEten {
    let flow = &scenario(text).flows[0];
    assert_eq!(flow.report, Report::Cumulative);
    match (flow.sender.mechanisms.as_slice(), flow.receiver.mechanisms.as_slice()) {
        ([Mechanism::CumulativeEten(ceten)], [Mechanism::CumulativeEten(other)]) => {
            assert_eq!(ceten, other);
            ceten.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_word_stands_for_what_was_published() {
    let ceten = mechanism(&file("\"cumulative\"", ""));
    assert_eq!(ceten, CumulativeEten::new(Strategy::Published, 1.0, Fields::Free));
    let published = (0.5, PathForm::Probability, Transport::Header);
    assert_eq!((ceten.a, ceten.form, ceten.transport), published);
    assert_eq!(mechanism(&file(&cumulative(""), "[ceten]\n")), ceten);
}

#[test]
fn all_of_it_can_be_set() {
    let flow = ", strategy = \"loss-ratio\", bound = 0.75, fields = \"real\"";
    let text = file(&cumulative(flow), "[ceten]\na = 0.01\nform = \"levels\"\n");
    let ceten = mechanism(&text);
    let parts = (ceten.strategy, ceten.bound, ceten.fields, ceten.a, ceten.form);
    assert_eq!(parts, (Strategy::LossRatio, 0.75, Fields::Real, 0.01, PathForm::Levels));
}

#[test]
fn an_invalid_setting_is_reported_at_its_place() {
    for (line, message) in [
        ("a = 0", "`ceten.a = 0`: found integer `0`, expected a number above 0 and at most 1"),
        ("a = 1.5", "`ceten.a = 1.5`: found number `1.5`, expected a number above 0 and at most 1"),
    ] {
        let text = file("\"cumulative\"", &format!("[ceten]\n{line}\n"));
        assert_eq!(error(&text).to_string(), message);
    }
    rejects(
        ("eten = \"none\"", "eten = { report = \"cumulative\", bound = 0.4 }"),
        "0.4",
        "`flows.0.tcp.eten.bound = 0.4`: found number `0.4`, expected a number from 0.5 to 1",
    );
    rejects(
        ("eten = \"none\"", "eten = { report = \"cumulative\", strategy = \"coin\" }"),
        "\"coin\"",
        "`flows.0.tcp.eten.strategy = \"coin\"`: unknown name `coin`, expected one of `published`, \
         `loss-ratio`, `adaptive`",
    );
}

#[test]
fn the_adaptive_strategy_wants_slow_averages() {
    let adaptive = cumulative(", strategy = \"adaptive\"");
    let message = "the strategy `adaptive` of a flow compares averages over many packets: \
                   expected `a` of [ceten] to be at most 0.015625 (1/64)";
    assert_eq!(error(&file(&adaptive, "")).to_string(), message);
    let with_a = |a: &str| file(&adaptive, &format!("[ceten]\na = {a}\n"));
    assert_eq!(error(&with_a("0.5")).to_string(), format!("`ceten.a = 0.5`: {message}"));
    assert_eq!(mechanism(&with_a("0.015625")).strategy, Strategy::Adaptive);
    let listed = "mechanisms = [{ mechanism = \"cumulative-eten\", strategy = \"adaptive\" }]";
    let quick = "{ mechanism = \"cumulative-eten\", strategy = \"adaptive\" }";
    let message = "`flows.0.tcp.mechanisms.0`: the strategy `adaptive` compares averages over many \
                   packets: expected `a` to be at most 0.015625 (1/64)";
    rejects(("eten = \"none\"", listed), quick, message);
}

#[test]
fn it_is_named_in_one_place() {
    let mechanisms = "eten = \"cumulative\", mechanisms = [{ mechanism = \"cumulative-eten\" }]";
    rejects(
        ("eten = \"none\"", mechanisms),
        "\"cumulative\"",
        "`flows.0.tcp.eten = \"cumulative\"`: `mechanisms` lists an ETEN mechanism already",
    );
}

#[test]
fn a_path_without_losses_is_as_it_was() {
    let clean = |text: &str| digest(&text.replace("1e-5", "0"));
    for settings in ["", ", strategy = \"loss-ratio\"", ", bound = 0.5"] {
        assert_eq!(clean(&file(&cumulative(settings), "")), clean(LONG_LINK), "{settings}");
    }
    for form in ["levels", "binary", "relative"] {
        let end = format!("[ceten]\nform = \"{form}\"\n");
        assert_eq!(clean(&file("\"cumulative\"", &end)), clean(LONG_LINK), "{form}");
    }
    // Who measures changes nothing for those who do not ask.
    assert_eq!(digest(&file("\"none\"", "[ceten]\na = 0.1\n")), digest(LONG_LINK));
}

/// Mean goodput over ten runs.
fn goodput(text: &str) -> f64 {
    let run = |seed| run_with(text, seed, &Watch::default()).rows[0].goodput_bps;
    (1..=10).map(run).sum::<f64>() / 10.0
}

#[test]
fn where_every_loss_is_corruption_a_sender_that_knows_is_not_held_back() {
    let [none, oracle, published] =
        ["\"none\"", "\"oracle\"", "\"cumulative\""].map(|eten| goodput(&file(eten, "")));
    let strategy = |name: &str, end: &str| {
        goodput(&file(&cumulative(&format!(", strategy = \"{name}\"")), end))
    };
    let ratio = strategy("loss-ratio", "");
    let adaptive = strategy("adaptive", "[ceten]\na = 0.01\n");
    // The coin of the publication leaves about every second loss unpunished.
    assert!(1.1 * none < published && 1.1 * published < ratio, "{none}, {published}, {ratio}");
    assert!(ratio < 1.02 * oracle && 1.2 * none < adaptive, "{ratio}, {oracle}, {adaptive}");
    for form in ["levels", "binary", "relative"] {
        let found = strategy("loss-ratio", &format!("[ceten]\nform = \"{form}\"\n"));
        assert!(found > 1.2 * none, "{form}: {found}, without {none}");
    }
}

#[test]
fn where_every_loss_is_congestion_it_is_answered_as_ever() {
    let congested = |eten: &str| {
        let text = file(eten, "").replace("1e-5", "0").replace("50 packets", "5 packets");
        run(&text.replace("20 segments", "200 segments"))
    };
    let plain = congested("\"none\"");
    assert!(plain.totals.dropped > 10, "{}", plain.totals.dropped);
    let ratio = congested(&cumulative(", strategy = \"loss-ratio\""));
    assert_eq!(ratio.digest, plain.digest);
}

#[test]
fn real_fields_take_their_bytes_of_every_segment() {
    let row = |settings: &str, end: &str, ip: &str| {
        let text = file(&cumulative(settings), end).replace("1e-5", "0");
        let text = text.replace("from    =", &format!("ip = {ip}\nfrom ="));
        let Outcome { rows, .. } = run(&text);
        rows[0].payload_bytes as f64
    };
    for (ip, exact, coded) in [("4", 20.0, 4.0), ("6", 24.0, 8.0)] {
        let free = row("", "", ip);
        let real = ", fields = \"real\"";
        for (end, bytes) in [("", exact), ("[ceten]\nform = \"binary\"\n", coded)] {
            // The window is in segments, and so is what a round trip carries.
            let found = row(real, end, ip) / free;
            let expected = 1.0 - bytes / 536.0;
            assert!((found / expected - 1.0).abs() < 0.01, "{ip}, {end}: {found}, {expected}");
        }
    }
}

#[test]
fn fields_are_the_same_as_bytes() {
    for (settings, end) in [
        ("", ""),
        (", fields = \"real\"", ""),
        (", fields = \"real\"", "[ceten]\nform = \"relative\"\n"),
    ] {
        for ip in ["4", "6"] {
            let settings = format!("{settings}, strategy = \"loss-ratio\"");
            let text = file(&cumulative(&settings), end);
            let text = text.replace("from    =", &format!("ip = {ip}\nfrom ="));
            let result = |bytes| {
                run_with(&text, 1, &Watch { digest: true, bytes, ..Watch::default() }).digest
            };
            assert_eq!(result(true), result(false), "{settings}, {end}, IPv{ip}");
        }
    }
}

#[test]
fn messages_about_links_serve_where_headers_do_not() {
    let traceback = |end: &str| format!("[ceten]\na = 0.01\ntransport = \"traceback\"\n{end}");
    let ratio = cumulative(", strategy = \"loss-ratio\"");
    let text = file(&ratio, &traceback("messages = 0.1\n"));
    assert_eq!(mechanism(&text).transport, Transport::Traceback);
    let (plain, notified) = (goodput(LONG_LINK), goodput(&text));
    assert!(notified > 1.2 * plain, "{notified}, without {plain}");
    // The notices are packets; without them the sender does not know of corruption.
    let events = |text: &str| run(text).events;
    let silent = file(&ratio, &traceback("messages = 0\n"));
    assert_eq!(digest(&silent), digest(LONG_LINK));
    let clean = |text: &str| events(&text.replace("1e-5", "0"));
    assert!(clean(&text) > clean(LONG_LINK) + 100);
    let wrong = file(&ratio, &traceback("form = \"binary\"\n"));
    assert_eq!(
        error(&wrong).to_string(),
        "`ceten.form = \"binary\"`: messages report probabilities: expected this form with `transport = \"header\"` only"
    );
}
