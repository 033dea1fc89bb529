//! A mobile host between base stations that split its connections and hand them over.

use crate::common::{error, run, run_with};
use lab::{Outcome, Row, Watch};

/// At `left` for as long as anything happens.
const STAYS: &str =
    r#"{ to = "left", start = "0 s", end = "119 s" }, { to = "right", start = "119 s" }"#;

/// The transports of the wireless hop.
const HOPS: [&str; 2] = ["tcp", "srp"];

/// A mobile host that is at the station `left`, away for a pause from 4 s on, and at `right` then; and a
/// server in the wired network.
fn path(pause: f64, transport: &str, hop: &str, flows: &str) -> String {
    let back = 4.0 + pause;
    path_with(
        &format!(
            r#"{{ to = "left", start = "0 s", end = "4 s" }}, {{ to = "right", start = "{back} s" }}"#
        ),
        "{ box = \"station\", mtu = 256 }",
        transport,
        hop,
        flows,
    )
}

fn path_with(places: &str, station: &str, transport: &str, hop: &str, flows: &str) -> String {
    format!(
        r#"title = "handoff"
duration = "120 s"
[nodes]
left = {{ boxes = [{station}] }}
right = {{ boxes = [{station}] }}
campus = {{}}
server = {{}}
[nodes.mobile]
boxes = [{{ box = "mobile", hop = "{transport}", mtu = 256 }}]
attached = {{ at = [{places}] }}
[[links]]
between = ["mobile", "left"]
rate = "256 kbit/s"
delay = "5 ms"
queue = "30 packets"
{hop}
[[links]]
between = ["mobile", "right"]
rate = "256 kbit/s"
delay = "5 ms"
queue = "30 packets"
{hop}
[[links]]
between = ["left", "campus"]
rate = "10 Mbit/s"
delay = "1 ms"
[[links]]
between = ["right", "campus"]
rate = "10 Mbit/s"
delay = "1 ms"
[[links]]
between = ["campus", "server"]
rate = "1.5 Mbit/s"
delay = "40 ms"
{flows}"#
    )
}

/// A flow of 100 kB.
fn flow(from: &str, to: &str, start: f64) -> String {
    format!(
        "[[flows]]\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start} s\"\n\
         traffic = {{ size = \"100 kB\" }}\n"
    )
}

fn count(outcome: &Outcome, node: &str, name: &str) -> u64 {
    let counts = outcome.box_counts.iter();
    counts.filter(|one| one.name == name && one.node == node).map(|one| one.count).sum()
}

fn whole(row: &Row) {
    assert_eq!(row.payload_bytes, 100_000, "{row:?}");
}

#[test]
fn a_transfer_survives_a_handoff_in_both_directions() {
    for (pause, transport) in [0.0, 1.0, 2.8].into_iter().flat_map(|p| HOPS.map(|hop| (p, hop))) {
        let flows = flow("mobile", "server", 1.0) + &flow("server", "mobile", 1.0);
        let outcome = run(&path(pause, transport, "", &flows));
        outcome.rows.iter().for_each(whole);
        assert_eq!(count(&outcome, "left", "connections handed over"), 2);
        assert_eq!(count(&outcome, "right", "connections taken over"), 2);
    }
}

/// The settings of a path where the mobile host stays at one station.
fn stays(restarts: &str, transport: &str, flows: &str) -> String {
    let station = format!("{{ box = \"station\", mtu = 256{restarts} }}");
    path_with(STAYS, &station, transport, "", flows)
}

#[test]
fn a_base_station_that_loses_its_state_has_both_ends_reset() {
    let flows = flow("mobile", "server", 1.0) + &flow("server", "mobile", 1.0);
    for transport in HOPS {
        let outcome = run(&stays(", restarts = [\"2 s\"]", transport, &flows));
        for row in &outcome.rows {
            assert!(row.failed == 1 && row.payload_bytes < 100_000, "{row:?}");
            // The host refreshes its attachment every five seconds.
            assert_eq!(row.misplaced, 0);
        }
        assert_eq!(count(&outcome, "mobile", "attachments whose state was lost"), 1, "{transport}");
        assert_eq!(count(&outcome, "mobile", "connections reset"), 2, "{transport}");
        let without = run(&stays("", transport, &flows));
        without.rows.iter().for_each(whole);
        assert_eq!(count(&without, "mobile", "attachments whose state was lost"), 0);
    }
}

/// Both ends of the flow would send segments of 1460 bytes; the wireless hop takes packets of 256.
#[test]
fn the_small_packets_of_the_wireless_hop_become_large_ones_of_the_wired_path() {
    let flows = flow("mobile", "server", 1.0);
    for transport in HOPS {
        let outcome = run(&stays("", transport, &flows));
        let packets =
            |name: &str| outcome.links.iter().find(|(link, _)| link == name).unwrap().1.packets;
        let (wireless, wired) = (packets("mobile->left"), packets("campus->server"));
        assert!(wireless > 100_000 / 216, "{transport}: {wireless}");
        assert!(wireless > 3 * wired, "{transport}: {wireless} {wired}");
        whole(&outcome.rows[0]);
    }
}

