//! Nodes that move, and the hosts that are notified.

use crate::common::{error, integers, run, run_with, scenario, sweep};
use lab::{Outcome, Watch};

/// The mobile host of `koutsianas2007` figure 4.2 sends 3 MB and is away for 8 s.
fn mobile(keys: &str, tcp: &str) -> String {
    format!(
        r#"title    = "A mobile host loses its access for 8 s"
profile  = "ns2-2007"
duration = "40 s"
[nodes]
router = {{}}
server = {{}}
[nodes.mobile]
attached = {{ at = [
    {{ start = "0 s", end = "2 s", to = "router" }},
    {{ start = "10 s", to = "router" }},
] }}
{keys}
[[links]]
between = ["mobile", "router"]
rate    = "6 Mbit/s"
delay   = "1 ms"
queue   = "75 kB"
[[links]]
between = ["router", "server"]
rate    = "1 Gbit/s"
delay   = "40 ms"
queue   = "12.5 MB"
[[flows]]
from    = "mobile"
to      = "server"
traffic = {{ size = "3 MB" }}
tcp     = {{ mss = 1500, receive_window = "50 segments", timestamps = true, {tcp} }}
"#
    )
}

const RLCI: &str = r#"mechanisms = [{ mechanism = "rlci" }]"#;

/// When the flow was over, seconds.
fn ended(outcome: &Outcome) -> f64 {
    outcome.rows[0].completed_s.expect("it ends")
}

fn reprobes(outcome: &Outcome) -> u64 {
    outcome.rows[0].sender.reprobes.expect("it is ours")
}

#[test]
fn standard_tcp_sleeps_on_after_its_mobile_is_back() {
    let outcome = run(&mobile("", ""));
    // koutsianas2007 figure 4.2: resumes at 14.6 s, ends at 19.1 s.
    assert!((18.6..19.6).contains(&ended(&outcome)), "{}", ended(&outcome));
    assert_eq!(reprobes(&outcome), 0);
}

#[test]
fn tcp_that_is_notified_resumes_at_once() {
    let text = mobile("", RLCI);
    let outcome = run(&text);
    // koutsianas2007 figure 4.3: ends at 13.0 s.
    assert!((12.5..13.5).contains(&ended(&outcome)), "{}", ended(&outcome));
    assert_eq!(reprobes(&outcome), 1);
    assert_eq!(run(&text), outcome, "every time");
    let bytes = run_with(&text, 1, &Watch { digest: true, bytes: true, ..Watch::default() });
    assert_eq!(bytes, outcome, "as bytes, too");
}

#[test]
fn either_end_may_be_notified_or_both_or_none() {
    let text = mobile("", RLCI)
        + "[sweep]\n\"nodes.mobile.notifies\" = \
           [[], [\"mobile\"], [\"server\"], [\"mobile\", \"server\"]]\n";
    for text in [text.clone(), text.replace("[[flows]]\n", "[[flows]]\nip = 6\n")] {
        assert_eq!(integers(&sweep(&text, 1), "reprobes"), [0, 1, 1, 1]);
    }
}

#[test]
fn routes_have_changed_when_a_host_is_notified_of_its_attachment() {
    let text = mobile("", RLCI)
        .replace("server = {}", "server = {}\nother = {}")
        .replace("start = \"10 s\", to = \"router\"", "start = \"10 s\", to = \"other\"");
    let links = ["mobile", "server"].map(|end| {
        format!(
            "[[links]]\nbetween = [\"other\", \"{end}\"]\nrate = \"6 Mbit/s\"\ndelay = \"9 ms\"\n"
        )
    });
    let outcome = run(&(text + &links.concat()));
    assert!(ended(&outcome) < 13.5, "{}", ended(&outcome));
    assert_eq!(outcome.totals.dropped, run(&mobile("", RLCI)).totals.dropped);
}

