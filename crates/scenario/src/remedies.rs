//! Settings that may improve a flow's use of its path: all entries of the tables of `tcp`, and boxes
//! of nodes, so that a new entry is included.

use crate::reading::tagged;
use base::Rate;
use base::settings::Table as _;
use middlebox::BoxSettings;
use tcp::Recovery;
use tcp::congestion::{Congestion, Increase};
use tcp::mechanism::{Mechanism, Needs};

/// Settings that may help.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// Keys of the flow's `tcp` table, or of an entry of a node's `boxes`, and their values.
    pub settings: Vec<(String, toml::Value)>,
    /// Which parties must change for it.
    pub needs: Needs,
    /// Whether it can be built; one that cannot shows the upper bound of the gain.
    pub buildable: bool,
}

impl Remedy {
    /// The settings as lines of TOML.
    #[must_use]
    pub fn toml(&self) -> String {
        let lines: Vec<_> =
            self.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        lines.join("\n")
    }

    fn new<V: Into<toml::Value>>(
        settings: impl IntoIterator<Item = (&'static str, V)>,
        needs: Needs,
    ) -> Remedy {
        let settings = settings.into_iter().map(|(key, value)| (key.to_owned(), value.into()));
        Remedy { settings: settings.collect(), needs, buildable: true }
    }
}

/// All remedies in boxes of a node before a bad hop of this rate, behind which this neighbour is, in the
/// order of the table. Only settings that differ from the defaults are given.
#[must_use]
pub fn box_remedies(hop: &str, rate: Option<Rate>) -> Vec<Remedy> {
    let remedy = |settings: &BoxSettings| {
        let table = toml::Table::try_from(settings).unwrap_or_default();
        let name = table.get(BoxSettings::TAG).and_then(toml::Value::as_str).unwrap_or_default();
        let default = tagged::default::<BoxSettings>(name).map(toml::Table::try_from);
        let default = default.and_then(Result::ok).unwrap_or_default();
        let is_set = |key: &str, value: &toml::Value| {
            key == BoxSettings::TAG || default.get(key) != Some(value)
        };
        let settings_of = table.iter().filter(|(key, value)| is_set(key, value));
        let settings_of = settings_of.map(|(key, value)| (key.clone(), value.clone()));
        Remedy { settings: settings_of.collect(), needs: settings.needs(), buildable: true }
    };
    BoxSettings::remedies(hop, rate).iter().map(remedy).collect()
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
    Mechanism::NEEDS.iter().copied().filter(|(_, needs)| !needs.is_empty())
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

    #[test]
    fn every_mechanism_that_helps_by_itself_is_a_remedy() {
        let settings: Vec<_> = remedies().into_iter().flat_map(|remedy| remedy.settings).collect();
        for (name, _) in helping() {
            // Error notification of a kind is `eten = KIND`, or a table that reports so.
            let kind = name.strip_suffix("-eten").unwrap_or(name);
            let named = |(key, value): &(String, toml::Value)| match value.as_str() {
                Some(value) if *key == "eten" => name == "eten" || value == kind,
                _ if *key == "eten" => value.to_string().contains(&format!("\"{kind}\"")),
                _ => value.to_string().contains(&format!("\"{name}\"")),
            };
            assert!(settings.iter().any(named), "{name}");
        }
    }

    #[test]
    fn every_remedy_is_understood() {
        let file = r#"
            duration = "1 s"
            nodes = { a = {}, b = {} }
            links = [{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }]
            flows = [{ from = "a", to = "b" }]
        "#;
        for remedy in remedies() {
            let mut source = Source::new(file, "path");
            for (key, value) in &remedy.settings {
                source.put(&format!("flows.0.tcp.{key}"), value).unwrap();
            }
            assert!(Experiment::read(&source).is_ok(), "{remedy:?}");
            assert!(!remedy.needs.is_empty(), "{remedy:?}");
        }
        let boxes = box_remedies("b", Rate::from_bps(2_000_000));
        assert!(boxes.iter().any(|remedy| remedy.toml().contains("\"spoofer\"\n")), "{boxes:?}");
        assert!(boxes.iter().any(|remedy| remedy.toml().contains("\"snoop\"\n")), "{boxes:?}");
        for remedy in boxes {
            let mut source = Source::new(file, "path");
            let entry = toml::Table::from_iter(remedy.settings.clone());
            source.put("nodes.a.boxes", &toml::Value::Array(vec![entry.into()])).unwrap();
            assert!(Experiment::read(&source).is_ok(), "{remedy:?}");
            assert!(remedy.needs.contains(Needs::MIDDLEBOX), "{remedy:?}");
        }
    }
}
