//! The scenario file that describes a gateway to the lab.

use super::{Esp, EspHost, Gateway, Work};
use crate::experiment::Experiment;
use crate::reading::error::ScenarioError;
use crate::reading::source::Source;
use base::Rate;
use core::fmt::Write as _;
use middlebox::{CorruptionReporter, Pair, SpepStation};
use relay::HopRate;
use serde::Serialize;
use tcp::Config;
use toml::{Table, Value};

/// The hop of a gateway, in the words of scenario files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabHop {
    /// Its rate; without, that of the configuration.
    pub rate: Option<String>,
    /// Its one-way delay.
    pub delay: String,
    /// The share of packets that it loses, in both directions.
    pub loss: String,
    /// Its queue.
    pub queue: String,
    /// The one-way delay of the networks at both ends.
    pub lan_delay: String,
}

impl LabHop {
    /// The longest packet of links whose MTU is not known, bytes.
    const MTU: u32 = 1500;
}

impl Gateway {
    /// The rate of the hop, if the configuration has it.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let rate = match &self.work {
            Work::Spoof(spoofer) => spoofer.rate,
            Work::Pair(pair, _) => pair.rate,
            Work::Station(station, _) => Some(station.rate),
            Work::Mobile(mobile, _) => Some(mobile.rate),
            Work::Spep(..) | Work::Notify(_) => None,
        };
        match rate? {
            HopRate::Given(rate) => Some(rate),
            HopRate::Measured => None,
        }
    }

    /// The scenario file of the lab for the gateway of a configuration file with this hop, over which data goes
    /// for a minute from the LAN.
    ///
    /// # Errors
    /// All that is wrong with the configuration, or with the scenario for the reason of the hop.
    pub fn scenario(source: &Source, hop: &LabHop) -> Result<String, ScenarioError> {
        let gateway = Gateway::read(source)?;
        let text = write(&gateway, &source.file().parse().unwrap_or_default(), hop);
        Experiment::read(&Source::new(text.clone(), "the scenario"))?.scenario()?;
        Ok(text)
    }
}

/// The file. `written` is the configuration as it is written.
fn write(gateway: &Gateway, written: &Table, hop: &LabHop) -> String {
    let mut text = String::new();
    let rate = hop.rate.clone().or_else(|| Some(gateway.rate()?.to_string())).unwrap_or_default();
    let tcp = tcp(gateway, written);
    let (near, far) = match &gateway.work {
        Work::Spoof(spoofer) => (one("spoofer", spoofer, &tcp), None),
        Work::Pair(pair, _) => {
            let towards = |hop: &str| Pair { hop: hop.to_owned(), channel: true, ..pair.clone() };
            let [near, far] = ["far", "gateway"].map(|hop| one("pair", &towards(hop), &tcp));
            (near, Some(far))
        }
        Work::Station(station, _) => (one("station", station, &tcp), None),
        Work::Mobile(mobile, _) => (one("mobile", mobile, &tcp), None),
        Work::Spep(station, _) => (one("spep", station, &tcp), None),
        Work::Notify(_) => (one("corruption-reporter", &CorruptionReporter::default(), &tcp), None),
    };
    // Its hosts have the TCP of the gateways beside them, and the router between them marks.
    let hosts = gateway.esp.as_ref().map(|_| {
        let host =
            |host| format!(" boxes = [{}] ", one("esp", &Esp::settings(host), &Table::new()));
        [EspHost::Fixed, EspHost::Mobile].map(host)
    });
    let [lan_host, wan_host] = hosts.clone().unwrap_or_default();
    let near = match &hosts {
        Some(_) => {
            let station = SpepStation { hop: Gateway::HOP.to_owned(), ..SpepStation::default() };
            one("spep", &station, &Table::new())
        }
        None => near,
    };
    let hop_end = if far.is_some() { "far" } else { Gateway::HOP };
    // What is written to a string arrives.
    let _ = writeln!(
        text,
        "title = \"lasthopd, mode {}\"\nduration = \"60 s\"\n\n[nodes]\nlan = {{{lan_host}}}\ngateway = {{ boxes = [{near}] }}",
        gateway.mode().name(),
    );
    if let Some(far) = &far {
        let _ = writeln!(text, "{hop_end} = {{ boxes = [{far}] }}");
    }
    let _ = writeln!(text, "wan = {{{wan_host}}}");
    let quoted = |value: &str| Value::from(value).to_string();
    let loss = match hop.loss.parse::<f64>() {
        Ok(0.0) => String::new(),
        _ => format!("errors = {{ packet = {} }}\n", hop.loss),
    };
    let mut link = |ends: [&str; 2], keys: &str| {
        let _ = write!(text, "\n[[links]]\nbetween = {ends:?}\n{keys}");
    };
    let lan = format!(
        "rate = \"1 Gbit/s\"\ndelay = {}\nqueue = \"10000 packets\"\n",
        quoted(&hop.lan_delay)
    );
    link(["lan", "gateway"], &lan);
    link(
        ["gateway", hop_end],
        &format!(
            "rate = {}\ndelay = {}\nqueue = {}\n{loss}",
            quoted(&rate),
            quoted(&hop.delay),
            quoted(&hop.queue)
        ),
    );
    if far.is_some() {
        link([hop_end, "wan"], &lan);
    }
    let _ = write!(text, "\n[[flows]]\nfrom = \"lan\"\nto = \"wan\"\ntraffic = \"bulk\"\n");
    if let Some(esp) = &gateway.esp {
        let longest = Esp::segment_size(esp.mtu.unwrap_or(LabHop::MTU)).min(gateway.tcp.mss);
        let mut tcp = tcp;
        if let Some(own) = tcp.get_mut("tcp").and_then(Value::as_table_mut) {
            own.insert("mss".to_owned(), i64::from(longest).into());
        }
        let _ = writeln!(text, "ip = 6");
        for (key, value) in tcp {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text
}

/// The settings of TCP as they are written, with the congestion control, its threshold and the mechanisms, whose
/// defaults are the gateway's own.
fn tcp(gateway: &Gateway, written: &Table) -> Table {
    let own = ["profile", "tcp"].into_iter();
    let mut all: Table =
        own.filter_map(|key| Some((key.to_owned(), written.get(key)?.clone()))).collect();
    let tcp = all.entry("tcp").or_insert_with(|| Table::new().into()).as_table_mut();
    let Some(tcp) = tcp else { return all };
    let Config { congestion, loss_threshold, mechanisms, .. } = &gateway.tcp;
    if let Ok(congestion) = Value::try_from(congestion) {
        tcp.entry("congestion").or_insert(congestion);
    }
    if let Some(threshold) = *loss_threshold {
        tcp.entry("loss_threshold").or_insert(threshold.into());
    }
    for (key, is_chosen) in [
        ("renew_min_rtt", gateway.tcp.renew_min_rtt),
        ("tolerate_random_loss", gateway.tcp.tolerate_random_loss),
        ("prompt_start", gateway.tcp.prompt_start),
    ] {
        if is_chosen {
            tcp.entry(key).or_insert(true.into());
        }
    }
    if let Ok(mechanisms) = Value::try_from(mechanisms) {
        tcp.entry("mechanisms").or_insert(mechanisms);
    }
    all
}

/// A box with its settings, and those of TCP.
fn one(name: &str, settings: &impl Serialize, tcp: &Table) -> String {
    let mut table = Table::new();
    table.insert("box".to_owned(), name.into());
    // Those that are absent are left out.
    table.extend(Table::try_from(settings).unwrap_or_default());
    table.extend(tcp.clone());
    Value::Table(table).to_string()
}
