//! Tunnels: notices of corruption inside (`bbn8333` §7.2), and the keys of scenario files.

use crate::common::{error, run, run_with, scenario, with};
use host::DropReason;
use lab::{Outcome, Watch};
use scenario::TunnelNotices;

/// Three long links in a row, of which the middle one corrupts packets.
const PATH: &str = r#"title = "a tunnel"
profile = "ns2-2001"
duration = "60 s"
[nodes]
a = {}
b = {}
c = {}
d = {}
[[links]]
between = ["a", "b"]
rate = "1.5 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[links]]
between = ["b", "c"]
rate = "1.5 Mbit/s"
delay = "10 ms"
queue = "50 packets"
forward = { errors = { bit = 1e-5 } }
[[links]]
between = ["c", "d"]
rate = "1.5 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[flows]]
from = "a"
to = "d"
tcp = { recovery = "sack", receive_window = "20 segments", eten = "backward" }
"#;

/// The path with some of its text replaced and a tunnel.
fn tunnel(changes: &[(&str, &str)], ends: (&str, &str), settings: &str) -> String {
    let text = changes.iter().fold(PATH.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "no {old:?} in the scenario");
        text.replace(old, new)
    });
    format!("{text}[[tunnels]]\nfrom = \"{}\"\nto = \"{}\"\n{settings}\n", ends.0, ends.1)
}

/// Notices on which the sender acted, and packets that were corrupted.
fn notices_of(outcome: &Outcome) -> (u64, u64) {
    let row = &outcome.rows[0];
    assert_eq!(row.misplaced, 0);
    (row.sender.notices.expect("a sender of ours counts"), outcome.totals.corrupted)
}

#[test]
fn an_egress_drops_replays_and_says_so() {
    let doubling = ("forward = { errors = { bit = 1e-5 } }", "duplication = 0.01");
    let outcome = run(&tunnel(&[doubling], ("b", "c"), ""));
    let (_, there) = &outcome.links[2];
    let (_, back) = &outcome.links[3];
    let drops: Vec<_> = outcome.box_drops.iter().map(|drop| (&*drop.node, drop.reason)).collect();
    assert_eq!(drops, [("b", DropReason::Replay), ("c", DropReason::Replay)]);
    assert_eq!(outcome.box_drops[0].packets, back.duplicated);
    assert_eq!(outcome.box_drops[1].packets, there.duplicated);
    assert!(there.duplicated > 20, "{there:?}");
    assert_eq!(run(&tunnel(&[], ("b", "c"), "")).box_drops, []);
}

#[test]
fn notices_are_lost_unless_the_ingress_resolves_them_or_nodes_inside_can_read() {
    let of = |ends, settings| notices_of(&run(&tunnel(&[], ends, settings)));
    for ends in [("b", "c"), ("a", "c"), ("c", "a"), ("b", "d"), ("a", "d")] {
        for settings in ["", "notices = \"lost\""] {
            let (heeded, corrupted) = of(ends, settings);
            assert!(heeded == 0 && corrupted > 100, "{heeded} of {corrupted}");
        }
        for settings in ["notices = \"resolve\"", "notices = \"readable\""] {
            let (heeded, corrupted) = of(ends, settings);
            // Some may be under way when the run ends.
            let all = corrupted - 3..=corrupted;
            assert!(all.contains(&heeded) && heeded > 200, "{heeded} of {corrupted}: {ends:?}");
        }
    }
    // Without a tunnel, or where it has come to its end before the errors, they come.
    for text in [PATH.to_owned(), tunnel(&[], ("a", "b"), ""), tunnel(&[], ("c", "d"), "")] {
        let (heeded, corrupted) = notices_of(&run(&text));
        assert!(heeded + 3 >= corrupted && heeded > 200, "{heeded} of {corrupted}");
    }
}

/// Bytes that arrive with some seeds.
fn arrive(text: &str) -> u64 {
    (1..=5).map(|seed| run_with(text, seed, &Watch::default()).rows[0].payload_bytes).sum()
}

