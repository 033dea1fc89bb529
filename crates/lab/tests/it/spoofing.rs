//! TCP spoofing: a gateway before a satellite link splits the connections that pass.

use crate::common::{error, run, scenario};
use lab::{Row, Watch};
use scenario::Latency;
use std::sync::atomic::AtomicBool;

/// A server on the Internet, 30 ms from a gateway, and a user behind a satellite link of 10 Mbit/s
/// and 250 ms. `gateway` is what the gateway has, `flow` what the download has besides its ends.
fn download(gateway: &str, flow: &str) -> String {
    format!(
        "title = \"download\"\nduration = \"60 s\"\n[nodes]\nserver = {{}}\ngateway = {{ {gateway} }}\n\
         user = {{}}\n[[links]]\nbetween = [\"server\", \"gateway\"]\nrate = \"50 Mbit/s\"\n\
         delay = \"30 ms\"\nqueue = \"250 packets\"\n[[links]]\nbetween = [\"gateway\", \"user\"]\n\
         rate = \"10 Mbit/s\"\ndelay = \"250 ms\"\nqueue = \"420 packets\"\n[[flows]]\nfrom = \"server\"\n\
         to = \"user\"\n{flow}\n"
    )
}

fn spoofed(settings: &str, flow: &str) -> String {
    download(&format!("boxes = [{{ box = \"spoofer\"{settings} }}]"), flow)
}

const SIZED: &str = "traffic = { size = \"3 MB\" }";

fn row(text: &str) -> Row {
    run(text).rows.remove(0)
}

#[test]
fn a_split_transfer_is_whole_and_faster() {
    let (split, whole) = (row(&spoofed("", SIZED)), row(&download("", SIZED)));
    assert_eq!((split.payload_bytes, split.misplaced), (3_000_000, 0));
    let times = (split.completed_s, whole.completed_s);
    assert!(times.0 < times.1, "{times:?}");
}

fn count(text: &str, what: &str) -> u64 {
    let counts = run(text).box_counts;
    counts.iter().filter(|one| one.name == what).map(|one| one.count).sum()
}

#[test]
fn the_round_trip_of_the_sender_is_that_to_the_gateway() {
    let text = spoofed("", "traffic = { size = \"60 kB\" }");
    assert_eq!(count(&text, "split connections"), 1);
    let watch = Watch { latency: Latency::Summary, ..Watch::default() };
    let rtt = |text: &str| {
        let outcome = lab::run(&scenario(text), 1, &watch, &AtomicBool::new(false)).unwrap();
        outcome.rows[0].rtt_s.unwrap().median
    };
    let (split, whole) = (rtt(&text), rtt(&download("", "traffic = { size = \"60 kB\" }")));
    assert!(split < 0.11 && whole > 0.56, "{split} {whole}");
}

#[test]
fn a_small_cache_holds_the_server_back() {
    let rates = ["", ", cache = \"64 kB\"", ", cache = \"16 kB\""].map(|cache| {
        let text = spoofed(&format!("{cache}, tcp = {{ receive_window = \"64 kB\" }}"), SIZED);
        let row = row(&text);
        assert_eq!(row.misplaced, 0);
        row.payload_bps
    });
    // 64 kB and 16 kB a round trip of 500 ms.
    assert!(rates[0] > 3e6, "{rates:?}");
    assert!((0.85e6..1.05e6).contains(&rates[1]), "{rates:?}");
    assert!((0.2e6..0.26e6).contains(&rates[2]), "{rates:?}");
}

#[test]
fn connections_beyond_the_limit_are_whole_but_not_split() {
    let flows =
        SIZED.to_owned() + &format!("\n[[flows]]\nfrom = \"server\"\nto = \"user\"\n{SIZED}");
    let outcome = run(&spoofed(", connections = 1", &flows));
    for row in &outcome.rows {
        assert_eq!((row.payload_bytes, row.misplaced), (3_000_000, 0));
    }
    let mut counts: Vec<_> = outcome.box_counts.iter().map(|one| (one.name, one.count)).collect();
    counts.retain(|(name, _)| !name.ends_with("over") && !name.starts_with("bytes"));
    let full = "connections not split: too many connections";
    assert_eq!(counts, [("split connections", 1), (full, 1)]);
}

#[test]
fn teardown_end_to_end_tells_the_sender_when_all_has_arrived() {
    for teardown in ["spoofed", "end-to-end"] {
        let text = spoofed(&format!(", teardown = \"{teardown}\""), SIZED);
        let row = row(&text);
        assert_eq!((row.payload_bytes, row.misplaced), (3_000_000, 0), "{teardown}");
    }
}

#[test]
fn a_connection_through_two_spoofers_is_split_twice() {
    let both = "boxes = [{ box = \"spoofer\" }, { box = \"spoofer\" }]";
    let text = download(both, SIZED);
    assert_eq!(row(&text).payload_bytes, 3_000_000);
}

#[test]
fn a_spoofer_has_tcp_settings_of_its_own() {
    let slow = row(&spoofed(", tcp = { initial_window = 1 }", SIZED)).completed_s;
    let fast = row(&spoofed(", tcp = { initial_window = 40 }", SIZED)).completed_s;
    assert!(fast < slow, "{fast:?} {slow:?}");
    let profile = row(&spoofed(", profile = \"ns2-2001\"", SIZED));
    assert_eq!(profile.payload_bytes, 3_000_000);
    let wrong = [
        (", cache = 0", "`nodes.gateway.boxes.0.cache = 0`: expected at least 1 byte"),
        (
            ", teardown = \"never\"",
            "`nodes.gateway.boxes.0.teardown = \"never\"`: unknown name `never`",
        ),
        (", tcp = { mss = 0 }", "`nodes.gateway.boxes.0.tcp.mss = 0`: expected 1 to 65495 bytes"),
        (
            ", tpc = {}",
            "`nodes.gateway.boxes.0.tpc`: unknown key `tpc`, expected one of `box`, `connect`, \
         `cache`, `teardown`, `hop`, `rate`, `connections`, `connections_per_user`, `memory`, `profile`, `tcp`",
        ),
    ];
    for (settings, message) in wrong {
        let found = error(&spoofed(settings, SIZED)).to_string();
        assert!(found.starts_with(message), "{found}");
    }
    let other = download("boxes = [{ box = \"mss-clamp\", tcp = {} }]", SIZED);
    let found = error(&other).to_string();
    assert!(found.contains("unknown key `tcp`, expected `box` or `mss`"), "{found}");
}
