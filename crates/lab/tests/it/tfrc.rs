//! TFRC beside TCP, and over a hop that damages packets, with SPEP's distinction of losses.

use crate::common::{error, run, run_with};
use lab::{Outcome, Watch};

/// A fixed host, a base station, and a mobile host; what differs is in the rates, errors and boxes.
struct Path<'a> {
    wired: &'a str,
    errors: &'a str,
    boxes: [&'a str; 3],
    udp: &'a str,
    others: &'a str,
}

const CLEAN: Path<'_> = Path {
    wired: "rate = \"4 Mbit/s\"\nqueue = \"50 packets\"",
    errors: "",
    boxes: ["", "", ""],
    udp: "",
    others: "",
};

/// SPEP at all three nodes.
const SPEP: [&str; 3] = [
    "{ box = \"esp\", spep = true }",
    "{ box = \"spep\", hop = \"mobile\" }",
    "{ box = \"esp\", loss_causes = \"station\" }",
];

/// One packet in twenty is damaged on the hop.
const ERRORS: &str = "forward = { errors = { packet = 0.05 } }";

const TCP: &str = r#"
[[flows]]
name = "tcp"
from = "fixed"
to = "mobile"
ip = 6
tcp = { recovery = "sack", mss = 940, receive_window = "200 segments" }
"#;

impl Path<'_> {
    fn text(&self) -> String {
        let Path { wired, errors, boxes: [fixed, station, mobile], udp, others } = self;
        format!(
            r#"title = "TFRC"
duration = "200 s"
[nodes]
fixed = {{ boxes = [{fixed}] }}
mobile = {{ boxes = [{mobile}] }}
station = {{ boxes = [{station}] }}
[[links]]
between = ["fixed", "station"]
delay = "40 ms"
{wired}
[[links]]
between = ["station", "mobile"]
rate = "10 Mbit/s"
delay = "1 ms"
{errors}
[[flows]]
name = "tfrc"
from = "fixed"
to = "mobile"
ip = 6
traffic = {{ udp = {{ rate_control = "tfrc", rate = "100 Mbit/s", packet = 1000{udp} }} }}
{others}"#
        )
    }

    fn run(&self) -> Outcome {
        run(&self.text())
    }

    /// The goodput of each flow, Mbit/s.
    fn goodputs(&self) -> Vec<f64> {
        self.run().rows.iter().map(|row| row.goodput_bps / 1e6).collect()
    }
}

#[test]
fn explore() {
    eprintln!("clean alone {:?} {:?}", CLEAN.goodputs(), CLEAN.run().rows[0].datagrams);
    eprintln!("clean + tcp {:?}", Path { others: TCP, ..CLEAN }.goodputs());
    let fast = "rate = \"10 Mbit/s\"\nqueue = \"50 packets\"";
    let lossy = Path { errors: ERRORS, wired: fast, ..CLEAN };
    let causes = Path { boxes: SPEP, udp: ", loss_causes = true", ..lossy };
    eprintln!("lossy {:?}", lossy.goodputs());
    eprintln!("lossy, spep off {:?}", Path { udp: "", ..causes }.goodputs());
    eprintln!("lossy, spep {:?}", causes.goodputs());
    let wired = CLEAN.wired;
    eprintln!("lossy, spep, narrow {:?}", Path { wired, ..causes }.goodputs());
    let eln = TCP.replace("tcp = {", "tcp = { mechanisms = [{ mechanism = \"eln\" }],");
    let others = &eln;
    eprintln!("lossy, spep + tcp eln {:?}", Path { wired, others, ..causes }.goodputs());
    let udp = "";
    eprintln!("lossy, no + tcp eln {:?}", Path { wired, others, udp, ..causes }.goodputs());
    eprintln!("lossy, spep + tcp {:?}", Path { wired, others: TCP, ..causes }.goodputs());
}
