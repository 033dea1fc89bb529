//! IP headers of either version.

use crate::EmitError;
use crate::Header;
use core::net::{IpAddr, Ipv4Addr};
use serde::{Deserialize, Serialize};

/// The ECN codepoint of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Ecn {
    /// Not-ECT: the transport does not support ECN.
    #[default]
    NotCapable = 0b00,
    /// ECT(1)
    Capable1 = 0b01,
    /// ECT(0): the transport supports ECN.
    Capable = 0b10,
    /// CE: congestion was experienced on the path.
    Congested = 0b11,
}

/// An IP header. Options and extension headers are in [`crate::UnparsedOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ip {
    /// Where the packet comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// Hops it may still take.
    pub hop_limit: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Differentiated services code point, 6 bits (RFC 2474).
    pub dscp: u8,
    /// IPv4: do not fragment. IPv6 has no such bit: no router fragments.
    pub dont_fragment: bool,
    /// IPv4: the identification, which means something only to fragments (RFC 6864).
    pub identification: u16,
    /// IPv6: the flow label, 20 bits (RFC 6437).
    pub flow_label: u32,
}

impl Ip {
    /// The hop limit that hosts set (RFC 1700's default).
    pub const HOP_LIMIT: u8 = 64;

    /// The header of a packet that must not be fragmented, with default fields.
    #[must_use]
    pub const fn new(source: IpAddr, destination: IpAddr) -> Ip {
        Ip {
            source,
            destination,
            hop_limit: Ip::HOP_LIMIT,
            ecn: Ecn::NotCapable,
            dscp: 0,
            dont_fragment: source.is_ipv4(),
            identification: 0,
            flow_label: 0,
        }
    }

    pub(crate) const BLANK: Ip = Ip {
        hop_limit: 0,
        ..Ip::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    };

    /// Bytes of the header, without options and extension headers.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.source {
            IpAddr::V4(_) => 20,
            IpAddr::V6(_) => 40,
        }
    }

    /// Never: a header has bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// IPv4's type of service, IPv6's traffic class.
    pub(crate) fn traffic_class(&self, header: Header) -> Result<u8, EmitError> {
        fits(header, "DSCP", u32::from(self.dscp), 0x3f)?;
        Ok(self.dscp << 2 | self.ecn as u8)
    }

    pub(crate) fn set_traffic_class(&mut self, class: u8) {
        self.dscp = class >> 2;
        self.ecn = match class & 0b11 {
            0b00 => Ecn::NotCapable,
            0b01 => Ecn::Capable1,
            0b10 => Ecn::Capable,
            _ => Ecn::Congested,
        };
    }
}

/// Makes sure that a value fits into its field.
pub(crate) fn fits(
    header: Header,
    field: &'static str,
    found: u32,
    most: u32,
) -> Result<(), EmitError> {
    if found <= most { Ok(()) } else { Err(EmitError::Field { header, field, found, most }) }
}

/// The numbers of protocols and extension headers (RFC 790 and successors).
pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const ICMPV6: u8 = 58;
    pub(crate) const DESTINATION_OPTIONS: u8 = 60;
    /// For experiments (RFC 3692 §2.1); here [`crate::Repair`].
    pub(crate) const REPAIR: u8 = 253;
}

/// What an IP header says of what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inner {
    /// The transport.
    pub(crate) protocol: u8,
    /// Where its header starts.
    pub(crate) start: usize,
    /// Where the packet ends; what follows is padding of the link.
    pub(crate) end: usize,
}

/// `N` bytes at a place; the caller knows that they are there.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// Overwrites two bytes at a place that is there.
#[inline]
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
