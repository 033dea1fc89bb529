//! Accurate ECN (RFC 9768) over links that mark.

use crate::common::{fast_share, run, run_with};
use lab::Watch;

/// A bulk transfer over a link that marks, or has room for all.
fn path(queue: &str, tcp: &str) -> String {
    format!(
        r#"
        title = "A bulk transfer"
        duration = "20 s"
        [nodes.server]
        [nodes.client]
        [[links]]
        between = ["server", "client"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = {queue}
        [[flows]]
        from = "server"
        to = "client"
        tcp = {{ ecn = "accurate", receive_window = "1 MB", {tcp} }}
        "#
    )
}

const MARKING: &str = r#"{ limit = "100 packets", red = { min = 10, ecn = true } }"#;
const LARGE: &str = r#""1000 packets""#;

#[test]
fn the_fast_path_does_as_the_general_path_does() {
    for (queue, least) in [(MARKING, 0.85), (LARGE, 0.99)] {
        for acks in ["40 ms", "off"] {
            for tcp in ["pacing = true", "timestamps = false", "congestion = \"bbr\""] {
                let text = path(queue, &format!("delayed_ack = \"{acks}\", {tcp}"));
                let fast = run(&text);
                let watch = Watch { digest: true, general_path: true, ..Watch::default() };
                let general = run_with(&text, 1, &watch);
                assert_eq!((general.digest, general.events), (fast.digest, fast.events), "{text}");
                let share = fast_share(&text, &Watch::default());
                assert!(share > least, "{share} of the segments: {text}");
            }
        }
    }
}
