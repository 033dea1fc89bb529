//! A spoofer that knows the rate of the satellite hop, or measures it.

use crate::common::{error, run, run_with};
use lab::{Column, Outcome, Row, Watch};

/// A server 20 ms from a gateway, a terminal behind a satellite hop of 10 Mbit/s and 250 ms, and two
/// users behind that. `hop` is what the hop has besides.
fn path(spoofer: &str, hop: &str, flows: &str) -> String {
    let link = |between: &str, rest: &str| format!("[[links]]\nbetween = {between}\n{rest}\n");
    let user = "rate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"1000 packets\"";
    let links = [
        link("[\"server\", \"gateway\"]", &user.replace("1 ms", "20 ms")),
        link(
            "[\"gateway\", \"terminal\"]",
            &format!("rate = \"10 Mbit/s\"\ndelay = \"250 ms\"\n{hop}"),
        ),
        link("[\"terminal\", \"alice\"]", user),
        link("[\"terminal\", \"bob\"]", user),
    ];
    format!(
        "title = \"hop\"\nduration = \"60 s\"\n[nodes]\nserver = {{}}\nterminal = {{}}\nalice = {{}}\n\
         bob = {{}}\ngateway = {{ boxes = [{{ box = \"spoofer\"{spoofer} }}] }}\n{}{flows}",
        links.concat()
    )
}

const GIVEN: &str = ", hop = \"terminal\", rate = \"10 Mbit/s\"";
const MEASURED: &str = ", hop = \"terminal\", rate = \"measured\"";
/// Less than a twentieth of what the hop carries in a round trip.
const SHORT: &str = "queue = \"20 packets\"";
const LONG: &str = "queue = \"400 packets\"";
/// Bits of payload per second that the hop carries at most: 1448 of 1500 bytes.
const MOST: f64 = 10e6 * 1448.0 / 1500.0;

/// A download, with its traffic and what else it has.
fn flow(to: &str, rest: &str) -> String {
    format!("[[flows]]\nfrom = \"server\"\nto = \"{to}\"\n{rest}\n")
}

fn sized(size: &str) -> String {
    flow("alice", &format!("traffic = {{ size = \"{size}\" }}"))
}

/// Ten downloads of one user and one of the other, from a time on.
fn ten_and_one(start: &str) -> String {
    let bulk = format!("traffic = \"bulk\"\nstart = \"{start}\"");
    flow("alice", &bulk).repeat(10) + &flow("bob", &bulk)
}

/// Packets that the queue of the hop dropped.
fn dropped(outcome: &Outcome) -> u64 {
    let hop = outcome.links.iter().find(|(name, _)| name == "gateway->terminal");
    hop.unwrap().1.dropped
}

fn count(outcome: &Outcome, name: &str) -> u64 {
    outcome.box_counts.iter().filter(|one| one.name == name).map(|one| one.count).sum()
}

/// Jain's index of the rates of both users.
fn fairness(rows: &[Row]) -> f64 {
    let rates = ["alice", "bob"].map(|name| {
        rows.iter().filter(|row| row.to == name).map(|row| row.payload_bps).sum::<f64>()
    });
    let sum = rates[0] + rates[1];
    sum * sum / (2.0 * (rates[0] * rates[0] + rates[1] * rates[1]))
}

#[test]
fn with_a_given_rate_the_queue_of_the_hop_does_not_overflow() {
    let transfer = |spoofer| {
        let outcome = run(&path(spoofer, SHORT, &sized("30 MB")));
        assert_eq!(outcome.rows[0].payload_bytes, 30_000_000);
        (dropped(&outcome), outcome.rows[0].completed_s.unwrap())
    };
    let (plain, given) = (transfer(""), transfer(GIVEN));
    assert!(plain.0 > 20 && given.0 == 0, "{plain:?} {given:?}");
    // The hop takes 24.86 s for it; before, the handshake and two round trips of data and its answers.
    let least = 30e6 * 8.0 / MOST + 0.542 + 0.542;
    assert!(given.1 < least / 0.97 && plain.1 > 1.5 * given.1, "{plain:?} {given:?}");
}

#[test]
fn the_hop_is_used_fully_and_its_users_have_equal_shares() {
    let outcomes = ["", GIVEN].map(|spoofer| run(&path(spoofer, LONG, &ten_and_one("0 s"))));
    let total = |outcome: &Outcome| outcome.rows.iter().map(|row| row.payload_bps).sum::<f64>();
    assert!(total(&outcomes[1]) > 0.98 * MOST * 58.9 / 60.0, "{}", total(&outcomes[1]));
    assert_eq!(dropped(&outcomes[1]), 0);
    let [plain, given] = outcomes.each_ref().map(|outcome| fairness(&outcome.rows));
    // One in eleven and ten in eleven have an index of 0.6.
    assert!(plain < 0.65 && given > 0.999, "{plain} {given}");
    // The connections of one user have equal shares of its own.
    let rates = outcomes[1].rows[..10].iter().map(|row| row.payload_bps);
    let [least, most] = [rates.clone().fold(f64::MAX, f64::min), rates.fold(0.0, f64::max)];
    assert!(most < 1.02 * least, "{least} {most}");
}

