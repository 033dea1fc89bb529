//! What the kernel's routes say.

use super::{Family, Netlink, family};
use crate::Error;
use crate::error::Doing;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The way to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination is an address of this network namespace.
    pub local: bool,
    /// The destination is one host: neither a broadcast nor a multicast address.
    pub unicast: bool,
    /// The device by which packets leave.
    pub device: String,
    /// The largest packet of this way, bytes.
    pub mtu: u32,
}

/// The addresses that share a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address of the network.
    pub address: IpAddr,
    /// The length of the prefix, bits.
    pub prefix: u8,
}

impl Network {
    /// Whether an address belongs to both.
    #[must_use]
    pub fn overlaps(&self, other: &Network) -> bool {
        let shorter = self.prefix.min(other.prefix);
        match (self.address, other.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (a.to_bits() ^ b.to_bits()).leading_zeros() >= shorter.into()
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                (a.to_bits() ^ b.to_bits()).leading_zeros() >= shorter.into()
            }
            _ => false,
        }
    }
}

impl Netlink {
    /// The index of the interface by which packets to `destination` leave.
    ///
    /// # Errors
    /// If there is no route.
    pub fn interface_to(&self, destination: IpAddr) -> Result<u32, Error> {
        let found = self.lookup(destination, None)?;
        let none = || std::io::Error::from(std::io::ErrorKind::NotFound);
        interface(&found)
            .ok_or_else(none)
            .doing(|| format!("looking up the route to {destination}"))
    }

    /// The way of packets to `destination`.
    ///
    /// # Errors
    /// If there is none.
    pub fn route_to(&self, destination: IpAddr) -> Result<Route, Error> {
        let found = self.lookup(destination, None)?;
        let (device, device_mtu) = self.device(interface(&found).unwrap_or_default());
        let kind = found.header.kind;
        Ok(Route {
            local: kind == RouteType::Local,
            unicast: matches!(kind, RouteType::Local | RouteType::Unicast),
            device,
            mtu: mtu(&found).unwrap_or(u32::MAX).min(device_mtu),
        })
    }

    /// The device by which a packet of a protocol leaves that is forwarded: one that has come by an interface.
    ///
    /// # Errors
    /// If the kernel drops it.
    pub fn forwarded_by(
        &self,
        interface: &str,
        source: IpAddr,
        destination: IpAddr,
        protocol: IpProtocol,
    ) -> Result<String, Error> {
        let from = (self.index(interface)?, source, protocol);
        Ok(self.device_of(&self.lookup(destination, Some(from))?).unwrap_or_default())
    }

    /// Addresses to which packets leave by an interface: of each family one at most, in the largest network.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn behind(&self, name: &str) -> Result<Vec<IpAddr>, Error> {
        let index = self.index(name)?;
        let one = |family: AddressFamily| {
            let mut routes = self.routes(family);
            routes.retain(|route| {
                route.header.table == RouteHeader::RT_TABLE_MAIN && interface(route) == Some(index)
            });
            routes.sort_by_key(|route| route.header.destination_prefix_length);
            routes.iter().flat_map(hosts).find(|host| {
                let way = self.route_to(*host);
                way.is_ok_and(|way| way.unicast && !way.local && way.device == name)
            })
        };
        Ok([AddressFamily::Inet, AddressFamily::Inet6].into_iter().filter_map(one).collect())
    }

    /// Whether there are routes of a version of IP by a device, other than those that each device has.
    #[must_use]
    pub fn has_routes(&self, of: Family, device: &str) -> bool {
        let Ok(index) = self.index(device) else { return false };
        self.routes(of.number()).iter().any(|route| {
            let to_others = route.header.kind == RouteType::Unicast;
            let is_own = match destination(route) {
                Some(IpAddr::V4(to)) => to.is_link_local() || to.is_multicast(),
                Some(IpAddr::V6(to)) => to.is_unicast_link_local() || to.is_multicast(),
                None => false,
            };
            to_others && !is_own && interface(route) == Some(index)
        })
    }

    /// The route to a destination; for a packet that has come by an interface with this index from a source, of a
    /// protocol, if so.
    pub(super) fn lookup(
        &self,
        destination: IpAddr,
        from: Option<(u32, IpAddr, IpProtocol)>,
    ) -> Result<RouteMessage, Error> {
        let len = if destination.is_ipv4() { 32 } else { 128 };
        let mut message = RouteMessage::default();
        message.header.address_family = family(destination);
        message.header.destination_prefix_length = len;
        message.attributes.push(RouteAttribute::Destination(destination.into()));
        if let Some((interface, source, protocol)) = from {
            message.header.source_prefix_length = len;
            message.attributes.push(RouteAttribute::Source(source.into()));
            message.attributes.push(RouteAttribute::Iif(interface));
            message.attributes.push(RouteAttribute::IpProto(protocol.into()));
        }
        let action = || format!("looking up the route to {destination}");
        let found = self.requests.get(RouteNetlinkMessage::GetRoute(message)).doing(action)?;
        match found {
            RouteNetlinkMessage::NewRoute(found) => Ok(found),
            _ => Err(std::io::Error::other("the answer is no route")).doing(action),
        }
    }

    /// The networks, other than the whole internet, to which there are routes.
    #[must_use]
    pub fn networks(&self) -> Vec<Network> {
        let of = |route: RouteMessage| {
            let prefix = route.header.destination_prefix_length;
            let address = destination(&route)?;
            (prefix > 0).then_some(Network { address, prefix })
        };
        [AddressFamily::Inet, AddressFamily::Inet6]
            .into_iter()
            .flat_map(|family| self.routes(family))
            .filter_map(of)
            .collect()
    }

    /// All routes of a family, as far as the kernel lists them.
    pub(super) fn routes(&self, family: AddressFamily) -> Vec<RouteMessage> {
        let mut all = RouteMessage::default();
        all.header.address_family = family;
        let found = self.requests.dump(RouteNetlinkMessage::GetRoute(all)).unwrap_or_default();
        let routes = found.into_iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        routes.collect()
    }

    /// The name of the device by which a route leads.
    pub(super) fn device_of(&self, route: &RouteMessage) -> Option<String> {
        interface(route).map(|index| self.device(index).0)
    }

    /// The name and the MTU of a device.
    fn device(&self, index: u32) -> (String, u32) {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let (mut name, mut mtu) = (String::new(), u32::MAX);
        for attribute in self.link(message).into_iter().flat_map(|link| link.attributes) {
            match attribute {
                LinkAttribute::IfName(is) => name = is,
                LinkAttribute::Mtu(is) => mtu = is,
                _ => {}
            }
        }
        (name, mtu)
    }
}

