use super::*;
use crate::{Experiment, Source};
use base::Rate;
use std::collections::BTreeMap;

/// A host that moves between two base stations.
const FILE: &str = r#"
    duration = "1 s"
    nodes = { a = {}, b = {}, c = {}, d = { attached = { at = [
        { to = "b", start = "0 s", end = "500 ms" }, { to = "c", start = "600 ms" },
    ] } } }
    links = [
        { between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" },
        { between = ["a", "c"], rate = "1 Mbit/s", delay = "1 ms" },
        { between = ["b", "d"], rate = "1 Mbit/s", delay = "1 ms" },
        { between = ["c", "d"], rate = "1 Mbit/s", delay = "1 ms" },
    ]
    flows = [{ from = "a", to = "d" }]
"#;

fn hop() -> Hop<'static> {
    let delay = Some(Duration::from_millis(10));
    Hop { neighbour: "d", rate: Rate::from_bps(2_000_000), delay, mtu: None, flow: None }
}

fn queues() -> Vec<Remedy> {
    queue_remedies(Rate::from_bps(2_000_000).unwrap(), Duration::from_millis(300))
}

/// The keys of settings in a scenario of [`FILE`], and their values.
fn written(remedy: &Remedy) -> BTreeMap<String, toml::Value> {
    let keys = remedy.settings.iter().flat_map(|Setting { place, key, value }| {
        let tables: &[&str] = match place {
            Place::Tcp => &["flows.0.tcp"],
            Place::Flow => &["flows.0"],
            Place::Link => &["links.0.forward"],
            Place::Node(middlebox::Place::BeforeHop) => &["nodes.b"],
            Place::Node(middlebox::Place::Host) => &["nodes.d"],
            Place::Node(middlebox::Place::Attachments) => &["nodes.b", "nodes.c"],
            Place::Node(middlebox::Place::Peer) => &["nodes.a"],
        };
        tables.iter().map(move |table| (format!("{table}.{key}"), value.clone()))
    });
    keys.collect()
}

fn is_understood(remedy: &Remedy) -> bool {
    let mut source = Source::new(FILE, "path");
    for (key, value) in &written(remedy) {
        source.put(key, value).unwrap();
    }
    Experiment::read(&source).is_ok()
}

#[test]
fn every_mechanism_that_helps_by_itself_is_a_remedy() {
    let settings: Vec<_> = remedies().into_iter().flat_map(|remedy| remedy.settings).collect();
    for (name, _) in helping() {
        // Error notification of a kind is `eten = KIND`, or a table that reports so.
        let kind = name.strip_suffix("-eten").unwrap_or(name);
        let named = |Setting { key, value, .. }: &Setting| match value.as_str() {
            Some(value) if *key == "eten" => name == "eten" || value == kind,
            _ if *key == "eten" => value.to_string().contains(&format!("\"{kind}\"")),
            _ => value.to_string().contains(&format!("\"{name}\"")),
        };
        assert!(settings.iter().any(named), "{name}");
    }
}

#[test]
fn every_remedy_is_understood() {
    for remedy in remedies().iter().chain(&box_remedies(&hop())).chain(&queues()) {
        assert!(is_understood(remedy), "{remedy:?}");
        assert!(!remedy.needs.is_empty(), "{remedy:?}");
    }
}

