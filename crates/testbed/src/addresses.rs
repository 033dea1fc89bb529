//! Addresses of the testbed: at node n our host has 10.0.0.0 + n + 1 and fd00:: + n + 1, as in the
//! lab; the node's kernel has 10.128.0.0 + n + 1 and fd00:0:0:1:: + n + 1.

use scenario::{IpVersion, Stack};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HOSTS: u32 = 0x0a00_0001;
const KERNELS: u32 = 0x0a80_0001;
const HOSTS_V6: u128 = 0xfd << 120 | 1;
const KERNELS_V6: u128 = 0xfd << 120 | 1 << 64 | 1;

/// The address of a stack at the node with this index.
pub(crate) fn of(node: usize, stack: Stack, ip: IpVersion) -> IpAddr {
    let (v4, v6) = match stack {
        Stack::Lasthop => (HOSTS, HOSTS_V6),
        Stack::Linux => (KERNELS, KERNELS_V6),
    };
    match ip {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::from(v4 + node as u32)),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::from(v6 + node as u128)),
    }
}

/// What sends and receives in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The flows of the scenario.
    Flows,
    /// Programs in the namespaces of nodes. Only the kernels have addresses, from which boxes send, too.
    Programs,
}

impl Purpose {
    /// The stacks of a node that have addresses; boxes send from those of the first.
    pub(crate) fn stacks(self) -> &'static [Stack] {
        match self {
            Purpose::Flows => &[Stack::Lasthop, Stack::Linux],
            Purpose::Programs => &[Stack::Linux],
        }
    }

    /// The address from which boxes of the node with this index send.
    pub(crate) fn own(self, node: usize, ip: IpVersion) -> IpAddr {
        of(node, self.stacks()[0], ip)
    }

    /// All addresses of the node with this index, those from which boxes send first.
    pub(crate) fn addresses(self, node: usize) -> impl Iterator<Item = IpAddr> {
        self.stacks().iter().flat_map(move |&stack| VERSIONS.map(|ip| of(node, stack, ip)))
    }
}

/// Both versions of IP.
pub(crate) const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// The length of a prefix that is one address.
pub(crate) fn whole(ip: IpVersion) -> u8 {
    match ip {
        IpVersion::V4 => 32,
        IpVersion::V6 => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stacks_of_a_node_have_addresses_of_their_own() {
        let text = |stack, ip| of(2, stack, ip).to_string();
        assert_eq!(text(Stack::Lasthop, IpVersion::V4), "10.0.0.3");
        assert_eq!(text(Stack::Linux, IpVersion::V4), "10.128.0.3");
        assert_eq!(text(Stack::Lasthop, IpVersion::V6), "fd00::3");
        assert_eq!(text(Stack::Linux, IpVersion::V6), "fd00:0:0:1::3");
    }
}