/// The router of a route, if there is one between.
pub(super) fn router(route: &RouteMessage) -> Option<IpAddr> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(router)) => Some(IpAddr::V4(*router)),
        RouteAttribute::Gateway(RouteAddress::Inet6(router))
        | RouteAttribute::Via(RouteVia::Inet6(router)) => Some(IpAddr::V6(*router)),
        _ => None,
    })
}

pub(super) fn interface(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn destination(route: &RouteMessage) -> Option<IpAddr> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(to)) => Some(IpAddr::V4(*to)),
        RouteAttribute::Destination(RouteAddress::Inet6(to)) => Some(IpAddr::V6(*to)),
        _ => None,
    })
}

/// Addresses of a route's network that may be hosts: its first ones; for the whole internet, one that is for
/// documentation (RFC 5737, RFC 3849).
fn hosts(route: &RouteMessage) -> Vec<IpAddr> {
    let is_ipv4 = route.header.address_family == AddressFamily::Inet;
    let hosts = match destination(route) {
        None if is_ipv4 => vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))],
        None => vec![IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))],
        Some(IpAddr::V4(first)) => {
            let count = if route.header.destination_prefix_length < 32 { 3 } else { 1 };
            (0..count).map(|number| IpAddr::V4((first.to_bits() | number).into())).collect()
        }
        Some(IpAddr::V6(first)) => {
            let count = if route.header.destination_prefix_length < 128 { 3 } else { 1 };
            (0..count).map(|number| IpAddr::V6((first.to_bits() | number).into())).collect()
        }
    };
    let is_global = |host: &IpAddr| match host {
        IpAddr::V4(host) => !host.is_link_local(),
        IpAddr::V6(host) => !host.is_unicast_link_local(),
    };
    hosts.into_iter().filter(is_global).collect()
}

fn mtu(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|attribute| {
        let RouteAttribute::Metrics(metrics) = attribute else { return None };
        metrics.iter().find_map(|metric| match metric {
            RouteMetric::Mtu(mtu) => Some(*mtu),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_if_one_contains_the_other() {
        let network = |text: &str, prefix| Network { address: text.parse().unwrap(), prefix };
        let ours = network("198.18.0.4", 30);
        for (other, overlaps) in [
            (network("198.18.0.0", 15), true),
            (network("198.18.0.6", 32), true),
            (network("198.18.0.8", 30), false),
            (network("198.18.0.0", 30), false),
            (network("::", 0), false),
        ] {
            assert_eq!((ours.overlaps(&other), other.overlaps(&ours)), (overlaps, overlaps));
        }
        assert!(network("2001:2::", 48).overlaps(&network("2001:2::6", 126)));
    }

    #[test]
    fn the_way_to_this_machine_is_its_own() {
        let route = Netlink::open().unwrap().route_to("127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!((route.local, route.unicast, route.device.as_str()), (true, true, "lo"));
    }
}