#[test]
fn uploads_pass_beside_downloads() {
    let upload = "[[flows]]\nfrom = \"alice\"\nto = \"server\"\ntraffic = \"bulk\"\n";
    let flows = flow("alice", "traffic = \"bulk\"") + upload;
    let outcome = run(&path(GIVEN, LONG, &flows));
    let rates: Vec<_> = outcome.rows.iter().map(|row| row.payload_bps / MOST).collect();
    assert!(rates[0] > 0.88 && rates[1] > 0.8, "{rates:?}");
    assert!(dropped(&outcome) == 0, "{}", dropped(&outcome));
}

#[test]
fn what_the_gateway_holds_is_bounded() {
    let held = |spoofer: &str, megabytes: u64| {
        let outcome = run(&path(spoofer, LONG, &sized(&format!("{megabytes} MB"))));
        assert_eq!(outcome.rows[0].payload_bytes, megabytes * 1_000_000);
        count(&outcome, "bytes held at most of one connection")
    };
    // As published, nearly all of it.
    let plain = held("", 30);
    // What is under way over the hop, and the receive window of the gateway.
    let given = held(GIVEN, 30);
    assert!(plain > 25_000_000 && given < 1_500_000, "{plain} {given}");
    let window = ", tcp = { receive_window = \"100 kB\" }";
    // Of a cache, as much as is in flight, at the end of slow start, and as much again.
    let cached = held(&format!(", cache = \"16 MB\"{window}"), 30);
    assert!((1_000_000..5_000_000).contains(&cached), "{cached}");
    for cache in [100_000, 300_000] {
        let bounded = held(&format!("{GIVEN}, cache = {cache}{window}"), 5);
        assert!((cache..=cache + 100_000).contains(&bounded), "{cache} {bounded}");
    }
}

/// What the gateway holds, at every change.
fn held_over_time(spoofer: &str, megabytes: u64) -> Vec<i64> {
    let text = path(spoofer, LONG, &sized(&format!("{megabytes} MB")));
    let series = run_with(&text, 1, &Watch { series: true, ..Watch::default() }).series.unwrap();
    let [(node, table)] = &series.boxes[..] else { panic!("{:?}", series.boxes) };
    assert_eq!(node, "gateway");
    let held = table.columns().iter().find(|(name, _)| name == "held_bytes");
    let Some((_, Column::Integer(held))) = held else { panic!("{table:?}") };
    held.clone()
}

#[test]
fn what_the_gateway_holds_is_bounded_at_every_moment() {
    let plain = held_over_time("", 30);
    assert!(plain.iter().any(|&held| held > 25_000_000), "{:?}", plain.iter().max());
    assert_eq!(plain.last(), Some(&0));
    let window = ", tcp = { receive_window = \"100 kB\" }";
    for rate in ["", GIVEN] {
        let bounded = held_over_time(&format!("{rate}, cache = 300000{window}"), 5);
        assert!(bounded.iter().all(|&held| held <= 400_000), "{rate}: {:?}", bounded.iter().max());
        // The bound holds it back for most of the transfer.
        let full = bounded.iter().filter(|&&held| held > 250_000).count();
        assert!(full > bounded.len() / 2, "{rate}: {full} of {}", bounded.len());
        assert_eq!(bounded.last(), Some(&0), "{rate}");
    }
}

#[test]
fn the_rate_is_measured_by_the_first_connection_that_fills_the_hop() {
    // Ten seconds of one user alone, whose slow start overruns the queue.
    let first = sized("10 MB");
    let alone = run(&path(MEASURED, LONG, &first));
    let rate = count(&alone, "rate of the hop, bit/s");
    assert!(rate.abs_diff(10_000_000) < 1_000_000, "{rate}");
    let outcome = run(&path(MEASURED, LONG, &(first + &ten_and_one("20 s"))));
    assert!(fairness(&outcome.rows[1..]) > 0.97, "{}", fairness(&outcome.rows[1..]));
    let rest: f64 = outcome.rows[1..].iter().map(|row| row.payload_bps).sum();
    assert!(rest > 0.95 * MOST * 38.9 / 40.0, "{rest}");
    let later = dropped(&outcome) - dropped(&alone);
    assert!(later < dropped(&alone), "{later} {}", dropped(&alone));
}

