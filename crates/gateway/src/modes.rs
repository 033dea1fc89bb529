//! What a gateway is made of in each mode.

use crate::counted::Counted;
use crate::error::Error;
use crate::esp::{Bump, EspEnd};
use crate::link_socket::{LinkCounts, LinkSocket};
use crate::mhp::{self, Agent, Courier, End, Guests, Mailbox, Messages, NetworkKey, Tunnels};
use crate::network;
use crate::peer::{self, Way};
use crate::plane::{Kind, Plane};
use crate::tunnel::{self, Mtu};
use base::{Seed, Time};
use live::Netlink;
use live::inline::{Caller, Side, Underlay};
use middlebox::mhp::Keys;
use middlebox::{
    BaseStation, BoxSettings, Contents, Gateway as PairGateway, HopTransport, Mobile, MobileAgent,
    Neighbour, Pair, Reading, Reporter, Site, Splitter, Spoofer, Station,
};
use relay::Relays;
use scenario::{Gateway, Notifier, Peer, Work};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use tcp::Config;

/// The parts of a worker that its mode decides.
pub(crate) struct Parts {
    pub(crate) kind: Kind,
    /// How it reaches other gateways, base stations, mobile hosts or the link, besides the packets that it forwards.
    pub(crate) way: Option<Box<dyn Underlay>>,
    /// What protects its packets on the hop.
    pub(crate) boundary: Option<Bump>,
    /// What counts besides its box.
    pub(crate) counted: Option<Arc<dyn Counted>>,
    /// Starts what carries the state of connections between base stations.
    pub(crate) courier: Option<StartCourier>,
}

/// Starts the courier of the base station that is called by this.
pub(crate) type StartCourier = Box<dyn FnOnce(Caller<Plane>) -> Result<Courier, Error>>;

impl From<Kind> for Parts {
    fn from(kind: Kind) -> Parts {
        Parts { kind, way: None, boundary: None, counted: None, courier: None }
    }
}

impl Parts {
    fn with_way(kind: Kind, way: impl Underlay + 'static) -> Parts {
        Parts { way: Some(Box::new(way)), ..Parts::from(kind) }
    }
}

/// The parts of one worker with this work, where no packet is longer than `mtu`. `peer` is where the other gateway of
/// a pair was.
pub(crate) fn parts(
    gateway: &Gateway,
    work: &Work,
    now: Time,
    mtu: u16,
    peer: Option<SocketAddr>,
) -> Result<Parts, Error> {
    match work {
        Work::Spoof(spoofer) => {
            let parts = Parts::from(Kind::Spoof(splitter(gateway, spoofer, mtu)?));
            let Some(esp) = EspEnd::of(gateway)? else { return Ok(parts) };
            Ok(Parts { boundary: Some(Bump(Arc::clone(&esp))), counted: Some(esp), ..parts })
        }
        Work::Pair(pair, other) => one_of_pair(gateway, pair, other, now, mtu, peer),
        Work::Station(settings, key) => station(gateway, settings, &NetworkKey::read(key)?, mtu),
        Work::Mobile(settings, key) => mobile(gateway, settings, &NetworkKey::read(key)?, mtu),
        Work::Spep(marker, _) => {
            let make = |site: &Site<'_>| BoxSettings::from(marker.clone()).build(site);
            let marker = at_site(gateway, [NO_ADDRESS, NO_ADDRESS], mtu, make)?;
            Ok(Kind::Spep(marker, no_relays()?).into())
        }
        Work::Notify(notifier) => notify(gateway, notifier),
    }
}

/// The box of a gateway that splits connections alone. It sends nothing in its own name.
fn splitter(gateway: &Gateway, spoofer: &Spoofer, mtu: u16) -> Result<Splitter, Error> {
    at_site(gateway, [NO_ADDRESS, NO_ADDRESS], mtu, |site| spoofer.splitter(site))
}

fn one_of_pair(
    gateway: &Gateway,
    pair: &Pair,
    other: &Peer,
    now: Time,
    mtu: u16,
    known: Option<SocketAddr>,
) -> Result<Parts, Error> {
    let hop = match other.mtu {
        Some(mtu) => Mtu::Known(mtu),
        None => Mtu::AtMost(hop_mtu(gateway)?),
    };
    let way = Way::open(now, other, (known, hop))?;
    let pair = Pair { mtu: hop.first(), ..pair.clone() };
    let overhead = tunnel::overhead(peer::is_over_ipv6(other.address));
    let make = |site: &Site<'_>| pair.gateway(site, overhead);
    let one: PairGateway = at_site(gateway, way.names(), mtu, make)?;
    Ok(Parts::with_way(Kind::Pair(one), way))
}

