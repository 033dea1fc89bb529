//! Errors in scenarios: each with its place, and with what was expected.

use crate::common::{LONG_LINK, chain, error, rejects, scenario, with};
use proptest::prelude::*;
use scenario::{Experiment, Flow, Source, Style, Value};

#[test]
fn a_report_shows_the_line_and_marks_the_place() {
    let report = error(&with(&[("1.5 Mbit/s", "0 Mbit/s")])).render(Style::Plain);
    let expected = r#"`links.0.rate = "0 Mbit/s"`: `0 Mbit/s` is no rate: expected a number above 0 and bit/s, kbit/s, Mbit/s or Gbit/s, such as "1.5 Mbit/s"
   ╭▸ case.toml:9:11
   │
 8 │ between = ["a", "b"]
 9 │ rate    = "0 Mbit/s"
   │           ━━━━━━━━━━
10 │ delay   = "100 ms"
   ╰╴
"#;
    assert_eq!(report, expected, "\n{report}");
    assert!(!report.contains('\u{1b}'), "no colours unless asked for");
    let coloured = error(&with(&[("1.5 Mbit/s", "0 Mbit/s")])).render(Style::Coloured);
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn an_mtu_is_a_size_that_a_link_may_have() {
    for size in ["\"67 B\"", "\"64 KiB\"", "20", "\"2 packets\"", "{ size = \"9 B\" }"] {
        let text = with(&[("queue", &format!("mtu = {size}\nqueue"))]);
        let message = error(&text).to_string();
        assert!(message.contains("links.0.mtu") && message.contains("bytes"), "{message}");
    }
    let text = with(&[("queue", "mtu = { icmp = false }\nqueue")]);
    assert!(error(&text).to_string().contains("missing key `size`"));
    let mtu = |text: &str| scenario(&with(&[("queue", text)])).links[0].mtu.clone().unwrap();
    let limit = mtu("mtu = 576\nqueue");
    assert_eq!((limit.bytes, limit.icmp), (576, true));
    assert_eq!(mtu("mtu = { size = \"576 B\" }\nqueue"), limit);
}

#[test]
fn all_errors_are_reported_at_once_in_the_order_of_the_file() {
    let text = with(&[
        ("\"60 s\"", "60"),
        ("b = {}", "b = { x = 1 }"),
        ("[\"a\", \"b\"]", "[\"a\", \"bb\"]"),
        ("100 ms", "100 parsec"),
        ("50 packets", "0 packets"),
        ("1e-5", "2"),
        ("to      = \"b\"", "to = \"c\"\nstart = \"-1 s\"\ncolour = 1"),
        ("\"sack\"", "\"sakc\", mss = 0, rto = { initial = \"0 s\" }"),
        ("eten = \"none\"", "mechanisms = [{ mechanism = \"eten\", suppress_dupacks = 1 }, {}]"),
    ]);
    let error = error(&(text + "[sweep]\nseeds = 0\n\"links.7.rate\" = []\n"));
    let keys: Vec<&str> = error.findings().iter().filter_map(|f| f.key.as_deref()).collect();
    assert_eq!(
        keys,
        [
            "duration",
            "nodes.b.x",
            "links.0.between.1",
            "links.0.delay",
            "links.0.queue",
            "links.0.errors.bit",
            "flows.0.to",
            "flows.0.start",
            "flows.0.colour",
            "flows.0.tcp.recovery",
            "flows.0.tcp.mss",
            "flows.0.tcp.rto",
            "flows.0.tcp.mechanisms.0.suppress_dupacks",
            "flows.0.tcp.mechanisms.1",
            "sweep.seeds",
            "sweep.\"links.7.rate\"",
        ]
    );
    let report = error.render(Style::Plain);
    assert!(report.ends_with("16 problems\n"), "{report}");
    let delay = &error.findings()[3];
    assert_eq!((delay.file.as_str(), delay.at), ("case.toml", Some((10, 11))));
    assert_eq!(delay.value.as_deref(), Some("\"100 parsec\""));
}

#[test]
fn datagrams_need_a_port_of_their_own() {
    let udp = "traffic = { udp = { rate = \"1 Mbit/s\", packet = 500 } }\n";
    let flow = "[[flows]]\nfrom = \"a\"\nto = \"b\"\n";
    let text = LONG_LINK.to_owned() + &flow.repeat(Flow::PORTS - 2);
    scenario(&format!("{text}{flow}{udp}"));
    let error = error(&format!("{text}{flow}{flow}{udp}"));
    let message = "expected UDP datagrams in the first 60000 flows only";
    assert!(error.findings().iter().all(|finding| finding.message.contains(message)), "{error}");
    assert_eq!(error.findings().len(), 1, "{error}");
}

#[test]
fn errors_that_depend_on_other_errors_are_not_reported() {
    // A link that could not be read might be the way; a size that is none has no multiples.
    let no_link = with(&[("\"1.5 Mbit/s\"", "\"fast\"")]);
    assert_eq!(error(&no_link).findings().len(), 1);
    let no_size = with(&[("\"sack\"", "\"sack\", mss = 0, initial_ssthresh = \"5 B\"")]);
    assert_eq!(error(&no_size).findings().len(), 1);
}

#[test]
fn of_very_many_errors_the_first_are_reported() {
    let text = LONG_LINK.to_owned() + &"[[flows]]\n".repeat(60);
    let error = error(&text);
    assert_eq!(error.findings().len(), 50);
    assert!(error.render(Style::Plain).ends_with("the first 50 of 120 problems\n"));
}

#[test]
fn errors_in_lines_that_no_terminal_should_show_are_reported_without_them() {
    for line in [format!("x = \"{}\"", "x".repeat(70_000)), "x = 1 # \u{1b}[2J".to_owned()] {
        let report = error(&format!("{line}\n{LONG_LINK}")).render(Style::Plain);
        assert!(report.contains("case.toml:1:"), "{report}");
        assert!(report.len() < 500 && !report.contains('\u{1b}'), "{report}");
    }
}

#[test]
fn invalid_toml_is_reported_as_such() {
    rejects(
        ("\"one long link\"", "\"one long link"),
        "\nprofile",
        "not valid TOML: invalid basic string, expected `\"`",
    );
    let twice = error(&with(&[("duration", "title = \"again\"\nduration")])).to_string();
    assert!(twice.starts_with("not valid TOML: duplicate key"), "{twice}");
}

#[test]
fn unknown_keys_come_with_those_that_are_known_and_the_one_that_was_meant() {
    rejects(
        ("duration", "duratoin"),
        "duratoin",
        "`duratoin`: unknown key `duratoin`, expected one of `title`, `duration`, `ends_with`, `latency`, \
         `profile`, `nodes`, `links`, `flows`, `tunnels`, `attacks`, `ceten`, `testbed`, `sweep`",
    );
    let report = error(&with(&[("duration", "duratoin")])).render(Style::Plain);
    assert!(report.contains("did you mean `duration`?"), "{report}");
    rejects(
        ("bit = 1e-5", "bits = 1e-5"),
        "bits",
        "`links.0.errors.bits`: unknown key `bits`, expected one of `bit`, `packet`, \
         `gilbert-elliott`, `bursts`, `fades`, `trace`",
    );
    rejects(
        ("b = {}", "b = { x = 1 }"),
        "x = 1",
        "`nodes.b.x`: unknown key `x`, expected one of `attached`, `notifies`, `warning`, `shared_probe`, `boxes`",
    );
}

#[test]
fn missing_keys_are_named_with_the_table_that_misses_them() {
    rejects(("rate    = \"1.5 Mbit/s\"\n", ""), "[[links]]", "`links.0`: missing key `rate`");
    rejects(("to      = \"b\"\n", ""), "[[flows]]", "`flows.0`: missing key `to`");
    let missing = ["title", "duration", "nodes", "flows"].map(|key| format!("missing key `{key}`"));
    assert_eq!(error("").to_string(), missing.join("\n"));
}

#[test]
fn names_that_are_not_in_a_table_come_with_those_that_are() {
    rejects(
        ("\"sack\"", "\"fack\""),
        "\"fack\"",
        "`flows.0.tcp.recovery = \"fack\"`: unknown name `fack`, expected one of `tahoe`, `reno`, \
         `newreno`, `sack`, `rack`",
    );
    rejects(
        ("ns2-2001", "ns2-2002"),
        "\"ns2-2002\"",
        "`profile = \"ns2-2002\"`: unknown name `ns2-2002`, expected one of `ns2-2001`, \
         `ns2-2007`, `sunos-1994`, `modern`",
    );
    rejects(
        ("\"none\"", "\"sideways\""),
        "\"sideways\"",
        "`flows.0.tcp.eten = \"sideways\"`: expected \"none\", \"oracle\", \"backward\", \"forward\", \
         \"cumulative\", or { report = one of them, ... }",
    );
    rejects(
        ("eten = \"none\"", "congestion = \"vegas\""),
        "\"vegas\"",
        "`flows.0.tcp.congestion = \"vegas\"`: unknown name `vegas`, expected one of \
         `aimd`, `cubic`, `westwood-2001`, `westwood+`, `hybla`, `bbr`",
    );
    for name in ["increase = \"none\"", "mechanisms = [{ mechanism = \"none\" }]"] {
        let wrong = error(&with(&[("eten = \"none\"", name)])).to_string();
        assert!(wrong.contains("unknown name `none`, expected "), "{wrong}");
    }
}

#[test]
fn a_mechanism_with_a_setting_that_it_does_not_have_is_pointed_at() {
    rejects(
        ("eten = \"none\"", "mechanisms = [{ mechanism = \"eten\", suppress = true }]"),
        "suppress =",
        "`flows.0.tcp.mechanisms.0.suppress`: unknown key `suppress`, expected `mechanism` or \
         `suppress_dupacks`",
    );
}

#[test]
fn increase_functions_are_for_aimd() {
    rejects(
        ("eten = \"none\"", "congestion = \"cubic\", increase = \"increase-by-k\""),
        "\"increase-by-k\"",
        "`flows.0.tcp.increase = \"increase-by-k\"`: `cubic` has no increase function: expected \
         `increase` with `congestion = \"aimd\"` only",
    );
    rejects(
        ("eten = \"none\"", "congestion = \"westwood+\", increase = \"standard\""),
        "\"standard\"",
        "`flows.0.tcp.increase = \"standard\"`: `westwood+` has no increase function: expected \
         `increase` with `congestion = \"aimd\"` only",
    );
}

#[test]
fn what_bbr_alone_has_needs_bbr() {
    for key in ["renew_min_rtt", "tolerate_random_loss"] {
        rejects(
            ("eten = \"none\"", &format!("congestion = \"cubic\", {key} = true")),
            "true",
            &format!(
                "`flows.0.tcp.{key} = true`: expected `{key}` with `congestion = \"bbr\"` only"
            ),
        );
    }
}

#[test]
fn a_loss_threshold_is_a_share_for_bbr() {
    rejects(
        ("eten = \"none\"", "congestion = \"cubic\", loss_threshold = 0.1"),
        "0.1",
        "`flows.0.tcp.loss_threshold = 0.1`: expected `loss_threshold` with `congestion = \"bbr\"` only",
    );
    rejects(
        ("eten = \"none\"", "congestion = \"bbr\", loss_threshold = 1.0"),
        "1.0",
        "`flows.0.tcp.loss_threshold = 1.0`: expected a share below 1",
    );
}

#[test]
fn an_increase_function_is_a_name_or_a_table_with_its_policy() {
    let rejects = |written: &str, marked: &str, message: &str| {
        let message = format!("`flows.0.tcp.increase{message}");
        rejects(("eten = \"none\"", &format!("increase = {written}")), marked, &message);
    };
    rejects(
        "true",
        "true",
        " = true`: found boolean `true`, expected a name, such as \"standard\", or \
         { policy = \"standard\", ... }",
    );
    rejects("{ nit = \"30 ms\" }", "{ nit", "`: missing key `policy`");
    rejects(
        "{ policy = \"kanit\" }",
        "\"kanit\"",
        ".policy = \"kanit\"`: unknown name `kanit`, expected one of `standard`, `increase-by-k`, \
         `constant-rate`, `canit`, `auto`",
    );
    rejects(
        "{ policy = \"auto\", fast = { policy = \"canit\", nit = 30 } }",
        "{ policy = \"canit\"",
        ".fast`: found integer `30`, expected more than 0 s, in quotes, such as \"30 ms\"",
    );
    rejects(
        "{ policy = \"canit\", k = 2 }",
        "k = 2",
        ".k`: unknown key `k`, expected one of `policy`, `nit`, `rtt`, `cap`",
    );
}

#[test]
fn settings_of_increase_functions_are_checked_each_by_itself() {
    let above_zero = "expected a number above 0 and at most 1e6";
    let span = "expected more than 0 s, in quotes, such as \"30 ms\"";
    let cap = "expected \"off\" or a number of segments, above 0 and at most 1e6";
    let rtt = "expected \"smoothed\", \"propagation\" or a duration, such as \"200 ms\"";
    let fast = "expected \"increase-by-k\", \"constant-rate\", \"canit\", or \
                { policy = one of them, ... }";
    for (policy, key, value, message) in [
        ("increase-by-k", "k", "0", above_zero),
        ("constant-rate", "c", "-1.5", above_zero),
        ("constant-rate", "c", "1e7", above_zero),
        ("constant-rate", "c", "nan", above_zero),
        ("constant-rate", "c", "\"10\"", above_zero),
        ("constant-rate", "rtt", "\"shortest\"", rtt),
        ("canit", "rtt", "true", &format!("found boolean `true`, {rtt}")),
        ("canit", "nit", "30", &format!("found integer `30`, {span}")),
        ("canit", "nit", "\"0 s\"", span),
        ("canit", "nit", "\"30 parsec\"", span),
        ("canit", "cap", "0", cap),
        ("canit", "cap", "\"on\"", cap),
        ("auto", "fast", "\"standard\"", fast),
    ] {
        let written = format!("increase = {{ policy = \"{policy}\", {key} = {value} }}");
        let message = format!("`flows.0.tcp.increase.{key} = {value}`: {message}");
        rejects(("eten = \"none\"", &written), &format!("{value} }} }}"), &message);
    }
}

#[test]
fn byte_counting_is_off_or_has_a_limit_of_some_segments() {
    for wrong in ["0", "-1", "4294967296", "\"on\"", "true", "1.5"] {
        let text = with(&[("eten = \"none\"", &format!("byte_counting = {wrong}"))]);
        let message = error(&text).to_string();
        assert!(
            message.starts_with(&format!("`flows.0.tcp.byte_counting = {wrong}`")),
            "{message}"
        );
        let expected = "\"off\", \"all\" or a number of segments, at least 1";
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn quantities_need_their_units() {
    rejects(
        ("\"60 s\"", "60"),
        "60",
        "`duration = 60`: found integer `60`, expected a duration in quotes, such as \"320 ms\"",
    );
    rejects(
        ("\"100 ms\"", "\"100 parsec\""),
        "\"100 parsec\"",
        "`links.0.delay = \"100 parsec\"`: `100 parsec` is no duration: expected a number and ns, \
         us, ms, s, min or h, such as \"320 ms\"",
    );
    rejects(
        ("\"20 segments\"", "\"20\""),
        "\"20\"",
        "`flows.0.tcp.receive_window = \"20\"`: `20` is no size: expected a number and B, kB, MB, \
         GB, KiB, MiB, GiB, packets or segments, such as \"64 KiB\"",
    );
}

#[test]
fn negative_quantities_are_said_to_be_negative() {
    rejects(
        ("\"100 ms\"", "\"-100 ms\""),
        "\"-100 ms\"",
        "`links.0.delay = \"-100 ms\"`: `-100 ms` is no duration: it is negative, expected a number \
         and ns, us, ms, s, min or h, such as \"320 ms\"",
    );
    // Where words are allowed besides.
    rejects(
        ("50 packets", "-5 packets"),
        "\"-5 packets\"",
        "`links.0.queue = \"-5 packets\"`: `-5 packets` is no size: it is negative, expected a \
         number and B, kB, MB, GB, KiB, MiB, GiB, packets or segments, such as \"64 KiB\"",
    );
}

#[test]
fn numbers_of_segments_may_have_their_unit() {
    for window in ["10", "\"10 segments\"", "\"1 segment\"", "\"1e6 segments\""] {
        let keys = format!("\"20 segments\", initial_window = {window}, byte_counting = {window}");
        scenario(&with(&[("\"20 segments\"", &keys)]));
    }
    rejects(
        ("\"20 segments\"", "\"20 segments\", initial_window = \"10 packets\""),
        "\"10 packets\"",
        "`flows.0.tcp.initial_window = \"10 packets\"`: expected \"rfc3390\", \"rfc6928\" or 1 to \
         1000000 segments",
    );
}

#[test]
fn quantities_of_the_wrong_kind_are_refused() {
    rejects(
        ("50 packets", "50 segments"),
        "\"50 segments\"",
        "`links.0.queue = \"50 segments\"`: a queue holds packets: expected a size such as \
         \"50 packets\" or \"64 KiB\"",
    );
    rejects(
        ("to      = \"b\"", "to = \"b\"\ntraffic = { size = \"5 packets\" }"),
        "\"5 packets\"",
        "`flows.0.traffic.size = \"5 packets\"`: a transfer is a number of bytes: expected a size \
         such as \"3 MB\"",
    );
}

#[test]
fn a_run_takes_some_time_but_not_for_ever() {
    for duration in ["0 s", "1000001 s"] {
        rejects(
            ("60 s", duration),
            &format!("\"{duration}\""),
            &format!("`duration = \"{duration}\"`: expected more than 0 s and at most 1000000 s"),
        );
    }
}

#[test]
fn flows_run_between_nodes_that_are_joined() {
    rejects(
        ("to      = \"b\"", "to      = \"c\""),
        "\"c\"",
        "`flows.0.to = \"c\"`: there is no such node",
    );
    rejects(
        ("to      = \"b\"", "to = \"a\""),
        "\"a\"\ntcp",
        "`flows.0.to = \"a\"`: expected a node other than the sender",
    );
    let island = with(&[("b = {}", "b = {}\nc = {}"), ("to      = \"b\"", "to      = \"c\"")]);
    assert_eq!(
        error(&island).to_string(),
        "`flows.0.to = \"c\"`: there is no path from `a` to this node"
    );
}

#[test]
fn packets_do_not_live_for_more_than_64_hops() {
    assert_eq!(scenario(&chain(64)).links.len(), 64);
    let message = error(&chain(65)).to_string();
    assert_eq!(
        message,
        "`flows.0.to = \"n65\"`: 65 links away from the sender: the hop limit is 64"
    );
}

#[test]
fn flows_have_names_of_their_own_and_start_in_time() {
    let named = |name: &str| format!("[[flows]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\n");
    rejects(
        ("[[flows]]", &format!("{}{}[[flows]]", named("x"), named("x"))),
        "\"x\"\nfrom = \"a\"\nto = \"b\"\n[[flows]]\nfrom ",
        "`flows.1.name = \"x\"`: another flow has the name `x`",
    );
    rejects(
        ("[[flows]]", "[[flows]]\nname = \" \""),
        "\" \"",
        "`flows.0.name = \" \"`: expected a name that is not empty",
    );
    rejects(
        ("[[flows]]", "[[flows]]\nstart = \"60 s\""),
        "\"60 s\"\nfrom",
        "`flows.0.start = \"60 s\"`: expected a start before the end of the run, 60 s",
    );
    let none = LONG_LINK.split("[[flows]]").next().unwrap();
    let none = none.replacen("[nodes]", "flows = []\n[nodes]", 1);
    assert_eq!(error(&none).to_string(), "`flows`: expected at least one entry");
}

#[test]
fn transfers_have_a_size() {
    for size in ["0 B", "2000000000 GB"] {
        rejects(
            ("to      = \"b\"", &format!("to = \"b\"\ntraffic = {{ size = \"{size}\" }}")),
            &format!("\"{size}\""),
            &format!(
                "`flows.0.traffic.size = \"{size}\"`: expected at least 1 byte and at most 1 EiB"
            ),
        );
    }
    rejects(
        ("to      = \"b\"", "to = \"b\"\ntraffic = \"ftp\""),
        "\"ftp\"",
        "`flows.0.traffic = \"ftp\"`: expected \"bulk\" or { size = \"3 MB\" }",
    );
}

#[test]
fn the_settings_of_tcp_have_ranges() {
    for mss in ["mss  = 0", "mss  = 65496", "mss  = -1", "mss  = \"2 segments\""] {
        let wrong = error(&with(&[("eten = \"none\"", mss)])).to_string();
        assert!(wrong.contains("bytes"), "{wrong}");
    }
    for (setting, expected) in [
        ("initial_window = 0", "1 to 1000000 segments"),
        ("initial_window = 1000001", "1 to 1000000 segments"),
        ("initial_window = \"rfc1\"", "\"rfc3390\", \"rfc6928\" or"),
        ("reduction = \"slow\"", "`immediate`, `prr`, `prr-ssrb`, `prr-crb`"),
        ("user_timeout = \"0 s\"", "\"off\" or more than 0 s"),
        ("window_validation = \"some\"", "`full` or `half`"),
        ("retries = -1", "a whole number, 0 or more"),
        ("challenges = 1.5", "a whole number, 0 or more"),
        ("keep_alive = \"on\"", "\"off\" or { idle = \"2 h\", ... }"),
        ("keep_alive = { idle = \"0 s\" }", "expected more than 0 s"),
        ("keep_alive = { interval = \"0 s\" }", "expected more than 0 s"),
        ("keep_alive = { probes = 0 }", "a whole number, at least 1"),
        ("keep_alive = { probes = 4294967296 }", "expected at most 4294967295"),
        ("time_wait = 60", "a duration in quotes"),
        ("timestamps = \"yes\"", "true or false"),
        ("initial_ssthresh = \"100 B\"", "at least one segment (536 bytes)"),
        ("initial_ssthresh = \"none\"", "\"infinite\", \"receive-window\" or a size"),
        ("delayed_ack = \"0 s\"", "\"off\" or more than 0 s"),
        ("delayed_ack = \"on\"", "\"off\" or a duration"),
        ("rto = { initial = \"0 s\" }", "more than 0 s"),
        ("rto = { granularity = \"0 s\" }", "more than 0 s"),
        ("rto = { minimum_variance = \"1 ms\" }", "with `estimator = \"exact\"` only"),
        ("rto = { maximum = \"5 s\" }", "no less than `minimum` (0.2 s) and `initial` (6 s)"),
        ("eten = { report = \"backward\", notice_size = 20 }", "48 to 65535 bytes"),
        ("limited_transmit = \"yes\"", "expected true or false"),
        ("ssthresh_on_backoff = \"double\"", "`hold` or `halve`"),
    ] {
        let wrong = error(&with(&[("eten = \"none\"", setting)])).to_string();
        let key = setting.split(" = ").next().unwrap();
        assert!(wrong.starts_with(&format!("`flows.0.tcp.{key}")), "{wrong}");
        assert!(wrong.contains(expected), "{wrong}");
    }
    rejects(
        ("eten = \"none\"", "mss = 70000"),
        "70000",
        "`flows.0.tcp.mss = 70000`: expected 1 to 65495 bytes",
    );
}

#[test]
fn a_receive_window_holds_a_segment() {
    for window in ["\"535 B\"", "535", "\"0 segments\"", "\"2 GB\"", "\"5 packets\""] {
        rejects(
            ("\"20 segments\"", window),
            &format!("{window}, eten"),
            &format!(
                "`flows.0.tcp.receive_window = {window}`: expected at least one segment (536 \
                 bytes) and at most 1073725440 bytes, such as \"20 segments\" or \"64 KiB\""
            ),
        );
    }
}

#[test]
fn only_an_oracle_errs_and_only_with_a_probability() {
    rejects(
        ("eten = \"none\"", "eten = { report = \"backward\", mistakes = 0.1 }"),
        "0.1",
        "`flows.0.tcp.eten.mistakes = 0.1`: `mistakes` needs `report = \"oracle\"`: only the oracle makes them",
    );
    let wrong = ("eten = \"none\"", "eten = { report = \"oracle\", mistakes = 1.5 }");
    let message = error(&with(&[wrong])).to_string();
    assert!(message.starts_with("`flows.0.tcp.eten.mistakes = 1.5`: expected"), "{message}");
    // None is said of those who cannot make any.
    scenario(&with(&[("eten = \"none\"", "eten = { report = \"none\", mistakes = 0 }")]));
}

#[test]
fn eten_is_named_in_one_place() {
    rejects(
        ("eten = \"none\"", "eten = \"oracle\", mechanisms = [{ mechanism = \"eten\" }]"),
        "\"oracle\"",
        "`flows.0.tcp.eten = \"oracle\"`: `mechanisms` lists an ETEN mechanism already",
    );
}

/// Checks the error of a `[sweep]` with these lines.
fn rejects_sweep(lines: &str, message: &str) {
    let error = error(&format!("{LONG_LINK}[sweep]\n{lines}\n"));
    assert_eq!(error.to_string(), message, "\n{}", error.render(Style::Plain));
}

#[test]
fn a_sweep_goes_where_there_is_something() {
    rejects_sweep(
        "\"links.3.rate\" = [\"1 Mbit/s\"]",
        "`links.3.rate`: `links` has 1 entry, counted from 0: there is no `3`",
    );
    rejects_sweep(
        "\"links.first.rate\" = [\"1 Mbit/s\"]",
        "`links.first.rate`: `links` has 1 entry, counted from 0: there is no `first`",
    );
    rejects_sweep(
        "\"title.x\" = [1]",
        "`title.x`: `title` is of type string here: expected a table or an array",
    );
    rejects_sweep("\"boxes.0.x\" = [1]", "`boxes.0.x`: there is no `boxes`");
    rejects_sweep(
        "\"flows.0.tcp.rt0.minimum\" = [\"1 s\"]",
        "`flows.0.tcp.rt0.minimum`: unknown key `rt0`, expected one of `mss`, \
         `minimum_mss`, `receive_window`, `recovery`, `pipe`, `congestion`, `increase`, `loss_threshold`, `renew_min_rtt`, `tolerate_random_loss`, `byte_counting`, \
         `initial_window`, `initial_ssthresh`, `hystart`, `hystart_round_end`, `window_validation`, `restart_after_idle`, \
         `limited_transmit`, `delayed_ack`, `rto`, `retries`, \
         `syn_retries`, `syn_ack_retries`, `ssthresh_on_backoff`, `reduction`, \
         `undo`, `frto`, `dsack`, `timestamps`, `require_timestamps`, `ecn`, `fast_open`, `nagle`, `pacing`, `prompt_start`, `mtu_probing`, `keep_alive`, `user_timeout`, \
         `challenges`, `out_of_window_acks`, `time_wait`, `eten`, `mechanisms`",
    );
}

#[test]
fn a_sweep_that_makes_no_sense_is_refused() {
    rejects_sweep(
        "seeds = 0",
        "`sweep.seeds = 0`: expected the number of seeds per point, at least 1",
    );
    rejects_sweep("\"duration\" = []", "`sweep.duration`: expected at least one value");
    rejects_sweep(
        "\"duration\" = \"1 s\"",
        "`sweep.duration = \"1 s\"`: expected a list of values",
    );
    rejects_sweep(
        "\"links..rate\" = [1]",
        "`sweep.\"links..rate\"`: not a path: expected keys and indexes (from 0, or *) with dots between them, such as links.0.errors.bit",
    );
    rejects_sweep("\"sweep.seeds\" = [1]", "`sweep.\"sweep.seeds\"`: a sweep cannot sweep itself");
    rejects_sweep(
        "duration = [\"1 s\"]\nzip = [{ duration = [\"2 s\"] }]",
        "`sweep.zip.0.duration`: expected each key once: it is swept already",
    );
    rejects_sweep(
        "zip = [{ duration = [\"1 s\"], title = [\"x\", \"y\"] }]",
        "`sweep.zip.0.title`: 2 values here, 1 of `duration`: expected the same number",
    );
    rejects_sweep("zip = [{}]", "`sweep.zip.0`: expected at least one key");
    rejects_sweep("zip = 1", "`sweep.zip = 1`: expected tables, such as [{ \"a.b\" = [1, 2] }]");
}

#[test]
fn more_than_ten_million_runs_are_refused() {
    rejects_sweep(
        "seeds = 5_000_001\nduration = [\"1 s\", \"2 s\"]",
        "`sweep`: 2 points with 5000001 seeds each: expected at most 10000000 runs",
    );
}

#[test]
fn a_value_of_a_sweep_is_pointed_at_where_it_is_written() {
    let text = format!(
        "{LONG_LINK}[sweep]\n\"links.0.errors.bit\" = [0, 1e-6]\n\
         \"flows.0.tcp.receive_window\" = [\"4 segments\", \"100 B\"]\n"
    );
    let report = error(&text).render(Style::Plain);
    for part in [
        "`flows.0.tcp.receive_window = \"100 B\"`: expected at least one segment",
        "case.toml:19:47",
        "at the point of the sweep where links.0.errors.bit = 0, flows.0.tcp.receive_window = 100 B",
    ] {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
}

#[test]
fn what_is_wrong_without_the_sweep_does_not_blame_it() {
    let text = with(&[("60 s", "0 s")]) + "[sweep]\n\"links.0.errors.bit\" = [0, 1e-6]\n";
    let source = Source::new(text, "case.toml");
    let error = Experiment::read(&source).unwrap().scenario_at(0).unwrap_err();
    let report = error.render(Style::Plain);
    assert!(report.contains("expected more than 0 s") && !report.contains("sweep"), "{report}");
}

#[test]
fn what_was_put_in_from_outside_is_pointed_at_there() {
    let mut source = Source::new(LONG_LINK, "case.toml");
    source.put("links.0.delay", &Value::String("1 s".to_owned())).unwrap();
    source.put("flows.0.tcp.mss", &Value::Integer(0)).unwrap();
    let error = Experiment::read(&source).unwrap().scenario().unwrap_err();
    assert_eq!(error.to_string(), "`flows.0.tcp.mss = 0`: expected 1 to 65495 bytes");
    let report = error.render(Style::Plain);
    assert!(report.contains("settings:2:19"), "{report}");

    let error = source.put("links..delay", &Value::Boolean(true)).unwrap_err();
    assert!(error.render(Style::Plain).contains("settings:3:1"));
}

/// Pieces of scenarios, and some that are not.
const PIECES: &[&str] = &[
    "",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\n",
    "0",
    "-1",
    "1e99",
    "nan",
    "true",
    "é",
    "\u{1f6f0}",
    "\u{0}",
    "a",
    "rate",
    "links",
    "[sweep]\n",
    "\"links.0.errors.bit\" = [0, 1]\n",
    "zip",
    "*",
    "99999999999999999999 s",
    "\"5 s\"",
    "[[links]]",
    "errors",
    "{ bit = 1 }",
    "# ",
];

proptest! {
    /// Whatever is written: it can be run, or a report says why not.
    #[test]
    fn no_text_is_too_strange(
        edits in prop::collection::vec((0..700usize, 0..12usize, prop::sample::select(PIECES)), 1..5),
        key in "[a-z0-9.*\"]{0,20}",
        value in prop::sample::select(PIECES),
    ) {
        let mut text = format!("{LONG_LINK}[sweep]\n\"flows.0.tcp.mss\" = [500, 600]\n");
        for (at, len, piece) in edits {
            let boundary = |at: usize| (at.min(text.len())..).find(|&at| text.is_char_boundary(at));
            let (start, end) = (boundary(at).unwrap(), boundary(at + len).unwrap());
            text.replace_range(start..end, piece);
        }
        let plain = Source::new(text.clone(), "case.toml");
        let mut changed = plain.clone();
        let put = changed.put(&key, &Value::String(value.to_owned()));
        for source in [plain, changed] {
            let checked = Experiment::read(&source).and_then(|experiment| {
                (0..experiment.points().min(9)).try_for_each(|p| experiment.scenario_at(p).map(drop))
            });
            for result in [&put, &checked] {
                if let Err(error) = result {
                    let report = error.render(Style::Plain);
                    prop_assert!(!error.findings().is_empty());
                    for finding in error.findings() {
                        prop_assert!(report.contains(&finding.to_string()), "{report}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_spoofer_has_room_for_at_least_one_connection_and_one_byte() {
    let bytes = "expected at least 1 byte and at most 1 EiB, such as 1500 or \"64 KiB\"";
    let whole = "expected a whole number, 1 or more";
    let cases = [
        ("cache", "0", bytes),
        ("cache", "-1", bytes),
        ("cache", "\"0 kB\"", bytes),
        ("cache", "\"9 packets\"", bytes),
        ("cache", "\"large\"", bytes),
        ("connections", "0", whole),
        ("connections", "-1", whole),
        ("connections", "1.5", "found floating point `1.5`, expected a whole number, 0 or more"),
        ("teardown", "\"never\"", "unknown name `never`, expected `spoofed` or `end-to-end`"),
        (
            "conections",
            "7",
            "unknown key `conections`, expected one of `box`, `connect`, `cache`, `teardown`, `hop`, \
             `rate`, `connections`, `connections_per_user`, `memory`, `profile`, `tcp`",
        ),
    ];
    for (key, value, message) in cases {
        let node = format!("b = {{ boxes = [{{ box = \"spoofer\", {key} = {value} }}] }}");
        let (marked, written) = match key {
            "conections" => ("conections = 7", String::new()),
            _ => (value, format!(" = {value}")),
        };
        let message = format!("`nodes.b.boxes.0.{key}{written}`: {message}");
        rejects(("b = {}", &node), &format!("{marked} }}] }}"), &message);
    }
}
