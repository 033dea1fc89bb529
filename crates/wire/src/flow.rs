//! The flow of a packet, as a router sees it.

use crate::ip::{protocol, u16_at, u32_at};
use crate::{Body, Mobility, Packet, Ports, ipv4, ipv6};
use core::net::{IpAddr, Ipv4Addr};

/// The 5-tuple of a packet's outermost IP header. ESP hides the ports: its flows are those of its
/// security associations, and in IPv6 also of the flow label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Where the packet comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The number of the transport protocol.
    pub protocol: u8,
    /// The ports of TCP or UDP; the security parameters index (SPI) of ESP.
    pub ports: Ports,
    /// The flow label of an ESP packet, else 0: other packets of a flow may have several.
    pub label: u32,
}

impl FlowKey {
    /// The key of all packets whose header cannot be read.
    pub const UNKNOWN: FlowKey = FlowKey {
        source: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        protocol: 0,
        ports: Ports::NONE,
        label: 0,
    };

    /// Reads the key of a packet without verifying it. All fragments of a packet have the same key,
    /// without ports, because only the first has them.
    #[must_use]
    pub fn read(bytes: &[u8]) -> FlowKey {
        match bytes.first().map(|first| first >> 4) {
            Some(4) if bytes.len() >= 20 => FlowKey::read_v4(bytes),
            Some(6) if bytes.len() >= 40 => FlowKey::read_v6(bytes),
            _ => FlowKey::UNKNOWN,
        }
    }

    fn read_v4(bytes: &[u8]) -> FlowKey {
        let header = usize::from(bytes[0] & 0xf) * 4;
        // More fragments, or an offset (RFC 791 §3.1).
        let fragment = u16_at(bytes, 6) & 0x3fff != 0;
        FlowKey {
            source: ipv4::address(bytes, 12),
            destination: ipv4::address(bytes, 16),
            protocol: bytes[9],
            ports: if fragment { Ports::NONE } else { ports(bytes[9], bytes, header) },
            label: 0,
        }
    }

    fn read_v6(bytes: &[u8]) -> FlowKey {
        let (mut protocol, mut at) = (bytes[6], 40);
        // RFC 8200 §4: the second byte counts the 8-octet units after the first.
        while let protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS =
            protocol
            && let Some(&[next, units]) = bytes.get(at..at + 2)
        {
            (protocol, at) = (next, at + 8 * (usize::from(units) + 1));
        }
        if protocol == protocol::FRAGMENT {
            protocol = bytes.get(at).copied().unwrap_or(protocol);
            at = bytes.len();
        }
        FlowKey {
            source: ipv6::address(bytes, 8),
            destination: ipv6::address(bytes, 24),
            protocol,
            ports: ports(protocol, bytes, at),
            label: label(protocol, u32_at(bytes, 0) & 0xf_ffff),
        }
    }
}

/// The flow label, where it is part of the key.
fn label(number: u8, label: u32) -> u32 {
    if number == protocol::ESP { label } else { 0 }
}

/// The ports at the start of a transport header.
fn ports(number: u8, bytes: &[u8], at: usize) -> Ports {
    match (number, bytes.get(at..)) {
        // RFC 4303 §2.1: the first four bytes are the SPI.
        (protocol::TCP | protocol::UDP | protocol::ESP, Some(header)) if header.len() >= 4 => {
            Ports::new(u16_at(header, 0), u16_at(header, 2))
        }
        _ => Ports::NONE,
    }
}

impl Packet {
    /// The packet's flow.
    #[must_use]
    pub fn flow_key(&self) -> FlowKey {
        let ports = match &self.body {
            Body::Udp(udp) => Ports::new(udp.source_port, udp.destination_port),
            Body::Mobility(_) => Ports::new(Mobility::PORT, Mobility::PORT),
            Body::Srp(srp) => Ports::new(srp.source_port, srp.destination_port),
            Body::Tfrc(tfrc) => Ports::new(tfrc.source_port, tfrc.destination_port),
            Body::Esp(_) | Body::EspTransport(_) => self
                .esp()
                .map_or(Ports::NONE, |esp| Ports::new((esp.spi >> 16) as u16, esp.spi as u16)),
            _ => self.ports(),
        };
        let protocol = self.protocol();
        FlowKey {
            source: self.ip.source,
            destination: self.ip.destination,
            protocol,
            ports,
            label: label(protocol, self.ip.flow_label),
        }
    }
}