#[test]
fn while_the_rate_is_unknown_pacing_helps_over_a_short_queue() {
    let completed = |more: &str| {
        let outcome = run(&path(&format!("{MEASURED}{more}"), SHORT, &sized("30 MB")));
        outcome.rows[0].completed_s.unwrap()
    };
    let (burst, paced) = (completed(""), completed(", tcp = { pacing = true }"));
    assert!(paced < 0.75 * burst, "{paced} {burst}");
}

#[test]
fn a_changed_rate_is_measured_during_a_transfer() {
    for (rate, expected) in [("3 Mbit/s", 3e6), ("20 Mbit/s", 20e6)] {
        let changes = format!("changes = {{ at = [{{ start = \"30 s\", rate = \"{rate}\" }}] }}");
        let hop = format!("{LONG}\n{changes}");
        let outcome = run(&path(MEASURED, &hop, &flow("alice", "traffic = \"bulk\"")));
        let measured = count(&outcome, "rate of the hop, bit/s") as f64;
        assert!((0.9..1.1).contains(&(measured / expected)), "{rate}: {measured}");
    }
}

#[test]
fn corruption_on_the_hop_leaves_the_shares_equal() {
    let hop = format!("{LONG}\nerrors = {{ packet = 0.002 }}");
    let bbr = format!("{GIVEN}, tcp = {{ congestion = \"bbr\" }}");
    let outcome = run(&path(&bbr, &hop, &ten_and_one("0 s")));
    assert!(fairness(&outcome.rows) > 0.98, "{}", fairness(&outcome.rows));
    let total: f64 = outcome.rows.iter().map(|row| row.payload_bps).sum();
    assert!(total > 0.95 * MOST * 58.9 / 60.0, "{total}");
}

#[test]
fn a_slow_reader_does_not_hold_others_up() {
    let slow = "traffic = { size = \"30 MB\" }\ntcp = { receive_window = \"16 kB\" }";
    let flows = flow("bob", slow) + &flow("alice", "traffic = \"bulk\"");
    let outcome = run(&path(GIVEN, SHORT, &flows));
    // 16 kB in a round trip.
    let rates: Vec<_> = outcome.rows.iter().map(|row| row.payload_bps).collect();
    assert!((0.2e6..0.28e6).contains(&rates[0]), "{rates:?}");
    assert!(rates[1] > 0.95 * (MOST * 58.9 / 60.0 - rates[0]), "{rates:?}");
    assert_eq!(dropped(&outcome), 0);
}

#[test]
fn wrong_settings_of_the_hop_are_errors_at_their_place() {
    let at = "`nodes.gateway.boxes.0";
    let wrong = [
        (
            ", hop = \"terminal\", rate = \"0 Mbit/s\"",
            "`nodes.gateway.boxes.0.rate = \"0 Mbit/s\"`: expected a rate above 0, such as \"1.5 Mbit/s\", or \
             \"measured\"",
        ),
        (
            ", hop = \"terminal\", rate = 10",
            "`nodes.gateway.boxes.0.rate = 10`: found integer `10`, expected a rate above 0, such as \
             \"1.5 Mbit/s\", or \"measured\"",
        ),
        (", rate = \"measured\"", "`nodes.gateway.boxes.0`: `rate` needs `hop`"),
        (
            ", hop = \"alice\", rate = \"measured\"",
            "`nodes.gateway.boxes.0`: `alice` is no neighbour of this node",
        ),
    ];
    for (spoofer, message) in wrong {
        let found = error(&path(spoofer, SHORT, &sized("1 MB"))).to_string();
        assert!(message.starts_with(at) && found.starts_with(message), "{found}");
    }
}

#[test]
fn data_arrives_at_the_same_time_with_each_kind_of_handshake() {
    let completed = |connect: &str| {
        let spoofer = format!("{GIVEN}, connect = \"{connect}\"");
        let outcome = run(&path(&spoofer, LONG, &sized("1 MB")));
        assert_eq!(outcome.rows[0].payload_bytes, 1_000_000);
        outcome.rows[0].completed_s.unwrap()
    };
    let [end_to_end, first, at_once] = ["end-to-end", "first", "at-once"].map(completed);
    // Data follows the handshake over the hop in each case, and there is no slow start. A client that was accepted
    // at once has shown that it is there before the gateway connects to its server.
    assert!((end_to_end - first).abs() < 0.04, "{end_to_end} {first}");
    assert!((first - at_once).abs() < 0.001, "{first} {at_once}");
}
