//! Settings that may improve a flow's use of its path: all entries of the tables of `tcp`, boxes of
//! nodes, and queues, so that a new entry is included. A remedy has settings in one place or in several.

use crate::gateway::Mode;
use crate::reading::tagged;
use base::settings::Table;
use base::{Duration, Rate};
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
    /// How the parties change.
    pub means: Means,
    /// The modes of `lasthopd` that do what nodes on the path, or an agent in the host, have to do.
    pub modes: Vec<Mode>,
    /// Whether it is in the lab alone, and in transfers by lasthop's own TCP: no operating system has
    /// it, and no mode of `lasthopd`.
    pub research: bool,
    /// Whether it can be built; one that cannot shows what knowing every error at once would gain.
    pub buildable: bool,
    /// How long it is to be there before a flow starts.
    pub lead: Duration,
}

/// How the parties of a remedy change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// By a setting that operating systems have: a sysctl, or an option of a route or of a queue.
    Setting,
    /// By other code.
    Code,
}

impl Means {
    /// Its name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Means::Setting => "setting",
            Means::Code => "code",
        }
    }
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
    /// In the table of the slowest link, in the flow's direction.
    Link,
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
            Place::Link => "link",
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

    /// Settings of the flow's TCP, in code of the parties that it needs.
    fn new<V: Into<toml::Value>>(
        settings: impl IntoIterator<Item = (&'static str, V)>,
        needs: Needs,
    ) -> Remedy {
        let remedy = Remedy {
            name: None,
            settings: Vec::new(),
            needs,
            means: Means::Code,
            modes: Vec::new(),
            research: false,
            buildable: true,
            lead: Duration::ZERO,
        };
        let settings = settings.into_iter();
        settings.fold(remedy, |remedy, (key, value)| remedy.with(Place::Tcp, key, value))
    }

    fn with(mut self, place: Place, key: &str, value: impl Into<toml::Value>) -> Remedy {
        self.settings.push(Setting { place, key: key.to_owned(), value: value.into() });
        self
    }

    /// With a setting of the host at the end of the bad hop.
    fn with_host(self, key: &str, value: impl Into<toml::Value>, needs: Needs) -> Remedy {
        let place = Place::Node(middlebox::Place::Host);
        Remedy { needs: self.needs | needs, ..self.with(place, key, value) }
    }

    /// The same as a setting that operating systems have.
    fn in_systems(self) -> Remedy {
        Remedy { means: Means::Setting, ..self }
    }

    /// The same, which the lab alone has.
    fn in_lab_alone(self) -> Remedy {
        Remedy { research: true, ..self }
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
    let remedy = |remedy: &middlebox::Remedy| {
        // What nodes on the path and agents have to do; the rest is in the ends of the flow.
        let on_path = Needs::MIDDLEBOX | Needs::HOST_AGENT;
        let boxes = remedy.boxes.iter().map(|(_, settings)| settings);
        let boxes = boxes.filter(|settings| settings.needs().intersects(on_path));
        let modes: Option<Vec<Mode>> = boxes.map(Mode::of).collect();
        Remedy {
            name: remedy.name,
            settings: settings(remedy),
            needs: remedy.needs(),
            means: Means::Code,
            research: modes.is_none() || !remedy.mechanisms.is_empty(),
            modes: modes.unwrap_or_default(),
            buildable: true,
            lead: remedy.lead,
        }
    };
    BoxSettings::remedies(hop).iter().map(remedy).collect()
}

/// What the queue of the slowest link may be instead, of this rate and with this round trip of the
/// path, queues empty: shorter, or managed, with losses or with marks.
#[must_use]
pub fn queue_remedies(rate: Rate, round_trip: Duration) -> Vec<Remedy> {
    let bits = u128::from(rate.as_bps()) * u128::from(round_trip.as_nanos());
    let packet = 8 * 1500 * 1_000_000_000;
    let packets = u64::try_from((bits + packet / 2) / packet).unwrap_or(u64::MAX);
    let remedy = |queue: toml::Value, needs| {
        let remedy = Remedy::new(NO_SETTINGS, needs).with(Place::Link, "queue", queue);
        remedy.in_systems()
    };
    let limit = |packets: u64| format!("{packets} packets").into();
    // RFC 8289 §4.3 and §4.4: the interval is about the longest round trip, the target 5 to 10 % of
    // it.
    let interval = (round_trip.as_nanos() / 1_000_000).max(100);
    let managed = |name: &str, ecn: Option<bool>| {
        let mut settings = toml::Table::new();
        settings.insert("interval".to_owned(), format!("{interval} ms").into());
        settings.insert("target".to_owned(), format!("{} ms", interval / 10).into());
        settings.extend(ecn.map(|ecn| ("ecn".to_owned(), ecn.into())));
        toml::Value::Table(toml::Table::from_iter([(name.to_owned(), settings.into())]))
    };
    let everyone = Needs::MIDDLEBOX | Needs::SENDER | Needs::RECEIVER;
    vec![
        remedy(limit(packets.max(LEAST_QUEUE)), Needs::MIDDLEBOX),
        remedy(limit((packets / 2).max(LEAST_QUEUE / 2)), Needs::MIDDLEBOX),
        remedy(managed("codel", None), Needs::MIDDLEBOX),
        remedy(managed("fq_codel", None), Needs::MIDDLEBOX),
        remedy(managed("codel", Some(true)), everyone).with(Place::Tcp, "ecn", true),
    ]
}

/// The shortest queue that takes a burst of an initial window, packets.
const LEAST_QUEUE: u64 = 20;
/// None in the flow's TCP.
const NO_SETTINGS: [(&str, bool); 0] = [];

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
    // Modules of Linux, but for the first Westwood.
    let congestion = |&(name, congestion): &(&'static str, Congestion)| {
        let remedy = Remedy::new([("congestion", name)], Needs::SENDER);
        match congestion {
            Congestion::Westwood2001 => remedy.in_lab_alone(),
            _ => remedy.in_systems(),
        }
    };
    // `lasthopd cc` loads them into a kernel.
    let increase = |&(name, _): &(&'static str, Increase)| {
        Remedy::new([("congestion", "aimd"), ("increase", name)], Needs::SENDER).in_systems()
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

/// Settings of today's TCP, and of today's systems.
fn settings() -> Vec<Remedy> {
    let (sender, receiver) = (Needs::SENDER, Needs::RECEIVER);
    let systems = [
        // More than the bandwidth-delay product of any path here.
        Remedy::new([("receive_window", "1 GB")], receiver),
        Remedy::new([("initial_window", "rfc6928")], sender),
        Remedy::new([("pacing", true)], sender),
        Remedy::new([("frto", true)], sender),
        Remedy::new([("delayed_ack", "off")], receiver),
        // The queue must mark.
        Remedy::new([("ecn", true)], sender | receiver | Needs::MIDDLEBOX),
    ];
    let of_tcp = [
        Remedy::new([("byte_counting", "all")], sender),
        Remedy::new([("hystart", true)], sender),
        Remedy::new([("reduction", "prr")], sender),
        Remedy::new([("limited_transmit", true)], sender),
    ];
    // Below TCP, which does not see the losses that they repair.
    let coding = [0.1, 0.3].map(|strength| {
        let table = [("strength", toml::Value::from(strength)), ("signal", "none".into())];
        let table = toml::Table::from_iter(table.map(|(key, value)| (key.to_owned(), value)));
        let remedy = Remedy::new(NO_SETTINGS, sender | receiver).in_lab_alone();
        remedy.with(Place::Flow, "coding", table)
    });
    systems.map(Remedy::in_systems).into_iter().chain(of_tcp).chain(coding).collect()
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
    let notified = Remedy { modes: vec![Mode::Notify], ..eten("backward", needs) };
    match name {
        "eten" => vec![notified, oracle],
        "forward-eten" => vec![eten("forward", needs).in_lab_alone()],
        "cumulative-eten" => {
            // Not the published strategy, which is close to random where losses are rare.
            let eten = [("report", "cumulative"), ("strategy", "loss-ratio")];
            let eten = eten.map(|(key, value)| (key.to_owned(), value.into()));
            vec![Remedy::new([("eten", toml::Table::from_iter(eten))], needs).in_lab_alone()]
        }
        // It distinguishes ACKs of the old path from those of the new one by timestamps.
        "rlci" => {
            let timestamps = ("timestamps", toml::Value::Boolean(true));
            vec![Remedy::new([timestamps, listed(name)], needs).in_lab_alone()]
        }
        // The receiver must be warned about a round trip ahead, and waits for the rest of the time.
        "freeze" => {
            let plain = Remedy::new([listed(name)], needs).in_lab_alone();
            let warned = |before| plain.clone().with_host("warning", before, Needs::WARNING);
            vec![plain.clone(), warned("200 ms"), warned("1 s")]
        }
        _ => vec![Remedy::new([listed(name)], needs).in_lab_alone()],
    }
}

/// A list of this mechanism alone.
fn listed(name: &'static str) -> (&'static str, toml::Value) {
    let entry = toml::Table::from_iter([("mechanism".to_owned(), name.into())]);
    ("mechanisms", toml::Value::Array(vec![entry.into()]))
}

#[cfg(test)]
mod tests;
