//! The configuration of a gateway (`lasthopd`), in the words of scenario files.

mod esp;
mod lab;
mod refused;
mod resolved;
mod written;

pub use esp::{Esp, EspHost};
pub use lab::LabHop;

use crate::alone::Alone;
use crate::reading::document::Document;
use crate::reading::error::ScenarioError;
use crate::reading::shape::{Both, Shape};
use crate::reading::source::Source;
use crate::reading::words::words;
use middlebox::{BoxSettings, Connect, HopTransport, Mobile, Pair, SpepStation, Spoofer, Station};
use relay::Teardown;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use tcp::Config;
use written::Written;

/// What a gateway does with packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It lets their handshakes pass, and splits them then (`ishac2001`).
    #[default]
    Spoof,
    /// It connects to their servers and accepts them by handshakes of its own.
    Split,
    /// It carries them over the hop by SRP, together with the gateway at the other end (`yavatkar1994`).
    Pair,
    /// It is a base station, splits those of the mobile hosts that are attached to it, and hands them over to the next
    /// base station (MHP, `yavatkar1994`).
    Station,
    /// It is the agent of a mobile host, whose base stations split its connections (MHP, `yavatkar1994`).
    Mobile,
    /// It marks packets of ESP, so that mobile hosts tell corruption from congestion (SPEP, `obanaik2003`).
    Spep,
    /// It is at the end of a link that can tell which packets arrived damaged, and notifies their sources (ETEN,
    /// `bbn8333`). No packets pass it.
    Notify,
}

impl Mode {
    /// The mode that does the work of a box; none if no mode does.
    pub(crate) fn of(settings: &BoxSettings) -> Option<Mode> {
        match settings {
            BoxSettings::Spoofer(_) => Some(Mode::Spoof),
            BoxSettings::Pair(_) => Some(Mode::Pair),
            BoxSettings::Station(_) => Some(Mode::Station),
            BoxSettings::Mobile(_) => Some(Mode::Mobile),
            BoxSettings::SpepStation(_) => Some(Mode::Spep),
            BoxSettings::CorruptionReporter(_) => Some(Mode::Notify),
            _ => None,
        }
    }

    /// Its name in configurations.
    #[must_use]
    pub fn name(self) -> String {
        let name = serde_json::to_value(self).unwrap_or_default();
        name.as_str().unwrap_or_default().to_owned()
    }
}

/// Where packets are marked (mode [`Mode::Spep`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPath {
    /// In the kernel if it can, else in user space.
    #[default]
    Auto,
    /// In the kernel, by a BPF program.
    Kernel,
    /// In user space, by the lab's box.
    UserSpace,
}

words! { Connect DataPath HopTransport Mode Teardown }

/// The other gateway of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Where it is, if that is known.
    pub address: Option<SocketAddr>,
    /// Its public key.
    pub peer_key: String,
    /// The file with the private key of this gateway.
    pub key: PathBuf,
    /// Where this gateway listens.
    pub listen: SocketAddr,
    /// The largest packet of the hop, bytes; if it is not given, it is to be found out.
    pub mtu: Option<u32>,
}

/// The reporter of damaged packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifier {
    /// Where the link tells which packets arrived damaged.
    pub link_socket: PathBuf,
    /// The most notices in a second.
    pub notices: u32,
}

/// The work of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// That of a spoofer, whose hop is called [`Gateway::HOP`].
    Spoof(Spoofer),
    /// That of one of two gateways, whose hop is called so, too. Its MTU is still to be set.
    Pair(Pair, Peer),
    /// That of a base station, with the file of its network's key. Its MTU and its secret are still to be set.
    Station(Station, PathBuf),
    /// That of the agent of a mobile host, likewise.
    Mobile(Mobile, PathBuf),
    /// That of the base station of SPEP, whose hop is called so, too, and where it is done.
    Spep(SpepStation, DataPath),
    /// That of a reporter of damaged packets.
    Notify(Notifier),
}

/// The configuration of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// The interfaces of the network of the users; none in modes [`Mode::Mobile`] and [`Mode::Notify`].
    pub lan: Vec<String>,
    /// The interface of the hop.
    pub wan: String,
    /// What it does.
    pub work: Work,
    /// The number of threads that carry connections.
    pub workers: usize,
    /// The settings of the gateway's own TCP.
    pub tcp: Config,
    /// Where its metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The file of the records of connections that have ended.
    pub records: Option<PathBuf>,
    /// How what goes over the hop is protected (mode [`Mode::Split`]).
    pub esp: Option<Esp>,
}

impl Gateway {
    /// Its mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.work {
            Work::Spoof(Spoofer { connect: Connect::EndToEnd, .. }) => Mode::Spoof,
            Work::Spoof(_) => Mode::Split,
            Work::Pair(..) => Mode::Pair,
            Work::Station(..) => Mode::Station,
            Work::Mobile(..) => Mode::Mobile,
            Work::Spep(..) => Mode::Spep,
            Work::Notify(_) => Mode::Notify,
        }
    }

    /// The name of the hop's other end.
    pub const HOP: &str = "wan";

    /// Reads a configuration.
    ///
    /// # Errors
    /// All that is wrong with it, with places.
    pub fn read(source: &Source) -> Result<Gateway, ScenarioError> {
        let document = Document::with_overrides(source)?;
        let mut problems = Vec::new();
        let gateway =
            Both::<Written, Alone>::read(document.root(), &mut problems).and_then(|both| {
                refused::refuse(document.root(), &both.0, &mut problems);
                resolved::resolve(both, &mut problems)
            });
        let done = gateway.filter(|_| problems.is_empty());
        done.ok_or_else(|| ScenarioError::new(document.findings(problems)))
    }

    /// The JSON Schema of a configuration.
    #[must_use]
    pub fn schema() -> Value {
        let mut schema = Both::<Written, Alone>::schema();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "lasthopd configuration".into();
        schema
    }
}