#[test]
fn the_detour_costs_little_beside_what_is_lost_without_it() {
    let of = |report: &str, settings: &str| {
        let eten = ("eten = \"backward\"", format!("eten = \"{report}\""));
        arrive(&tunnel(&[(eten.0, &eten.1), ("10 ms", "100 ms")], ("a", "d"), settings))
    };
    let [none, lost] = ["none", "backward"].map(|report| of(report, ""));
    assert_eq!(none, lost);
    let [resolve, readable] =
        ["resolve", "readable"].map(|how| of("backward", &format!("notices = \"{how}\"")));
    assert!(resolve > 2 * lost, "{resolve} {lost}");
    assert!(readable * 19 / 20 < resolve && resolve <= readable, "{resolve} {readable}");
    assert!(of("oracle", "") >= readable);
}

#[test]
fn packets_are_as_long_inside_as_those_of_esp() {
    let clean = [("forward = { errors = { bit = 1e-5 } }", "")];
    // 576 bytes become 632, or 652 with an outer header of IPv6; 40 become 96 or 116.
    for (settings, longer) in [("", 56), ("ip = 6", 76)] {
        let outcome = run(&tunnel(&clean, ("b", "c"), settings));
        let link = |name: &str| {
            let of = outcome.links.iter().find(|(other, _)| other == name);
            let link = of.expect("it is there").1;
            (link.packets, link.bytes)
        };
        for (outside, inside) in [("c->d", "b->c"), ("b->a", "c->b")] {
            let ((packets, bytes), (others, longer_bytes)) = (link(outside), link(inside));
            // What is under way at the end has passed one link and not the other.
            assert!(others - packets < 30 && packets > 1000);
            let more = longer_bytes as f64 - bytes as f64 * others as f64 / packets as f64;
            let each = more / others as f64;
            assert!((each - f64::from(longer)).abs() < 1.0, "{inside}: {each}");
        }
    }
}

#[test]
fn the_oracle_knows_what_is_inside() {
    let oracle = ("eten = \"backward\"", "eten = \"oracle\"");
    let (heeded, corrupted) = notices_of(&run(&tunnel(&[oracle], ("b", "c"), "")));
    assert!(heeded == corrupted && heeded > 200, "{heeded} of {corrupted}");
}

#[test]
fn a_gateway_knows_of_the_last_packets_only() {
    let of = |packets: u32| {
        let settings = format!("notices = \"resolve\"\nremembers = {packets}");
        notices_of(&run(&tunnel(&[], ("b", "c"), &settings))).0
    };
    // Within 20 ms and a notice, several packets follow if the sender has any to send.
    assert!(of(1) * 10 < of(4096), "{} {}", of(1), of(4096));
    assert_eq!(of(20), of(4096));
}

#[test]
fn tunnels_follow_each_other_and_each_resolves_its_own() {
    let errors = "queue = \"50 packets\"\nforward = { errors = { bit = 1e-5 } }";
    let everywhere =
        [("\nforward = { errors = { bit = 1e-5 } }", ""), ("queue = \"50 packets\"", errors)];
    let resolve = "notices = \"resolve\"";
    let more = "[[tunnels]]\nfrom = \"d\"\nto = \"b\"\nnotices = \"resolve\"";
    let text = tunnel(&everywhere, ("a", "b"), &format!("{resolve}\n{more}"));
    let (heeded, corrupted) = notices_of(&run(&text));
    assert!(heeded + 3 >= corrupted && heeded > 300, "{heeded} of {corrupted}");
}

#[test]
fn either_version_of_ip_hides_in_either() {
    for outer in [4, 6] {
        let flow = [("to = \"d\"", "to = \"d\"\nip = 6")];
        let settings = format!("notices = \"resolve\"\nip = {outer}");
        for changes in [&flow[..], &[]] {
            let (heeded, corrupted) = notices_of(&run(&tunnel(changes, ("b", "c"), &settings)));
            assert!(heeded + 3 >= corrupted && heeded > 200, "{heeded} of {corrupted}");
        }
    }
}

