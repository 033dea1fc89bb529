//! TCP Fast Open: a round trip less.

use crate::common::{fast_share, run, run_with};
use lab::{Row, Watch};

/// A round trip of 300 ms.
fn path(traffic: &str, tcp: &str, more: &str) -> String {
    format!(
        "title = \"short requests\"\nduration = \"60 s\"\n[nodes]\na = {{}}\nb = {{}}\n\
         [[links]]\nbetween = [\"a\", \"b\"]\nrate = \"100 Mbit/s\"\ndelay = \"150 ms\"\n{more}\
         [[flows]]\nfrom = \"a\"\nto = \"b\"\ntraffic = {traffic}\ntcp = {{ {tcp} }}\n"
    )
}

fn times(traffic: &str, tcp: &str) -> (Row, f64) {
    let row = run(&path(traffic, tcp, "")).rows.remove(0);
    let median = row.time_s.unwrap().median;
    (row, median)
}

#[test]
fn a_request_of_1_kb_arrives_in_half_a_round_trip_instead_of_one_and_a_half() {
    let traffic = "{ arrivals = { rate = 2 }, size = \"1 kB\", count = 100 }";
    let (_, without) = times(traffic, "fast_open = false");
    let (row, with) = times(traffic, "fast_open = true");
    assert!((0.450..0.452).contains(&without), "{without}");
    assert!((0.150..0.152).contains(&with), "{with}");
    // The first has to ask for the cookie.
    assert_eq!((row.finished, row.failed), (100, 0));
}

#[test]
fn data_arrives_whole_over_a_lossy_path() {
    let errors = "errors = { packet = 0.05 }\n";
    let traffic = "{ arrivals = { rate = 5 }, size = \"30 kB\", count = 200 }";
    let text = path(traffic, "fast_open = true", errors).replace("60 s", "300 s");
    let row = run(&text).rows.remove(0);
    assert_eq!((row.finished, row.failed, row.payload_bytes), (200, 0, 200 * 30_000));
}

#[test]
fn a_box_that_strips_unknown_options_leaves_a_normal_handshake() {
    let strips = "boxes = [{ box = \"strip-options\", options = [\"unknown\"] }]";
    let traffic = "{ arrivals = { rate = 2 }, size = \"1 kB\", count = 20 }";
    let text = path(traffic, "fast_open = true", "")
        .replace("b = {}\n", &format!("b = {{}}\nr = {{ {strips} }}\n"))
        .replace("between = [\"a\", \"b\"]", "between = [\"a\", \"r\"]")
        .replace(
            "[[flows]]",
            "[[links]]\nbetween = [\"r\", \"b\"]\nrate = \"100 Mbit/s\"\ndelay = \"0 ms\"\n[[flows]]",
        );
    let row = run(&text).rows.remove(0);
    assert_eq!((row.finished, row.failed), (20, 0));
    assert!((0.450..0.453).contains(&row.time_s.unwrap().median), "{row:?}");
}

#[test]
fn the_fast_path_does_as_the_general_path_does() {
    for traffic in ["\"bulk\"", "{ arrivals = { rate = 2 }, size = \"100 kB\" }"] {
        let text = path(traffic, "fast_open = true", "errors = { packet = 0.001 }\n");
        let fast = run(&text).digest;
        let watch = Watch { digest: true, general_path: true, ..Watch::default() };
        assert_eq!(run_with(&text, 1, &watch).digest, fast);
        let share = |text: &str| fast_share(text, &Watch::default());
        let (with, without) = (share(&text), share(&text.replace("fast_open = true", "")));
        assert!((with - without).abs() < 0.02, "{with} and {without} of the segments");
    }
}
