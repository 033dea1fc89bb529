//! What is kept of headers without being understood.

use crate::inline::Inline;
use crate::{Header, ParseError, ipv4, ipv6, options};
use serde::{Deserialize, Serialize};

/// IPv4 options, IPv6 extension headers and unknown TCP options: what a packet had when it came,
/// kept so that it goes on as it was. Most packets have nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rare {
    /// The type of the first extension header.
    pub(crate) first: u8,
    pub(crate) ip: Inline<{ Rare::MOST_IP }>,
    pub(crate) tcp: Inline<{ options::MOST }>,
}

impl Rare {
    /// Room for IPv6 extension headers, bytes; IPv4 options have 40 at most.
    pub const MOST_IP: usize = 56;

    /// Nothing.
    pub const NONE: Rare = Rare { first: 0, ip: Inline::EMPTY, tcp: Inline::EMPTY };

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        self.first = 0;
        self.ip.clear();
        self.tcp.clear();
    }

    /// IPv4 options with their padding, or the chain of IPv6 extension headers.
    #[must_use]
    pub fn ip(&self) -> &[u8] {
        self.ip.as_slice()
    }

    /// The type of the first extension header (RFC 8200 §4); means nothing without one.
    #[must_use]
    pub fn first_extension(&self) -> u8 {
        self.first
    }

    /// TCP options of unknown kinds: kind, length and data of each, without padding.
    #[must_use]
    pub fn tcp_options(&self) -> &[u8] {
        self.tcp.as_slice()
    }

    /// Sets the options of an IPv4 header: a multiple of four bytes, at most 40.
    ///
    /// # Errors
    /// If they are no options.
    pub fn set_ipv4_options(&mut self, options: &[u8]) -> Result<(), ParseError> {
        ipv4::check_options(options)?;
        self.first = 0;
        self.keep_ip(Header::Ipv4, options)
    }

    /// Sets the chain of extension headers, the first of which is of type `first`: hop-by-hop
    /// options, routing or destination options. The last one's next-header field may be anything.
    ///
    /// # Errors
    /// If it is no such chain, or too long.
    pub fn set_ipv6_extensions(&mut self, first: u8, chain: &[u8]) -> Result<(), ParseError> {
        ipv6::last_extension(first, chain)?;
        self.first = if chain.is_empty() { 0 } else { first };
        self.keep_ip(Header::Extension, chain)
    }

    /// Sets the TCP options of unknown kinds, one behind the other.
    ///
    /// # Errors
    /// If they are no options, or of a kind that is known.
    pub fn set_tcp_options(&mut self, options: &[u8]) -> Result<(), ParseError> {
        let (mut known, mut kept) = (crate::Options::default(), Inline::EMPTY);
        options::parse(options, &mut known, &mut kept)?;
        if kept.as_slice() != options {
            return Err(ParseError::Field {
                header: Header::Tcp,
                field: "unknown options",
                found: options.len() as u32,
                expected: "to be of unknown kinds, without padding",
            });
        }
        self.tcp = kept;
        Ok(())
    }

    pub(crate) fn keep_ip(&mut self, header: Header, bytes: &[u8]) -> Result<(), ParseError> {
        self.ip.clear();
        if self.ip.push(bytes) {
            return Ok(());
        }
        Err(ParseError::TooLong { header, found: bytes.len(), most: Rare::MOST_IP })
    }
}
