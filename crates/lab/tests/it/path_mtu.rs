//! Paths with a link that takes smaller packets than the others.

use crate::common::{run, run_with};
use host::DropReason;
use lab::{Outcome, Watch};

/// 10 Mb/s and a round trip of 40 ms over a router, and 10 MB; the second link has this MTU.
fn path(mtu: &str, tcp: &str) -> String {
    format!(
        "title = \"a small link\"\nduration = \"60 s\"\n[nodes]\na = {{}}\nr = {{}}\nb = {{}}\n\
         [[links]]\nbetween = [\"a\", \"r\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = \"100 packets\"\n\
         [[links]]\nbetween = [\"r\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = \"100 packets\"\n{mtu}\n\
         [[flows]]\nfrom = \"a\"\nto = \"b\"\ntraffic = {{ size = \"10 MB\" }}\n{tcp}\n"
    )
}

const SHRINKS: &str =
    "mtu = { size = \"1500 B\", changes = { at = [{ start = \"3 s\", size = \"600 B\" }] } }";

/// When the last byte arrived, seconds.
fn finished(outcome: &Outcome) -> f64 {
    let row = &outcome.rows[0];
    assert_eq!((row.payload_bytes, row.misplaced), (10_000_000, 0));
    row.completed_s.expect("it has arrived")
}

/// Packets that were too big, by node.
fn too_big(outcome: &Outcome) -> Vec<(&str, u64)> {
    let drops = outcome.box_drops.iter().filter(|drop| drop.reason == DropReason::TooBig);
    drops.map(|drop| (&*drop.node, drop.packets)).collect()
}

#[test]
fn a_link_that_takes_every_packet_changes_nothing() {
    let [with, without] = ["mtu = 1500", ""].map(|mtu| run(&path(mtu, "")));
    assert_eq!(with.digest, without.digest);
    assert_eq!(too_big(&with), []);
}

#[test]
fn a_small_link_is_found_by_the_first_window() {
    for version in [4, 6] {
        let tcp = format!("ip = {version}");
        let plain = finished(&run(&path("", &tcp)));
        let outcome = run(&path("mtu = \"1280 B\"", &tcp));
        assert_eq!(too_big(&outcome), [("r", 10)]);
        assert_eq!(outcome.rows[0].sender.timeouts, Some(0));
        let more = finished(&outcome) - plain;
        // A round trip to the router, and more headers.
        assert!((0.02..0.5).contains(&more), "{more} s");
    }
}

#[test]
fn a_host_has_a_small_link_of_its_own() {
    let text = path("", "").replacen("queue = ", "mtu = 900\nqueue = ", 1);
    let outcome = run(&text);
    assert_eq!(too_big(&outcome), [("a", 10)]);
    finished(&outcome);
}

#[test]
fn a_path_whose_mtu_shrinks_in_mid_transfer_costs_a_timeout() {
    let plain = finished(&run(&path("mtu = 1500", "")));
    let outcome = run(&path(SHRINKS, ""));
    assert_eq!(outcome.rows[0].sender.timeouts, Some(1));
    let more = finished(&outcome) - plain;
    // The timeout, and smaller packets after it: 40 of 600 bytes are headers, and 12 are options.
    assert!((0.2..2.0).contains(&more), "{more} s");
}

#[test]
fn without_icmp_it_is_a_black_hole() {
    let hole = SHRINKS.replace("mtu = {", "mtu = { icmp = false,");
    let outcome = run(&path(&hole, ""));
    let row = &outcome.rows[0];
    assert!(row.payload_bytes < 5_000_000 && row.misplaced == 0, "{row:?}");
}

#[test]
fn a_black_hole_is_found_by_timeouts_and_passed() {
    let plain = finished(&run(&path("mtu = 1500", "")));
    let hole = SHRINKS.replace("mtu = {", "mtu = { icmp = false,");
    let outcome = run(&path(&hole, "tcp = { mtu_probing = \"black-hole\" }"));
    let more = finished(&outcome) - plain;
    // Timeouts until segments are small enough, and slow start after each.
    assert!((1.0..40.0).contains(&more), "{more} s");
}

#[test]
fn probing_finds_the_size_that_passes_without_loss_of_goodput() {
    let plain = finished(&run(&path("", "")));
    let outcome =
        run(&path("mtu = { size = \"1300 B\", icmp = false }", "tcp = { mtu_probing = \"on\" }"));
    assert_eq!(outcome.rows[0].sender.timeouts, Some(0));
    assert!(finished(&outcome) < 1.1 * plain);
    let [("r", probes)] = too_big(&outcome)[..] else { panic!("{:?}", too_big(&outcome)) };
    assert!((1..=8).contains(&probes), "{probes} were lost");
}

#[test]
fn packets_as_bytes_are_the_same() {
    let text = path(SHRINKS, "");
    let digest = |watch: &Watch| run_with(&text, 1, watch).digest;
    let watch = Watch { digest: true, ..Watch::default() };
    let general = Watch { general_path: true, ..watch.clone() };
    assert_eq!(digest(&watch), digest(&general));
}
