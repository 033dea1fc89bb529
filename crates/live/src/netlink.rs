//! Devices, addresses, routes and settings of a network namespace.

mod congestion;
mod monitor;
mod pairs;
mod requests;
mod routes;
mod rules;

pub use monitor::{Attachment, Monitor};
pub use netlink_packet_route::IpProtocol;
pub use routes::{Network, Route};
pub use rules::{AnyRule, Family, ORIGIN, Rule};

use crate::Error;
use crate::error::Doing;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use requests::Requests;
use std::net::{IpAddr, Ipv4Addr};

/// The network of one namespace.
pub struct Netlink {
    requests: Requests,
}

/// The kernel's counters of a device. "Received" packets are those that a TUN's owner wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Packets that the kernel received from the device.
    pub received: u64,
    /// Packets that it dropped instead of receiving.
    pub receive_dropped: u64,
    /// Packets that the kernel sent by the device.
    pub sent: u64,
    /// Packets that it dropped instead of sending; for a TUN, those that were not read in time.
    pub send_dropped: u64,
}

impl Netlink {
    /// The network of the calling thread's namespace, whichever thread uses it later.
    ///
    /// # Errors
    /// If there is no netlink.
    pub fn open() -> Result<Netlink, Error> {
        let requests = Requests::open().doing(|| "opening netlink".to_owned())?;
        Ok(Netlink { requests })
    }

    /// Sets a device up.
    ///
    /// # Errors
    /// If there is none of that name, or the kernel refuses.
    pub fn set_up(&self, device: &str) -> Result<(), Error> {
        let mut link = self.numbered(device)?;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.set(link, || format!("setting {device} up"))
    }

    /// Sets a device down; routes by it are gone.
    ///
    /// # Errors
    /// As [`Netlink::set_up`].
    pub fn set_down(&self, device: &str) -> Result<(), Error> {
        let mut link = self.numbered(device)?;
        link.header.change_mask = LinkFlags::Up;
        self.set(link, || format!("setting {device} down"))
    }

