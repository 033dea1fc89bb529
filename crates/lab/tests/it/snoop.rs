//! Snoop: a base station repairs the losses of its wireless hop.

use crate::common::{digest, error, run, run_with};
use lab::{Row, Watch};

/// A fixed host, 40 ms from a base station, and a mobile host behind a wireless hop of 2 Mbit/s and
/// 1 ms that has this bit error rate.
fn download(station: &str, bit: &str, flow: &str) -> String {
    format!(
        "title = \"download\"\nduration = \"100 s\"\n[nodes]\nfixed = {{}}\nstation = {{ {station} }}\n\
         mobile = {{}}\n[[links]]\nbetween = [\"fixed\", \"station\"]\nrate = \"10 Mbit/s\"\n\
         delay = \"40 ms\"\nqueue = \"100 packets\"\n[[links]]\nbetween = [\"station\", \"mobile\"]\n\
         rate = \"2 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"50 packets\"\nerrors = {{ bit = {bit} }}\n\
         [[flows]]\nfrom = \"fixed\"\nto = \"mobile\"\n{flow}\n"
    )
}

const SNOOP: &str = "boxes = [{ box = \"snoop\", hop = \"mobile\" }]";

/// The queue of the hop has room for what is in flight, so that no loss is congestion.
const TODAY: &str = "tcp = { receive_window = \"48 kB\" }";
const NEWRENO: &str = "profile = \"ns2-2007\"\ntcp = { recovery = \"newreno\", mss = 1460, receive_window = \"33 segments\" }";

const SEEDS: u64 = 5;

fn rows(station: &str, bit: &str, flow: &str) -> Vec<Row> {
    let text = download(station, bit, flow);
    let run = |seed| run_with(&text, seed, &Watch::default()).rows.remove(0);
    (1..=SEEDS).map(run).collect()
}

/// Bounds of the mean of a few numbers (95 %, Student's t of four degrees of freedom).
fn interval(values: &[f64]) -> [f64; 2] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let half = 2.776 * (squares / (n - 1.0) / n).sqrt();
    [mean - half, mean + half]
}

#[test]
fn snoop_raises_goodput_on_a_noisy_hop() {
    let cases = [
        (TODAY, "1e-6", 1.25),
        (TODAY, "3e-6", 2.0),
        (TODAY, "1e-5", 4.5),
        (NEWRENO, "1e-6", 1.25),
        (NEWRENO, "3e-6", 2.0),
        (NEWRENO, "1e-5", 3.5),
    ];
    for (flow, bit, least) in cases {
        let [with, without] = [SNOOP, ""].map(|station| rows(station, bit, flow));
        let pairs = with.iter().zip(&without);
        let gains: Vec<f64> =
            pairs.map(|(with, without)| with.payload_bps / without.payload_bps).collect();
        let [low, high] = interval(&gains);
        assert!(low > least, "{flow} {bit}: {low} to {high} times");
        assert!(with.iter().all(|row| row.misplaced == 0));
    }
}

#[test]
fn the_sender_does_not_see_the_losses_of_the_hop() {
    for bit in ["1e-6", "3e-6", "1e-5"] {
        let sum = |station| {
            let rows = rows(station, bit, TODAY);
            let losses = rows
                .iter()
                .map(|row| row.sender.reductions.unwrap() + row.sender.timeouts.unwrap());
            losses.sum::<u64>()
        };
        assert!(sum("") > 500);
        assert_eq!(sum(SNOOP), 0, "{bit}");
    }
}

#[test]
fn the_sender_sees_the_losses_of_queues() {
    // Of the wired link, and of the hop itself.
    for (queue, smaller) in [("100 packets", "8 packets"), ("50 packets", "8 packets")] {
        let text = |station| download(station, "0.0", "").replace(queue, smaller);
        let [with, without] = [SNOOP, ""].map(|station| run(&text(station)));
        let reductions = with.rows[0].sender.reductions.unwrap();
        assert!(reductions > 20, "{queue}: {reductions}");
        let (with, without) = (with.rows[0].payload_bps, without.rows[0].payload_bps);
        assert!(with > 0.95 * without, "{queue}: {with}, {without} without Snoop");
    }
}

#[test]
fn on_a_clean_hop_and_inside_esp_snoop_changes_nothing() {
    let tunnel = format!("{TODAY}\n[[tunnels]]\nfrom = \"fixed\"\nto = \"mobile\"");
    for (bit, flow) in [("0.0", TODAY), ("3e-6", &tunnel)] {
        let [with, without] = [SNOOP, ""].map(|station| download(station, bit, flow));
        assert_eq!(digest(&with), digest(&without), "{bit}");
        assert_eq!(run(&with).rows, run(&without).rows, "{bit}");
        assert!(run(&with).box_counts.is_empty());
    }
}

#[test]
fn a_small_cache_leaves_losses_to_the_sender() {
    let rate = |cache: &str| {
        let station = SNOOP.replace("\"mobile\"", &format!("\"mobile\", cache = {cache}"));
        rows(&station, "3e-6", TODAY)[0].payload_bps
    };
    let rates = ["1", "10", "256"].map(rate);
    assert!(rates.is_sorted() && rates[0] < 0.7 * rates[2], "{rates:?}");
}

#[test]
fn wrong_settings_are_errors() {
    let message = |settings: &str| {
        let station = format!("boxes = [{{ box = \"snoop\"{settings} }}]");
        error(&download(&station, "0.0", TODAY)).to_string()
    };
    let cases = [
        ("", "missing key `hop`"),
        (", hop = \"moblie\"", "`moblie` is no neighbour of this node"),
        (", hop = \"mobile\", cache = 0", "expected a whole number, 1 or more"),
        (", hop = \"mobile\", min_timeout = \"0 s\"", "expected more than 0 s"),
        (", hop = \"mobile\", tcp = {}", "unknown key `tcp`"),
    ];
    for (settings, expected) in cases {
        let found = message(settings);
        assert!(found.contains(expected), "{settings}: {found}");
    }
}
