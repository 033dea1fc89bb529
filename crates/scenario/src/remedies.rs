//! Settings that may improve a flow's use of its path: all entries of the tables of `tcp`, and boxes
//! of nodes, so that a new entry is included. A remedy has settings in one place or in several.

use crate::reading::tagged;
use base::Duration;
use base::settings::Table;
use middlebox::{BoxSettings, Hop};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tcp::Recovery;
use tcp::congestion::{Congestion, Increase};
use tcp::mechanism::{Mechanism, Needs};

/// Settings that may help.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What the literature calls it, if its settings do not say so.
    pub name: Option<&'static str>,
    /// The settings; those of a place are together.
    pub settings: Vec<Setting>,
    /// Which parties must change for it, and its other conditions.
    pub needs: Needs,
    /// Whether it can be built; one that cannot shows the upper bound of the gain.
    pub buildable: bool,
    /// How long it is to be there before a flow starts.
    pub lead: Duration,
}

/// A setting of a remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Where it is made.
    pub place: Place,
    /// The key in the table of its place.
    pub key: String,
    /// Its value. A list of a node's is what comes to the list that it has: another box.
    pub value: toml::Value,
}

/// Where a setting is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the TCP of the flow: its `tcp` table.
    Tcp,
    /// In the table of the flow.
    Flow,
    /// In a node, or several.
    Node(middlebox::Place),
}

impl Place {
    /// Its name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Place::Tcp => "tcp",
            Place::Flow => "flow",
            Place::Node(middlebox::Place::BeforeHop) => "before hop",
            Place::Node(middlebox::Place::Host) => "host",
            Place::Node(middlebox::Place::Attachments) => "attachments",
            Place::Node(middlebox::Place::Peer) => "peer",
        }
    }
}

impl Remedy {
    /// The settings as lines of TOML, by their place.
    #[must_use]
    pub fn toml(&self) -> Vec<(Place, String)> {
        let mut places: Vec<(Place, String)> = Vec::new();
        for Setting { place, key, value } in &self.settings {
            let line = format!("{key} = {value}");
            match places.iter_mut().find(|(known, _)| known == place) {
                Some((_, lines)) => *lines = format!("{lines}\n{line}"),
                None => places.push((*place, line)),
            }
        }
        places
    }

