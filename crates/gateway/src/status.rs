//! What a running gateway says about itself.

use live::inline::{Counts, Side};
use scenario::Gateway;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Counters and gauges of one moment.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The counters of the packets.
    pub packets: Counts,
    /// The counters of the box, by their names.
    pub counters: BTreeMap<&'static str, u64>,
    /// What the box holds at this moment, by its name.
    pub gauges: BTreeMap<&'static str, u64>,
    /// New connections pass unsplit.
    pub draining: bool,
    /// Records of connections that were not written.
    pub unwritten: u64,
}

impl Observation {
    /// That of two workers together. What was the most of one connection is so of both.
    pub(crate) fn and(self, other: Observation) -> Observation {
        let add = |mut all: BTreeMap<&'static str, u64>, others: BTreeMap<&'static str, u64>| {
            for (name, value) in others {
                let of_both = all.entry(name).or_default();
                *of_both = match name.contains("of one connection") {
                    true => value.max(*of_both),
                    false => value + *of_both,
                };
            }
            all
        };
        Observation {
            packets: self.packets + other.packets,
            counters: add(self.counters, other.counters),
            gauges: add(self.gauges, other.gauges),
            draining: self.draining && other.draining,
            unwritten: self.unwritten,
        }
    }

    /// Packets that the gateway itself has lost: without memory, without a route, because the kernel took them no
    /// more, or because more came than it could pass on.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let failed: u64 = self.packets.devices.iter().map(|device| device.failed).sum();
        self.packets.without_bytes + self.packets.unroutable + self.packets.overload + failed
    }
}

/// The state of a gateway, as `lasthopd status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program that runs.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Whole seconds since it started.
    pub uptime_seconds: u64,
    /// What it does.
    pub mode: String,
    /// New connections pass unsplit, as `lasthopd drain` has said.
    pub draining: bool,
    /// The interfaces of the network of the users.
    pub lan: Vec<String>,
    /// The interface of the hop.
    pub wan: String,
    /// Its packets.
    pub packets: Packets,
    /// The counters of its box.
    pub counters: BTreeMap<String, u64>,
    /// What its box holds at this moment.
    pub gauges: BTreeMap<String, u64>,
    /// Records of connections that were not written.
    pub unwritten: u64,
}

/// Counters of packets. Units of several segments count as one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Those of the device towards the users.
    pub lan: Device,
    /// Those of the device towards the hop.
    pub wan: Device,
    /// Packets that passed as they were.
    pub passed: u64,
    /// Packets of connections that the gateway carries.
    pub consumed: u64,
    /// Packets that the box dropped.
    pub dropped: u64,
    /// Datagrams at the port for the other gateway that are not its own: garbage, replayed ones and forged ones.
    #[serde(default)]
    pub refused: u64,
    /// Packets that were lost because there was no memory for their bytes.
    pub without_memory: u64,
    /// Packets that were lost because there was no route for them.
    pub without_route: u64,
    /// Packets that were lost because more came than could be carried.
    #[serde(default)]
    pub overload: u64,
    /// Packets that one worker has handed over to another.
    #[serde(default)]
    pub handed_over: u64,
}

/// Counters of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Packets that came from this side.
    pub received: u64,
    /// Of these, units of several segments.
    pub units_received: u64,
    /// Packets that went to this side.
    pub sent: u64,
    /// Of these, units of several segments.
    pub units_sent: u64,
    /// Packets that had to wait for the kernel.
    pub delayed: u64,
    /// Packets that the kernel refused, and that are lost.
    pub failed: u64,
}

impl Status {
    pub(crate) fn new(gateway: &Gateway, uptime_seconds: u64, observed: &Observation) -> Status {
        let owned = |map: &BTreeMap<&str, u64>| {
            map.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let device = |side: Side| {
            let counts = &observed.packets.devices[side as usize];
            Device {
                received: counts.read,
                units_received: counts.units_read,
                sent: counts.written,
                units_sent: counts.units_written,
                delayed: counts.delayed,
                failed: counts.failed,
            }
        };
        let counts = &observed.packets;
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds,
            mode: mode(gateway),
            draining: observed.draining,
            lan: gateway.lan.clone(),
            wan: gateway.wan.clone(),
            packets: Packets {
                lan: device(Side::Lan),
                wan: device(Side::Wan),
                passed: counts.passed,
                consumed: counts.consumed,
                dropped: counts.dropped,
                refused: counts.refused,
                without_memory: counts.without_bytes,
                without_route: counts.unroutable,
                overload: counts.overload,
                handed_over: counts.handed_over,
            },
            counters: owned(&observed.counters),
            gauges: owned(&observed.gauges),
            unwritten: observed.unwritten,
        }
    }
}

impl Status {
    /// For people.
    pub(crate) fn uptime(&self) -> impl fmt::Display + use<> {
        Uptime(self.uptime_seconds)
    }
}

/// The word for a gateway's mode.
pub(crate) fn mode(gateway: &Gateway) -> String {
    let word = serde_json::to_value(gateway.mode()).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { version, pid, mode, wan, packets, .. } = self;
        let uptime = self.uptime();
        writeln!(f, "lasthopd {version}, process {pid}, up {uptime}, mode {mode}")?;
        if self.draining {
            writeln!(f, "draining: new connections pass unsplit")?;
        }
        writeln!(f, "LAN {}, WAN {wan}\n", self.lan.join(", "))?;
        writeln!(f, "{:<46}{:>14}{:>14}", "packets", "LAN", "WAN")?;
        let Packets { lan, wan, .. } = packets;
        for (name, lan, wan) in [
            ("received", lan.received, wan.received),
            ("  units of several segments", lan.units_received, wan.units_received),
            ("sent", lan.sent, wan.sent),
            ("  units of several segments", lan.units_sent, wan.units_sent),
            ("delayed", lan.delayed, wan.delayed),
            ("refused by the kernel", lan.failed, wan.failed),
        ] {
            writeln!(f, "{name:<46}{lan:>14}{wan:>14}")?;
        }
        writeln!(f)?;
        let own = [
            ("packets passed as they were", packets.passed),
            ("packets of connections carried", packets.consumed),
            ("packets dropped", packets.dropped),
            ("datagrams refused", packets.refused),
            ("packets lost without memory", packets.without_memory),
            ("packets lost without a route", packets.without_route),
            ("packets lost to overload", packets.overload),
            ("packets handed over", packets.handed_over),
            ("records that were not written", self.unwritten),
        ];
        let own = own.into_iter();
        let counters = self.counters.iter().map(|(name, value)| (name.as_str(), *value));
        for (name, value) in own.chain(counters) {
            writeln!(f, "{name:<46}{value:>14}")?;
        }
        writeln!(f, "\nnow")?;
        for (name, value) in &self.gauges {
            writeln!(f, "{:<46}{value:>14}", name.replace('_', " "))?;
        }
        Ok(())
    }
}

/// Seconds as people say them.
struct Uptime(u64);

impl fmt::Display for Uptime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Uptime(seconds) = *self;
        let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
        match (days, hours, minutes) {
            (0, 0, 0) => write!(f, "{seconds} s"),
            (0, 0, _) => write!(f, "{minutes} min {} s", seconds % 60),
            (0, ..) => write!(f, "{hours} h {minutes} min"),
            _ => write!(f, "{days} d {hours} h"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_have_two_units_at_most() {
        for (seconds, text) in
            [(59, "59 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(Uptime(seconds).to_string(), text);
        }
    }
}