/// The same with data for the mobile host, which closes its window while it is away.
fn frozen(warning: &str) -> Outcome {
    let text = mobile(warning, r#"mechanisms = [{ mechanism = "freeze" }]"#);
    run(&text.replace(
        "from    = \"mobile\"\nto      = \"server\"",
        "from    = \"server\"\nto      = \"mobile\"",
    ))
}

#[test]
fn a_receiver_that_is_warned_lets_its_sender_wait_and_lose_nothing() {
    let (warned, surprised) = (frozen("warning = \"200 ms\""), frozen(""));
    let timeouts = |outcome: &Outcome| outcome.rows[0].sender.timeouts.unwrap_or_default();
    assert_eq!((timeouts(&warned), timeouts(&surprised) >= 6), (0, true));
    assert_eq!(warned.totals.dropped, 6, "probes of the closed window, and no data");
    assert!(
        ended(&warned) < 13.5 && ended(&surprised) > 18.0,
        "{} {}",
        ended(&warned),
        ended(&surprised)
    );
}

#[test]
fn by_default_a_node_that_moves_is_notified_itself_without_a_warning() {
    let attached = |keys| scenario(&mobile(keys, "")).attachments.remove(0);
    assert_eq!((attached("").notifies, attached("").warning), (vec![2], None));
    let named = attached("notifies = [\"server\", \"router\"]\nwarning = \"1 s\"");
    assert_eq!(named.notifies, [1, 0]);
    assert_eq!(named.warning, Some(base::Duration::from_secs(1)));
    assert!(attached("notifies = []\nwarning = \"off\"").notifies.is_empty());
}

#[test]
fn notified_nodes_must_exist_and_the_node_must_move() {
    for (keys, message) in [
        ("notifies = [\"sever\"]", "`nodes.mobile.notifies.0 = \"sever\"`: there is no such node"),
        (
            "notifies = [\"server\", \"server\"]",
            "`nodes.mobile.notifies.1 = \"server\"`: expected each node once",
        ),
        ("notifies = 1", "`nodes.mobile.notifies = 1`: found integer `1`, expected a list"),
        (
            "warning = \"0 s\"",
            "`nodes.mobile.warning = \"0 s\"`: expected more than 0 s, or \"off\"",
        ),
        (
            "warning = \"soon\"",
            "`nodes.mobile.warning = \"soon\"`: expected \"off\" or a duration, such as \"1 s\"",
        ),
    ] {
        assert_eq!(error(&mobile(keys, "")).to_string(), message);
    }
    let still =
        mobile("", "").replace("server = {}", "server = { notifies = [], warning = \"1 s\" }");
    assert_eq!(
        error(&still).to_string(),
        "`nodes.server.notifies`: `notifies` has no effect: the node does not move\n\
         `nodes.server.warning = \"1 s\"`: `warning` has no effect: the node does not move"
    );
}

/// A mobile host with ten connections moves to an access of another rate; they differ in their round
/// trips (`koutsianas2007` §4.3).
fn crowd(rate: &str, delay: &str, queue: &str, shared: bool, tcp: &str) -> Outcome {
    let mut text = format!(
        r#"title    = "Ten connections change their access"
profile  = "ns2-2007"
duration = "200 s"
[nodes]
old = {{}}
new = {{}}
router = {{}}
[nodes.mobile]
attached = {{ at = [
    {{ start = "0 s", end = "5 s", to = "old" }},
    {{ start = "15 s", to = "new" }},
] }}
shared_probe = {shared}
[[links]]
between = ["mobile", "old"]
rate    = "6 Mbit/s"
delay   = "1 ms"
queue   = "75 kB"
[[links]]
between = ["mobile", "new"]
rate    = "{rate}"
delay   = "{delay}"
queue   = "{queue}"
[[links]]
between = ["old", "router"]
rate    = "1 Gbit/s"
delay   = "20 ms"
[[links]]
between = ["new", "router"]
rate    = "1 Gbit/s"
delay   = "20 ms"
"#
    );
    for peer in 0..10 {
        text += &format!(
            r#"[[links]]
between = ["router", "c{peer}"]
rate    = "1 Gbit/s"
delay   = "{} ms"
[[flows]]
from    = "mobile"
to      = "c{peer}"
start   = "{} ms"
traffic = {{ size = "700 kB" }}
tcp     = {{ mss = 1500, receive_window = "500 segments", timestamps = true, {tcp} }}
"#,
            5 * peer,
            100 * (peer * 7 % 10)
        );
    }
    let nodes: String = (0..10).map(|peer| format!("c{peer} = {{}}\n")).collect();
    let text = text.replacen("[nodes]\n", &format!("[nodes]\n{nodes}"), 1);
    run(&text)
}

/// Packets that were dropped, and how long flows took on average.
fn toll(outcome: &Outcome) -> (u64, f64) {
    let times: Vec<f64> = outcome.rows.iter().filter_map(|row| row.completed_s).collect();
    assert_eq!(times.len(), 10, "all end");
    (outcome.totals.dropped, times.iter().sum::<f64>() / 10.0)
}

#[test]
fn connections_that_share_a_probe_lose_less_than_those_that_resume_all_at_once() {
    for (rate, delay, queue) in [
        ("1 Mbit/s", "100 ms", "25 kB"),
        ("6 Mbit/s", "1 ms", "75 kB"),
        ("20 Mbit/s", "1 ms", "250 kB"),
    ] {
        let (standard, _) = toll(&crowd(rate, delay, queue, false, ""));
        let (dropped, time) = toll(&crowd(rate, delay, queue, false, RLCI));
        let (shared, shared_time) = toll(&crowd(rate, delay, queue, true, RLCI));
        let case =
            format!("{rate}: {standard}, {dropped} in {time} s, {shared} in {shared_time} s");
        assert!(shared < dropped, "{case}");
        assert!(shared_time < 1.1 * time, "{case}");
    }
}

#[test]
fn a_shared_probe_of_one_connection_equals_its_own_probe() {
    assert_eq!(run(&mobile("shared_probe = true", RLCI)), run(&mobile("", RLCI)));
}

#[test]
fn a_shared_probe_changes_nothing_for_connections_that_begin_nothing_anew() {
    let alone = |shared| crowd("6 Mbit/s", "1 ms", "75 kB", shared, "");
    assert_eq!(alone(false), alone(true));
}
