//! The running gateway.

use crate::network::Network;
use crate::peer::{self, PeerError, Way};
use crate::plane::Plane;
use crate::{Observation, doctor};
use base::Seed;
use host::Middlebox as _;
use live::inline::{Counts, Inline, Running, Side};
use live::{Clock, Netlink};
use middlebox::{Contents, Gateway as PairGateway, Neighbour, Pair, Site, Splitter, Spoofer};
use scenario::{Gateway, Peer, Work};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use tcp::Config;
use thiserror::Error;

/// Why a gateway cannot run.
#[derive(Debug, Error)]
pub enum Error {
    /// The system has refused something.
    #[error(transparent)]
    Live(#[from] live::Error),
    /// There is no way to the other gateway.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The machine is not ready.
    #[error(transparent)]
    Unfit(#[from] doctor::Unfit),
    /// The address or the path cannot be listened at.
    #[error("listening at {place}: {source}")]
    Listening {
        /// The path or the address.
        place: String,
        /// The cause.
        source: io::Error,
    },
    /// Signals cannot be caught.
    #[error("catching signals: {0}")]
    Signals(#[source] io::Error),
    /// One of its devices is gone.
    #[error("a device of the gateway was removed")]
    Removed,
    /// There is no randomness for secrets.
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// A gateway, which runs until this is dropped.
pub struct Daemon {
    plane: Running<Plane>,
    /// Undone after the devices are gone.
    _network: Network,
}

impl Daemon {
    /// Starts a gateway in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the system does not let it; nothing is left changed then.
    pub fn start(gateway: &Gateway) -> Result<Daemon, Error> {
        doctor::admit(gateway)?;
        let mtu = largest_mtu(gateway)?;
        let (seed, clock) = (Seed(getrandom::u64()?), Clock::start());
        let mut way = None;
        let plane = match &gateway.work {
            Work::Spoof(spoofer) => Plane::Spoof(splitter(gateway, spoofer, mtu, seed)),
            Work::Pair(pair, peer) => {
                let opened = Way::open(clock.now(), peer)?;
                let hop = match peer.mtu {
                    Some(mtu) => mtu,
                    None => Netlink::open()?.mtu(&gateway.wan)?,
                };
                let pair = Pair { mtu: hop, ..pair.clone() };
                let plane = one_of_pair(gateway, &pair, opened.names(), peer, (mtu, seed));
                way = Some(opened);
                Plane::Pair(plane)
            }
        };
        let (network, tuns) = Network::set_up(gateway)?;
        let mut inline = Inline::new(plane, tuns, &gateway.lan, clock)?;
        if let Some(way) = way {
            inline = inline.with_underlay(Box::new(way));
        }
        Ok(Daemon { plane: inline.start()?, _network: network })
    }

    /// Whether it runs. It ends by itself if one of its devices is removed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.plane.is_running()
    }

    /// The counters of the packets.
    ///
    /// # Errors
    /// If it has ended.
    pub fn counts(&self) -> Result<Counts, Error> {
        Ok(self.plane.call(|_, _, counts| *counts)?)
    }

    /// The counters of its box, by their names.
    ///
    /// # Errors
    /// If it has ended.
    pub fn boxes(&self) -> Result<BTreeMap<&'static str, u64>, Error> {
        let counts = |_, plane: &mut Plane, _: &Counts| {
            let mut counts = BTreeMap::new();
            plane.counts(&mut |name, value| {
                counts.insert(name, value);
            });
            counts
        };
        Ok(self.plane.call(counts)?)
    }

    /// All counters and gauges, of one moment.
    ///
    /// # Errors
    /// If it has ended.
    pub fn observe(&self) -> Result<Observation, Error> {
        let observe = |_, middlebox: &mut Plane, packets: &Counts| {
            let mut observed = Observation { packets: *packets, ..Observation::default() };
            middlebox.counts(&mut |name, value| {
                observed.counters.insert(name, value);
            });
            middlebox.gauges(&mut |name, value| {
                observed.gauges.insert(name, value);
            });
            observed
        };
        Ok(self.plane.call(observe)?)
    }

    /// Ends it. Connections that it carries are lost.
    pub fn stop(self) {
        let _ = self.plane.stop();
    }
}

/// The largest packet of any interface, bytes.
fn largest_mtu(gateway: &Gateway) -> Result<u16, Error> {
    let netlink = Netlink::open()?;
    let mut largest = 0;
    for interface in gateway.lan.iter().chain([&gateway.wan]) {
        largest = netlink.mtu(interface)?.max(largest);
    }
    Ok(u16::try_from(largest).unwrap_or(u16::MAX))
}

/// The box of a gateway that spoofs. It sends nothing in its own name.
fn splitter(gateway: &Gateway, spoofer: &Spoofer, mtu: u16, seed: Seed) -> Splitter {
    let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    at_site(gateway, [none, none], (mtu, seed), |site| spoofer.splitter(site))
}

/// The box of one of two gateways with these names.
fn one_of_pair(
    gateway: &Gateway,
    pair: &Pair,
    names: [IpAddr; 2],
    peer: &Peer,
    (mtu, seed): (u16, Seed),
) -> PairGateway {
    let is_ipv6 = peer.address.is_none_or(|address| address.is_ipv6());
    at_site(gateway, names, (mtu, seed), |site| pair.gateway(site, peer::overhead(is_ipv6)))
}

/// Makes a box at the place of a gateway, whose own name and whose neighbour's are these.
fn at_site<R>(
    gateway: &Gateway,
    [own, peer]: [IpAddr; 2],
    (mtu, seed): (u16, Seed),
    make: impl FnOnce(&Site<'_>) -> R,
) -> R {
    let mss = gateway.tcp.mss.min(mtu.saturating_sub(40));
    make(&Site {
        own: [own, own],
        neighbours: &[Neighbour { name: Gateway::HOP, address: peer, port: Side::Wan.port() }],
        attached: None,
        flows: &BTreeMap::new(),
        tunnels: &[],
        readable: &[],
        tcp: &Config { mss, ..gateway.tcp.clone() },
        has_streams: false,
        contents: &Contents::default(),
        random: &|| seed.stream("gateway"),
    })
}
