//! The agent of a mobile host: what the host's connections send goes by the base station to which it is attached.

use crate::network::STATION_TABLE;
use base::Time;
use live::netlink::Family;
use live::{Error, Netlink};
use middlebox::MobileAgent;
use relay::Relays;
use std::net::IpAddr;
use tracing::warn;

/// The agent. Its route is removed with it.
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

    /// The host is attached to a base station. Packets of its connections go there from now on, and wait until the
    /// base station has them: before, they would pass it as those of unknown connections.
    pub(crate) fn attach(&mut self, now: Time, station: IpAddr) {
        self.agent.on_attached(now, station);
        let led = self.netlink.set_default_router(station, &self.interface, STATION_TABLE);
        if let Err(error) = led {
            warn!(%station, %error, "it is not directly behind the interface: the routes of the host are used");
            self.remove_route();
        }
    }

    fn remove_route(&self) {
        if let Err(error) = self.netlink.remove_default_route(Family::V4, STATION_TABLE) {
            warn!(%error, "a route is left behind");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.remove_route();
    }
}