#[test]
fn boxes_of_another_network_do_not_serve_the_host() {
    let flows = flow("mobile", "server", 1.0);
    let strange = stays(", secret = \"another\"", "tcp", &flows);
    let outcome = run(&strange);
    // It goes on without.
    whole(&outcome.rows[0]);
    assert_eq!(count(&outcome, "left", "split connections"), 0);
    assert!(count(&outcome, "left", "messages that are not authentic") > 0);
}

/// A mobile host `phone` at the station `far`, beside `mobile` at `left`.
fn two_mobiles(far: &str, transports: [&str; 2], boxes: &str) -> String {
    let station = format!("{{ box = \"station\", mtu = 256{boxes} }}");
    let path = path_with(STAYS, &station, transports[0], "", &flow("mobile", "phone", 1.0));
    let phone = format!(
        "[nodes.phone]\nboxes = [{{ box = \"mobile\", hop = \"{}\", mtu = 256 }}]\n",
        transports[1]
    );
    let link = format!(
        "[[links]]\nbetween = [\"phone\", \"{far}\"]\nrate = \"256 kbit/s\"\ndelay = \"5 ms\"\n"
    );
    path.replace(
        "[[links]]\nbetween = [\"mobile\", \"left\"]",
        &format!("{phone}{link}[[links]]\nbetween = [\"mobile\", \"left\"]"),
    )
}

#[test]
fn between_two_mobile_hosts_each_station_splits_the_connection_once() {
    for one in HOPS {
        for other in HOPS {
            for far in ["right", "left"] {
                let outcome = run(&two_mobiles(far, [one, other], ""));
                whole(&outcome.rows[0]);
                let split = |node| count(&outcome, node, "split connections");
                let expected = if far == "left" { [1, 0] } else { [1, 1] };
                assert_eq!([split("left"), split("right")], expected, "{one} {other} {far}");
            }
        }
    }
}

#[test]
fn at_a_base_station_without_an_agent_packets_pass_as_they_are() {
    let flows = flow("mobile", "server", 0.0).replace("traffic", "tcp = { mss = 216 }\ntraffic");
    for transport in HOPS {
        let plain = stays("", transport, &flows)
            .replace("left = { boxes = [{ box = \"station\", mtu = 256 }] }", "left = {}");
        let outcome = run(&plain);
        whole(&outcome.rows[0]);
        // It begins once the agent has given up.
        assert!(outcome.rows[0].completed_s.unwrap() > 10.0);
    }
}

#[test]
fn a_host_whose_agent_answers_at_once_sends_as_much_as_its_agent_holds() {
    let bulk = "[[flows]]\nfrom = \"mobile\"\nto = \"server\"\nstart = \"1 s\"\ntraffic = \"bulk\"\ntcp = { mss = 216 }\n";
    let path = stays("", "srp", bulk).replace("hop = \"srp\"", "hop = \"srp\", cache = \"2 MiB\"");
    let outcome = run(&path);
    // The hop carries 212 bytes in a packet of 256.
    let most = 256e3 * 212.0 / 256.0;
    assert!(outcome.rows[0].payload_bps > 0.9 * most, "{:?}", outcome.rows[0]);
}

/// A mobile host that moves four times, on a path whose control messages (UDP), and whose transfers of
/// state (TCP), are impaired where they arrive.
fn impaired(transport: &str, messages: &str, transfers: &str) -> String {
    let box_of = |protocol: &str, settings: &str| {
        format!(
            "{{ box = \"impairment\", protocol = \"{protocol}\", ports = [59434], {settings} }}"
        )
    };
    let boxes = format!("{}, {}, ", box_of("udp", messages), box_of("tcp", transfers));
    let stays = [("left", 3.0, 5.0), ("right", 5.5, 8.0), ("left", 8.0, 8.3), ("right", 9.3, 14.0)];
    let stays = stays.map(|(to, start, end)| {
        format!("{{ to = \"{to}\", start = \"{start} s\", end = \"{end} s\" }}, ")
    });
    let places = format!(
        "{{ to = \"left\", start = \"0 s\", end = \"3 s\" }}, {}{{ to = \"left\", start = \"14 s\" }}",
        stays.concat()
    );
    let flows = flow("mobile", "server", 1.0) + &flow("server", "mobile", 1.0);
    let station = format!("{boxes}{{ box = \"station\", mtu = 256 }}");
    path_with(&places, &station, transport, "", &flows)
        .replace("boxes = [{ box = \"mobile\"", &format!("boxes = [{boxes}{{ box = \"mobile\""))
}

