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
forward = {{ errors = {{ bursts = {{ gap = "64 KiB", length = 1, damage = "corruption" }} }} }}
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

fn count(run: &Outcome, name: &str) -> u64 {
    let counts = run.box_counts.iter().filter(|count| count.node == "mobile");
    counts.filter(|count| count.name == name).map(|count| count.count).sum()
}

#[test]
fn a_station_that_marks_everything_hides_congestion() {
    let honest = download(["", STATION, ""], "");
    let all = "{ box = \"spep\", hop = \"behind\", claims = \"everything\" }";
    let lying = download(["", all, ""], "");
    assert!(count(&honest, "lost_to_congestion") > 20);
    assert_eq!(count(&honest, "lost_to_corruption"), count(&honest, "damaged_as_corruption"));
    assert_eq!(count(&lying, "lost_to_congestion"), 0);
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
    assert_eq!(count(&behind, "lost_to_congestion"), 0);
}

#[test]
fn off_the_path_only_who_knows_the_association_does_harm() {
    let attack = |aim: &str, rate: u32| {
        let forged = "at = \"mallory\"\nflow = \"own\"\nkind = \"esp-packets\"\nstart = \"1 s\"";
        let more = format!("[[attacks]]\n{forged}\nrate = {rate}\naim = \"{aim}\"\nstop = \"2 s\"");
        download(["", STATION, ""], &more)
    };
    let found = |run: &Outcome| count(run, "damaged_as_corruption");
    let alone = found(&download(["", STATION, ""], ""));
    assert!(found(&attack("anywhere", 100)) > alone * 9 / 10);
    // Without authentication, one that is right makes all that follows seem late.
    let right = attack("window", 1);
    assert!(found(&right) < alone / 5, "{} of {alone}", found(&right));
    assert!(count(&right, "late") > 1000);
}

#[test]
fn on_the_path_who_takes_numbers_makes_packets_seem_replays() {
    let at = "at = \"router\"\nflow = \"own\"\nkind = \"esp-packets\"\nknowledge = \"on-path\"";
    let run = download(["", STATION, ""], &format!("[[attacks]]\n{at}\nevery = 20\n"));
    let replays: u64 = run.box_drops.iter().map(|drops| drops.packets).sum();
    assert!(replays > 100, "{replays}");
}