fn station(
    gateway: &Gateway,
    settings: &Station,
    key: &NetworkKey,
    mtu: u16,
) -> Result<Parts, Error> {
    let own = mhp::addresses(gateway)?;
    let guests = Guests::new(&gateway.wan, own)?;
    let hop = hop_mtu(gateway)?;
    let tunnels = Tunnels::new(End::Station, key, hop);
    let at = (gateway.wan.as_str(), own);
    let way = Messages::of_station(at, Keys::new(&key.secret), tunnels, Arc::clone(&guests));
    let way = way.map_err(at_messages)?;
    let (bell, bells) = mpsc::channel();
    let settings = Station { mtu: hop, secret: key.secret.clone(), ..settings.clone() };
    let tcp = tcp_within(gateway, mtu);
    let random = Seed(getrandom::u64()?).stream("station");
    let mailbox = Mailbox::new(bell, Arc::clone(&guests));
    let mut station = BaseStation::with_exchange(settings, own, &tcp, random, |_| mailbox);
    station.gather([false, true].map(tunnel::overhead));
    let key = key.clone();
    let courier: StartCourier =
        Box::new(move |caller| Courier::start(caller, bells, key, guests).map_err(at_messages));
    let parts = Parts::with_way(Kind::Station(Box::new(station)), way);
    Ok(Parts { courier: Some(courier), ..parts })
}

fn mobile(
    gateway: &Gateway,
    settings: &Mobile,
    key: &NetworkKey,
    mtu: u16,
) -> Result<Parts, Error> {
    let own = mhp::addresses(gateway)?;
    let hop = hop_mtu(gateway)?;
    let has_srp = settings.hop == HopTransport::Srp;
    let tunnels = has_srp.then(|| Tunnels::new(End::Mobile, key, hop));
    let at = (gateway.wan.as_str(), own);
    let way = Messages::of_mobile(at, Keys::new(&key.secret), tunnels).map_err(at_messages)?;
    let settings = Mobile { mtu: hop, secret: key.secret.clone(), ..settings.clone() };
    let tcp = tcp_within(gateway, mtu);
    let random = Seed(getrandom::u64()?).stream("mobile");
    let mut agent = MobileAgent::new(&settings, own, &tcp, random);
    // One handoff takes longer than a millisecond.
    agent.number_from(tunnel::unix_time() / 1_000_000);
    agent.gather([false, true].map(tunnel::overhead));
    let agent = Agent::new(agent, no_relays()?, &gateway.wan)?;
    Ok(Parts::with_way(Kind::Mobile(Box::new(agent)), way))
}

fn notify(gateway: &Gateway, notifier: &Notifier) -> Result<Parts, Error> {
    let path = &notifier.link_socket;
    let counts = Arc::<LinkCounts>::default();
    let socket = LinkSocket::open(path, Arc::clone(&counts))
        .map_err(|source| Error::Listening { place: path.display().to_string(), source })?;
    let mut reporter = Reporter::new(NO_ADDRESS, Reporter::SIZE_ICMP, Reading::Whole);
    reporter.set_addresses(network::notifying(&Netlink::open()?, gateway));
    reporter.set_limit(notifier.notices);
    reporter.register_all();
    let parts = Parts::with_way(Kind::Notify(Box::new(reporter), no_relays()?), socket);
    Ok(Parts { counted: Some(counts), ..parts })
}

/// The longest packet over the hop, bytes.
pub(crate) fn hop_mtu(gateway: &Gateway) -> Result<u32, Error> {
    Ok(Netlink::open()?.mtu(&gateway.wan)?)
}

/// The port of messages between mobile hosts and base stations cannot be listened at.
fn at_messages(source: io::Error) -> Error {
    Error::Listening { place: format!("port {}", wire::Mobility::PORT), source }
}

/// The address of a box that sends nothing of its own, or whose addresses are set later.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Those of a mode that splits no connections.
fn no_relays() -> Result<Relays, Error> {
    Ok(Relays::new(NO_ADDRESS, Seed(getrandom::u64()?).stream("none")))
}

/// The settings of the gateway's TCP, where no packet is longer.
pub(crate) fn tcp_within(gateway: &Gateway, mtu: u16) -> Config {
    Config { mss: gateway.tcp.mss.min(mtu.saturating_sub(40)), ..gateway.tcp.clone() }
}

/// Makes a box at the place of a gateway, whose own name and whose neighbour's are these.
fn at_site<R>(
    gateway: &Gateway,
    [own, peer]: [IpAddr; 2],
    mtu: u16,
    make: impl FnOnce(&Site<'_>) -> R,
) -> Result<R, Error> {
    let seed = Seed(getrandom::u64()?);
    Ok(make(&Site {
        own: [own, own],
        neighbours: &[Neighbour { name: Gateway::HOP, address: peer, port: Side::Wan.port() }],
        attached: None,
        flows: &BTreeMap::new(),
        tunnels: &[],
        readable: &[],
        tcp: &tcp_within(gateway, mtu),
        has_streams: false,
        contents: &Contents::default(),
        random: &|| seed.stream("gateway"),
    }))
}
