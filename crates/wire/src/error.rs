//! Why bytes are no packet, and why a packet cannot be bytes.

use core::fmt;
use thiserror::Error;

/// Names a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// IP of either version.
    Ip,
    /// IPv4 (RFC 791).
    Ipv4,
    /// IPv6 (RFC 8200 §3).
    Ipv6,
    /// An IPv6 extension header (RFC 8200 §4).
    Extension,
    /// TCP (RFC 9293).
    Tcp,
    /// UDP (RFC 768).
    Udp,
    /// ICMP for IPv4 (RFC 792).
    Icmp,
    /// ICMP for IPv6 (RFC 4443).
    Icmpv6,
    /// A repair packet of an erasure code.
    Repair,
    /// ESP (RFC 4303).
    Esp,
    /// A message between a mobile host and a base station.
    Mobility,
    /// SRP in UDP (`yavatkar1994` §2.3).
    Srp,
    /// TFRC in UDP (RFC 5348).
    Tfrc,
    /// The start of a packet that an ICMP error is about.
    Quote,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Header::Ip => "IP",
            Header::Ipv4 => "IPv4",
            Header::Ipv6 => "IPv6",
            Header::Extension => "IPv6 extension",
            Header::Tcp => "TCP",
            Header::Udp => "UDP",
            Header::Icmp => "ICMP",
            Header::Icmpv6 => "ICMPv6",
            Header::Repair => "repair packet",
            Header::Esp => "ESP",
            Header::Mobility => "mobility message",
            Header::Srp => "SRP",
            Header::Tfrc => "TFRC",
            Header::Quote => "packet quoted by ICMP",
        })
    }
}

/// Why bytes are no packet that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ParseError {
    /// The bytes end too early.
    #[error("{header}: expected {expected} bytes or more, found {found}")]
    Truncated {
        /// In which header.
        header: Header,
        /// As many as there must be.
        expected: usize,
        /// As many as there are.
        found: usize,
    },
    /// A field has a value that it must not have.
    #[error("{header}: expected {field} {expected}, found {found}")]
    Field {
        /// In which header.
        header: Header,
        /// Which field.
        field: &'static str,
        /// Its value.
        found: u32,
        /// What it ought to be.
        expected: &'static str,
    },
    /// A checksum is wrong.
    #[error("{header}: expected checksum {expected:#06x}, found {found:#06x}")]
    Checksum {
        /// The header with the checksum.
        header: Header,
        /// What it is.
        found: u16,
        /// What it would have to be.
        expected: u16,
    },
    /// A fragment of a packet. Fragments are not put together here: a host drops and counts them.
    #[error("expected a whole packet, found a fragment at byte {offset}")]
    Fragment {
        /// Where in the whole it belongs, bytes.
        offset: u16,
        /// Whether more follows.
        more: bool,
    },
    /// A transport, or an extension header, that is not known here.
    #[error("expected protocol TCP, UDP, ICMP or ESP, found {found}")]
    Protocol {
        /// Its number.
        found: u8,
    },
    /// An option of an impossible length: one that does not fit, or is not that of its kind.
    #[error("{header}: expected option {kind} to have length {expected}, found {found}")]
    OptionLength {
        /// In which header.
        header: Header,
        /// The option's kind.
        kind: u8,
        /// Its length field.
        found: u8,
        /// What it ought to be.
        expected: &'static str,
    },
    /// A source route that is not at its end (RFC 7126 §4.3, RFC 5095): the transport's checksum
    /// would be that of another destination.
    #[error("{header}: expected no source route that goes on, found one with {left} left")]
    SourceRoute {
        /// In which header.
        header: Header,
        /// Bytes (IPv4) or hops (IPv6) that are left of it.
        left: u8,
    },
    /// More is to be kept than there is room for.
    #[error("{header}: expected at most {most} bytes, found {found}")]
    TooLong {
        /// What is too long.
        header: Header,
        /// Bytes.
        found: usize,
        /// The most there may be.
        most: usize,
    },
}

/// Why a packet cannot be written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EmitError {
    /// The payload given is not as long as the packet says.
    #[error("expected {expected} bytes of payload, found {found}")]
    Payload {
        /// What the packet says.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// Something does not fit into the length field that it has.
    #[error("{header}: expected at most {most} bytes, found {found}")]
    TooLong {
        /// What is too long.
        header: Header,
        /// Bytes.
        found: usize,
        /// The most there may be.
        most: usize,
    },
    /// A value does not fit into its field.
    #[error("{header}: expected {field} of at most {most}, found {found}")]
    Field {
        /// In which header.
        header: Header,
        /// Which field.
        field: &'static str,
        /// The value.
        found: u32,
        /// The greatest there may be.
        most: u32,
    },
    /// Neither port is that by which a receiver recognises the protocol.
    #[error("{header}: expected port {expected} at either end, found {found} as destination")]
    Port {
        /// Of which protocol.
        header: Header,
        /// The destination port.
        found: u16,
        /// The port that one end must have.
        expected: u16,
    },
    /// A checksum is to be completed elsewhere, and there is none.
    #[error("{header}: expected a transport with a checksum")]
    NoChecksum {
        /// Which header.
        header: Header,
    },
    /// What ESP hides is to be encrypted, and there are no keys.
    #[error("ESP: expected a security association to encrypt with")]
    NoKeys,
    /// A packet is to be encrypted, and is not in transport mode.
    #[error("ESP: expected a packet in transport mode")]
    NotProtected,
    /// Addresses of both IP versions.
    #[error("{header}: expected addresses of one IP version, found both")]
    Versions {
        /// In which header.
        header: Header,
    },
    /// What is kept of an IP header is not of this packet's IP version.
    #[error("expected options or extension headers of the packet's IP version: {0}")]
    Kept(#[source] ParseError),
}
