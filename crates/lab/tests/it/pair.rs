//! Two gateways that carry connections over a hop by SRP.

use crate::common::run;
use lab::Outcome;

/// A user behind the gateway `a`, and a server behind `b`. The hop between the two has these keys besides its
/// rate of 10 Mbit/s, the boxes these, and the flows are those.
fn path(hop: &str, keys: &str, flows: &str) -> String {
    format!(
        r#"title = "pair"
duration = "60 s"
[nodes]
user = {{}}
other = {{}}
a = {{ boxes = [{{ box = "pair", hop = "b"{keys} }}] }}
b = {{ boxes = [{{ box = "pair", hop = "a"{keys} }}] }}
server = {{}}
[[links]]
between = ["user", "a"]
rate = "1 Gbit/s"
delay = "1 ms"
[[links]]
between = ["other", "a"]
rate = "1 Gbit/s"
delay = "1 ms"
[[links]]
between = ["a", "b"]
rate = "10 Mbit/s"
queue = "100 packets"
{hop}
[[links]]
between = ["b", "server"]
rate = "1 Gbit/s"
delay = "5 ms"
{flows}"#
    )
}

fn flow(from: &str, to: &str, keys: &str) -> String {
    format!("[[flows]]\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n")
}

const SATELLITE: &str = "delay = \"300 ms\"\nerrors = { packet = 0.05 }";
const GIVEN: &str = ", rate = \"10 Mbit/s\"";

fn count(outcome: &Outcome, node: &str, name: &str) -> u64 {
    let counts = outcome.box_counts.iter();
    counts.filter(|one| one.name == name && one.node == node).map(|one| one.count).sum()
}

/// Bytes that each flow's receiver has got.
fn delivered(outcome: &Outcome) -> Vec<u64> {
    outcome.rows.iter().map(|row| row.payload_bytes).collect()
}

#[test]
fn a_download_fills_a_long_hop_that_loses_packets() {
    let outcome = run(&path(
        SATELLITE,
        GIVEN,
        &flow("server", "user", "start = \"2 s\"\ntraffic = \"bulk\""),
    ));
    // 1436 of 1480 bytes are data, and 5 % are lost. The flow starts after two seconds, when the gateways have an
    // association; its handshake takes a round trip, and the first byte half of one.
    let most = 10e6 / 8.0 * 57.1 * 0.95 * 1436.0 / 1480.0;
    let got = delivered(&outcome)[0] as f64;
    assert!(got > 0.95 * most, "{got} of {most} bytes");
    assert_eq!(count(&outcome, "b", "split connections"), 1);
}

#[test]
fn connections_of_both_sides_share_one_association_and_are_whole() {
    let flows = flow("server", "user", "start = \"5 s\"\ntraffic = { size = \"3 MB\" }")
        + &flow("user", "server", "start = \"6 s\"\ntraffic = { size = \"2 MB\" }")
        + &flow("other", "server", "start = \"7 s\"\ntraffic = { size = \"2 MB\" }");
    for keys in [GIVEN, ""] {
        // Beyond TIME-WAIT.
        let text = path(SATELLITE, keys, &flows).replace("60 s", "120 s");
        let outcome = run(&text);
        assert_eq!(delivered(&outcome), [3_000_000, 2_000_000, 2_000_000], "{keys}");
        for node in ["a", "b"] {
            assert_eq!(count(&outcome, node, "split connections"), 3, "{keys}");
            assert_eq!(count(&outcome, node, "split connections that are over"), 3, "{keys}");
        }
    }
}

#[test]
fn while_the_hop_is_down_nothing_is_sent_and_afterwards_all_goes_on() {
    let hop = "delay = \"300 ms\"\noutages = { at = [{ start = \"10 s\", end = \"30 s\" }] }";
    let flows = flow("server", "user", "start = \"2 s\"\ntraffic = { size = \"20 MB\" }");
    let outcome = run(&path(hop, GIVEN, &flows));
    assert_eq!(delivered(&outcome), [20_000_000]);
    let finish = outcome.rows[0].completed_s.unwrap();
    assert!((36.0..41.0).contains(&finish), "done after {finish} s");
    assert_eq!(count(&outcome, "b", "SRP timeouts"), 0);
}

#[test]
fn users_share_the_hop_equally_however_many_connections_each_has() {
    let bulk = |from| flow(from, "server", "start = \"5 s\"\ntraffic = \"bulk\"");
    let flows = bulk("user").repeat(4) + &bulk("other");
    let outcome = run(&path("delay = \"50 ms\"", GIVEN, &flows));
    let got = delivered(&outcome);
    let (user, other): (u64, u64) = (got[..4].iter().sum(), got[4]);
    assert!(user.abs_diff(other) * 50 < user, "{got:?}");
    let (least, most) = (got[..4].iter().min().unwrap(), got[..4].iter().max().unwrap());
    assert!((most - least) * 50 < *most, "{got:?}");
}
