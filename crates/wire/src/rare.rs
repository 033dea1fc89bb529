//! What is kept of headers without being understood.

use crate::{Header, ParseError, ipv4, ipv6, options};
use core::fmt;
use core::hash::{Hash, Hasher};
use serde::{Deserialize, Serialize};

/// IPv4 options, IPv6 extension headers and unknown TCP options: what a packet had when it came,
/// kept so that it goes on as it was. Most packets have nothing of it.
///
/// In the lab the first of what IP has may be weightless: it is there for whoever reads it, but is
/// not on the wire and has no bytes, as if the network carried it beside the packet.
///
/// A packet may carry an error-correcting code of its own behind its payload ([`Rare::set_corrects`]).
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "Kept", try_from = "Kept")]
// The lengths come first, beside what every packet needs: the rest is seldom touched.
#[repr(C)]
pub struct Rare {
    /// The type of the first extension header.
    pub(crate) first: u8,
    ip_len: u8,
    tcp_len: u8,
    /// Two numbers of four bits, since a packet has not a byte to spare: how many wrong bytes its own
    /// code corrects, and how many of the first words of `ip`, of four bytes, are weightless.
    corrects_weightless: u8,
    ip: [u8; Rare::MOST_IP],
    tcp: [u8; options::MOST],
}

impl Rare {
    /// Room for IPv6 extension headers, bytes; IPv4 options have 40 at most.
    pub const MOST_IP: usize = 56;

    /// The most wrong bytes that a packet's own code corrects.
    pub const MOST_CORRECTED: u8 = 15;

