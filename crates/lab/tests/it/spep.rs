//! SPEP: a base station tells a mobile host which packets its hop has lost, although ESP hides TCP
//! (`obanaik2003` ch. 4 and 5).

use crate::common::{digest, error, run};
use lab::Outcome;

/// A fixed host, `delay` from a base station, and a mobile host behind a hop that loses one packet in so many bytes,
/// as in the thesis; what differs is in the boxes of the three nodes, the flow's settings, and the links'.
struct Path<'a> {
    delay: &'a str,
    gap: &'a str,
    boxes: [&'a str; 3],
    tcp: &'a str,
    wired: &'a str,
    hop: &'a str,
}

const WAN: Path<'_> =
    Path { delay: "200 ms", gap: "32 KiB", boxes: [ESP, "", ESP], tcp: "", wired: "", hop: "" };

const ESP: &str = "{ box = \"esp\" }";
const ELN: &str = "mechanisms = [{ mechanism = \"eln\" }]";

/// SPEP at all three nodes.
const SPEP: Path<'_> = Path {
    boxes: [
        "{ box = \"esp\", spep = true }",
        "{ box = \"spep\", hop = \"mobile\" }",
        "{ box = \"esp\", loss_causes = \"station\" }",
    ],
    tcp: ELN,
    ..WAN
};

impl Path<'_> {
    fn text(&self) -> String {
        let Path { delay, gap, boxes: [fixed, station, mobile], tcp, wired, hop } = self;
        format!(
            r#"title = "download"
duration = "100 s"
profile = "ns2-2007"
[nodes]
fixed = {{ boxes = [{fixed}] }}
mobile = {{ boxes = [{mobile}] }}
station = {{ boxes = [{station}] }}
[[links]]
between = ["fixed", "station"]
rate = "10 Mbit/s"
delay = "{delay}"
{wired}
[[links]]
between = ["station", "mobile"]
rate = "10 Mbit/s"
delay = "1 ms"
forward = {{ errors = {{ bursts = {{ gap = "{gap}", length = 1, damage = "corruption" }} }} }}
{hop}
[[flows]]
from = "fixed"
to = "mobile"
ip = 6
tcp = {{ recovery = "newreno", mss = 1300, receive_window = "64 KiB", {tcp} }}
"#
        )
    }

    fn goodput(&self) -> f64 {
        run(&self.text()).rows[0].payload_bps
    }
}

fn count(run: &Outcome, node: &str, name: &str) -> u64 {
    let counts = run.box_counts.iter();
    counts.filter(|count| count.node == node && count.name == name).map(|count| count.count).sum()
}

#[test]
fn spep_is_between_newreno_and_a_receiver_that_knows_its_losses() {
    let knows = "{ box = \"esp\", loss_causes = \"link\" }";
    for delay in ["20 ms", "200 ms"] {
        let newreno = Path { delay, ..WAN }.goodput();
        let spep = Path { delay, ..SPEP }.goodput();
        let eln = Path { delay, boxes: [ESP, "", knows], tcp: ELN, ..WAN }.goodput();
        assert!(spep > 1.5 * newreno, "{delay}: {spep} and {newreno} bit/s");
        assert!(spep > 0.9 * eln && spep < 1.02 * eln, "{delay}: {spep} and {eln} bit/s");
    }
}

#[test]
fn without_the_base_station_or_the_bit_nothing_is_gained() {
    let newreno = WAN.goodput();
    let [fixed, _, mobile] = SPEP.boxes;
    for path in [Path { boxes: [fixed, "", mobile], ..SPEP }, Path { tcp: "", ..SPEP }] {
        let goodput = path.goodput();
        assert!(goodput < 1.2 * newreno, "{goodput} and {newreno} bit/s");
    }
}

#[test]
fn no_corruption_is_taken_for_congestion_where_nothing_is_reordered() {
    for gap in ["8 KiB", "32 KiB"] {
        let run = run(&Path { gap, ..SPEP }.text());
        let counted = |name| count(&run, "mobile", name);
        assert!(counted("damaged_as_corruption") > 100, "{gap}");
        assert_eq!(counted("damaged_as_congestion"), 0, "{gap}");
        assert_eq!(counted("lost_to_congestion"), 0, "{gap}");
        assert_eq!(counted("damaged_as_corruption"), counted("lost_to_corruption"), "{gap}");
    }
}

#[test]
fn sequence_numbers_may_wrap() {
    let wrapping = [
        "{ box = \"esp\", spep = true, first_sequence = 4294966000 }",
        SPEP.boxes[1],
        "{ box = \"esp\", loss_causes = \"station\", first_sequence = 4294967290 }",
    ];
    let [wrapping, other] = [wrapping, SPEP.boxes].map(|boxes| run(&Path { boxes, ..SPEP }.text()));
    assert_eq!(wrapping.rows, other.rows);
    assert!(count(&wrapping, "mobile", "opened") > 3000);
}

#[test]
fn what_was_forgotten_is_counted_apart() {
    // Datagrams, which losses do not slow down. Many runs before the hop, and bursts on it: more runs than blocks lie
    // between two packets that arrive.
    let wired = "forward = { errors = { packet = 0.1 } }";
    let text = Path { wired, ..SPEP }.text().replace("length = 1,", "length = 12,");
    let tcp = text.find("tcp = ").unwrap();
    let udp = "traffic = { udp = { rate = \"4 Mbit/s\", packet = 1000 } }";
    let run = run(&format!("{}{udp}\n", &text[..tcp]));
    let counted = |name| count(&run, "mobile", name);
    assert!(counted("damaged_as_forgotten") > 10, "{}", counted("damaged_as_forgotten"));
    assert_eq!(counted("damaged_as_congestion"), 0);
    assert_eq!(counted("damaged_as_before_station"), 0);
    assert_eq!(counted("damaged_as_corruption"), counted("lost_to_corruption"));
}

