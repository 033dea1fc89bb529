//! Random scenarios.

use base::{Random, Seed};
use std::fmt::Write as _;

fn of<'a>(random: &mut Random, choices: &[&'a str]) -> &'a str {
    choices[random.bits() as usize % choices.len()]
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    // Evenly on a logarithmic scale.
    libm::exp(random.between(libm::log(low), libm::log(high)))
}

/// The scenario with a number.
pub(crate) fn scenario(number: u64) -> String {
    let r = &mut Seed(number).stream("scenario");
    let profile = of(r, &["modern", "modern", "ns2-2001", "ns2-2007"]);
    let mut text = format!("title = \"random\"\nduration = \"10 s\"\nprofile = \"{profile}\"\n");
    let hops = 1 + r.bits() as usize % 3;
    text += "[nodes]\n";
    for node in 0..=hops {
        writeln!(text, "n{node} = {{}}").unwrap();
    }
    for hop in 0..hops {
        link(r, &mut text, hop);
    }
    let flows = 1 + r.bits() as usize % 3;
    for flow in 0..flows {
        let (from, to) = if r.chance(0.8) { (0, hops) } else { (hops, 0) };
        writeln!(text, "[[flows]]\nfrom = \"n{from}\"\nto = \"n{to}\"").unwrap();
        if r.chance(0.3) {
            writeln!(text, "ip = 6").unwrap();
        }
        writeln!(text, "start = \"{} ms\"", flow as u64 * (r.bits() % 2000)).unwrap();
        let traffic = [
            "\"bulk\"",
            "\"bulk\"",
            "{ size = \"300 kB\" }",
            "{ paced = { chunk = \"5 kB\", interval = \"40 ms\" } }",
            "{ reader = { chunk = \"2000 B\", interval = \"20 ms\" } }",
            "{ size = \"200 kB\", send_buffer = \"20 kB\" }",
            "{ requests = { request = \"500 B\", response = \"30 kB\", think = \"100 ms\" } }",
            "{ arrivals = { rate = 5 }, sizes = { exponential = { mean = \"20 kB\" } } }",
        ];
        writeln!(text, "traffic = {}", of(r, &traffic)).unwrap();
        tcp(r, &mut text);
    }
    text
}

fn link(r: &mut Random, text: &mut String, hop: usize) {
    let rate = between(r, 3e5, 5e7) as u64;
    let delay = between(r, 0.1, 200.0);
    writeln!(
        text,
        "[[links]]\nbetween = [\"n{hop}\", \"n{}\"]\nrate = \"{rate} bit/s\"\ndelay = \"{delay:.3} ms\"",
        hop + 1
    )
    .unwrap();
    let queues = [
        "\"50 packets\"",
        "\"100 packets\"",
        "\"30 kB\"",
        "{ limit = \"100 packets\", codel = {} }",
        "{ limit = \"60 packets\", red = {} }",
    ];
    writeln!(text, "queue = {}", of(r, &queues)).unwrap();
    let errors = [
        "{}",
        "{}",
        "{ bit = 1e-6 }",
        "{ bit = 1e-5 }",
        "{ packet = 0.01 }",
        "{ gilbert-elliott = { loss = 0.01, burst = 3, damage = \"corruption\" } }",
        "{ gilbert-elliott = { loss = 0.01, burst = 2, damage = \"loss\" } }",
    ];
    writeln!(text, "errors = {}", of(r, &errors)).unwrap();
    if r.chance(0.15) {
        writeln!(text, "reordering = {{ probability = 0.02, delay = \"30 ms\" }}").unwrap();
    }
    if r.chance(0.15) {
        writeln!(text, "duplication = 0.01").unwrap();
    }
    if r.chance(0.15) {
        writeln!(text, "jitter = \"5 ms\"").unwrap();
    }
    if r.chance(0.1) {
        writeln!(text, "outages = {{ mean_up = \"4 s\", mean_down = \"300 ms\" }}").unwrap();
    }
}

fn tcp(r: &mut Random, text: &mut String) {
    let mut settings = vec![
        format!("recovery = \"{}\"", of(r, &["tahoe", "reno", "newreno", "sack", "sack"])),
        format!(
            "eten = \"{}\"",
            of(r, &["none", "none", "oracle", "backward", "forward", "cumulative"])
        ),
        format!("receive_window = \"{} segments\"", of(r, &["8", "20", "100", "1000"])),
    ];
    let mut sometimes = |p: f64, setting: &str| {
        if r.chance(p) {
            settings.push(setting.to_owned());
        }
    };
    sometimes(0.5, "timestamps = true");
    sometimes(0.3, "timestamps = false");
    sometimes(0.4, "delayed_ack = \"100 ms\"");
    sometimes(0.15, "ecn = true");
    sometimes(0.2, "mss = 536");
    sometimes(0.2, "byte_counting = 2");
    if settings.iter().filter(|s| s.starts_with("timestamps")).count() == 2 {
        settings.retain(|s| s != "timestamps = false");
    }
    writeln!(text, "tcp = {{ {} }}", settings.join(", ")).unwrap();
}