    /// Nothing.
    pub const NONE: Rare = Rare {
        first: 0,
        ip_len: 0,
        tcp_len: 0,
        corrects_weightless: 0,
        ip: [0; Rare::MOST_IP],
        tcp: [0; options::MOST],
    };

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        self.first = 0;
        self.ip_len = 0;
        self.tcp_len = 0;
        self.corrects_weightless = 0;
    }

    /// Whether there is nothing.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ip_len | self.tcp_len | self.corrects_weightless == 0
    }

    /// Whether there are IPv4 options or IPv6 extension headers.
    #[must_use]
    #[inline]
    pub fn has_ip(&self) -> bool {
        self.ip_len > 0
    }

    /// Whether some of it is not on the wire.
    #[must_use]
    pub fn is_weightless(&self) -> bool {
        self.weightless() > 0
    }

    /// So many of the first bytes of `ip` are weightless.
    #[inline]
    fn weightless(&self) -> u8 {
        (self.corrects_weightless & 15) * 4
    }

    /// The options of IPv4 are whole words, and so are the extension headers of IPv6.
    fn set_weightless_bytes(&mut self, bytes: u8) {
        self.corrects_weightless = (self.corrects() << 4) | (bytes / 4);
    }

    /// Takes what IP has by now off the wire, or puts all of it back. What is put behind it later
    /// has its weight.
    pub fn set_weightless(&mut self, weightless: bool) {
        self.set_weightless_bytes(if weightless { self.ip_len } else { 0 });
    }

    /// How many wrong bytes the packet's own code corrects; 0 without a code.
    #[must_use]
    #[inline]
    pub fn corrects(&self) -> u8 {
        self.corrects_weightless >> 4
    }

    /// Gives the packet a code of its own that corrects so many wrong bytes in it, at most
    /// [`Rare::MOST_CORRECTED`], or takes it away. [`crate::Packet::len`] counts its redundancy.
    #[inline]
    pub fn set_corrects(&mut self, bytes: u8) {
        let corrects = bytes.min(Rare::MOST_CORRECTED);
        self.corrects_weightless = (corrects << 4) | (self.corrects_weightless & 15);
    }

    /// IPv4 options with their padding, or the chain of IPv6 extension headers.
    #[must_use]
    pub fn ip(&self) -> &[u8] {
        &self.ip[..usize::from(self.ip_len)]
    }

    /// The same bytes, for whoever changes some of them but not their meaning.
    #[inline]
    pub(crate) fn ip_mut(&mut self) -> &mut [u8] {
        &mut self.ip[..usize::from(self.ip_len)]
    }

    /// The type of the first extension header (RFC 8200 §4); means nothing without one.
    #[must_use]
    pub fn first_extension(&self) -> u8 {
        self.first
    }

    /// TCP options of unknown kinds: kind, length and data of each, without padding.
    #[must_use]
    pub fn tcp_options(&self) -> &[u8] {
        &self.tcp[..usize::from(self.tcp_len)]
    }

    /// The bytes that IPv4 options or IPv6 extension headers have on the wire.
    #[inline]
    pub(crate) fn ip_on_wire(&self) -> &[u8] {
        &self.ip[usize::from(self.weightless())..usize::from(self.ip_len)]
    }

    /// The type of the first extension header on the wire; means nothing without one.
    pub(crate) fn first_on_wire(&self) -> u8 {
        let (mut kind, mut at) = (self.first, 0);
        while at < usize::from(self.weightless()) {
            // RFC 8200 §4.3 to §4.6: the type of what follows, and the words behind the first.
            (kind, at) = (self.ip[at], at + 8 * (1 + usize::from(self.ip[at + 1])));
        }
        kind
    }

    /// Sets the options of an IPv4 header: a multiple of four bytes, at most 40.
    ///
    /// # Errors
    /// If they are no options.
    pub fn set_ipv4_options(&mut self, options: &[u8]) -> Result<(), ParseError> {
        ipv4::check_options(options)?;
        self.keep_ip(Header::Ipv4, 0, options)
    }

    /// Sets the chain of extension headers, the first of which is of type `first`: hop-by-hop
    /// options, routing or destination options. The last one's next-header field may be anything.
    ///
    /// # Errors
    /// If it is no such chain, or too long.
    pub fn set_ipv6_extensions(&mut self, first: u8, chain: &[u8]) -> Result<(), ParseError> {
        ipv6::last_extension(first, chain)?;
        self.keep_ip(Header::Extension, first, chain)
    }

    /// Sets the TCP options of unknown kinds, one behind the other.
    ///
    /// # Errors
    /// If they are no options, or of a kind that is known.
    pub fn set_tcp_options(&mut self, options: &[u8]) -> Result<(), ParseError> {
        let (mut known, mut kept) = (crate::Options::default(), Rare::NONE);
        options::parse(options, &mut known, &mut kept)?;
        if kept.tcp_options() != options {
            return Err(ParseError::Field {
                header: Header::Tcp,
                field: "unknown options",
                found: options.len() as u32,
                expected: "to be of unknown kinds, without padding",
            });
        }
        (self.tcp_len, self.tcp) = (kept.tcp_len, kept.tcp);
        Ok(())
    }

    pub(crate) fn keep_ip(
        &mut self,
        header: Header,
        first: u8,
        bytes: &[u8],
    ) -> Result<(), ParseError> {
        let Some(room) = self.ip.get_mut(..bytes.len()) else {
            return Err(ParseError::TooLong { header, found: bytes.len(), most: Rare::MOST_IP });
        };
        room.copy_from_slice(bytes);
        self.ip_len = bytes.len() as u8;
        self.set_weightless_bytes(self.weightless().min(self.ip_len));
        self.first = if bytes.is_empty() { 0 } else { first };
        Ok(())
    }

    /// Keeps one more TCP option.
    pub(crate) fn keep_tcp(&mut self, option: &[u8]) -> Result<(), ParseError> {
        let start = usize::from(self.tcp_len);
        let end = start + option.len();
        let Some(room) = self.tcp.get_mut(start..end) else {
            let (header, most) = (Header::Tcp, options::MOST);
            return Err(ParseError::TooLong { header, found: end, most });
        };
        room.copy_from_slice(option);
        self.tcp_len = end as u8;
        Ok(())
    }

    fn parts(&self) -> (u8, &[u8], &[u8], u8, u8) {
        (self.first, self.ip(), self.tcp_options(), self.weightless(), self.corrects())
    }
}

impl PartialEq for Rare {
    fn eq(&self, other: &Rare) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Rare {}

impl Hash for Rare {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl fmt::Debug for Rare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rare")
            .field("first", &self.first)
            .field("ip", &self.ip())
            .field("tcp", &self.tcp_options())
            .field("weightless", &self.weightless())
            .field("corrects", &self.corrects())
            .finish()
    }
}

/// [`Rare`] in a snapshot.
#[derive(Serialize, Deserialize)]
struct Kept {
    first: u8,
    ip: Vec<u8>,
    tcp: Vec<u8>,
    weightless: u8,
    #[serde(default)]
    corrects: u8,
}

impl From<Rare> for Kept {
    fn from(rare: Rare) -> Kept {
        let (first, ip, tcp, weightless, corrects) = rare.parts();
        Kept { first, ip: ip.to_vec(), tcp: tcp.to_vec(), weightless, corrects }
    }
}

impl TryFrom<Kept> for Rare {
    type Error = ParseError;

    fn try_from(kept: Kept) -> Result<Rare, ParseError> {
        let mut rare = Rare::NONE;
        rare.keep_ip(Header::Ip, kept.first, &kept.ip)?;
        rare.set_tcp_options(&kept.tcp)?;
        rare.set_weightless_bytes(kept.weightless.min(rare.ip_len));
        rare.set_corrects(kept.corrects);
        Ok(rare)
    }
}
