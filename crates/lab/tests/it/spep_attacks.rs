//! Base stations that lie about what they have received, and others that forge it (beyond `obanaik2003`).

use crate::common::run;
use lab::Outcome;

const STATION: &str = "{ box = \"spep\", hop = \"behind\" }";

/// A download with SPEP over a congested queue, and what is put in place of the boxes of the nodes before, at and
/// behind the base station, and at its end.
fn download([before, station, behind]: [&str; 3], more: &str) -> Outcome {
    run(&format!(
        r#"title = "download"
duration = "60 s"
profile = "ns2-2007"
[nodes]
fixed = {{ boxes = [{{ box = "esp", spep = true }}] }}
mobile = {{ boxes = [{{ box = "esp", loss_causes = "station" }}] }}
router = {{ boxes = [{before}] }}
station = {{ boxes = [{station}] }}
behind = {{ boxes = [{behind}] }}
mallory = {{}}
[[links]]
between = ["fixed", "router"]
rate = "100 Mbit/s"
delay = "1 ms"
[[links]]
between = ["router", "station"]
rate = "5 Mbit/s"
delay = "20 ms"
queue = "10 packets"
[[links]]
between = ["station", "behind"]
rate = "10 Mbit/s"
delay = "0 ms"
[[links]]
between = ["behind", "mobile"]
rate = "10 Mbit/s"
delay = "1 ms"
[[links]]
between = ["mallory", "router"]
rate = "100 Mbit/s"
delay = "1 ms"
[[flows]]
name = "own"
from = "fixed"
to = "mobile"
ip = 6
[flows.tcp]
recovery = "newreno"
mss = 1300
receive_window = "256 KiB"
mechanisms = [{{ mechanism = "eln" }}]
{more}"#
    ))
}

fn reductions(run: &Outcome) -> u64 {
    run.rows[0].sender.reductions.unwrap()
}

#[test]
fn a_station_that_marks_everything_hides_congestion() {
    let honest = download(["", STATION, ""], "");
    let all = "{ box = \"spep\", hop = \"behind\", claims = \"everything\" }";
    let lying = download(["", all, ""], "");
    assert!(reductions(&honest) > 20, "{}", reductions(&honest));
    assert!(10 * reductions(&lying) < reductions(&honest), "{}", reductions(&lying));
    let dropped = |run: &Outcome| run.links[2].1.dropped;
    assert!(dropped(&lying) > 2 * dropped(&honest), "{} {}", dropped(&lying), dropped(&honest));
}

#[test]
fn a_station_that_marks_nothing_does_no_more_than_none() {
    let nothing = "{ box = \"spep\", hop = \"behind\", claims = \"nothing\" }";
    let [silent, none] = [nothing, ""].map(|station| download(["", station, ""], ""));
    assert_eq!(silent.rows, none.rows);
    assert_ne!(silent.rows, download(["", STATION, ""], "").rows);
}

#[test]
fn what_is_forged_before_the_station_is_overwritten_and_what_is_forged_behind_it_is_believed() {
    let forger = |hop| format!("{{ box = \"spep\", hop = \"{hop}\", claims = \"everything\" }}");
    let honest = download(["", STATION, ""], "");
    assert_eq!(download([&forger("station"), STATION, ""], "").rows, honest.rows);
    let behind = download(["", STATION, &forger("mobile")], "");
    assert!(10 * reductions(&behind) < reductions(&honest), "{}", reductions(&behind));
}

#[test]
fn off_the_path_only_who_knows_the_association_does_harm() {
    let attack = |aim: &str, rate: u32| {
        let forged = "at = \"mallory\"\nflow = \"own\"\nkind = \"esp-packets\"\nstart = \"20 s\"\nstop = \"21 s\"";
        let more = format!("[[attacks]]\n{forged}\nrate = {rate}\naim = \"{aim}\"\n");
        download(["", STATION, ""], &more).rows[0].payload_bytes
    };
    let alone = download(["", STATION, ""], "").rows[0].payload_bytes;
    // A thousand guesses take a second's queue for a moment.
    assert!(attack("anywhere", 100) > alone * 9 / 10);
    // Without authentication, one that is right makes all that follows look like replays.
    assert!(attack("window", 1) < alone / 2);
}
