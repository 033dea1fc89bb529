//! The addresses of a host.

use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// One address of its own, or one of each version of IP, and those of hosts that it acts for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Addresses {
    first: IpAddr,
    second: Option<IpAddr>,
    others: Vec<Prefix>,
}

impl Addresses {
    pub(super) fn new(first: IpAddr) -> Addresses {
        Addresses { first, second: None, others: Vec::new() }
    }

    pub(super) fn add(&mut self, address: IpAddr) {
        if address.is_ipv4() == self.first.is_ipv4() {
            self.first = address;
        } else {
            self.second = Some(address);
        }
    }

    pub(super) fn add_prefix(&mut self, prefix: Prefix) {
        self.others.push(prefix);
    }

    pub(super) fn first(&self) -> IpAddr {
        self.first
    }

    /// The source address towards `remote`; the first, if none is of its version.
    pub(super) fn towards(&self, remote: IpAddr) -> IpAddr {
        self.second.filter(|second| second.is_ipv4() == remote.is_ipv4()).unwrap_or(self.first)
    }

    #[inline]
    pub(super) fn contain(&self, address: IpAddr) -> bool {
        self.first == address
            || self.second == Some(address)
            || self.others.iter().any(|prefix| prefix.contains(address))
    }
}

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// Every address of either version of IP.
    pub const ALL: [Prefix; 2] = [
        Prefix { address: IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), len: 0 },
        Prefix { address: IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED), len: 0 },
    ];

    /// The addresses that have their first `len` bits in common with `address`; at most all of its
    /// bits.
    #[must_use]
    pub fn new(address: IpAddr, len: u8) -> Prefix {
        Prefix { address, len }
    }

    /// Whether an address is one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (len, common) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (self.len.min(32), (own.to_bits() ^ other.to_bits()).leading_zeros())
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (self.len.min(128), (own.to_bits() ^ other.to_bits()).leading_zeros())
            }
            _ => return false,
        };
        common >= u32::from(len)
    }
}
