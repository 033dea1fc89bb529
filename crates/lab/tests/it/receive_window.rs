//! The receive buffer, as a path sees it.

use crate::common::{fast_share, run, run_with, scenario};
use lab::{Outcome, Watch};

/// 50 Mb/s and a round trip of 600 ms, 3.75 MB.
fn path(duration: &str, tcp: &str) -> String {
    format!(
        "title = \"auto\"\nduration = \"{duration}\"\n[nodes]\na = {{}}\nb = {{}}\n\
         [[links]]\nbetween = [\"a\", \"b\"]\nrate = \"50 Mbit/s\"\ndelay = \"300 ms\"\n\
         queue = \"2500 packets\"\n\
         [[flows]]\nfrom = \"a\"\nto = \"b\"\ntcp = {{ {tcp} }}\n"
    )
}

/// Mb/s of payload between 20 s and 40 s.
fn steady(tcp: &str) -> f64 {
    let bytes = |outcome: Outcome| outcome.rows[0].payload_bytes as f64;
    let [early, late] = ["20 s", "40 s"].map(|duration| bytes(run(&path(duration, tcp))));
    (late - early) * 8.0 / 20e6
}

#[test]
fn a_tuned_buffer_fills_a_long_path_where_one_of_64_kb_does_not() {
    // 1448 of the 1500 bytes of a packet are payload.
    let (most, tuned, fixed) = (
        50.0 * 1448.0 / 1500.0,
        steady("receive_window = \"auto\""),
        steady("receive_window = \"64 kB\""),
    );
    assert!(tuned > 0.9 * most, "{tuned} Mb/s");
    assert!((0.8..0.9).contains(&fixed), "{fixed} Mb/s");
}

#[test]
fn it_is_the_default_of_today() {
    let of = |tcp| scenario(&path("1 s", tcp)).flows[0].receiver.receive_window;
    assert_eq!(of(""), of("receive_window = \"auto\""));
    assert!(of("").is_tuned());
    let limits = of("receive_window = { initial = \"32 KiB\", maximum = \"1 MiB\" }");
    assert_eq!(limits, tcp::ReceiveWindow { initial: 32 << 10, maximum: 1 << 20 });
    assert_eq!(of("receive_window = \"64 KiB\""), tcp::ReceiveWindow::fixed(64 << 10));
}

#[test]
fn slow_start_is_not_slower_than_with_a_large_buffer() {
    let finished = |tcp| {
        let text = path("20 s", tcp) + "traffic = { size = \"3 MB\" }\n";
        run(&text).rows[0].completed_s.unwrap()
    };
    let (tuned, large) =
        (finished("receive_window = \"auto\""), finished("receive_window = \"16 MB\""));
    assert!(tuned <= 1.001 * large, "{tuned} s and {large} s");
}

#[test]
fn a_slow_reader_keeps_it_small() {
    // 1 Mb/s are read.
    let text = |tcp| {
        path("20 s", tcp)
            + "traffic = { reader = { chunk = \"12500 B\", interval = \"100 ms\" } }\n"
    };
    let sent = |tcp| run(&text(tcp)).rows[0].sender.segments.unwrap() as f64 * 1448.0;
    let read = 20.0 * 125e3;
    assert!(sent("receive_window = \"auto\"") < read + 400e3);
    assert!(sent("receive_window = \"16 MB\"") > read + 10e6);
}

#[test]
fn the_fast_path_tunes_as_the_general_path_does() {
    for tcp in ["", "timestamps = false", "delayed_ack = \"off\""] {
        let text = path("10 s", tcp);
        let fast = run(&text);
        let watch = Watch { digest: true, general_path: true, ..Watch::default() };
        let general = run_with(&text, 1, &watch);
        assert_eq!((general.digest, general.events), (fast.digest, fast.events), "{tcp}");
        let share =
            |tcp: &str| fast_share(&path("10 s", tcp), &Watch { digest: true, ..Watch::default() });
        let (tuned, fixed) = (share(tcp), share(&format!("receive_window = \"16 MB\", {tcp}")));
        assert!(tuned > 0.99 * fixed, "{tcp}: {tuned} and {fixed}");
    }
}