#[test]
fn it_is_the_same_where_packets_are_bytes_at_every_hop() {
    let both = ("forward = { errors = { bit = 1e-5 } }", "errors = { bit = 1e-5 }");
    let cumulative =
        ("eten = \"backward\"", "eten = { report = \"cumulative\", fields = \"real\" }");
    let short = ("60 s", "20 s");
    let texts = [
        tunnel(&[both, short], ("b", "c"), "notices = \"resolve\""),
        tunnel(&[both, short], ("a", "d"), "notices = \"readable\"\nip = 6"),
        tunnel(&[both, short, cumulative], ("b", "d"), "copy_fields = true"),
        tunnel(&[both, short, cumulative], ("b", "d"), "copy_fields = true\nip = 6"),
    ];
    for text in texts {
        let run = |bytes| {
            let watch = Watch { digest: true, bytes, ..Watch::default() };
            run_with(&text, 1, &watch)
        };
        assert!(run(false) == run(true), "{text}");
    }
}

#[test]
fn cumulative_notification_includes_links_inside_if_fields_are_copied() {
    let cumulative = "eten = { report = \"cumulative\", strategy = \"loss-ratio\" }";
    let reductions = |settings: &str| {
        let outcome = run(&tunnel(&[("eten = \"backward\"", cumulative)], ("b", "c"), settings));
        let counts = outcome.rows[0].sender;
        (counts.reductions.unwrap(), counts.retransmissions.unwrap())
    };
    // Without reports it takes every loss for congestion.
    let (hidden, lost) = reductions("");
    assert!(hidden * 2 > lost && lost > 100, "{hidden} of {lost}");
    let (copied, lost) = reductions("copy_fields = true");
    assert!(copied * 20 < lost, "{copied} of {lost}");
}

#[test]
fn marks_of_congestion_come_out() {
    let changes = [
        ("forward = { errors = { bit = 1e-5 } }", ""),
        ("\"20 segments\", eten = \"backward\"", "\"100 segments\", ecn = true"),
        (
            "queue = \"50 packets\"",
            "queue = { limit = \"100 packets\", red = { min = 5, max = 15, ecn = true } }",
        ),
    ];
    let outcome = run(&tunnel(&changes, ("a", "d"), ""));
    let counts = outcome.rows[0].sender;
    assert!(counts.reductions.unwrap() > 10, "{counts:?}");
    assert!(counts.retransmissions.unwrap() < 10 && outcome.totals.dropped < 10, "{counts:?}");
}

#[test]
fn who_taps_a_tunnel_can_forge_what_its_ingress_resolves_and_no_more() {
    let clean = [("forward = { errors = { bit = 1e-5 } }", "")];
    let attack =
        "[[attacks]]\nat = \"AT\"\nflow = \"flow 0\"\nknowledge = \"on-path\"\nevery = 100";
    let forged = |ends, notices: &str, at: &str| {
        let settings = format!("ip = 6\nnotices = \"{notices}\"\n{}", attack.replace("AT", at));
        let text = tunnel(&clean, ends, &settings);
        let bytes = Watch { bytes: true, ..Watch::default() };
        notices_of(&run_with(&text, 1, &bytes)).0
    };
    for at in ["b", "c"] {
        assert_eq!(forged(("a", "d"), "lost", at), 0);
        assert!(forged(("a", "d"), "resolve", at) > 10);
        // At a gateway, packets are seen as they are.
        assert!(forged(("b", "c"), "lost", at) > 10);
    }
}

#[test]
fn without_notification_the_words_make_no_difference() {
    let none = ("eten = \"backward\"", "eten = \"none\"");
    let digest = |settings| run(&tunnel(&[none], ("b", "c"), settings)).digest.unwrap();
    let plain = digest("");
    for settings in ["notices = \"resolve\"", "notices = \"readable\"", "copy_fields = true"] {
        assert_eq!(digest(settings), plain, "{settings}");
    }
    assert_ne!(run(&PATH.replace(none.0, none.1)).digest.unwrap(), plain);
}

