//! The lab's Snoop, in front of the kernel and of our stack.

use crate::common::{NOISY_HOP, WINDOW, at_once, complete, run};

/// A transfer of 1 MB over the noisy hop, by this stack, with boxes in the base station. It reduces the
/// window at each corruption that it learns of.
fn transfer(station: &str, flow: &str) -> Option<testbed::Outcome> {
    let text = NOISY_HOP.replace("station = {}", &format!("station = {{ {station} }}"));
    run(&format!(
        "{text}[[flows]]\nfrom = \"server\"\nto = \"mobile\"\ntraffic = {{ size = \"1 MB\" }}\n{flow}\n"
    ))
}

const SNOOP: &str = "boxes = [{ box = \"snoop\", hop = \"mobile\" }]";

fn count(outcome: &testbed::Outcome, what: &str) -> u64 {
    let counts = outcome.run.box_counts.iter().filter(|one| one.name == what);
    counts.map(|one| one.count).sum()
}

#[test]
fn a_base_station_hides_corruption_from_our_sender() {
    let [with, without] = at_once([SNOOP, ""], |station| {
        transfer(station, &format!("stack = \"lasthop\"\ntcp = {{ {WINDOW} }}"))
    });
    let (Some(with), Some(without)) = (with, without) else { return };
    let reductions = [&with, &without].map(|outcome| {
        complete(&outcome.run.rows[0], 1_000_000);
        outcome.run.rows[0].sender.reductions.unwrap()
    });
    let (corrupted, retransmitted) =
        (with.run.totals.corrupted, count(&with, "segments retransmitted over the hop"));
    eprintln!("{reductions:?} reductions, {corrupted} corrupted, {retransmitted} retransmitted");
    assert!(corrupted >= 5 && retransmitted >= corrupted / 2);
    assert!(reductions[0] * 3 < reductions[1], "{reductions:?}");
}

#[test]
fn a_kernels_download_is_whole_and_repaired_at_the_base_station() {
    at_once(["4", "6"], |ip| {
        let flow = format!("stack = \"linux\"\nip = {ip}");
        let Some(outcome) = transfer(SNOOP, &flow) else { return };
        complete(&outcome.run.rows[0], 1_000_000);
        let retransmitted = count(&outcome, "segments retransmitted over the hop");
        let corrupted = outcome.run.totals.corrupted;
        assert!(corrupted >= 5 && retransmitted >= corrupted / 2, "{ip}: {retransmitted}");
    });
}
