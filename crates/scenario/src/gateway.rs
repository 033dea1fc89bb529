//! The configuration of a gateway (`lasthopd`), in the words of scenario files.

mod esp;
mod lab;

pub use esp::{Esp, EspHost};
pub use lab::LabHop;

use crate::alone::Alone;
use crate::flow::{IpVersion, Profile};
use crate::reading::document::{Document, Node};
use crate::reading::error::{Problem, ScenarioError};
use crate::reading::quantity::{Amount, Count, Written as Quantity};
use crate::reading::shape::{AtLeastOne, Both, Shape, table, unexpected};
use crate::reading::source::Source;
use crate::reading::words::words;
use base::settings::{Bytes, Span};
use base::units::Size;
use base::{Duration, Rate};
use esp::Network;
use middlebox::{BoxSettings, Connect, HopTransport, Mobile, Pair, SpepStation, Spoofer, Station};
use relay::{HopRate, Teardown};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tcp::Config;
use tcp::congestion::Congestion;
use tcp::mechanism::{Eln, Mechanism, Rlci};
use toml::Spanned;

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

/// The name or the names of interfaces.
#[derive(Debug)]
struct Interfaces(Vec<Spanned<String>>);

impl Shape for Interfaces {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Interfaces> {
        if node.get_ref().is_array() {
            return AtLeastOne::read(node, problems).map(|names| Interfaces(names.0));
        }
        if node.get_ref().as_str().is_none() {
            let expected = "the name of an interface in quotes, or a list of names";
            return unexpected(node, expected, problems);
        }
        Some(Interfaces(vec![Spanned::read(node, problems)?]))
    }

    fn schema() -> Value {
        json!({ "anyOf": [String::schema(), AtLeastOne::<String>::schema()] })
    }
}

/// An address and a port.
#[derive(Clone, Copy, Debug)]
struct Listening(SocketAddr);

impl Shape for Listening {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Listening> {
        let address = node.get_ref().as_str().and_then(|text| text.parse().ok());
        if let Some(address) = address {
            return Some(Listening(address));
        }
        unexpected(node, "an address and a port in quotes, such as \"127.0.0.1:9273\"", problems)
    }

    fn schema() -> Value {
        json!({ "type": "string", "title": "address and port", "examples": ["127.0.0.1:9273"] })
    }
}

/// The rate of the hop.
#[derive(Clone, Copy, Debug)]
struct Hop(HopRate);

impl Shape for Hop {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Hop> {
        match node.get_ref().as_str() {
            Some("measured") => Some(Hop(HopRate::Measured)),
            Some(_) => {
                let Quantity(rate) = Quantity::<Rate>::read(node, problems)?;
                Some(Hop(HopRate::Given(rate)))
            }
            None => unexpected(node, "a rate, such as \"10 Mbit/s\", or \"measured\"", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Quantity::<Rate>::schema(), { "const": "measured" }] })
    }
}

