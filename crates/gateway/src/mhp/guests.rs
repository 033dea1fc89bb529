//! The mobile hosts that are attached to a base station: each has routes of its own.

use live::Netlink;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{info, warn};

/// Those that are attached.
pub(crate) struct Guests {
    netlink: Netlink,
    /// The interface behind which they are.
    interface: String,
    /// The base station's addresses of IPv4 and of IPv6, by which they know it.
    own: [IpAddr; 2],
    /// All of their addresses, by the first; `None` once the base station has ended.
    attached: Mutex<Option<BTreeMap<IpAddr, Vec<IpAddr>>>>,
}

impl Guests {
    /// None yet, of a base station with these addresses of IPv4 and of IPv6.
    pub(crate) fn new(interface: &str, own: [IpAddr; 2]) -> Result<Arc<Guests>, live::Error> {
        let (netlink, attached) = (Netlink::open()?, Mutex::new(Some(BTreeMap::new())));
        Ok(Arc::new(Guests { netlink, interface: interface.to_owned(), own, attached }))
    }

    /// One has said that it is attached, and which address of the other version of IP it has.
    pub(crate) fn arrive(&self, mobile: IpAddr, other: Option<IpAddr>) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(attached) = attached.as_mut() else { return };
        let addresses: Vec<IpAddr> = [mobile].into_iter().chain(other).collect();
        let known = attached.entry(mobile).or_default();
        if known.is_empty() {
            info!(%mobile, ?other, "is attached");
        }
        for address in addresses.iter().filter(|address| !known.contains(address)) {
            let prefix = if address.is_ipv4() { 32 } else { 128 };
            let own = self.own[usize::from(address.is_ipv6())];
            let source = (!own.is_unspecified()).then_some(own);
            if let Err(error) = self.netlink.add_route(*address, prefix, &self.interface, source) {
                warn!(%address, %error, "no route to it");
            }
        }
        known.iter().filter(|address| !addresses.contains(address)).for_each(|it| self.forget(*it));
        *known = addresses;
    }

    /// Whether one is attached.
    pub(crate) fn contains(&self, mobile: IpAddr) -> bool {
        let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.as_ref().is_some_and(|attached| attached.contains_key(&mobile))
    }

    /// Its connections have gone to another base station, or it is known here no more.
    pub(crate) fn leave(&self, mobile: IpAddr) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = attached.as_mut().and_then(|attached| attached.remove(&mobile)) {
            info!(%mobile, "has left");
            addresses.into_iter().for_each(|address| self.forget(address));
        }
    }

    /// The base station ends: all routes are removed, and none is added any more. Threads that ask another base station may
    /// still have this.
    pub(crate) fn end(&self) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        for address in attached.take().into_iter().flat_map(BTreeMap::into_values).flatten() {
            self.forget(address);
        }
    }

    fn forget(&self, address: IpAddr) {
        if let Err(error) = self.netlink.remove_route(address, &self.interface) {
            warn!(%address, %error, "its route is left behind");
        }
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.end();
    }
}
