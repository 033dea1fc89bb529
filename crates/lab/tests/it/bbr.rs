//! BBR, as its draft and its authors describe it.

use crate::common::{run, run_with};
use lab::{Outcome, Watch};

/// 10 Mb/s and a round trip of 40 ms, 50 kB.
fn path(queue: &str, link: &str, flows: &[&str]) -> String {
    let flow = |tcp: &&str| {
        format!(
            "[[flows]]\nfrom = \"a\"\nto = \"b\"\ntcp = {{ receive_window = \"4 MB\", {tcp} }}\n"
        )
    };
    format!(
        "title = \"bbr\"\nduration = \"60 s\"\n[nodes]\na = {{}}\nb = {{}}\n\
         [[links]]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = \"{queue}\"\n{link}\n{}",
        flows.iter().map(flow).collect::<String>()
    )
}

const BBR: &str = "congestion = \"bbr\", recovery = \"rack\"";
const CUBIC: &str = "congestion = \"cubic\", recovery = \"rack\"";

/// Mb/s of each flow.
fn goodputs(outcome: &Outcome) -> Vec<f64> {
    outcome.rows.iter().map(|row| row.payload_bps / 1e6).collect()
}

#[test]
fn it_fills_the_path_and_not_the_queue() {
    let [cubic, bbr] = [CUBIC, BBR].map(|tcp| run(&path("200 packets", "", &[tcp])));
    assert!(goodputs(&bbr)[0] > 9.2, "{:?}", goodputs(&bbr));
    assert!(cubic.totals.dropped > 0 && bbr.totals.dropped == 0);
    assert_eq!(bbr.rows[0].sender.retransmissions, Some(0));
}

#[test]
fn alone_on_a_long_path_it_need_not_probe_the_round_trip() {
    // 600 ms: a round trip at half the window every five seconds.
    let long = |tcp: &str| {
        let text = path("500 packets", "", &[tcp]).replace("20 ms", "300 ms");
        goodputs(&run(&text))[0]
    };
    let (drafted, renewed) = (long(BBR), long(&format!("{BBR}, renew_min_rtt = true")));
    assert!(renewed > 1.08 * drafted, "{renewed} and {drafted} Mb/s");
}

#[test]
fn random_losses_below_its_threshold_cost_little_and_above_it_more() {
    let with_loss = |tcp: &str, loss: &str| {
        let link = format!("forward = {{ errors = {{ packet = {loss} }} }}");
        goodputs(&run(&path("100 packets", &link, &[tcp])))[0]
    };
    let [low, high] = ["0.01", "0.05"];
    assert!(with_loss(BBR, low) > 7.5 && with_loss(BBR, low) > 2.0 * with_loss(CUBIC, low));
    let (bbr, cubic) = (with_loss(BBR, high), with_loss(CUBIC, high));
    assert!(bbr > 1.5 * cubic && bbr < 6.0, "{bbr} and {cubic} Mb/s");
}

#[test]
fn losses_below_a_threshold_that_is_set_cost_no_more_than_what_is_lost() {
    let tolerant = format!("{BBR}, loss_threshold = 0.2");
    for (loss, draft) in [(0.01, 8.5), (0.05, 4.0)] {
        let link = format!("forward = {{ errors = {{ packet = {loss} }} }}");
        let of = |tcp: &str| goodputs(&run(&path("100 packets", &link, &[tcp])))[0];
        let (all, tolerant, as_drafted) = (9.7 * (1.0 - loss), of(&tolerant), of(BBR));
        assert!(tolerant > 0.93 * all && as_drafted < draft, "{tolerant} and {as_drafted} Mb/s");
    }
}

#[test]
fn losses_that_chance_explains_keep_its_rate_down_only_without_its_tolerance() {
    // 1 % of the segments of a round trip are 3, and 2 % are often lost.
    let link = "forward = { errors = { packet = 0.01 } }";
    let worst = |tcp: &str| {
        let text = path("300 packets", link, &[tcp]).replace("10 Mbit/s", "100 Mbit/s");
        let of = |seed| goodputs(&run_with(&text, seed, &Watch::default()))[0];
        (1..=3).map(of).fold(f64::MAX, f64::min)
    };
    let (drafted, tolerant) = (worst(BBR), worst(&format!("{BBR}, tolerate_random_loss = true")));
    assert!(drafted < 80.0 && tolerant > 85.0, "{drafted} and {tolerant} Mb/s");
}

#[test]
fn after_an_outage_it_goes_on_at_its_rate() {
    let outage = "outages = { at = [{ start = \"20 s\", end = \"25 s\" }] }";
    let outcome = run(&path("100 packets", outage, &[BBR]));
    assert!(goodputs(&outcome)[0] > 0.9 * 9.3 * 55.0 / 60.0, "{:?}", goodputs(&outcome));
}

#[test]
fn it_and_cubic_leave_each_other_a_share_of_any_queue() {
    // 1, 4 and 16 times what the path holds: the deeper the queue, the more of it CUBIC fills.
    for (queue, least) in [("35 packets", 2.5), ("140 packets", 2.5), ("560 packets", 1.0)] {
        let shares = goodputs(&run(&path(queue, "", &[BBR, CUBIC])));
        assert!(shares.iter().all(|share| *share > least), "{queue}: {shares:?} Mb/s");
        assert!(shares.iter().sum::<f64>() > 9.0, "{queue}: {shares:?} Mb/s");
    }
}

#[test]
fn flows_that_use_it_share_the_path() {
    let shares = goodputs(&run(&path("100 packets", "", &[BBR; 4])));
    let sum: f64 = shares.iter().sum();
    let jain = sum * sum / (4.0 * shares.iter().map(|share| share * share).sum::<f64>());
    assert!(jain > 0.9 && sum > 9.0, "{shares:?} Mb/s: {jain}");
}

#[test]
fn the_fast_path_models_the_path_as_the_general_path_does() {
    let link = "forward = { errors = { packet = 0.001 } }";
    for traffic in ["", "traffic = { paced = { chunk = \"20 kB\", interval = \"30 ms\" } }"] {
        let text = path("100 packets", link, &[BBR]) + traffic;
        let watch = Watch { digest: true, general_path: true, ..Watch::default() };
        assert_eq!(run_with(&text, 1, &watch).digest, run(&text).digest, "{traffic}");
    }
}
