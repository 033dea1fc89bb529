//! Word of the kernel that devices, addresses and routes have changed, and how a device leads to others.

use super::{Family, Netlink, routes};
use crate::Error;
use crate::error::Doing;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::LinkFlags;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd as _, BorrowedFd};

/// Groups of messages (linux/rtnetlink.h): about devices, about addresses, and about routes.
const GROUPS: [u32; 5] = [1, 5, 9, 7, 11];

/// Hears of changes.
pub struct Monitor {
    socket: Socket,
}

impl Monitor {
    /// Of the network of the calling thread's namespace, whichever thread uses it later.
    ///
    /// # Errors
    /// If there is no netlink.
    pub fn open() -> Result<Monitor, Error> {
        Monitor::subscribe().doing(|| "asking netlink for changes".to_owned())
    }

    fn subscribe() -> io::Result<Monitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        GROUPS.iter().try_for_each(|group| socket.add_membership(*group))?;
        socket.set_non_blocking(true)?;
        Ok(Monitor { socket })
    }

    /// Waits until something has changed; or until `stop` can be read or is closed, and returns false then.
    #[must_use]
    pub fn wait(&self, stop: BorrowedFd<'_>) -> bool {
        let mut watched =
            [self.socket.as_fd(), stop].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        // A signal interrupts it, which is no change.
        while poll(&mut watched, None).is_err() {}
        let is_over = !watched[1].revents().is_empty();
        while !is_over && self.has_message() {}
        !is_over
    }

    /// Reads the next message, if there is one.
    fn has_message(&self) -> bool {
        match self.socket.recv_from_full() {
            // Too many have come, and some are lost.
            Err(error) => error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()),
            Ok(_) => true,
        }
    }
}

/// How a device leads to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// It is up, and has a carrier.
    pub carrier: bool,
    /// There is a route by it.
    pub has_route: bool,
    /// Its addresses that are not of the link alone.
    pub addresses: BTreeSet<IpAddr>,
    /// By version of IP, whether the rest of the internet lies behind it, and by which router.
    pub routers: [Option<Option<IpAddr>>; 2],
}

impl Attachment {
    /// Whether packets can pass.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.carrier && self.has_route
    }

    /// Whether packets can pass that could not before, or can pass by another way.
    #[must_use]
    pub fn gains_over(&self, before: &Attachment) -> bool {
        let mut routers = self.routers.iter().zip(&before.routers);
        let mut has_other_router = || routers.any(|(now, before)| now.is_some() && now != before);
        self.is_usable()
            && (!before.is_usable()
                || !self.addresses.is_subset(&before.addresses)
                || has_other_router())
    }
}

impl Netlink {
    /// How a device leads to others; if there is none of that name, to none.
    #[must_use]
    pub fn attachment(&self, device: &str) -> Attachment {
        let Ok(link) = self.find(device) else { return Attachment::default() };
        let index = link.header.index;
        let [v4, v6] = [
            IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        ];
        let routers = [v4, v6].map(|anywhere| {
            let route = self.lookup(anywhere, None).ok()?;
            (routes::interface(&route) == Some(index)).then(|| routes::router(&route))
        });
        Attachment {
            carrier: link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
            has_route: routers.iter().any(Option::is_some)
                || Family::ALL.into_iter().any(|family| self.has_routes(family, device)),
            addresses: self.addresses(index),
            routers,
        }
    }

    /// The addresses of a device, but for those of the link alone.
    fn addresses(&self, index: u32) -> BTreeSet<IpAddr> {
        let all = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let found = self.requests.dump(all).unwrap_or_default().into_iter();
        let of_device = found.filter_map(|message| match message {
            RouteNetlinkMessage::NewAddress(found) if found.header.index == index => Some(found),
            _ => None,
        });
        let addresses =
            of_device.flat_map(|found| found.attributes).filter_map(|attribute| match attribute {
                AddressAttribute::Local(address) | AddressAttribute::Address(address) => {
                    Some(address)
                }
                _ => None,
            });
        addresses
            .filter(|address| match address {
                IpAddr::V4(_) => true,
                IpAddr::V6(address) => !address.is_unicast_link_local(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment() -> Attachment {
        Attachment {
            carrier: true,
            has_route: true,
            addresses: [IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1))].into(),
            routers: [Some(Some(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)))), None],
        }
    }

    #[test]
    fn what_is_lost_is_no_gain_and_what_comes_back_is_one() {
        let whole = attachment();
        assert!(!whole.gains_over(&whole));
        for less in [
            Attachment { carrier: false, ..whole.clone() },
            Attachment { addresses: BTreeSet::new(), ..whole.clone() },
            Attachment { routers: [None, None], ..whole.clone() },
            Attachment { has_route: false, routers: [None, None], ..whole.clone() },
        ] {
            assert!(!less.gains_over(&whole), "{less:?}");
            assert!(whole.gains_over(&less), "{less:?}");
        }
    }

    #[test]
    fn nothing_is_gained_before_there_are_carrier_and_route() {
        let whole = attachment();
        for half in [
            Attachment { carrier: false, ..whole.clone() },
            Attachment { has_route: false, routers: [None, None], ..whole.clone() },
        ] {
            assert!(!half.gains_over(&Attachment::default()), "{half:?}");
        }
    }

    #[test]
    fn another_router_or_one_more_address_is_another_way() {
        let whole = attachment();
        let other = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 3));
        let mut addresses = whole.addresses.clone();
        addresses.insert(other);
        assert!(Attachment { addresses, ..whole.clone() }.gains_over(&whole));
        let routers = [Some(Some(other)), None];
        assert!(Attachment { routers, ..whole.clone() }.gains_over(&whole));
        let direct = Attachment { routers: [Some(None), None], ..whole.clone() };
        assert!(direct.gains_over(&whole), "without a router between");
    }

    #[test]
    fn the_loopback_device_is_there_and_others_are_not() {
        let netlink = Netlink::open().unwrap();
        assert!(!netlink.attachment("no-such").is_usable());
        assert_eq!(netlink.attachment("lo").carrier, netlink.is_up("lo").unwrap());
    }
}
