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
        for (delayed_ack, prompt, least) in
            [("40 ms", false, 0.9), ("40 ms", true, 0.9), ("off", true, 0.9)]
        {
            for starts in [&[0][..], &[0, 7, 7, 1500]] {
                let tcp = format!(
                    "congestion = \"{congestion}\", pacing = true, prompt_start = {prompt}, delayed_ack = \"{delayed_ack}\""
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

/// The time that the last of some flows takes from a server 5 ms before a gateway and a hop of 10 Mb/s and 600 ms. The
/// server has CUBIC without pacing, and the gateway, if there is a `spoofer`, BBR.
fn over_a_satellite(spoofer: Option<&str>, queue: u32, flows: &str) -> f64 {
    let spoofer = spoofer.map_or(String::new(), |tcp| {
        format!("boxes = [{{ box = \"spoofer\", hop = \"user\", tcp = {{ congestion = \"bbr\"{tcp} }} }}]")
    });
    let outcome = run(&format!(
        "title = \"short transfers\"\nduration = \"60 s\"\n[nodes]\nserver = {{}}\ngateway = {{ {spoofer} }}\n\
         user = {{}}\n[[links]]\nbetween = [\"server\", \"gateway\"]\nrate = \"200 Mbit/s\"\ndelay = \"5 ms\"\n\
         queue = \"1000 packets\"\n[[links]]\nbetween = [\"gateway\", \"user\"]\nrate = \"10 Mbit/s\"\n\
         delay = \"300 ms\"\nqueue = \"{queue} packets\"\n{flows}"
    ));
    outcome.rows.iter().map(|row| row.completed_s.unwrap()).fold(0.0, f64::max)
}

#[test]
fn behind_a_gateway_that_starts_promptly_nothing_short_takes_longer_than_without_one() {
    let flow = |traffic: &str| {
        format!(
            "[[flows]]\nfrom = \"server\"\nto = \"user\"\ntcp = {{ nagle = false }}\ntraffic = {traffic}\n"
        )
    };
    let size = |size: &str| flow(&format!("{{ size = \"{size}\" }}"));
    let page =
        flow("{ requests = { request = \"200 B\", response = \"10 kB\", count = 5 } }").repeat(6);
    for (flows, slower_by) in [
        (page, 0.4), // Pauses between responses.
        (size("1 kB"), 0.0),
        (size("20 kB"), 0.03),
        (size("100 kB"), 0.5),
        (size("1 MB"), 0.1),
    ] {
        // The second queue is a tenth of what the hop holds: the first losses of slow start cost CUBIC more.
        for queue in [500, 50] {
            let direct = over_a_satellite(None, queue, &flows);
            let prompt = over_a_satellite(Some(", prompt_start = true"), queue, &flows);
            assert!(prompt < direct + 0.005, "{prompt} and {direct} s, {queue} packets: {flows}");
            if queue == 500 {
                let paced = over_a_satellite(Some(""), queue, &flows);
                assert!(paced >= direct + slower_by, "{paced} and {direct} s: {flows}");
            }
        }
    }
}
