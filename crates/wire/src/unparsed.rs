//! Options and extension headers that are kept unparsed.

use crate::{Esp, Header, ParseError, ipv4, ipv6, options};
use core::fmt;
use core::hash::{Hash, Hasher};
use serde::{Deserialize, Serialize};

/// IPv4 options, IPv6 extension headers and unknown TCP options of a packet, kept so that it is
/// forwarded unchanged. Most packets have none.
///
/// In the lab, the first IP options may have a size of zero: nodes read them, but they are not on
/// the wire, as if the network carried them beside the packet.
///
/// A packet may carry its own error-correcting code after its payload
/// ([`UnparsedOptions::set_corrects`]).
///
/// The ESP header of a packet in transport mode is here, too: a packet's size is limited, and unknown
/// TCP options are few. It leaves them [`UnparsedOptions::MOST_TCP_IN_ESP`] bytes.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "Kept", try_from = "Kept")]
// The lengths come first, beside the fields that every packet needs; the rest is seldom read.
#[repr(C)]
pub struct UnparsedOptions {
    /// The type of the first extension header.
    pub(crate) first: u8,
    ip_len: u8,
    /// With [`HAS_ESP`] if the last bytes of `tcp` are an ESP header.
    tcp_len: u8,
    /// Two numbers of four bits, to keep a packet within its size: the wrong bytes that its own
    /// code corrects, and the first words of `ip`, of four bytes, that have a size of zero.
    corrects_zero_size: u8,
    ip: [u8; UnparsedOptions::MOST_IP],
    tcp: [u8; options::MOST],
}

/// The bit of `tcp_len` that says that there is an ESP header.
const HAS_ESP: u8 = 1 << 7;

impl UnparsedOptions {
    /// Room for unknown TCP options in a packet with ESP in transport mode, bytes.
    pub const MOST_TCP_IN_ESP: usize = options::MOST - Esp::HEADER;

    /// Room for IPv6 extension headers, bytes; IPv4 options have 40 at most.
    pub const MOST_IP: usize = 56;

    /// The most wrong bytes that a packet's own code corrects.
    pub const MOST_CORRECTED: u8 = 15;

    /// No options.
    pub const NONE: UnparsedOptions = UnparsedOptions {
        first: 0,
        ip_len: 0,
        tcp_len: 0,
        corrects_zero_size: 0,
        ip: [0; UnparsedOptions::MOST_IP],
        tcp: [0; options::MOST],
    };

    /// Removes all of them.
    #[inline]
    pub fn clear(&mut self) {
        self.first = 0;
        self.ip_len = 0;
        self.tcp_len = 0;
        self.corrects_zero_size = 0;
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ip_len | self.tcp_len | self.corrects_zero_size == 0
    }

    /// Whether there are IPv4 options or IPv6 extension headers.
    #[must_use]
    #[inline]
    pub fn has_ip(&self) -> bool {
        self.ip_len > 0
    }

    /// Whether some of them have a size of zero.
    #[must_use]
    pub fn is_zero_size(&self) -> bool {
        self.zero_size() > 0
    }

    /// The number of the first bytes of `ip` that have a size of zero.
    #[inline]
    fn zero_size(&self) -> u8 {
        (self.corrects_zero_size & 15) * 4
    }

    /// The options of IPv4 are whole words, and so are the extension headers of IPv6.
    fn set_zero_size_bytes(&mut self, bytes: u8) {
        self.corrects_zero_size = (self.corrects() << 4) | (bytes / 4);
    }

    /// Sets the size of the present IP options to zero on the wire, or to their true size. Options
    /// added later have their true size.
    pub fn set_zero_size(&mut self, zero_size: bool) {
        self.set_zero_size_bytes(if zero_size { self.ip_len } else { 0 });
    }

    /// How many wrong bytes the packet's own code corrects; 0 without a code.
    #[must_use]
    #[inline]
    pub fn corrects(&self) -> u8 {
        self.corrects_zero_size >> 4
    }

    /// Gives the packet a code of its own that corrects so many wrong bytes in it, at most
    /// [`UnparsedOptions::MOST_CORRECTED`], or takes it away. [`crate::Packet::len`] counts its redundancy.
    #[inline]
    pub fn set_corrects(&mut self, bytes: u8) {
        let corrects = bytes.min(UnparsedOptions::MOST_CORRECTED);
        self.corrects_zero_size = (corrects << 4) | (self.corrects_zero_size & 15);
    }

    /// IPv4 options with their padding, or the chain of IPv6 extension headers.
    #[must_use]
    pub fn ip(&self) -> &[u8] {
        &self.ip[..usize::from(self.ip_len)]
    }

