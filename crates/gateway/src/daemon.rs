//! The running gateway.

use crate::network::Network;
use crate::{Observation, doctor};
use base::Seed;
use host::Middlebox as _;
use live::inline::{Counts, Inline, Running, Side};
use live::{Clock, Netlink};
use middlebox::{Contents, Site, Splitter};
use scenario::Gateway;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcp::Config;
use thiserror::Error;

/// Why a gateway cannot run.
#[derive(Debug, Error)]
pub enum Error {
    /// The system has refused something.
    #[error(transparent)]
    Live(#[from] live::Error),
    /// The machine is not ready.
    #[error(transparent)]
    Unfit(#[from] doctor::Unfit),
    /// Nobody can be answered at this place.
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
    plane: Running<Splitter>,
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
        let splitter = splitter(gateway, mtu, Seed(getrandom::u64()?));
        let (network, tuns) = Network::set_up(gateway)?;
        let inline = Inline::new(splitter, tuns, mtu, &gateway.lan, Clock::start())?;
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
        let counts = |_, splitter: &mut Splitter, _: &Counts| {
            let mut counts = BTreeMap::new();
            splitter.counts(&mut |name, value| {
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
        let observe = |_, middlebox: &mut Splitter, packets: &Counts| {
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

/// The box of a gateway.
fn splitter(gateway: &Gateway, mtu: u16, seed: Seed) -> Splitter {
    // It sends nothing in its own name.
    let own = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let mss = gateway.tcp.mss.min(mtu.saturating_sub(40));
    gateway.spoofer.splitter(&Site {
        own,
        neighbours: &[(Gateway::HOP, Side::Wan.port())],
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
