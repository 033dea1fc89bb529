//! Addresses of simulated nodes: node n is 10.0.0.0 + n + 1, so that routing needs no table.

use core::net::{IpAddr, Ipv4Addr};

const BASE: u32 = 0x0a00_0001;

/// The address of the node with this index.
pub(crate) fn of(node: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(BASE + node as u32))
}

/// The index of the node with this address, if it is a node's.
#[inline]
pub(crate) fn node(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => u32::from(address).checked_sub(BASE).map(|node| node as usize),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_their_nodes() {
        for index in [0, 1, 255, 70_000] {
            assert_eq!(node(of(index)), Some(index));
        }
        assert_eq!(node(IpAddr::from([9, 9, 9, 9])), None);
    }
}
