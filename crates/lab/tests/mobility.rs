//! Nodes that move, and who hears of it.

mod common;

use common::{error, run, run_with, scenario};
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
const FREEZE: &str = r#"mechanisms = [{ mechanism = "freeze" }]"#;

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
    assert!((18.6..19.6).contains(&ended(&outcome)), "{}", ended(&outcome));
    assert_eq!(reprobes(&outcome), 0);
}

#[test]
fn tcp_that_hears_of_it_resumes_at_once() {
    let outcome = run(&mobile("", RLCI));
    assert!((12.5..13.5).contains(&ended(&outcome)), "{}", ended(&outcome));
    assert_eq!(reprobes(&outcome), 1);
}

#[test]
fn who_is_not_told_sleeps_on() {
    let (deaf, standard) = (run(&mobile("tells = []", RLCI)), run(&mobile("", "")));
    assert_eq!(reprobes(&deaf), 0);
    assert!(ended(&deaf) > 18.0 && ended(&standard) > 18.0);
}
