//! Pacing, as a path sees it.

use crate::common::{fast_share, run, run_with};
use lab::{Outcome, Watch};

/// 10 Mb/s and a round trip of 100 ms, 125 kB, behind a queue of a quarter of that.
fn path(tcp: &str) -> String {
    format!(
        "title = \"a short queue\"\nduration = \"20 s\"\n[nodes]\na = {{}}\nb = {{}}\n\
         [[links]]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n\
         queue = \"20 packets\"\n\
         [[flows]]\nfrom = \"a\"\nto = \"b\"\ntcp = {{ receive_window = \"1 MB\", {tcp} }}\n"
    )
}

fn goodput(outcome: &Outcome) -> f64 {
    outcome.rows[0].payload_bps
}

#[test]
fn a_paced_slow_start_fills_the_path_behind_a_short_queue() {
    // Without pacing, each acknowledgment of two segments lets out four at once: the queue is full
    // long before the path is.
    let slow_start = |tcp: &str| run(&path(tcp).replace("20 s", "460 ms"));
    let [burst, paced] = ["", "pacing = true"].map(slow_start);
    assert!(burst.totals.dropped > 0, "{:?}", burst.totals);
    assert_eq!(paced.totals.dropped, 0);
}

#[test]
fn pacing_holds_back_nothing_that_acknowledgments_pace() {
    // With a window of the path, segments leave as acknowledgments arrive.
    let tcp = |pacing| format!("receive_window = \"125 kB\", pacing = {pacing}");
    let text = |pacing| path("").replace("receive_window = \"1 MB\", ", &tcp(pacing));
    let [burst, paced] = [false, true].map(|pacing| goodput(&run(&text(pacing))));
    assert!(paced > 0.999 * burst, "{paced} b/s paced, {burst} b/s not");
}

/// The same with as many flows as there are starts, in milliseconds.
fn flows(starts: &[u32], tcp: &str) -> String {
    let path = path(tcp);
    let (head, flow) = path.split_once("[[flows]]").unwrap();
    let flow = |start: &u32| format!("[[flows]]\nstart = \"{start} ms\"{flow}");
    head.to_owned() + &starts.iter().map(flow).collect::<String>()
}

#[test]
fn the_fast_path_paces_as_the_general_path_does() {
    for congestion in ["aimd", "cubic", "bbr"] {
        for (delayed_ack, least) in [("40 ms", 0.9), ("off", 0.9)] {
            for starts in [&[0][..], &[0, 7, 7, 1500]] {
                let tcp = format!(
                    "congestion = \"{congestion}\", pacing = true, delayed_ack = \"{delayed_ack}\""
                );
                let text = flows(starts, &tcp);
                let fast = run(&text);
                let watch = Watch { digest: true, general_path: true, ..Watch::default() };
                let general = run_with(&text, 1, &watch);
                assert_eq!((general.digest, general.events), (fast.digest, fast.events), "{text}");
                // What is watched, is processed one by one.
                let watch = Watch { digest: true, series: true, ..Watch::default() };
                let watched = run_with(&text, 1, &watch);
                assert_eq!((watched.digest, watched.events), (fast.digest, fast.events), "{text}");
                let share = fast_share(&text, &Watch::default());
                assert!(share > least, "{share} of the segments: {text}");
            }
        }
    }
}
