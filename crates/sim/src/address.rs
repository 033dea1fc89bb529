//! Addresses of simulated nodes: node n is 10.0.0.0 + n + 1 and fd00:: + n + 1 (RFC 4193), so that
//! routing needs no table.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const BASE: u32 = 0x0a00_0001;
const BASE_V6: u128 = 0xfd << 120 | 1;

/// The address of the node with this index.
pub(crate) fn of(node: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(BASE + node as u32))
}

/// Its address in IPv6.
pub(crate) fn v6_of(node: usize) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(BASE_V6 + node as u128))
}

/// The index of the node with this address, if it is a node's.
#[inline]
pub(crate) fn node(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => u32::from(address).checked_sub(BASE).map(|node| node as usize),
        IpAddr::V6(address) => u128::from(address).checked_sub(BASE_V6).map(|node| node as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_their_nodes() {
        for index in [0, 1, 255, 70_000] {
            assert_eq!((node(of(index)), node(v6_of(index))), (Some(index), Some(index)));
        }
        assert_eq!(node(IpAddr::from([9, 9, 9, 9])), None);
        assert_eq!(node(IpAddr::from([0; 16])), None);
    }
}
