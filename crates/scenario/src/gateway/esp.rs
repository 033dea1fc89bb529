//! ESP between the two gateways of SPEP's hosts (`obanaik2003` ch. 4), each beside one of them.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, unexpected};
use crate::reading::words::words;
use core::net::Ipv6Addr;
use host::Prefix;
use middlebox::{LossCauses, TransportEsp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use wire::{Segment, Spep};

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
    pub networks: Vec<Prefix>,
    /// The longest packet of the path to the other gateway, bytes; that of the interface of the hop if there is none.
    pub mtu: Option<u32>,
}

impl Esp {
    /// The file of the key, by default.
    pub(super) const KEY: &str = "/etc/lasthop/esp.key";

    /// The longest segment of TCP, with its options but without the rest of its header, whose packet under ESP has `mtu`
    /// bytes, and the option of SPEP.
    #[must_use]
    pub fn segment_size(mtu: u32) -> u16 {
        const IPV6: u32 = 40;
        let headers = IPV6 + Spep::LEN + wire::Esp::HEADER as u32;
        // RFC 4303 §2.4: a multiple of 4 bytes, with the trailer of 2.
        let sealed = mtu.saturating_sub(headers + wire::Esp::ICV) / 4 * 4;
        u16::try_from(sealed.saturating_sub(2 + Segment::HEADER as u32)).unwrap_or(u16::MAX)
    }

    /// The box of a host in the lab, as the gateway beside it has it.
    #[must_use]
    pub fn settings(host: EspHost) -> TransportEsp {
        match host {
            EspHost::Fixed => TransportEsp { spep: true, ..TransportEsp::default() },
            EspHost::Mobile => {
                TransportEsp { loss_causes: LossCauses::Station, ..TransportEsp::default() }
            }
        }
    }
}

/// A network of IPv6, as it is written.
#[derive(Debug)]
pub(super) struct Network(pub(super) Prefix);

impl Network {
    /// That of all hosts.
    pub(super) fn all() -> Prefix {
        Prefix::new(Ipv6Addr::UNSPECIFIED.into(), 0)
    }

    fn parse(text: &str) -> Option<Network> {
        let (address, len) = text.split_once('/').unwrap_or((text, "128"));
        let address: Ipv6Addr = address.parse().ok()?;
        let len = len.parse().ok().filter(|len| *len <= 128)?;
        Some(Network(Prefix::new(address.into(), len)))
    }
}

impl Shape for Network {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Network> {
        node.get_ref().as_str().and_then(Network::parse).or_else(|| {
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
    fn a_segment_fills_a_packet_but_for_padding() {
        for mtu in 1280..1600 {
            let packet = |segment: u32| {
                40 + Spep::LEN + wire::Esp::HEADER as u32 + wire::Esp::sealed_len(20 + segment)
            };
            let longest = u32::from(Esp::segment_size(mtu));
            assert!(packet(longest) <= mtu && packet(longest + 1) > mtu, "{mtu}: {longest}");
        }
        assert_eq!(Esp::segment_size(0), 0);
    }

    #[test]
    fn a_network_is_an_address_with_the_length_of_its_prefix_or_one_address() {
        let has = |network: &str, address: &str| {
            Network::parse(network).unwrap().0.contains(address.parse().unwrap())
        };
        assert!(has("2001:db8:1::/47", "2001:db8:1:ffff::9"));
        assert!(!has("2001:db8:1::/47", "2001:db8:2::1"));
        assert!(has("2001:db8::1", "2001:db8::1") && !has("2001:db8::1", "2001:db8::2"));
        assert!(has("::/0", "::1") && !has("::/0", "192.0.2.1"));
        for wrong in ["", "2001:db8::/129", "2001:db8::/-1", "192.0.2.0/24", "2001:db8::/"] {
            assert!(Network::parse(wrong).is_none(), "{wrong}");
        }
    }
}