    /// Whether a device is up.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn is_up(&self, device: &str) -> Result<bool, Error> {
        Ok(self.find(device)?.header.flags.contains(LinkFlags::Up))
    }

    /// The MTU of a device, bytes.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn mtu(&self, device: &str) -> Result<u32, Error> {
        let found =
            self.find(device)?.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(mtu),
                _ => None,
            });
        Ok(found.unwrap_or(u32::MAX))
    }

    /// How many queues a device may have for packets that its owner reads: 1 for a TUN that was not made for several.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn queues(&self, device: &str) -> Result<u32, Error> {
        let found =
            self.find(device)?.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::NumTxQueues(queues) => Some(queues),
                _ => None,
            });
        Ok(found.unwrap_or(1))
    }

    /// Sets how many packets may wait at a device until they are read.
    ///
    /// # Errors
    /// As [`Netlink::set_up`].
    pub fn set_queue_length(&self, device: &str, packets: u32) -> Result<(), Error> {
        let mut link = self.numbered(device)?;
        link.attributes.push(LinkAttribute::TxQueueLen(packets));
        self.set(link, || format!("setting the queue of {device} to {packets}"))
    }

    /// Adds an address to a device. If the device is up, the address is usable on return; there is
    /// no duplicate address detection.
    ///
    /// # Errors
    /// As [`Netlink::set_up`], or if it is not usable after five seconds.
    pub fn add_address(&self, device: &str, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let link = self.find(device)?;
        let action = || format!("adding address {address}/{prefix} to {device}");
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = link.header.index;
        message.attributes =
            vec![AddressAttribute::Address(address), AddressAttribute::Local(address)];
        if let IpAddr::V4(address) = address
            && prefix < 31
        {
            let hosts = u32::MAX >> prefix;
            let broadcast = Ipv4Addr::from_bits(address.to_bits() | hosts);
            message.attributes.push(AddressAttribute::Broadcast(broadcast));
        }
        self.create(RouteNetlinkMessage::NewAddress(message), action)?;
        if address.is_ipv6() && link.header.flags.contains(LinkFlags::Up) {
            self.wait_for(address).doing(action)?;
        }
        Ok(())
    }

    /// The kernel makes the route to a new address of IPv6 later, and until then takes packets to
    /// it for another node's.
    fn wait_for(&self, address: IpAddr) -> std::io::Result<()> {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
        for _ in 0..5000 {
            if self.is_local(address) {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn is_local(&self, address: IpAddr) -> bool {
        let destination = RouteAttribute::Destination(address.into());
        self.routes(family(address)).iter().any(|route| {
            route.header.kind == RouteType::Local && route.attributes.contains(&destination)
        })
    }

    /// Routes packets for `destination`/`prefix` by a device. `source` is the preferred source
    /// address.
    ///
    /// # Errors
    /// As [`Netlink::set_up`], or if the two addresses are of two families.
    pub fn add_route(
        &self,
        destination: IpAddr,
        prefix: u8,
        device: &str,
        source: Option<IpAddr>,
    ) -> Result<(), Error> {
        let action = || format!("routing {destination}/{prefix} by {device}");
        if source.is_some_and(|source| family(source) != family(destination)) {
            return Err(std::io::Error::other("two address families")).doing(action);
        }
        let mut route = RouteMessage::default();
        route.header.address_family = family(destination);
        route.header.destination_prefix_length = prefix;
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.scope = RouteScope::Universe;
        route.header.kind = RouteType::Unicast;
        route.attributes = vec![
            RouteAttribute::Destination(destination.into()),
            RouteAttribute::Oif(self.find(device)?.header.index),
        ];
        route.attributes.extend(source.map(|from| RouteAttribute::PrefSource(from.into())));
        self.create(RouteNetlinkMessage::NewRoute(route), action)
    }

    /// Removes a route of [`Netlink::add_route`].
    ///
    /// # Errors
    /// If there is none.
    pub fn remove_route(&self, destination: IpAddr, device: &str) -> Result<(), Error> {
        let action = || format!("removing the route to {destination} by {device}");
        let mut route = RouteMessage::default();
        route.header.address_family = family(destination);
        route.header.destination_prefix_length = if destination.is_ipv4() { 32 } else { 128 };
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.attributes = vec![
            RouteAttribute::Destination(destination.into()),
            RouteAttribute::Oif(self.find(device)?.header.index),
        ];
        self.requests.change(RouteNetlinkMessage::DelRoute(route), 0).doing(action)
    }

    /// Sets the largest packet of a device, bytes.
    ///
    /// # Errors
    /// As [`Netlink::set_up`].
    pub fn set_mtu(&self, device: &str, bytes: u32) -> Result<(), Error> {
        let mut link = self.numbered(device)?;
        link.attributes.push(LinkAttribute::Mtu(bytes));
        self.set(link, || format!("setting the MTU of {device} to {bytes}"))
    }

    /// Packets that the kernel gives to a device have one segment each: it cuts units of segmentation offload before.
    ///
    /// # Errors
    /// As [`Netlink::set_up`].
    pub fn set_single_segments(&self, device: &str) -> Result<(), Error> {
        let mut link = self.numbered(device)?;
        link.attributes.push(LinkAttribute::GsoMaxSegs(1));
        self.set(link, || format!("setting the longest unit of {device}"))
    }

    /// The index of a device.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn index(&self, device: &str) -> Result<u32, Error> {
        Ok(self.find(device)?.header.index)
    }

    /// Bytes in front of the IP header of a device's packets: those of Ethernet, or none where it has no such header.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn link_header(&self, device: &str) -> Result<u32, Error> {
        const ETHERNET: u32 = 14;
        Ok(match self.find(device)?.header.link_layer_type {
            LinkLayerType::Ether => ETHERNET,
            _ => 0,
        })
    }

    /// The kernel's counters of a device.
    ///
    /// # Errors
    /// As [`Netlink::set_up`].
    pub fn counts(&self, device: &str) -> Result<DeviceCounts, Error> {
        let found = self.find(device)?.attributes.into_iter().find_map(|attribute| {
            let LinkAttribute::Stats64(counts) = attribute else { return None };
            Some(DeviceCounts {
                received: counts.rx_packets,
                receive_dropped: counts.rx_dropped + counts.rx_errors,
                sent: counts.tx_packets,
                send_dropped: counts.tx_dropped + counts.tx_errors,
            })
        });
        Ok(found.unwrap_or_default())
    }

    /// A message about a device that changes nothing.
    fn numbered(&self, device: &str) -> Result<LinkMessage, Error> {
        let mut link = LinkMessage::default();
        link.header.index = self.find(device)?.header.index;
        Ok(link)
    }

    fn find(&self, device: &str) -> Result<LinkMessage, Error> {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(device.to_owned()));
        self.link(link).ok_or_else(|| Error::NoDevice(device.to_owned()))
    }

    /// The device that a message names.
    fn link(&self, message: LinkMessage) -> Option<LinkMessage> {
        match self.requests.get(RouteNetlinkMessage::GetLink(message)) {
            Ok(RouteNetlinkMessage::NewLink(link)) => Some(link),
            _ => None,
        }
    }

    fn set(&self, message: LinkMessage, action: impl FnOnce() -> String) -> Result<(), Error> {
        self.requests.change(RouteNetlinkMessage::SetLink(message), 0).doing(action)
    }

    fn create(
        &self,
        message: RouteNetlinkMessage,
        action: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        self.requests.change(message, NLM_F_CREATE | NLM_F_EXCL).doing(action)
    }
}

fn family(of: IpAddr) -> AddressFamily {
    match of {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Sets the `sysctl` setting `name` of the calling thread's network namespace.
///
/// # Errors
/// If there is no such setting, or the value is invalid.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::write(path, value).doing(|| format!("setting {name} to {value}"))
}

/// The `sysctl` setting `name` of the calling thread's network namespace.
///
/// # Errors
/// If there is no such setting.
pub fn sysctl(name: &str) -> Result<String, Error> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let value = std::fs::read_to_string(path).doing(|| format!("reading {name}"))?;
    Ok(value.trim_end().to_owned())
}

/// Makes a node of the calling thread's namespace, before it has devices: it forwards, takes
/// packets from anywhere, and sends nothing of its own accord.
///
/// # Errors
/// If the process may not do that.
pub fn prepare_node() -> Result<(), Error> {
    for (name, value) in [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.all.forwarding", "1"),
        // Only "all" decides whether IPv6 is forwarded. Devices with the setting would join the
        // group of all routers, and report that.
        ("net.ipv6.conf.default.forwarding", "0"),
        // Routes may be one-way, and a node's own packets may come back to it.
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.conf.all.accept_local", "1"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.send_redirects", "0"),
        // An address is of use at once.
        ("net.ipv6.conf.default.accept_dad", "0"),
        ("net.ipv6.conf.default.dad_transmits", "0"),
        // No link-local addresses, and so no solicitations and no reports of groups: packets that
        // no flow sent would shift the decisions of a seeded link.
        ("net.ipv6.conf.default.addr_gen_mode", "1"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.default.router_solicitations", "0"),
    ] {
        set_sysctl(name, value)?;
    }
    Netlink::open()?.set_up("lo")
}