table! {
    /// The configuration of a gateway.
    struct Written {
        /// The interface, or the interfaces, of the network of the users. In modes `mobile` and `notify`, there are
        /// none.
        lan: Interfaces;
        /// The interface of the hop.
        wan: Spanned<String>, needed;
        /// What the gateway does with TCP connections: it lets their handshakes pass, and splits them then (`spoof`);
        /// it splits them by handshakes of its own (`split`); or it carries them over the hop by SRP to another
        /// gateway at its other end (`pair`). As a base station, it splits those of mobile hosts, and hands them over
        /// to the next base station (`station`); `mobile` is the agent of such a host. Or it splits none, and marks
        /// packets of ESP instead, so that mobile hosts learn where others were lost (`spep`).
        /// In mode `notify`, it does nothing with them: it notifies the sources of segments that arrived damaged over
        /// the hop.
        mode: Mode = Mode::default();
        /// When the gateway accepts a client (mode `split`): once the server has accepted (`first`, which is the
        /// default there), or at once, before it connects to the server (`at-once`).
        connect: Spanned<Connect>;
        /// The transport of a mobile host's connections over the hop (mode `mobile`): TCP (`tcp`), or SRP (`srp`), for
        /// which they end in the host.
        hop: HopTransport = HopTransport::default();
        /// The rate of the hop in the direction away from the gateway, of IP packets. The gateway sends at this
        /// rate, with equal shares for the addresses behind the hop. With `measured`, it learns the rate from
        /// what is delivered. Without, each connection sends as its congestion control lets it. Modes `station` and
        /// `mobile` have it for SRP alone, which measures it unless it is given.
        rate: Hop;
        /// The most data of a connection that the gateway holds in each direction, besides what its receive
        /// window takes.
        cache: Spanned<Amount>;
        /// When the end of a stream (FIN) is acknowledged to its sender: at once (`spoofed`), or once the
        /// receiver has acknowledged it (`end-to-end`).
        teardown: Teardown = Teardown::default();
        /// The most connections that are carried at once. Further ones pass as they are.
        connections: Count;
        /// The most of them that a user has: an address that is not behind the hop, in IPv6 a network of 64 bits.
        /// Without, there is no limit.
        connections_per_user: Count;
        /// The most data that all connections hold together. Each user may hold as much as is free: one alone fills
        /// half of it, two a third each. Once it is used up, further connections pass as they are. Without, it is a
        /// quarter of the machine's memory.
        memory: Spanned<Amount>;
        /// Threads that carry connections, each of them a part, where the hop has no `rate` (modes `spoof` and `split`).
        /// Of `connections`, `connections_per_user` and `memory`, each has an equal part.
        workers: Spanned<Count>;
        /// The address and the UDP port of the other gateway (mode `pair`). Without, this one waits for the
        /// other.
        peer: Listening;
        /// The public key of the other gateway (mode `pair`).
        peer_key: Spanned<String>;
        /// The file with the private key of this gateway (mode `pair`).
        key: String = "/etc/lasthop/private.key".to_owned();
        /// The address and the UDP port at which this gateway listens to the other (mode `pair`).
        listen: Listening;
        /// The hop over which SRP goes carries other traffic, too (modes `pair`, `station` and `mobile`): what is in
        /// flight is bounded as by TCP's congestion window, and `rate` is the most. Without, all that is lost counts as
        /// corrupted.
        share: Spanned<bool>;
        /// The largest packet of the hop, bytes (mode `pair`). Without, it is found out, up to that of its interface.
        mtu: Spanned<Count>;
        /// The file with the key that the base stations and mobile hosts of a network share (modes `station` and
        /// `mobile`).
        network_key: String = "/etc/lasthop/network.key".to_owned();
        /// Connections over IPv6 go over the hop under ESP, to another gateway with this key (mode `split`; SPEP): this one
        /// stands beside the fixed host (`fixed`), whose packets get the option in which the base station marks what it
        /// has received; or beside the mobile host (`mobile`), where the marks say why packets are missing.
        esp: Spanned<EspHost>;
        /// The file with the key that both gateways share (`esp`).
        esp_key: String = Esp::KEY.to_owned();
        /// The networks of IPv6 behind the other gateway (`esp`): from there and to there, TCP passes under ESP, or not at
        /// all.
        esp_networks: AtLeastOne<Network>;
        /// The largest packet of the path to the other gateway, bytes (`esp`). Without, it is that of `wan`.
        esp_mtu: Spanned<Count>;
        /// Where packets are marked (mode `spep`): in the kernel, by a BPF program (`kernel`); in user space, as packets
        /// of other modes pass (`user-space`); or in the kernel if that is possible, else in user space (`auto`).
        data_path: DataPath = DataPath::default();
        /// The most flows that are known (mode `spep`); a new one takes the place of one that has been idle for long.
        flows: Count;
        /// A flow that has been idle for longer is forgotten (mode `spep`).
        idle: Quantity<Duration>;
        /// The Unix datagram socket at which the driver of the hop's device, or its agent, reports frames that arrived
        /// damaged (mode `notify`).
        link_socket: String = "/run/lasthop/link.sock".to_owned();
        /// The most notices that are sent in a second (mode `notify`).
        notices: Count = Count(1000);
        /// Where metrics for Prometheus are served, under `/metrics`. Whoever reaches this address can read them:
        /// it should be local. Without, there are none.
        metrics: Listening;
        /// The file to which a line of JSON is added for each connection that ends. Without, there are none.
        records: String;
    }
}

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
    /// The UDP port at which gateways listen to each other, by default.
    const PORT: u16 = 51_995;
    /// What is held of a connection in each direction, by default: as much as auto-tuned windows take at most.
    const CACHE: Bytes = Bytes(16 << 20);
    /// The congestion control over the hop, by default: losses by corruption below its threshold do not slow it
    /// down (`bench/gateway_congestion.py`).
    const CONGESTION: Congestion = Congestion::Bbr;
    /// BBR's loss threshold by default where the rate of the hop is known. The gateway sends no faster, so losses are
    /// corruption; BBR's probes at 1.25 times the bandwidth make up for as many.
    const LOSS_THRESHOLD: f64 = 0.2;
    /// What the largest packet of a hop may be, bytes.
    const MTU: RangeInclusive<u32> = 256..=65_535;
    /// What the largest packet may be of a path under ESP, bytes: IPv6 needs the least (RFC 8200 §5).
    const ESP_MTU: RangeInclusive<u32> = 1280..=65_535;
    /// The most threads that carry connections: queues of a TUN device (`MAX_TAP_QUEUES` of the kernel's tun.c).
    const WORKERS: u64 = 256;
    /// The longest name of an interface (`IFNAMSIZ` of linux/if.h, without the final 0).
    const LONGEST_NAME: usize = 15;

    /// Reads a configuration.
    ///
    /// # Errors
    /// All that is wrong with it, with places.
    pub fn read(source: &Source) -> Result<Gateway, ScenarioError> {
        let document = Document::with_overrides(source)?;
        let mut problems = Vec::new();
        let gateway =
            Both::<Written, Alone>::read(document.root(), &mut problems).and_then(|both| {
                let Both(written, _) = &both;
                refuse_others(document.root(), &written.mode, &mut problems);
                if written.mode == Mode::Split {
                    refuse_esp(document.root(), &mut problems);
                }
                if written.mode == Mode::Mobile && written.hop == HopTransport::Tcp {
                    refuse_srp(document.root(), &mut problems);
                }
                resolve(both, &mut problems)
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

/// Keys that some modes alone have a use for, and how these are called.
const OF_MODES: [(&[&str], &[Mode], &str); 11] = [
    (&["peer", "peer_key", "key", "listen", "mtu"], &[Mode::Pair], "mode \"pair\""),
    (
        &["share"],
        &[Mode::Pair, Mode::Station, Mode::Mobile],
        "modes \"pair\", \"station\" and \"mobile\"",
    ),
    (&["hop"], &[Mode::Mobile], "mode \"mobile\""),
    (
        &["connect", "connections_per_user", "memory", "workers"],
        &[Mode::Spoof, Mode::Split, Mode::Pair],
        "modes \"spoof\", \"split\" and \"pair\"",
    ),
    (&["network_key"], &[Mode::Station, Mode::Mobile], "modes \"station\" and \"mobile\""),
    (
        &["connections"],
        &[Mode::Spoof, Mode::Split, Mode::Pair, Mode::Station],
        "modes \"spoof\", \"split\", \"pair\" and \"station\"",
    ),
    (
        &["lan"],
        &[Mode::Spoof, Mode::Split, Mode::Pair, Mode::Station, Mode::Spep],
        "modes other than \"mobile\" and \"notify\"",
    ),
    (
        &["rate", "cache", "teardown", "records", "profile", "tcp"],
        &[Mode::Spoof, Mode::Split, Mode::Pair, Mode::Station, Mode::Mobile],
        "modes other than \"spep\" and \"notify\"",
    ),
    (&["esp", "esp_key", "esp_networks", "esp_mtu"], &[Mode::Split], "mode \"split\""),
    (&["data_path", "flows", "idle"], &[Mode::Spep], "mode \"spep\""),
    (&["link_socket", "notices"], &[Mode::Notify], "mode \"notify\""),
];

/// Keys of a mobile host for which SRP alone has a use.
const OF_SRP: [&str; 4] = ["rate", "share", "cache", "teardown"];

/// Refuses keys for which a mobile host has no use, because its connections go over the hop by TCP.
fn refuse_srp(root: &Node<'_>, problems: &mut Vec<Problem>) {
    let Some(table) = root.get_ref().as_table() else { return };
    for (key, value) in OF_SRP.iter().filter_map(|&key| Some((key, table.get(key)?))) {
        let message = format!("`{key}` needs `hop = \"srp\"`");
        let help = "by TCP, the mobile host's connections end at the base station".to_owned();
        problems.push(Problem::at(value.span(), message).help(help));
    }
}

/// Refuses keys of ESP where there is none.
fn refuse_esp(root: &Node<'_>, problems: &mut Vec<Problem>) {
    let Some(table) = root.get_ref().as_table() else { return };
    if table.contains_key("esp") {
        return;
    }
    let of_esp = ["esp_key", "esp_networks", "esp_mtu"];
    for (key, value) in of_esp.into_iter().filter_map(|key| Some((key, table.get(key)?))) {
        let message = format!("`{key}` needs `esp`");
        let help = "`esp = \"fixed\"` beside the fixed host, `\"mobile\"` beside the mobile one";
        problems.push(Problem::at(value.span(), message).help(help.to_owned()));
    }
}

/// Refuses keys that the mode has no use for.
fn refuse_others(root: &Node<'_>, mode: &Mode, problems: &mut Vec<Problem>) {
    let Some(table) = root.get_ref().as_table() else { return };
    for (keys, _, modes) in OF_MODES.iter().filter(|(_, modes, _)| !modes.contains(mode)) {
        for (key, value) in keys.iter().filter_map(|&key| Some((key, table.get(key)?))) {
            let message = format!("`{key}` is of {modes} alone");
            let help = format!("leave it out, or set another mode: {modes}");
            problems.push(Problem::at(value.span(), message).help(help));
        }
    }
    if !matches!(mode, Mode::Mobile | Mode::Notify) && !table.contains_key("lan") {
        problems.push(Problem {
            message: "missing key `lan`".to_owned(),
            help: Some("it names the interface, or the interfaces, of the users".to_owned()),
            ..Problem::default()
        });
    }
}

fn resolve(
    Both(written, own): Both<Written, Alone>,
    problems: &mut Vec<Problem>,
) -> Option<Gateway> {
    let own = match written.mode {
        // Over the hop, SRP carries the connections, or they are the host's own; or there are none.
        Mode::Pair | Mode::Mobile | Mode::Spep | Mode::Notify => own,
        // Losses have a cause, and the path to the hop is shared with others.
        Mode::Split if written.esp.is_some() => {
            let mut reprobing = Rlci::default();
            reprobing.signal = false;
            own.or_mechanisms(vec![
                Mechanism::Eln(Eln::of_every_hole()),
                Mechanism::Rlci(reprobing),
            ])
        }
        // Its users' ends know nothing of the hop.
        Mode::Spoof | Mode::Split | Mode::Station => {
            let mut reprobing = Rlci::default();
            reprobing.signal = false;
            // A mobile host may move as often as it does: its messages are authentic.
            reprobing.rate_limit = (written.mode == Mode::Station).then_some(false);
            // Users compare it with TCP that is not paced.
            let mut own = own.or_congestion(Gateway::CONGESTION).or_prompt_start();
            // Base stations send SRP at this rate, not TCP.
            if written.rate.is_some() && written.mode != Mode::Station {
                own = own.or_loss_threshold(Gateway::LOSS_THRESHOLD);
            }
            own.or_mechanisms(vec![Mechanism::Rlci(reprobing)])
        }
    };
    let tcp = own.resolve(Profile::default(), IpVersion::V4, problems);
    let mut bytes = |amount: Option<Spanned<Amount>>| {
        amount.and_then(|amount| match amount.get_ref().0 {
            Size::Bytes(bytes @ 1..) => Some(Bytes(bytes)),
            _ => {
                problems.push(Problem::at(amount.span(), "expected bytes, 1 or more"));
                None
            }
        })
    };
    let (cache, memory) = (bytes(written.cache), bytes(written.memory));
    let wan = written.wan?;
    let lan = written.lan.map_or_else(Vec::new, |Interfaces(names)| names);
    for name in lan.iter().chain([&wan]) {
        let text = name.get_ref();
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        if text.is_empty() || text.len() > Gateway::LONGEST_NAME || !text.bytes().all(fits) {
            problems.push(Problem::at(name.span(), "expected the name of a network interface"));
        }
    }
    if let Some(both) = lan.iter().find(|name| name.get_ref() == wan.get_ref()) {
        let message = format!("`{}` is the interface of the hop, too", both.get_ref());
        problems.push(Problem::at(both.span(), message));
    }
    let connections = written.connections;
    let count = |Count(count)| u32::try_from(count).unwrap_or(u32::MAX);
    let connections = connections.map(count);
    let connections_per_user = written.connections_per_user.map(count);
    let rate = written.rate.map(|Hop(rate)| rate);
    let teardown = written.teardown;
    let share = written.share.is_some_and(Spanned::into_inner);
    let hop = Gateway::HOP.to_owned();
    let connect = written.connect.as_ref().map(|connect| *connect.get_ref());
    let expected = match (written.mode, connect) {
        (Mode::Split, Some(Connect::EndToEnd)) => {
            "mode \"split\" does not let handshakes pass end to end"
        }
        (Mode::Spoof, Some(Connect::First | Connect::AtOnce)) | (Mode::Pair, Some(_)) => {
            "only mode \"split\" accepts clients by handshakes of its own"
        }
        _ => "",
    };
    if let (Some(connect), false) = (&written.connect, expected.is_empty()) {
        problems.push(Problem::at(connect.span(), expected));
    }
    let esp = written.esp.map(|host| Esp {
        host: host.into_inner(),
        key: written.esp_key.into(),
        networks: match written.esp_networks {
            Some(AtLeastOne(networks)) => networks.into_iter().map(|Network(of)| of).collect(),
            None => vec![Network::all()],
        },
        mtu: longest(written.esp_mtu, &Gateway::ESP_MTU, problems),
    });
    let workers = written.workers.map_or(1, |workers| {
        let Count(count) = *workers.get_ref();
        let shares_hop = rate.is_some() || written.mode == Mode::Pair || esp.is_some();
        if count > Gateway::WORKERS {
            let message = format!("expected at most {} threads", Gateway::WORKERS);
            problems.push(Problem::at(workers.span(), message));
        } else if count > 1 && shares_hop {
            let message = match written.mode {
                Mode::Pair => "mode \"pair\" has one association, and one thread for it",
                _ if esp.is_some() => "one thread carries what is under ESP (`esp`)",
                _ => "one thread sends at the `rate` of the hop",
            };
            problems.push(Problem::at(workers.span(), message));
        }
        usize::try_from(count).unwrap_or(usize::MAX)
    });
    let work = match written.mode {
        Mode::Spoof | Mode::Split => {
            let default = Spoofer::default();
            Work::Spoof(Spoofer {
                connect: match written.mode {
                    Mode::Split => connect.unwrap_or(Connect::First),
                    _ => Connect::EndToEnd,
                },
                cache: cache.or(Some(Gateway::CACHE)),
                teardown,
                hop: Some(hop),
                rate,
                connections: connections.unwrap_or(default.connections),
                connections_per_user,
                memory,
            })
        }
        Mode::Pair => {
            let default = Pair::default();
            let pair = Pair {
                hop,
                rate,
                cache: cache.unwrap_or(default.cache),
                teardown,
                connections: connections.unwrap_or(default.connections),
                connections_per_user,
                memory,
                share,
                ..default
            };
            let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, Gateway::PORT));
            let Some(peer_key) = written.peer_key else {
                problems.push(Problem {
                    message: "mode \"pair\" needs `peer_key`, the public key of the other gateway"
                        .to_owned(),
                    help: Some("`lasthopd key` at the other gateway prints it".to_owned()),
                    ..Problem::default()
                });
                return None;
            };
            let mtu = longest(written.mtu, &Gateway::MTU, problems);
            let peer = Peer {
                address: written.peer.map(|Listening(address)| address),
                peer_key: peer_key.into_inner(),
                key: written.key.into(),
                listen: written.listen.map_or(any, |Listening(address)| address),
                mtu,
            };
            Work::Pair(pair, peer)
        }
        Mode::Station => {
            let default = Station::default();
            let station = Station {
                cache: cache.unwrap_or(Gateway::CACHE),
                semantics: teardown,
                rate: rate.unwrap_or_default(),
                share,
                connections: connections.unwrap_or(default.connections),
                ..default
            };
            Work::Station(station, written.network_key.into())
        }
        Mode::Mobile => {
            let mobile = Mobile {
                hop: written.hop,
                rate: rate.unwrap_or_default(),
                share,
                cache: cache.unwrap_or(Gateway::CACHE),
                semantics: teardown,
                ..Mobile::default()
            };
            Work::Mobile(mobile, written.network_key.into())
        }
        Mode::Spep => {
            let default = SpepStation::default();
            let station = SpepStation {
                hop,
                flows: written.flows.map_or(default.flows, count),
                idle: written.idle.map_or(default.idle, |Quantity(idle)| Span(idle)),
                ..default
            };
            Work::Spep(station, written.data_path)
        }
        Mode::Notify => Work::Notify(Notifier {
            link_socket: written.link_socket.into(),
            notices: count(written.notices),
        }),
    };
    Some(Gateway {
        lan: lan.into_iter().map(Spanned::into_inner).collect(),
        wan: wan.into_inner(),
        work,
        workers,
        tcp: tcp?,
        metrics: written.metrics.map(|Listening(address)| address),
        records: written.records.map(PathBuf::from),
        esp,
    })
}

/// The length of the largest packet, bytes, if one is written.
fn longest(
    mtu: Option<Spanned<Count>>,
    permitted: &RangeInclusive<u32>,
    problems: &mut Vec<Problem>,
) -> Option<u32> {
    let mtu = mtu?;
    let bytes = u32::try_from(mtu.get_ref().0).unwrap_or(u32::MAX);
    if !permitted.contains(&bytes) {
        let (least, most) = (permitted.start(), permitted.end());
        problems.push(Problem::at(mtu.span(), format!("expected bytes, {least} to {most}")));
    }
    Some(bytes)
}
