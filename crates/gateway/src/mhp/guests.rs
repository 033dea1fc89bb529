//! The mobile hosts that are attached to a base station: each has a route of its own.

use live::Netlink;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{info, warn};

/// Those that are attached. Their routes are removed with this.
pub(crate) struct Guests {
    netlink: Netlink,
    /// The interface behind which they are.
    interface: String,
    attached: Mutex<BTreeSet<IpAddr>>,
}

impl Guests {
    /// None yet.
    pub(crate) fn new(interface: &str) -> Result<Arc<Guests>, live::Error> {
        let (netlink, attached) = (Netlink::open()?, Mutex::default());
        Ok(Arc::new(Guests { netlink, interface: interface.to_owned(), attached }))
    }

    /// One has said that it is attached.
    pub(crate) fn arrive(&self, mobile: IpAddr) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        if attached.insert(mobile) {
            info!(%mobile, "is attached");
            let prefix = if mobile.is_ipv4() { 32 } else { 128 };
            if let Err(error) = self.netlink.add_route(mobile, prefix, &self.interface, None) {
                warn!(%mobile, %error, "no route to it");
            }
        }
    }

    /// Whether one is attached.
    pub(crate) fn contains(&self, mobile: IpAddr) -> bool {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).contains(&mobile)
    }

    /// Its connections have gone to another base station.
    pub(crate) fn leave(&self, mobile: IpAddr) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        if attached.remove(&mobile) {
            info!(%mobile, "has left");
            self.forget(mobile);
        }
    }

    fn forget(&self, mobile: IpAddr) {
        if let Err(error) = self.netlink.remove_route(mobile, &self.interface) {
            warn!(%mobile, %error, "its route is left behind");
        }
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        let attached = self.attached.get_mut().unwrap_or_else(PoisonError::into_inner);
        for mobile in std::mem::take(attached) {
            self.forget(mobile);
        }
    }
}
