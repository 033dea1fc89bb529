//! Split connections that go from one base station to the next on real packets (`yavatkar1994`).

use crate::common::{at_once, run};
use testbed::Outcome;

/// A mobile host that is at one base station for a second, nowhere for half a second, and then at the other.
fn text(hop: &str, direction: &str) -> String {
    format!(
        r#"title = "a handoff"
duration = "15 s"
[nodes]
fixed = {{}}
router = {{}}
first = {{ boxes = [{{ box = "station" }}] }}
second = {{ boxes = [{{ box = "station" }}] }}
[nodes.mobile]
boxes = [{{ box = "mobile", hop = "{hop}" }}]
attached = {{ at = [{{ start = "0 s", end = "1.5 s", to = "first" }}, {{ start = "2 s", to = "second" }}] }}
[[links]]
between = ["fixed", "router"]
rate = "20 Mbit/s"
delay = "10 ms"
[[links]]
between = ["router", "first"]
rate = "20 Mbit/s"
delay = "1 ms"
[[links]]
between = ["router", "second"]
rate = "20 Mbit/s"
delay = "1 ms"
[[links]]
between = ["first", "mobile"]
rate = "4 Mbit/s"
delay = "5 ms"
[[links]]
between = ["second", "mobile"]
rate = "4 Mbit/s"
delay = "5 ms"
[[flows]]
{direction}
start = "0.2 s"
traffic = {{ size = "1 MB" }}
[testbed]
late = "10 ms"
"#
    )
}

fn count(run: &Outcome, name: &str) -> u64 {
    let counts = run.run.box_counts.iter().filter(|count| count.name == name);
    counts.map(|count| count.count).sum()
}

#[test]
fn connections_and_their_data_go_to_the_next_base_station() {
    let (upload, download) =
        ("from = \"mobile\"\nto = \"fixed\"", "from = \"fixed\"\nto = \"mobile\"");
    let cases = [("tcp", upload), ("tcp", download), ("srp", upload), ("srp", download)];
    for (run, case) in at_once(cases, |(hop, flow)| run(&text(hop, flow))).into_iter().zip(cases) {
        let Some(run) = run else { return };
        let row = &run.run.rows[0];
        let counts = &run.run.box_counts;
        assert_eq!((row.misplaced, row.failed), (0, 0), "{case:?}: {counts:?}");
        assert!(row.completed_s.is_some_and(|seconds| seconds > 2.0), "{case:?}: {counts:?}");
        assert_eq!(count(&run, "connections handed over"), 1, "{case:?}");
        assert_eq!(count(&run, "connections taken over"), 1, "{case:?}");
        assert_eq!(count(&run, "attachments whose state was lost"), 0, "{case:?}");
    }
}
