//! Devices, addresses, routes and settings of a network namespace.

mod routes;

pub use routes::{Network, Route};

use crate::Error;
use crate::error::Doing;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteType};
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::runtime::{Builder, Runtime};

/// The network of one namespace.
pub struct Netlink {
    runtime: Runtime,
    handle: Handle,
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
        let action = || "opening netlink".to_owned();
        let runtime = Builder::new_current_thread().enable_io().build().doing(action)?;
        let handle = {
            let _inside = runtime.enter();
            let (connection, handle, _) = rtnetlink::new_connection().doing(action)?;
            runtime.spawn(connection);
            handle
        };
        Ok(Netlink { runtime, handle })
    }

    /// Sets a device up.
    ///
    /// # Errors
    /// If there is none of that name, or the kernel refuses.
    pub fn set_up(&self, device: &str) -> Result<(), Error> {
        let message = LinkUnspec::new_with_index(self.index(device)?).up().build();
        self.set(message, || format!("setting {device} up"))
    }

    /// Sets a device down; routes by it are gone.
    ///
    /// # Errors
    /// As [`Netlink::set_up`].
    pub fn set_down(&self, device: &str) -> Result<(), Error> {
        let message = LinkUnspec::new_with_index(self.index(device)?).down().build();
        self.set(message, || format!("setting {device} down"))
    }

    /// Sets how many packets may wait at a device until they are read.
    ///
    /// # Errors
    /// As [`Netlink::set_up`].
    pub fn set_queue_length(&self, device: &str, packets: u32) -> Result<(), Error> {
        let message = LinkUnspec::new_with_index(self.index(device)?).txqueuelen(packets).build();
        self.set(message, || format!("setting the queue of {device} to {packets}"))
    }

    /// Adds an address to a device. If the device is up, the address is usable on return; there is
    /// no duplicate address detection.
    ///
    /// # Errors
    /// As [`Netlink::set_up`], or if it is not usable after five seconds.
    pub fn add_address(&self, device: &str, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let link = self.find(device)?;
        let action = || format!("adding address {address}/{prefix} to {device}");
        let mut request = self.handle.address().add(link.header.index, address, prefix);
        request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
        self.ask(request.execute(), action)?;
        match address {
            IpAddr::V6(address) if link.header.flags.contains(LinkFlags::Up) => {
                self.wait_for(address).doing(action)
            }
            _ => Ok(()),
        }
    }

    /// The kernel makes the route to a new address of IPv6 later, and until then takes packets to
    /// it for another node's.
    fn wait_for(&self, address: Ipv6Addr) -> std::io::Result<()> {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
        for _ in 0..5000 {
            if self.is_local(address) {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn is_local(&self, address: Ipv6Addr) -> bool {
        let all = RouteMessageBuilder::<Ipv6Addr>::new().build();
        let mut routes = self.handle.route().get(all).execute();
        let address = RouteAttribute::Destination(RouteAddress::Inet6(address));
        let mut found = false;
        // Read to the end: the next answer would follow unread messages.
        while let Ok(Some(route)) = self.runtime.block_on(routes.try_next()) {
            found |= route.header.kind == RouteType::Local && route.attributes.contains(&address);
        }
        found
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
        let index = self.index(device)?;
        let action = || format!("routing {destination}/{prefix} by {device}");
        let message = match (destination, source) {
            (IpAddr::V4(to), None | Some(IpAddr::V4(_))) => {
                let mut route = RouteMessageBuilder::<Ipv4Addr>::new()
                    .destination_prefix(to, prefix)
                    .output_interface(index);
                if let Some(IpAddr::V4(from)) = source {
                    route = route.pref_source(from);
                }
                route.build()
            }
            (IpAddr::V6(to), None | Some(IpAddr::V6(_))) => {
                let mut route = RouteMessageBuilder::<Ipv6Addr>::new()
                    .destination_prefix(to, prefix)
                    .output_interface(index);
                if let Some(IpAddr::V6(from)) = source {
                    route = route.pref_source(from);
                }
                route.build()
            }
            _ => return Err(std::io::Error::other("two address families")).doing(action),
        };
        self.ask(self.handle.route().add(message).execute(), action)
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

    fn index(&self, device: &str) -> Result<u32, Error> {
        Ok(self.find(device)?.header.index)
    }

    fn find(&self, device: &str) -> Result<LinkMessage, Error> {
        let mut links = self.handle.link().get().match_name(device.to_owned()).execute();
        match self.runtime.block_on(links.try_next()) {
            Ok(Some(link)) => Ok(link),
            _ => Err(Error::NoDevice(device.to_owned())),
        }
    }

    fn set(&self, message: LinkMessage, action: impl FnOnce() -> String) -> Result<(), Error> {
        self.ask(self.handle.link().set(message).execute(), action)
    }

    fn ask(
        &self,
        request: impl Future<Output = Result<(), rtnetlink::Error>>,
        action: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        self.runtime
            .block_on(request)
            .map_err(|error| Error::Netlink { action: action(), source: Box::new(error) })
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
