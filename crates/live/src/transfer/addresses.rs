//! Addresses for a host of ours on the machine's own network.

use super::Error;
use crate::netlink::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The ends of a device: two addresses of one small network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The address of our host.
    pub(crate) ours: IpAddr,
    /// The address of the kernel.
    pub(crate) kernels: IpAddr,
}

/// 198.18.0.0/15, for measurements of devices (RFC 2544): no route of the internet leads there.
const FROM_V4: u32 = 0xc612_0000;
/// 2001:2::/48, likewise (RFC 5180).
const FROM_V6: u128 = 0x2001_0002 << 96;
/// The networks of four addresses in the former; of the latter, the same number is used.
const NETWORKS: u32 = 1 << 15;
/// Devices at a time. Each tries networks that no other does.
pub(crate) const DEVICES: u32 = 64;

impl Ends {
    /// The prefix length of the network: /30, or /126 of IPv6.
    pub(crate) fn prefix(self) -> u8 {
        if self.ours.is_ipv4() { 30 } else { 126 }
    }

    fn network(self) -> Network {
        Network { address: self.ours, prefix: self.prefix() }
    }

    /// Addresses that are in none of the networks, for the device with this number.
    pub(crate) fn choose(device: u32, v6: bool, taken: &[Network]) -> Result<Ends, Error> {
        let mut numbers = (device % DEVICES..NETWORKS).step_by(DEVICES as usize);
        let ends = |number: u32| match v6 {
            false => Ends::of(IpAddr::V4(Ipv4Addr::from_bits(FROM_V4 + 4 * number + 2))),
            true => Ends::of(IpAddr::V6(Ipv6Addr::from_bits(FROM_V6 + 4 * u128::from(number) + 2))),
        };
        let free = |ends: &Ends| !taken.iter().any(|network| network.overlaps(&ends.network()));
        numbers.find_map(|number| ends(number).filter(free)).ok_or_else(|| {
            let from = if v6 { "2001:2::/48" } else { "198.18.0.0/15" };
            Error::Unusable(format!(
                "{from} is routed here, so there is no address for lasthop's own host: give one"
            ))
        })
    }

    /// The given address for our host, if it is in none of the networks.
    pub(crate) fn given(ours: IpAddr, taken: &[Network]) -> Result<Ends, Error> {
        let ends = Ends::of(ours).ok_or_else(|| {
            let prefix = if ours.is_ipv4() { 30 } else { 126 };
            Error::Unusable(format!(
                "{ours} is at an edge of its /{prefix}: expected the second or third address of one"
            ))
        })?;
        match taken.iter().find(|network| network.overlaps(&ends.network())) {
            None => Ok(ends),
            Some(Network { address, prefix }) => Err(Error::Unusable(format!(
                "{ours}/{} is in use: there is a route to {address}/{prefix}",
                ends.prefix()
            ))),
        }
    }

    /// The second and third address of a network of four; the others are the network's own.
    fn of(ours: IpAddr) -> Option<Ends> {
        let kernels = match ours {
            IpAddr::V4(ours) => IpAddr::V4(Ipv4Addr::from_bits(ours.to_bits() ^ 3)),
            IpAddr::V6(ours) => IpAddr::V6(Ipv6Addr::from_bits(ours.to_bits() ^ 3)),
        };
        let last = match ours {
            IpAddr::V4(ours) => ours.octets()[3],
            IpAddr::V6(ours) => ours.octets()[15],
        };
        matches!(last & 3, 1 | 2).then_some(Ends { ours, kernels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str, prefix: u8) -> Network {
        Network { address: text.parse().unwrap(), prefix }
    }

    fn texts(ends: Ends) -> [String; 2] {
        [ends.ours.to_string(), ends.kernels.to_string()]
    }

    #[test]
    fn every_device_has_a_network_that_is_not_routed() {
        let choose =
            |device, v6, taken: &[Network]| texts(Ends::choose(device, v6, taken).unwrap());
        assert_eq!(choose(0, false, &[]), ["198.18.0.2", "198.18.0.1"]);
        assert_eq!(choose(1, false, &[]), ["198.18.0.6", "198.18.0.5"]);
        assert_eq!(choose(1, true, &[]), ["2001:2::6", "2001:2::5"]);
        let taken = [network("198.18.0.0", 24), network("10.0.0.0", 8)];
        assert_eq!(choose(0, false, &taken), ["198.18.1.2", "198.18.1.1"]);
        let all = Ends::choose(0, false, &[network("198.18.0.0", 15)]).unwrap_err();
        assert!(all.to_string().contains("198.18.0.0/15 is routed here"), "{all}");
    }

    #[test]
    fn a_given_address_is_taken_if_it_is_free_and_inside_of_its_network() {
        let given = |ours: &str, taken: &[Network]| Ends::given(ours.parse().unwrap(), taken);
        assert_eq!(texts(given("10.1.1.1", &[]).unwrap()), ["10.1.1.1", "10.1.1.2"]);
        assert_eq!(texts(given("fd01::6", &[]).unwrap()), ["fd01::6", "fd01::5"]);
        assert!(given("10.1.1.4", &[]).unwrap_err().to_string().contains("an edge of its /30"));
        let taken = given("10.1.1.1", &[network("10.1.0.0", 16)]).unwrap_err();
        assert!(taken.to_string().contains("a route to 10.1.0.0/16"), "{taken}");
    }
}
