//! ESP between the two gateways of SPEP's hosts (`obanaik2003` ch. 4), each beside one of them.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, unexpected};
use crate::reading::words::words;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;
use middlebox::{LossCauses, TransportEsp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Beside which of SPEP's hosts a gateway stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EspHost {
    /// The fixed host, whose packets get the option for the base station.
    Fixed,
    /// The mobile host behind the wireless hop, where the causes of losses are found.
    Mobile,
}

words! { EspHost }

/// The settings of ESP in transport mode over the hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Esp {
    /// Beside which host the gateway stands.
    pub host: EspHost,
    /// The file with the key that both gateways share.
    pub key: PathBuf,
    /// The networks behind the other gateway.
    pub networks: Vec<Network>,
    /// The longest packet of the path to the other gateway, bytes; that of the interface of the hop if there is none.
    pub mtu: Option<u32>,
}

impl Esp {
    /// The file of the key, by default.
    pub(super) const KEY: &str = "/etc/lasthop/esp.key";

    /// Its box in the lab.
    #[must_use]
    pub fn settings(&self) -> TransportEsp {
        match self.host {
            EspHost::Fixed => TransportEsp { spep: true, ..TransportEsp::default() },
            EspHost::Mobile => {
                TransportEsp { loss_causes: LossCauses::Station, ..TransportEsp::default() }
            }
        }
    }
}

/// A network of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: Ipv6Addr,
    /// Bits of the address that all its hosts have in common.
    prefix: u8,
}

impl Network {
    /// All hosts.
    pub const ALL: Network = Network { address: Ipv6Addr::UNSPECIFIED, prefix: 0 };

    /// Whether an address is of this network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let IpAddr::V6(address) = address else { return false };
        let differs = self.address.to_bits() ^ address.to_bits();
        differs.leading_zeros() >= self.prefix.into()
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Network, ()> {
        let (address, prefix) = text.split_once('/').unwrap_or((text, "128"));
        match (address.parse(), prefix.parse()) {
            (Ok(address), Ok(prefix @ 0..=128)) => Ok(Network { address, prefix }),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Shape for Network {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Network> {
        let network = node.get_ref().as_str().and_then(|text| text.parse().ok());
        network.or_else(|| {
            let expected = "a network of IPv6 in quotes, such as \"2001:db8:1::/48\"";
            unexpected(node, expected, problems)
        })
    }

    fn schema() -> Value {
        json!({ "type": "string", "title": "network of IPv6", "examples": ["2001:db8:1::/48"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_with_its_prefix() {
        let network: Network = "2001:db8:1::/47".parse().unwrap();
        let has = |address: &str| network.contains(address.parse().unwrap());
        assert!(has("2001:db8:1:ffff::9") && has("2001:db8:0::1"));
        assert!(!has("2001:db8:2::1") && !has("192.0.2.1"));
        assert!(Network::ALL.contains("::1".parse().unwrap()));
        let one: Network = "2001:db8::1".parse().unwrap();
        assert_eq!(one.to_string(), "2001:db8::1/128");
        assert!(!one.contains("2001:db8::2".parse().unwrap()));
        for wrong in ["", "2001:db8::/129", "2001:db8::/-1", "192.0.2.0/24", "2001:db8::/"] {
            assert_eq!(wrong.parse::<Network>(), Err(()), "{wrong}");
        }
    }
}
