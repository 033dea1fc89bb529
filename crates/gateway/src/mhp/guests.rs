//! The mobile hosts that are attached to a base station: each has routes of its own.

use live::Netlink;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{info, warn};

/// Those that are attached. Their routes are removed with this.
pub(crate) struct Guests {
    netlink: Netlink,
    /// The interface behind which they are.
    interface: String,
    /// The base station's addresses of IPv4 and of IPv6, by which they know it.
    own: [IpAddr; 2],
    /// All of their addresses, by the first.
    attached: Mutex<BTreeMap<IpAddr, Vec<IpAddr>>>,
}

impl Guests {
    /// None yet, of a base station with these addresses of IPv4 and of IPv6.
    pub(crate) fn new(interface: &str, own: [IpAddr; 2]) -> Result<Arc<Guests>, live::Error> {
        let (netlink, attached) = (Netlink::open()?, Mutex::default());
        Ok(Arc::new(Guests { netlink, interface: interface.to_owned(), own, attached }))
    }

    /// One has said that it is attached, and which address of the other version of IP it has.
    pub(crate) fn arrive(&self, mobile: IpAddr, other: Option<IpAddr>) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&mobile)
    }

    /// Its connections have gone to another base station, or it is known here no more.
    pub(crate) fn leave(&self, mobile: IpAddr) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = attached.remove(&mobile) {
            info!(%mobile, "has left");
            addresses.into_iter().for_each(|address| self.forget(address));
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
        let attached = self.attached.get_mut().unwrap_or_else(PoisonError::into_inner);
        for address in std::mem::take(attached).into_values().flatten() {
            self.forget(address);
        }
    }
}