#[test]
fn queues_hold_what_the_path_does_or_are_managed_at_its_round_trip() {
    let queue = |remedy: &Remedy| remedy.settings[0].value.to_string();
    let found: Vec<_> = queues().iter().map(queue).collect();
    assert_eq!(
        found,
        [
            r#""50 packets""#,
            r#""25 packets""#,
            r#"{ codel = { interval = "300 ms", target = "30 ms" } }"#,
            r#"{ fq_codel = { interval = "300 ms", target = "30 ms" } }"#,
            r#"{ codel = { interval = "300 ms", target = "30 ms", ecn = true } }"#,
        ]
    );
    // Not less than CoDel's default, nor than a few packets.
    let short = queue_remedies(Rate::from_bps(56_000).unwrap(), Duration::from_millis(20));
    assert_eq!(queue(&short[1]), r#""10 packets""#);
    assert_eq!(queue(&short[2]), r#"{ codel = { interval = "100 ms", target = "10 ms" } }"#);
}

#[test]
fn a_remedy_says_where_it_is_to_be_had() {
    let all: Vec<_> = remedies().into_iter().chain(box_remedies(&hop())).collect();
    let of = |written: &str| {
        let is = |remedy: &&Remedy| remedy.toml().iter().any(|(_, toml)| toml.contains(written));
        all.iter().find(is).unwrap()
    };
    let (bbr, rack) = (of("\"bbr\""), of("\"rack\""));
    assert_eq!((bbr.means, rack.means), (Means::Setting, Means::Code));
    for in_systems in [bbr, rack] {
        assert!(!in_systems.research && in_systems.modes.is_empty(), "{in_systems:?}");
    }
    for research in ["westwood-2001", "coding", "freeze", "snoop", "spep"] {
        assert!(of(research).research, "{research}");
    }
    assert_eq!(of("backward").modes, [Mode::Notify]);
    assert_eq!(of("spoofer").modes, [Mode::Spoof]);
    for of_mobile in [of("\"mobile\""), of("hop = \"srp\"")] {
        assert_eq!(of_mobile.modes, [Mode::Station, Mode::Mobile], "{of_mobile:?}");
        assert!(!of_mobile.research, "{of_mobile:?}");
    }
    assert_eq!(of("\"spep\"").modes, [Mode::Spep]);
}

#[test]
fn a_warning_is_for_a_host_that_moves() {
    let warned = remedies().into_iter().filter(|r| r.needs.contains(Needs::WARNING));
    let warned: Vec<_> = warned.collect();
    assert!(!warned.is_empty());
    for remedy in warned {
        assert!(written(&remedy).contains_key("nodes.d.warning"), "{remedy:?}");
        assert!(remedy.needs.contains(Needs::RECEIVER), "{remedy:?}");
    }
}

#[test]
fn remedies_in_boxes_have_a_node_before_the_hop_or_stations_and_a_mobile_host() {
    use middlebox::Place::{Attachments, BeforeHop, Host};
    let boxes = |remedy: &Remedy| {
        let boxes = remedy.settings.iter().map(|Setting { place, key, value }| {
            assert_eq!(key, "boxes");
            let Place::Node(place) = *place else { panic!("{remedy:?}") };
            (place, value[0]["box"].as_str().unwrap().to_owned())
        });
        boxes.collect::<Vec<_>>()
    };
    let (spep, remedies): (Vec<_>, Vec<_>) =
        box_remedies(&hop()).into_iter().partition(|remedy| remedy.name == Some("SPEP"));
    assert_eq!(spep.len(), 2);
    let found: Vec<_> = remedies.iter().map(boxes).collect();
    let alone = |name: &str| vec![(BeforeHop, name.to_owned())];
    let mhp = vec![(Attachments, "station".to_owned()), (Host, "mobile".to_owned())];
    assert_eq!(found, [alone("spoofer"), alone("spoofer"), alone("snoop"), mhp.clone(), mhp]);
    for remedy in &remedies {
        assert!(remedy.needs.contains(Needs::MIDDLEBOX | Needs::CLEAR_HEADERS), "{remedy:?}");
    }
    let [.., mtcp, srp] = &remedies[..] else { panic!("{remedies:?}") };
    assert_eq!([mtcp.name, srp.name], [Some("MTCP"), Some("SRP")]);
    assert_eq!(srp.needs - mtcp.needs, Needs::HOP_TRANSPORT);
    assert!(mtcp.needs.contains(Needs::HOST_AGENT | Needs::SPLIT_CONNECTION));
    // The fixed host stays as it is: it is the sender, or the receiver.
    assert!(!mtcp.needs.intersects(Needs::SENDER | Needs::RECEIVER));
    assert!(mtcp.lead > Duration::ZERO);
}

#[test]
fn spep_is_in_both_hosts_and_the_station_and_leaves_room_for_esp() {
    let spep = |hop: Hop<'_>| box_remedies(&hop).into_iter().rfind(|r| r.name == Some("SPEP"));
    let keys = |hop| {
        let remedy = spep(hop).unwrap();
        assert!(is_understood(&remedy), "{remedy:?}");
        written(&remedy)
    };
    let all = keys(hop());
    let text = |key: &str| all[key].to_string();
    assert_eq!(
        text("nodes.a.boxes"),
        r#"[{ box = "esp", spep = true }, { box = "mss-clamp", mss = 1374 }]"#
    );
    assert_eq!(text("nodes.b.boxes"), r#"[{ box = "spep", hop = "d" }]"#);
    assert_eq!(text("nodes.d.boxes"), r#"[{ box = "esp", loss_causes = "station" }]"#);
    assert_eq!(text("flows.0.ip"), "6");
    assert_eq!(text("flows.0.tcp.mechanisms"), r#"[{ mechanism = "eln", every_hole = true }]"#);
    // Of several flows only one may be meant: the others' peers have no such box.
    let one = keys(Hop { flow: Some("f"), ..hop() });
    assert!(one["nodes.d.boxes"].to_string().contains(r#"flows = ["f"]"#), "{one:?}");
    // The largest packet fits: 1274 + 20 bytes of TCP, 2 of the trailer, 104 around them.
    let small = keys(Hop { mtu: Some(1400), ..hop() });
    assert!(small["nodes.a.boxes"].to_string().contains("mss = 1274"), "{small:?}");
    assert!(spep(Hop { mtu: Some(100), ..hop() }).is_none());
    let needs = spep(hop()).unwrap().needs;
    let both = Needs::SENDER | Needs::RECEIVER | Needs::MIDDLEBOX;
    assert_eq!(needs, both | Needs::IPSEC);
}

#[test]
fn what_stations_hold_and_send_suits_the_hop() {
    let station = |hop: Hop<'_>| {
        let remedy = box_remedies(&hop).into_iter().rfind(|r| r.name == Some("SRP")).unwrap();
        assert!(is_understood(&remedy), "{remedy:?}");
        remedy.settings[0].value[0].as_table().unwrap().clone()
    };
    // Twice 5 kB are less than the default; twice 2.5 MB are 5 MB.
    let short = station(hop());
    assert!(!short.contains_key("cache") && !short.contains_key("mtu"), "{short}");
    let long = Hop {
        rate: Rate::from_bps(20_000_000),
        delay: Some(Duration::from_millis(500)),
        mtu: Some(256),
        ..hop()
    };
    assert_eq!(station(long)["cache"].as_integer(), Some(8 << 20));
    assert_eq!(station(long)["mtu"].as_integer(), Some(256));
    assert_eq!(station(Hop { rate: None, ..hop() })["cache"].as_integer(), Some(1 << 20));
    // Packets of MHP do not fit into less than 96 bytes: without it.
    let has_srp = |mtu| {
        let remedies = box_remedies(&Hop { mtu: Some(mtu), ..hop() });
        remedies.iter().any(|remedy| remedy.name == Some("SRP"))
    };
    assert!(has_srp(96) && !has_srp(95));
}
