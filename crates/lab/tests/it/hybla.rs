//! Hybla on a satellite path, alone and beside a short one.

use crate::common::{fast_share, run, run_with};
use lab::{Outcome, Watch};

/// One flow over 10 Mb/s, with a round trip of twice `delay`, and 1 packet in `1 / loss` lost.
fn alone(congestion: &str, delay: &str, loss: f64) -> Outcome {
    run(&format!(
        "title = \"a satellite\"\nduration = \"120 s\"\n[nodes]\na = {{}}\nb = {{}}\n\
         [[links]]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"{delay}\"\n\
         queue = \"600 packets\"\nforward = {{ errors = {{ packet = {loss} }} }}\n\
         [[flows]]\nfrom = \"a\"\nto = \"b\"\ntcp = {{ congestion = \"{congestion}\", recovery = \
         \"rack\", pacing = true, initial_ssthresh = \"20 segments\", receive_window = \"4 MB\" }}\n"
    ))
}

/// Two flows over one bottleneck of 10 Mb/s: over the satellite, 600 ms, and beside it, 25 ms. The
/// share of the first.
fn share(congestion: &str) -> f64 {
    let outcome = run(&both(congestion));
    let [far, near] = [0, 1].map(|flow| outcome.rows[flow].payload_bps);
    assert!(far + near > 7e6, "{congestion}: {far} and {near}");
    far / (far + near)
}

fn both(congestion: &str) -> String {
    let link = |from: &str, to: &str, rate: &str, delay: &str, queue: u32| {
        format!(
            "[[links]]\nbetween = [\"{from}\", \"{to}\"]\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
             queue = \"{queue} packets\"\n"
        )
    };
    let flow = |from: &str, congestion: &str| {
        format!(
            "[[flows]]\nfrom = \"{from}\"\nto = \"b\"\ntcp = {{ congestion = \"{congestion}\", \
             recovery = \"rack\", pacing = true, initial_ssthresh = \"20 segments\", receive_window = \"4 MB\" }}\n"
        )
    };
    "title = \"two paths\"\nduration = \"300 s\"\n[nodes]\nfar = {}\nnear = {}\nr = {}\nb = {}\n"
        .to_owned()
        + &link("far", "r", "1 Gbit/s", "290 ms", 10_000)
        + &link("near", "r", "1 Gbit/s", "2.5 ms", 10_000)
        + &link("r", "b", "10 Mbit/s", "10 ms", 25)
        + &flow("far", congestion)
        + &flow("near", "aimd")
}

#[test]
fn random_losses_cost_a_long_path_no_more_than_a_short_one() {
    let speed = |congestion, delay| alone(congestion, delay, 1e-3).rows[0].payload_bps;
    let [aimd, cubic, hybla] = ["aimd", "cubic", "hybla"].map(|name| speed(name, "300 ms"));
    assert!(hybla > 3.0 * aimd && hybla > 1.5 * cubic, "{aimd} {cubic} {hybla}");
    // At 25 ms it is RFC 5681's.
    let short = speed("hybla", "12.5 ms");
    assert!(hybla > 0.6 * short, "{hybla} of {short}");
}

#[test]
fn beside_a_short_path_hybla_gets_a_larger_share_than_newreno_or_cubic() {
    let [aimd, cubic, hybla] = ["aimd", "cubic", "hybla"].map(share);
    assert!(hybla > 2.0 * aimd && hybla > cubic, "{aimd} {cubic} {hybla}");
}

#[test]
fn the_fast_path_gives_the_same_run() {
    let text = both("hybla").replace("300 s", "30 s");
    let watch = Watch { digest: true, general_path: true, ..Watch::default() };
    assert_eq!(run_with(&text, 1, &watch).digest, run(&text).digest);
    assert!(fast_share(&text, &Watch::default()) > 0.3);
}
