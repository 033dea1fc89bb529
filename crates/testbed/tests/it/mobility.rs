//! Nodes that move on real packets: as the lab's, they switch links and routes at their times, and
//! their hosts are notified.

use crate::common::{at_once, complete, run, scenario};
use lab::Row;
use std::sync::atomic::AtomicBool;

/// A phone that is at `a` for a second, nowhere for half a second, and then at `b`; a test adds flows.
const PHONE: &str = r#"
title    = "a phone changes its station"
duration = "4 s"
[nodes]
server = {}
a = {}
b = {}
[nodes.phone]
attached = { at = [{ start = "0 s", end = "1 s", to = "a" }, { start = "1.5 s", to = "b" }] }
[[links]]
between = ["server", "a"]
rate = "100 Mbit/s"
delay = "5 ms"
[[links]]
between = ["server", "b"]
rate = "100 Mbit/s"
delay = "10 ms"
[[links]]
between = ["a", "phone"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[links]]
between = ["b", "phone"]
rate = "8 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[testbed]
late = "10 ms"
"#;

const DOWNLOAD: &str = "from = \"server\"\nto = \"phone\"\n";
const UPLOAD: &str = "from = \"phone\"\nto = \"server\"\n";
const RLCI: &str = "timestamps = true, mechanisms = [{ mechanism = \"rlci\" }]";

/// The scenario with a transfer of 2 MB. No queue overflows by its window.
fn transfer(flow: &str, tcp: &str) -> String {
    format!(
        "{PHONE}[[flows]]\n{flow}traffic = {{ size = \"2 MB\" }}\n\
         tcp = {{ recovery = \"sack\", receive_window = \"60 kB\", {tcp} }}\n"
    )
}

/// The scenario with this beside `attached`.
fn with(text: &str, keys: &str) -> String {
    text.replace("[nodes.phone]\n", &format!("[nodes.phone]\n{keys}\n"))
}

/// The same in the lab.
fn lab(text: &str) -> lab::Outcome {
    let (watch, cancelled) = (lab::Watch::default(), AtomicBool::new(false));
    lab::run(&scenario(text), 1, &watch, &cancelled).unwrap()
}

/// What a direction did.
fn direction(outcome: &lab::Outcome, name: &str) -> link::Statistics {
    outcome.links.iter().find(|(of, _)| of == name).unwrap().1
}

fn ended(row: &Row) -> f64 {
    row.completed_s.unwrap()
}

fn reprobes(outcome: &lab::Outcome) -> u64 {
    outcome.rows[0].sender.reprobes.unwrap()
}

#[test]
fn a_transfer_goes_on_by_the_next_link_as_in_the_lab() {
    let ways = [(DOWNLOAD, ["a->phone", "b->phone"]), (UPLOAD, ["phone->a", "phone->b"])];
    at_once(ways, |(flow, [first, then])| {
        let text = transfer(flow, RLCI);
        let Some(outcome) = run(&text) else { return };
        let (there, here) = (lab(&text), outcome.run);
        for outcome in [&there, &here] {
            let links = [first, then].map(|name| direction(outcome, name));
            let counts = links.map(|of| (of.packets, of.dropped, of.discarded));
            eprintln!("{counts:?} {:?} {:?}", outcome.rows[0].completed_s, outcome.rows[0].sender);
        }
        complete(&here.rows[0], 2_000_000);
        // What was on its way when the phone left is lost.
        assert!(direction(&here, first).discarded > 0);
        // The host of the phone was notified of its new link, and the sender restarted at once.
        assert_eq!([reprobes(&there), reprobes(&here)], [1, 1]);
        // A slow machine sends less until the phone leaves, and more by the next link.
        let packets = |of, name| direction(of, name).packets as f64;
        for name in [first, then] {
            let [there, here] = [&there, &here].map(|of| packets(of, name));
            assert!((0.6..1.4).contains(&(here / there)), "{name}: {here}, in the lab {there}");
        }
        let [all_there, all_here] =
            [&there, &here].map(|of| packets(of, first) + packets(of, then));
        let ratio = all_here / all_there;
        assert!((0.85..1.15).contains(&ratio), "{all_here}, in the lab {all_there}");
        // Not earlier than in the lab, and sooner than without the mechanism.
        let without = lab(&transfer(flow, "timestamps = true"));
        let [there, here, without] = [&there, &here, &without].map(|of| ended(&of.rows[0]));
        eprintln!("{here} s, in the lab {there} s, and {without} s without the mechanism");
        assert!(
            there - 0.2 < here && here < without,
            "{here} s, in the lab {there} s, and {without} s without the mechanism"
        );
    });
}

