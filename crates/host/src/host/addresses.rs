//! The addresses of a host.

use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// One address, or one of either version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Addresses {
    first: IpAddr,
    second: Option<IpAddr>,
}

impl Addresses {
    pub(crate) fn new(first: IpAddr) -> Addresses {
        Addresses { first, second: None }
    }

    pub(super) fn add(&mut self, address: IpAddr) {
        if address.is_ipv4() == self.first.is_ipv4() {
            self.first = address;
        } else {
            self.second = Some(address);
        }
    }

    pub(super) fn first(self) -> IpAddr {
        self.first
    }

    /// The one that `remote` is spoken to from; the first, if none is of its version.
    pub(crate) fn towards(self, remote: IpAddr) -> IpAddr {
        self.second.filter(|second| second.is_ipv4() == remote.is_ipv4()).unwrap_or(self.first)
    }

    #[inline]
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        self.first == address || self.second == Some(address)
    }
}
