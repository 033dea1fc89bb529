//! HyStart++ on a path whose queue shows in the round trip.

use crate::common::{fast_share, run, run_with};
use lab::Watch;

/// A path of 20 Mb/s behind a queue.
fn path(delay: &str, queue: u32, tcp: &str) -> String {
    format!(
        "title = \"a long path\"\nduration = \"30 s\"\n[nodes]\na = {{}}\nb = {{}}\n\
         [[links]]\nbetween = [\"a\", \"b\"]\nrate = \"20 Mbit/s\"\ndelay = \"{delay}\"\n\
         queue = \"{queue} packets\"\n\
         [[flows]]\nfrom = \"a\"\nto = \"b\"\ntcp = {{ receive_window = \"64 MB\", {tcp} }}\n"
    )
}

#[test]
fn slow_start_ends_before_a_large_queue_overflows() {
    // The path holds 170 packets. The queue is found with twice as many on their way or more, and
    // CSS can triple that.
    for congestion in ["aimd", "cubic", "westwood-2001", "westwood+"] {
        let tcp =
            |hystart| format!("congestion = \"{congestion}\", pacing = true, hystart = {hystart}");
        let dropped = |hystart| {
            run(&path("50 ms", 2000, &tcp(hystart)).replace("30 s", "8 s")).totals.dropped
        };
        let [without, with] = [false, true].map(dropped);
        assert!(without > 2000, "{congestion}: {without}");
        assert_eq!(with, 0, "{congestion}");
    }
}

#[test]
fn fewer_segments_are_lost_in_a_queue_of_the_path() {
    for (congestion, pacing) in [("aimd", false), ("aimd", true), ("cubic", false), ("cubic", true)]
    {
        let tcp = |hystart| {
            format!("congestion = \"{congestion}\", pacing = {pacing}, hystart = {hystart}")
        };
        let [without, with] =
            [false, true].map(|hystart| run(&path("300 ms", 1000, &tcp(hystart))));
        let share = with.totals.dropped as f64 / without.totals.dropped as f64;
        assert!(share < if pacing { 0.3 } else { 0.8 }, "{congestion}, {pacing}: {share}");
        let speed = with.rows[0].payload_bps / without.rows[0].payload_bps;
        assert!(speed > 0.95, "{congestion}, {pacing}: {speed}");
    }
}

#[test]
fn the_fast_path_ends_slow_start_as_the_general_path_does() {
    for congestion in ["aimd", "cubic"] {
        let text = path("300 ms", 1000, &format!("congestion = \"{congestion}\", hystart = true"));
        let fast = run(&text).digest;
        let watch = Watch { digest: true, general_path: true, ..Watch::default() };
        assert_eq!(run_with(&text, 1, &watch).digest, fast, "{congestion}");
        let share = fast_share(&text, &Watch::default());
        assert!(share > 0.9, "{share} of the segments");
    }
}