#[test]
fn with_reordering_only_what_was_late_is_mistaken() {
    for (probability, place) in [("0.01", "before"), ("0.05", "before"), ("0.05", "behind")] {
        let reordering =
            format!("reordering = {{ probability = {probability}, delay = \"5 ms\" }}");
        let text = match place {
            "before" => Path { delay: "20 ms", wired: &reordering, ..SPEP }.text(),
            _ => Path { delay: "20 ms", hop: &reordering, ..SPEP }.text(),
        };
        let run = run(&text);
        let counted = |name| count(&run, "mobile", name);
        assert!(counted("late") > 20, "{probability} {place}");
        assert_eq!(counted("damaged_as_congestion"), 0, "{probability} {place}");
        assert_eq!(counted("damaged_as_before_station"), 0, "{probability} {place}");
        // Behind the base station, what is late was received there, and counts as corruption.
        let mistaken = counted("lost_to_corruption") - counted("damaged_as_corruption");
        assert_eq!(mistaken > 0, place == "behind", "{probability} {place}: {mistaken}");
        assert_eq!(run.rows[0].misplaced, 0);
    }
}

#[test]
fn a_duplicate_is_a_replay() {
    let hop = "duplication = 0.05";
    let run = run(&Path { delay: "20 ms", hop, ..SPEP }.text());
    let replays: u64 = run.box_drops.iter().map(|drops| drops.packets).sum();
    assert!(replays > 50, "{replays}");
    assert_eq!(run.rows[0].misplaced, 0);
}

#[test]
fn congestion_is_told_from_corruption() {
    // The wired queue overflows; the window is larger than the path.
    let wired = "queue = \"10 packets\"\nmtu = 1500";
    let tcp = format!("{ELN}, receive_window = \"1 MB\"");
    let text = Path { delay: "20 ms", wired, tcp: &tcp, ..SPEP }.text();
    let text = text.replace("receive_window = \"64 KiB\", ", "");
    let run = run(&text);
    let counted = |name| count(&run, "mobile", name);
    assert!(counted("lost_to_congestion") > 20, "{}", counted("lost_to_congestion"));
    assert_eq!(counted("damaged_as_congestion"), 0);
    assert_eq!(counted("damaged_as_corruption"), counted("lost_to_corruption"));
    assert!(run.rows[0].sender.reductions.unwrap() > 5);
}

#[test]
fn what_the_stations_own_queue_drops_is_congestion() {
    let hop = "queue = \"5 packets\"";
    let text = Path { delay: "20 ms", gap: "10 MB", hop, ..SPEP }.text();
    let text = text.replacen("rate = \"10 Mbit/s\"", "rate = \"100 Mbit/s\"", 1);
    let run = run(&text);
    assert!(count(&run, "mobile", "lost_to_congestion") > 20);
    assert_eq!(
        count(&run, "mobile", "damaged_as_corruption"),
        count(&run, "mobile", "lost_to_corruption")
    );
}

#[test]
fn snoop_does_nothing_under_esp() {
    let snoop = "{ box = \"snoop\", hop = \"mobile\" }";
    let [with, without] = [snoop, ""].map(|station| Path { boxes: [ESP, station, ESP], ..WAN });
    assert_eq!(digest(&with.text()), digest(&without.text()));
    // In clear it helps.
    let [with, without] = [snoop, ""].map(|station| Path { boxes: ["", station, ""], ..WAN });
    assert!(with.goodput() > 1.5 * without.goodput());
}

#[test]
fn the_option_takes_32_bytes_of_each_packet() {
    // Of a clean path: the same packets, each of which ESP makes 36 bytes larger than in clear, or a little
    // more for its padding.
    let bytes = |path: &Path<'_>| {
        let run = run(&Path { gap: "1 GB", ..*path }.text());
        let (_, link) = &run.links[0];
        link.bytes as f64 / link.packets as f64
    };
    let [clear, esp, spep] = [&Path { boxes: ["", "", ""], ..WAN }, &WAN, &SPEP].map(bytes);
    assert!((esp - clear - 36.0).abs() < 1.0, "{esp} {clear}");
    assert!((spep - esp - 32.0).abs() < 0.1, "{spep} {esp}");
}

#[test]
fn packets_in_clear_are_refused() {
    let run = run(&Path { boxes: ["", "", ESP], ..WAN }.text());
    assert_eq!(run.rows[0].payload_bps, 0.0);
}

#[test]
fn wrong_settings_are_errors() {
    let message = |index: usize, settings: &str| {
        let mut boxes = SPEP.boxes;
        boxes[index] = settings;
        error(&Path { boxes, ..SPEP }.text()).to_string()
    };
    let cases = [
        (1, "{ box = \"spep\" }", "missing key `hop`"),
        (1, "{ box = \"spep\", hop = \"moblie\" }", "`moblie` is no neighbour of this node"),
        (1, "{ box = \"spep\", hop = \"mobile\", flows = 0 }", "1 or more"),
        (2, "{ box = \"esp\", loss_causes = \"statoin\" }", "station"),
        (0, "{ box = \"esp\", flows = [\"x\"] }", "there is no flow `x`"),
    ];
    for (index, settings, expected) in cases {
        let found = message(index, settings);
        assert!(found.contains(expected), "{settings}: {found}");
    }
}