    fn new<V: Into<toml::Value>>(
        settings: impl IntoIterator<Item = (&'static str, V)>,
        needs: Needs,
    ) -> Remedy {
        let setting = |(key, value): (&str, V)| Setting {
            place: Place::Tcp,
            key: key.to_owned(),
            value: value.into(),
        };
        let settings = settings.into_iter().map(setting).collect();
        Remedy { name: None, settings, needs, buildable: true, lead: Duration::ZERO }
    }

    /// With a setting of the host at the end of the bad hop.
    fn with_host(mut self, key: &str, value: impl Into<toml::Value>, needs: Needs) -> Remedy {
        let place = Place::Node(middlebox::Place::Host);
        self.settings.push(Setting { place, key: key.to_owned(), value: value.into() });
        Remedy { needs: self.needs | needs, ..self }
    }
}

/// All remedies in boxes of nodes at this bad hop, in the order of the table. Only settings that differ
/// from the defaults are given.
#[must_use]
pub fn box_remedies(hop: &Hop<'_>) -> Vec<Remedy> {
    let settings = |remedy: &middlebox::Remedy| {
        let mut boxes: Vec<(middlebox::Place, Vec<toml::Table>)> = Vec::new();
        for (place, settings) in &remedy.boxes {
            match boxes.iter_mut().find(|(known, _)| known == place) {
                Some((_, entries)) => entries.push(entry(settings)),
                None => boxes.push((*place, vec![entry(settings)])),
            }
        }
        let setting = |(place, key, value): (Place, &str, toml::Value)| Setting {
            place,
            key: key.to_owned(),
            value,
        };
        let boxes = boxes.into_iter();
        let boxes = boxes.map(|(place, entries)| (Place::Node(place), "boxes", entries.into()));
        let ip = remedy.ipv6.then(|| (Place::Flow, "ip", 6.into()));
        let mechanisms: Vec<_> = remedy.mechanisms.iter().map(entry).collect();
        let mechanisms =
            (!mechanisms.is_empty()).then(|| (Place::Tcp, "mechanisms", mechanisms.into()));
        boxes.chain(ip).chain(mechanisms).map(setting).collect()
    };
    let remedy = |remedy: &middlebox::Remedy| Remedy {
        name: remedy.name,
        settings: settings(remedy),
        needs: remedy.needs(),
        buildable: true,
        lead: remedy.lead,
    };
    BoxSettings::remedies(hop).iter().map(remedy).collect()
}

/// An entry of a table as a file has it: its name, and the settings that differ from the defaults.
fn entry<T: Table + Serialize + DeserializeOwned>(settings: &T) -> toml::Table {
    let table = toml::Table::try_from(settings).unwrap_or_default();
    let name = table.get(T::TAG).and_then(toml::Value::as_str).unwrap_or_default();
    let default = tagged::default::<T>(name).map(toml::Table::try_from);
    let default = default.and_then(Result::ok).unwrap_or_default();
    let is_set = |key: &str, value: &toml::Value| key == T::TAG || default.get(key) != Some(value);
    let settings = table.iter().filter(|(key, value)| is_set(key, value));
    settings.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// All remedies in the TCP of a flow, in the order of the tables.
#[must_use]
pub fn remedies() -> Vec<Remedy> {
    let both = Needs::SENDER | Needs::RECEIVER;
    let recovery = |&(name, recovery): &(&'static str, Recovery)| {
        let needs = if recovery.needs_sack() { both } else { Needs::SENDER };
        Remedy::new([("recovery", name)], needs)
    };
    let congestion = |&(name, _): &(&'static str, Congestion)| {
        Remedy::new([("congestion", name)], Needs::SENDER)
    };
    let increase = |&(name, _): &(&'static str, Increase)| {
        Remedy::new([("congestion", "aimd"), ("increase", name)], Needs::SENDER)
    };
    Recovery::ALL
        .iter()
        .map(recovery)
        .chain(Congestion::ALL.iter().map(congestion))
        .chain(Increase::ALL.iter().skip(1).map(increase))
        .chain(settings())
        .chain(helping().flat_map(|(name, needs)| mechanism(name, needs)))
        .collect()
}

/// Settings of today's systems.
fn settings() -> [Remedy; 10] {
    let (sender, receiver) = (Needs::SENDER, Needs::RECEIVER);
    [
        // More than the bandwidth-delay product of any path here.
        Remedy::new([("receive_window", "1 GB")], receiver),
        Remedy::new([("initial_window", "rfc6928")], sender),
        Remedy::new([("byte_counting", "all")], sender),
        Remedy::new([("hystart", true)], sender),
        Remedy::new([("pacing", true)], sender),
        Remedy::new([("reduction", "prr")], sender),
        Remedy::new([("frto", true)], sender),
        Remedy::new([("limited_transmit", true)], sender),
        Remedy::new([("delayed_ack", "off")], receiver),
        // The queue must mark.
        Remedy::new([("ecn", true)], sender | receiver | Needs::MIDDLEBOX),
    ]
}

/// The mechanisms that help alone.
fn helping() -> impl Iterator<Item = (&'static str, Needs)> {
    // Boxes have to tell `eln` the causes of losses.
    let alone = |&(name, needs): &(&str, Needs)| !needs.is_empty() && name != "eln";
    Mechanism::NEEDS.iter().copied().filter(alone)
}

/// A mechanism with its defaults. ETEN has a key of its own, which sets what reports.
fn mechanism(name: &'static str, needs: Needs) -> Vec<Remedy> {
    let eten = |kind: &'static str, needs| Remedy::new([("eten", kind)], needs);
    let oracle = Remedy { buildable: false, ..eten("oracle", Needs::SENDER) };
    match name {
        "eten" => vec![eten("backward", needs), oracle],
        "forward-eten" => vec![eten("forward", needs)],
        "cumulative-eten" => {
            // Not the published strategy, which is close to random where losses are rare.
            let eten = [("report", "cumulative"), ("strategy", "loss-ratio")];
            let eten = eten.map(|(key, value)| (key.to_owned(), value.into()));
            vec![Remedy::new([("eten", toml::Table::from_iter(eten))], needs)]
        }
        // It distinguishes ACKs of the old path from those of the new one by timestamps.
        "rlci" => {
            let timestamps = ("timestamps", toml::Value::Boolean(true));
            vec![Remedy::new([timestamps, listed(name)], needs)]
        }
        // The receiver must be warned about a round trip ahead, and waits for the rest of the time.
        "freeze" => {
            let plain = Remedy::new([listed(name)], needs);
            let warned = |before| plain.clone().with_host("warning", before, Needs::WARNING);
            vec![plain.clone(), warned("200 ms"), warned("1 s")]
        }
        _ => vec![Remedy::new([listed(name)], needs)],
    }
}

/// A list of this mechanism alone.
fn listed(name: &'static str) -> (&'static str, toml::Value) {
    let entry = toml::Table::from_iter([("mechanism".to_owned(), name.into())]);
    ("mechanisms", toml::Value::Array(vec![entry.into()]))
}

#[cfg(test)]
mod tests {
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

    /// The keys of settings in a scenario of [`FILE`], and their values.
    fn written(remedy: &Remedy) -> BTreeMap<String, toml::Value> {
        let keys = remedy.settings.iter().flat_map(|Setting { place, key, value }| {
            let tables: &[&str] = match place {
                Place::Tcp => &["flows.0.tcp"],
                Place::Flow => &["flows.0"],
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
        for remedy in remedies().iter().chain(&box_remedies(&hop())) {
            assert!(is_understood(remedy), "{remedy:?}");
            assert!(!remedy.needs.is_empty(), "{remedy:?}");
        }
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
}