/// Runs it with several seeds; returns how many connections failed, and how many packets were impaired.
fn outcomes(transport: &str, messages: &str, transfers: &str, seeds: u64) -> (u64, u64) {
    let text = impaired(transport, messages, transfers);
    let (mut failed, mut impaired) = (0, 0);
    for seed in 1..=seeds {
        let outcome = run_with(&text, seed, &Watch::default());
        for row in &outcome.rows {
            // It came to its end within the 120 s of the run: whole, or both ends know.
            let at = format!("{transport}, {messages}, {transfers}, seed {seed}: {row:?}");
            assert_eq!(row.finished + row.failed, 1, "{at}");
            assert!(row.failed == 1 || row.payload_bytes == 100_000, "{at}");
            failed += row.failed;
        }
        for node in ["mobile", "left", "right"] {
            for what in ["lost", "duplicated", "reordered"] {
                impaired += count(&outcome, node, &format!("selected packets {what}"));
            }
        }
    }
    (failed, impaired)
}

#[test]
fn streams_survive_the_loss_of_control_messages_or_their_ends_are_reset() {
    for transport in HOPS {
        for loss in [0.0, 0.1, 0.3, 0.5] {
            let settings = format!("loss = {loss}");
            let (failed, impaired) = outcomes(transport, &settings, "loss = 0.0", 4);
            assert_eq!(impaired > 0, loss > 0.0, "{transport} {loss}");
            // Messages are repeated: the state is not lost with them.
            assert_eq!(failed, 0, "{transport} {loss}");
        }
        outcomes(transport, "loss = 0.5", "loss = 0.5", 4);
    }
}

#[test]
fn late_repeated_and_reordered_control_messages_have_no_effect() {
    let late =
        "delay = \"300 ms\", duplication = 0.5, reordering = 0.3, reordering_delay = \"2 s\"";
    for transport in HOPS {
        let (failed, impaired) = outcomes(transport, late, late, 4);
        assert!(failed == 0 && impaired > 0, "{transport}: {failed} {impaired}");
    }
}

#[test]
fn srp_sends_at_the_rate_that_the_sending_end_is_given() {
    let bulk = |from, to| {
        format!(
            "[[flows]]\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"1 s\"\ntraffic = \"bulk\"\n"
        )
    };
    let rate = r#", rate = "128 kbit/s""#;
    let used = |path: &str| {
        let outcome = run(path);
        let payload_bps = outcome.rows[0].payload_bps;
        // The association moves from one station to the other in the end.
        let nodes = ["left", "right", "mobile"];
        assert!(nodes.iter().any(|node| count(&outcome, node, "SRP segments") > 0));
        payload_bps / (256e3 * 212.0 / 256.0)
    };
    for (from, to, sender) in [("server", "mobile", "left"), ("mobile", "server", "mobile")] {
        let whole = stays("", "srp", &bulk(from, to));
        assert!(used(&whole) > 0.9);
        let half = match sender {
            "left" => stays(rate, "srp", &bulk(from, to)),
            _ => whole.replace("hop = \"srp\"", &format!("hop = \"srp\"{rate}")),
        };
        let share = used(&half);
        assert!((0.45..0.51).contains(&share), "{from}: {share}");
    }
}

#[test]
fn settings_of_srp_are_refused_where_the_hop_has_tcp() {
    for setting in [r#", rate = "1 Mbit/s""#, ", share = true"] {
        let flows = flow("mobile", "server", 1.0);
        let with = |hop: &str| {
            let text = stays("", hop, &flows);
            text.replace(&format!("hop = \"{hop}\""), &format!("hop = \"{hop}\"{setting}"))
        };
        let refusal = error(&with("tcp")).to_string();
        assert!(refusal.contains("`rate` and `share` need `hop = \"srp\"`"), "{refusal}");
        whole(&run(&with("srp")).rows[0]);
    }
}

#[test]
fn a_new_association_needs_srp_on_the_hop() {
    let text = stays("", "tcp", &flow("mobile", "server", 1.0));
    let refusal =
        error(&text.replace("hop = \"tcp\"", "hop = \"tcp\", handoff = \"new\"")).to_string();
    assert!(refusal.contains("nodes.mobile.boxes.0"), "{refusal}");
    for part in ["sequence numbers cannot change", "`handoff = \"restored\"`", "`hop = \"srp\"`"] {
        assert!(refusal.contains(part), "{refusal}");
    }
}

/// Both ways, and whichever of the boxes has the setting: the mobile host decides.
#[test]
fn a_stream_survives_a_handoff_with_a_new_association() {
    let new = ", handoff = \"new\"";
    for (from, to) in [("mobile", "server"), ("server", "mobile")] {
        let restored = path(1.0, "srp", "", &flow(from, to, 1.0));
        let at_host = restored.replace("hop = \"srp\"", &format!("hop = \"srp\"{new}"));
        let at_both = at_host.replace("{ box = \"station\"", &format!("{{ box = \"station\"{new}"));
        let seconds = [&restored, &at_host, &at_both].map(|text| {
            let outcome = run(text);
            whole(&outcome.rows[0]);
            outcome.rows[0].completed_s.expect("it is whole")
        });
        assert_ne!(seconds[0], seconds[2], "{from}: another association takes another time");
    }
}
