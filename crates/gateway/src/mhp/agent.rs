//! The agent of a mobile host: what the host's connections send goes by the base station to which it is attached.

use crate::network::{STATION_TABLE, remove_station_routes};
use base::Time;
use live::{Error, Netlink};
use middlebox::MobileAgent;
use relay::Relays;
use std::net::IpAddr;
use tracing::{info, warn};

/// The agent. Its routes are removed with it.
pub(crate) struct Agent {
    pub(crate) agent: MobileAgent,
    /// Those of one whose connections go over the hop by TCP, which end in the host: none.
    none: Relays,
    netlink: Netlink,
    /// The interface behind which base stations are.
    interface: String,
}

impl Agent {
    /// One that is attached to no base station yet.
    pub(crate) fn new(agent: MobileAgent, none: Relays, interface: &str) -> Result<Agent, Error> {
        Ok(Agent { agent, none, netlink: Netlink::open()?, interface: interface.to_owned() })
    }

    /// The connections that it carries.
    pub(crate) fn relays(&mut self) -> &mut Relays {
        self.agent.relays_mut().unwrap_or(&mut self.none)
    }

    /// The host is attached to the base station at this address. Returns false, and nothing has changed, if it is of
    /// another version of IP than that by which base stations know the host.
    pub(crate) fn attach(&mut self, now: Time, station: IpAddr) -> bool {
        let is_known = station.is_ipv6() == self.agent.name().is_ipv6();
        if is_known {
            self.go_by(now, station, [station]);
        }
        is_known
    }

    /// These are the host's routers of IPv4 and of IPv6. That of the version by which base stations know the host is the
    /// base station; what the host sends by the other version goes to the other one, which is to be the same node.
    pub(crate) fn on_routers(&mut self, now: Time, routers: [Option<IpAddr>; 2]) {
        if let Some(station) = routers[usize::from(self.agent.name().is_ipv6())] {
            self.go_by(now, station, routers.into_iter().flatten());
        }
    }

    /// The hop is down until there are routers again.
    pub(crate) fn on_down(&mut self, now: Time) {
        self.agent.on_down(now);
    }

    /// Packets of the host's connections go to the base station from now on, and wait until it has them: before, they
    /// would pass it as those of unknown connections.
    fn go_by(&mut self, now: Time, station: IpAddr, routers: impl IntoIterator<Item = IpAddr>) {
        info!(%station, "attached");
        self.agent.on_attached(now, station);
        self.remove_routes();
        for router in routers {
            let led = self.netlink.set_default_router(router, &self.interface, STATION_TABLE);
            if let Err(error) = led {
                warn!(%router, %error, "it is not directly behind the interface: the routes of the host are used");
            }
        }
    }

    fn remove_routes(&self) {
        if let Err(error) = remove_station_routes(&self.netlink) {
            warn!(%error, "a route is left behind");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.remove_routes();
    }
}