#[test]
fn an_end_of_the_kernel_moves_too() {
    let ends = [("\"linux\"", 4), ("{ to = \"linux\" }", 6), ("{ from = \"linux\" }", 4)];
    at_once(ends, |(stack, ip)| {
        // Without a gap, that it need not wait for a timer that has backed off.
        let text = transfer(&format!("{DOWNLOAD}stack = {stack}\nip = {ip}\n"), "")
            .replace("start = \"1.5 s\"", "start = \"1 s\"");
        let Some(outcome) = run(&text) else { return };
        let row = &outcome.run.rows[0];
        eprintln!("{stack} IPv{ip}: {:?} {:?}", row.completed_s, outcome.run.totals);
        complete(row, 2_000_000);
        for name in ["b->phone", "phone->b"] {
            assert!(direction(&outcome.run, name).packets > 100, "{:?}", outcome.run.links);
        }
        assert_eq!(outcome.health.lost, 0, "{:?}", outcome.health);
    });
}

#[test]
fn hosts_are_notified_of_a_move_as_the_file_says() {
    // The node that is notified is not the one that moves, and is at neither of its places.
    at_once([("[\"server\"]", 1), ("[]", 0)], |(notifies, expected)| {
        let text = with(&transfer(DOWNLOAD, RLCI), &format!("notifies = {notifies}"));
        let Some(outcome) = run(&text) else { return };
        assert_eq!([reprobes(&lab(&text)), reprobes(&outcome.run)], [expected; 2], "{notifies}");
    });
}

#[test]
fn a_receiver_that_is_warned_lets_its_sender_wait() {
    let freeze = "mechanisms = [{ mechanism = \"freeze\" }]";
    let timeouts = |keys: &str| {
        let outcome = run(&with(&transfer(DOWNLOAD, freeze), keys))?;
        let row = &outcome.run.rows[0];
        eprintln!("{keys}: {:?} {:?} {:?}", row.completed_s, row.sender, outcome.run.totals);
        row.sender.timeouts
    };
    let both = at_once(["warning = \"200 ms\"", ""], timeouts);
    let [Some(warned), Some(surprised)] = both else { return };
    assert!(warned == 0 && surprised > 0, "{warned} timeouts if warned, {surprised} if not");
}

#[test]
fn of_connections_that_share_a_probe_one_alone_resumes_at_once() {
    let flow = format!("[[flows]]\n{UPLOAD}tcp = {{ mss = 1000, {RLCI} }}\n");
    // The run ends before a round trip of the new path has been measured.
    let text = format!("{PHONE}{}", flow.repeat(10))
        .replace("8 Mbit/s\"\ndelay = \"10 ms\"", "8 Mbit/s\"\ndelay = \"300 ms\"")
        .replace("duration = \"4 s\"", "duration = \"1.8 s\"");
    at_once([(false, 10), (true, 1)], |(shared, expected)| {
        let text = with(&text, &format!("shared_probe = {shared}"));
        let Some(outcome) = run(&text) else { return };
        for outcome in [&lab(&text), &outcome.run] {
            let then = direction(outcome, "phone->b");
            let packets = then.packets + then.dropped;
            let reprobes: u64 = outcome.rows.iter().flat_map(|row| row.sender.reprobes).sum();
            eprintln!("{shared}: {reprobes} connections resume, with {packets} packets");
            assert_eq!(reprobes, expected);
            // An initial window of ten segments each, timers that expire, and resets at the end.
            assert!((10 * expected..10 * expected + 25).contains(&packets), "{packets}");
        }
    });
}