    /// The IP bytes, mutable; their structure must stay valid.
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
        &self.tcp[..self.tcp_len()]
    }

    #[inline]
    fn tcp_len(&self) -> usize {
        usize::from(self.tcp_len & !HAS_ESP)
    }

    /// The ESP header of a packet in transport mode.
    #[inline]
    pub(crate) fn esp(&self) -> Option<Esp> {
        let has_esp = self.tcp_len & HAS_ESP != 0;
        has_esp.then(|| Esp::read(&self.tcp[UnparsedOptions::MOST_TCP_IN_ESP..]))
    }

    /// Keeps an ESP header. False, without effect, if unknown TCP options leave no room.
    pub(crate) fn set_esp(&mut self, esp: Esp) -> bool {
        let has_room = self.tcp_len() <= UnparsedOptions::MOST_TCP_IN_ESP;
        if has_room {
            self.tcp_len |= HAS_ESP;
            self.tcp[UnparsedOptions::MOST_TCP_IN_ESP..].copy_from_slice(&esp.bytes());
        }
        has_room
    }

    pub(crate) fn clear_esp(&mut self) {
        self.tcp_len &= !HAS_ESP;
    }

    /// Room for unknown TCP options, bytes.
    fn most_tcp(&self) -> usize {
        if self.tcp_len & HAS_ESP == 0 { options::MOST } else { UnparsedOptions::MOST_TCP_IN_ESP }
    }

    /// The bytes that IPv4 options or IPv6 extension headers have on the wire.
    #[inline]
    pub(crate) fn ip_on_wire(&self) -> &[u8] {
        &self.ip[usize::from(self.zero_size())..usize::from(self.ip_len)]
    }

    /// The type of the first extension header on the wire; means nothing without one.
    pub(crate) fn first_on_wire(&self) -> u8 {
        let (mut kind, mut at) = (self.first, 0);
        while at < usize::from(self.zero_size()) {
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
        let (mut known, mut kept) = (crate::Options::default(), UnparsedOptions::NONE);
        options::parse(options, &mut known, &mut kept)?;
        if kept.tcp_options() != options {
            return Err(ParseError::Field {
                header: Header::Tcp,
                field: "unknown options",
                found: options.len() as u32,
                expected: "to be of unknown kinds, without padding",
            });
        }
        let (found, most) = (options.len(), self.most_tcp());
        if found > most {
            return Err(ParseError::TooLong { header: Header::Tcp, found, most });
        }
        self.tcp_len = (self.tcp_len & HAS_ESP) | kept.tcp_len;
        self.tcp[..found].copy_from_slice(options);
        Ok(())
    }

    pub(crate) fn keep_ip(
        &mut self,
        header: Header,
        first: u8,
        bytes: &[u8],
    ) -> Result<(), ParseError> {
        let Some(room) = self.ip.get_mut(..bytes.len()) else {
            return Err(ParseError::TooLong {
                header,
                found: bytes.len(),
                most: UnparsedOptions::MOST_IP,
            });
        };
        room.copy_from_slice(bytes);
        self.ip_len = bytes.len() as u8;
        self.set_zero_size_bytes(self.zero_size().min(self.ip_len));
        self.first = if bytes.is_empty() { 0 } else { first };
        Ok(())
    }

    /// Keeps one more TCP option.
    pub(crate) fn keep_tcp(&mut self, option: &[u8]) -> Result<(), ParseError> {
        let (start, most) = (self.tcp_len(), self.most_tcp());
        let end = start + option.len();
        let Some(room) = self.tcp[..most].get_mut(start..end) else {
            return Err(ParseError::TooLong { header: Header::Tcp, found: end, most });
        };
        room.copy_from_slice(option);
        self.tcp_len = (self.tcp_len & HAS_ESP) | end as u8;
        Ok(())
    }

    fn parts(&self) -> (u8, &[u8], &[u8], u8, u8, Option<Esp>) {
        let (zero_size, corrects) = (self.zero_size(), self.corrects());
        (self.first, self.ip(), self.tcp_options(), zero_size, corrects, self.esp())
    }
}

impl PartialEq for UnparsedOptions {
    fn eq(&self, other: &UnparsedOptions) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for UnparsedOptions {}

impl Hash for UnparsedOptions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl fmt::Debug for UnparsedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnparsedOptions")
            .field("first", &self.first)
            .field("ip", &self.ip())
            .field("tcp", &self.tcp_options())
            .field("zero_size", &self.zero_size())
            .field("corrects", &self.corrects())
            .field("esp", &self.esp())
            .finish()
    }
}

/// [`UnparsedOptions`] in a snapshot.
#[derive(Serialize, Deserialize)]
struct Kept {
    first: u8,
    ip: Vec<u8>,
    tcp: Vec<u8>,
    zero_size: u8,
    #[serde(default)]
    corrects: u8,
    #[serde(default)]
    esp: Option<Esp>,
}

impl From<UnparsedOptions> for Kept {
    fn from(unparsed: UnparsedOptions) -> Kept {
        let (first, ip, tcp, zero_size, corrects, esp) = unparsed.parts();
        Kept { first, ip: ip.to_vec(), tcp: tcp.to_vec(), zero_size, corrects, esp }
    }
}

impl TryFrom<Kept> for UnparsedOptions {
    type Error = ParseError;

    fn try_from(kept: Kept) -> Result<UnparsedOptions, ParseError> {
        let mut unparsed = UnparsedOptions::NONE;
        unparsed.keep_ip(Header::Ip, kept.first, &kept.ip)?;
        unparsed.set_tcp_options(&kept.tcp)?;
        unparsed.set_zero_size_bytes(kept.zero_size.min(unparsed.ip_len));
        unparsed.set_corrects(kept.corrects);
        if let Some(esp) = kept.esp
            && !unparsed.set_esp(esp)
        {
            let most = UnparsedOptions::MOST_TCP_IN_ESP;
            return Err(ParseError::TooLong { header: Header::Tcp, found: kept.tcp.len(), most });
        }
        Ok(unparsed)
    }
}
