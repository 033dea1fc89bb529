//! A mobile host between base stations that split its connections and hand them over.

use crate::common::run;
use lab::{Outcome, Row};

/// The transports of the wireless hop.
const HOPS: [&str; 2] = ["tcp", "srp"];

/// A mobile host that is at the station `left`, away for a pause from 4 s on, and at `right` then; and a
/// server in the wired network.
fn path(pause: f64, transport: &str, hop: &str, flows: &str) -> String {
    let back = 4.0 + pause;
    path_with(
        &format!(
            r#"{{ to = "left", start = "0 s", end = "4 s" }}, {{ to = "right", start = "{back} s" }}"#
        ),
        "{ box = \"station\", mtu = 256 }",
        transport,
        hop,
        flows,
    )
}

fn path_with(places: &str, station: &str, transport: &str, hop: &str, flows: &str) -> String {
    format!(
        r#"title = "handoff"
duration = "120 s"
[nodes]
left = {{ boxes = [{station}] }}
right = {{ boxes = [{station}] }}
campus = {{}}
server = {{}}
[nodes.mobile]
boxes = [{{ box = "mobile", hop = "{transport}", mtu = 256 }}]
attached = {{ at = [{places}] }}
[[links]]
between = ["mobile", "left"]
rate = "256 kbit/s"
delay = "5 ms"
queue = "30 packets"
{hop}
[[links]]
between = ["mobile", "right"]
rate = "256 kbit/s"
delay = "5 ms"
queue = "30 packets"
{hop}
[[links]]
between = ["left", "campus"]
rate = "10 Mbit/s"
delay = "1 ms"
[[links]]
between = ["right", "campus"]
rate = "10 Mbit/s"
delay = "1 ms"
[[links]]
between = ["campus", "server"]
rate = "1.5 Mbit/s"
delay = "40 ms"
{flows}"#
    )
}

/// A flow of 100 kB.
fn flow(from: &str, to: &str, start: f64) -> String {
    format!(
        "[[flows]]\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start} s\"\n\
         traffic = {{ size = \"100 kB\" }}\ntcp = {{ mss = 216 }}\n"
    )
}

fn count(outcome: &Outcome, node: &str, name: &str) -> u64 {
    let counts = outcome.box_counts.iter();
    counts.filter(|one| one.name == name && one.node == node).map(|one| one.count).sum()
}

fn whole(row: &Row) {
    assert_eq!(row.payload_bytes, 100_000, "{row:?}");
}

#[test]
fn a_transfer_survives_a_handoff_in_both_directions() {
    for (pause, transport) in [0.0, 1.0, 2.8].into_iter().flat_map(|p| HOPS.map(|hop| (p, hop))) {
        let flows = flow("mobile", "server", 1.0) + &flow("server", "mobile", 1.0);
        let outcome = run(&path(pause, transport, "", &flows));
        outcome.rows.iter().for_each(whole);
        assert_eq!(count(&outcome, "left", "connections handed over"), 2);
        assert_eq!(count(&outcome, "right", "connections taken over"), 2);
    }
}