#[test]
fn what_is_left_out_has_its_default() {
    let tunnels = scenario(&tunnel(&[], ("b", "c"), "")).tunnels;
    let [tunnel_of] = &tunnels[..] else { panic!("not one") };
    assert_eq!((tunnel_of.from, tunnel_of.to, tunnel_of.notice_size), (1, 2, 180));
    assert_eq!((tunnel_of.notices, tunnel_of.remembers), (TunnelNotices::Lost, 4096));
    assert!(!tunnel_of.copy_fields);
    let modern = tunnel(&[("ns2-2001", "modern")], ("b", "c"), "ip = 6");
    assert_eq!(scenario(&modern).tunnels[0].notice_size, 96);
    assert_eq!(scenario(PATH).tunnels, []);
}

#[test]
fn an_error_of_a_tunnel_points_at_its_place() {
    let at = |changes: &[(&str, &str)], ends, settings: &str, place: &str, message: &str| {
        let text = tunnel(changes, ends, settings);
        let error = error(&text);
        let report = error.render(scenario::Style::Plain);
        assert!(error.to_string().contains(message), "{report}");
        let start = text.rfind(place).expect("it is in the file");
        let line = text[..start].matches('\n').count() + 1;
        assert!(report.contains(&format!("╭▸ case.toml:{line}:")), "not line {line}:\n{report}");
    };
    let here = "[[tunnels]]";
    at(&[], ("b", "x"), "", "to = \"x\"", "there is no such node");
    at(&[], ("b", "b"), "", "to = \"b\"", "expected a node other than the first gateway");
    let aside = ("[nodes]", "[nodes]\ne = {}");
    let link =
        "\n[[links]]\nbetween = [\"a\", \"e\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[[flows]]";
    let branch = [aside, ("\n[[flows]]", link)];
    at(&branch, ("b", "e"), "", "to = \"e\"", "no flow passes both `b` and this node");
    let overlapping = "[[tunnels]]\nfrom = \"c\"\nto = \"a\"";
    at(&[], ("b", "d"), overlapping, "to = \"a\"", "from `b` to `d` share a link");
    at(
        &[],
        ("b", "c"),
        "notices = \"some\"",
        "notices = \"some\"",
        "`lost`, `resolve`, `readable`",
    );
    at(&[], ("b", "c"), "remembers = 0", "remembers = 0", "a whole number, at least 1");
    at(&[], ("b", "c"), "notice_size = 47", "notice_size = 47", "expected 48 to 65535 bytes");
    at(&[], ("b", "c"), "ip = 6\nnotice_size = 91", "notice_size", "expected 92 to 65535 bytes");
    let resolve = "notices = \"resolve\"";
    let eten = |value: &'static str| [("\"backward\"", value)];
    at(&eten("\"forward\""), ("b", "c"), resolve, here, "an egress cannot read");
    let checked = eten("{ report = \"backward\", headers = \"checked\" }");
    at(&checked, ("b", "c"), resolve, here, "no checksum of ESP");
    let erring = eten("{ report = \"oracle\", mistakes = 0.1 }");
    at(&erring, ("b", "c"), "", here, "expected no `mistakes`");
    let coded =
        [("from = \"a\"\n", "from = \"a\"\ncoding = { strength = 0.1, signal = \"none\" }\n")];
    at(&coded, ("a", "c"), "", here, "expected gateways between its ends");
    // None of that is wrong where nothing of it is known, or between the flow's ends.
    for (changes, settings) in [(&eten("\"forward\"")[..], ""), (&checked, ""), (&coded, resolve)] {
        scenario(&tunnel(changes, ("b", "c"), settings));
    }
}

#[test]
fn nodes_do_not_move_in_a_network_with_a_tunnel() {
    let moving = with(&[
        ("a = {}", "a = { attached = { at = [{ start = \"0 s\", to = \"b\" }] } }"),
        ("[[flows]]", "[[tunnels]]\nfrom = \"a\"\nto = \"b\"\n[[flows]]"),
    ]);
    assert!(error(&moving).to_string().contains("expected no tunnels"), "{}", error(&moving));
}
