//! Addresses of simulated nodes: node n is 10.0.0.0 + n + 1 and fd00:: + n + 1 (RFC 4193), so that
//! routing needs no table. Further addresses of a node are [`APART`].

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const BASE: u32 = 0x0a00_0001;
const BASE_V6: u128 = 0xfd << 120 | 1;

/// The distance between two consecutive addresses of a node.
const APART: u32 = 1 << 20;
/// The number of addresses of each IP version that a node has: as many as 10.0.0.0/8 allows.
pub(crate) const ADDRESSES: usize = 16;

/// The address of the node with this index.
pub(crate) fn of(node: usize) -> IpAddr {
    further(node, 0)[0]
}

/// Its address in IPv6.
pub(crate) fn v6_of(node: usize) -> IpAddr {
    further(node, 0)[1]
}

/// Its addresses with this number, of IPv4 and of IPv6.
pub(crate) fn further(node: usize, number: usize) -> [IpAddr; 2] {
    let offset = node as u32 + number as u32 * APART;
    let v4 = Ipv4Addr::from(BASE + offset);
    [IpAddr::V4(v4), IpAddr::V6(Ipv6Addr::from(BASE_V6 + u128::from(offset)))]
}

/// The index of the node with this address, if it is a node's.
#[inline]
pub(crate) fn node(address: IpAddr) -> Option<usize> {
    let offset = match address {
        IpAddr::V4(address) => u32::from(address).checked_sub(BASE)?,
        IpAddr::V6(address) => u128::from(address).checked_sub(BASE_V6)?.try_into().ok()?,
    };
    let (number, node) = (offset / APART, offset % APART);
    ((number as usize) < ADDRESSES).then_some(node as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_their_nodes() {
        for index in [0, 1, 255, 70_000] {
            assert_eq!((node(of(index)), node(v6_of(index))), (Some(index), Some(index)));
            for number in 0..ADDRESSES {
                assert_eq!(further(index, number).map(node), [Some(index); 2]);
            }
            assert_eq!(further(index, ADDRESSES).map(node), [None; 2]);
        }
        assert_eq!(node(IpAddr::from([9, 9, 9, 9])), None);
        assert_eq!(node(IpAddr::from([0; 16])), None);
    }
}
