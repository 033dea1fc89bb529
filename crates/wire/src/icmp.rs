//! ICMP for IPv4 (RFC 792) and for IPv6 (RFC 4443), as one set of messages.

use crate::checksum::{Sum, Tail};
use crate::ip::{self, protocol, u16_at, u32_at};
use crate::{
    CopyId, CorruptionNotice, EmitError, EspNotice, Header, ParseError, Quote, SurvivalNotice,
};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// An ICMP message. Where the two versions number alike things differently, the number is that of
/// the version that the packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Icmp {
    /// Destination unreachable, but for [`Icmp::TooBig`].
    Unreachable {
        /// Why: 0 net (IPv6: no route), 1 host (IPv6: prohibited), 3 port (IPv6: address), ...
        code: u8,
        /// The packet that was not delivered.
        quote: Quote,
    },
    /// Packet too big (RFC 4443 §3.2); in IPv4, fragmentation needed (RFC 1191 §4).
    TooBig {
        /// The most that the next hop takes, bytes; 0 from routers older than RFC 1191. At most
        /// 65535 in IPv4.
        mtu: u32,
        /// The packet that was too big.
        quote: Quote,
    },
    /// Time exceeded.
    TimeExceeded {
        /// 0 in transit, 1 in reassembly.
        code: u8,
        /// The packet whose time was exceeded.
        quote: Quote,
    },
    /// A problem with a header.
    ParameterProblem {
        /// Of which kind.
        code: u8,
        /// Where in the quoted packet, bytes; at most 255 in IPv4.
        pointer: u32,
        /// The packet with the problem.
        quote: Quote,
    },
    /// Echo request.
    EchoRequest {
        /// Whose.
        id: u16,
        /// Which.
        seq: u16,
    },
    /// Echo reply.
    EchoReply {
        /// Whose.
        id: u16,
        /// Which.
        seq: u16,
    },
    /// A notice of corruption to a source.
    Corruption {
        /// What happened.
        notice: CorruptionNotice,
        /// Bytes of the whole packet, up to which the message is padded: 180 for ns-2's message
        /// agent, 56 for an ICMP error in IPv4. A packet that needs more has more.
        size: u16,
    },
    /// A notice of corruption to the source of an ESP packet.
    EspCorruption {
        /// Which packet.
        notice: EspNotice,
        /// Bytes of the whole packet, as of [`Icmp::Corruption`].
        size: u16,
    },
    /// A notice of a link's survival probabilities to a source.
    Survival(SurvivalNotice),
    /// Anything else; what follows the checksum is the packet's payload.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
    },
}

/// Numbers of types: in IPv4, in IPv6.
mod kind {
    pub(super) const UNREACHABLE: [u8; 2] = [3, 1];
    /// In IPv4 a code of [`UNREACHABLE`].
    pub(super) const TOO_BIG: [u8; 2] = [3, 2];
    pub(super) const TIME_EXCEEDED: [u8; 2] = [11, 3];
    pub(super) const PARAMETER_PROBLEM: [u8; 2] = [12, 4];
    pub(super) const ECHO_REQUEST: [u8; 2] = [8, 128];
    pub(super) const ECHO_REPLY: [u8; 2] = [0, 129];
    /// For experiments: RFC 4727 §2.3 in IPv4, an error message of RFC 4443 §2.1 in IPv6.
    pub(super) const CORRUPTION: [u8; 2] = [253, 100];
}

/// The code of [`kind::CORRUPTION`] for a notice about a link, not a packet.
const SURVIVAL: u8 = 1;
/// The code of [`kind::CORRUPTION`] for a notice about an ESP packet.
const ESP: u8 = 2;
/// The code of [`kind::CORRUPTION`] for a notice about a packet whose copy is named by its timestamp.
const BY_TIMESTAMP: u8 = 3;
/// IPv4's code for [`kind::TOO_BIG`].
const FRAGMENTATION_NEEDED: u8 = 4;

/// Bytes of the header of a message whose type is known.
const HEADER: usize = 8;
/// Bytes of type, code and checksum.
const SHORT_HEADER: usize = 4;

impl Icmp {
    /// The place of the checksum in the header.
    pub(crate) const CHECKSUM: usize = 2;

    /// The packet that an error is about.
    #[must_use]
    pub fn quote(&self) -> Option<&Quote> {
        match self {
            Icmp::Unreachable { quote, .. }
            | Icmp::TooBig { quote, .. }
            | Icmp::TimeExceeded { quote, .. }
            | Icmp::ParameterProblem { quote, .. } => Some(quote),
            Icmp::EchoRequest { .. }
            | Icmp::EchoReply { .. }
            | Icmp::Corruption { .. }
            | Icmp::EspCorruption { .. }
            | Icmp::Survival(_)
            | Icmp::Other { .. } => None,
        }
    }

    /// Bytes of the message without its payload, in a packet with an IP header of `ip` bytes.
    pub(crate) fn len(&self, ip: usize) -> usize {
        match self {
            Icmp::Unreachable { quote, .. }
            | Icmp::TooBig { quote, .. }
            | Icmp::TimeExceeded { quote, .. }
            | Icmp::ParameterProblem { quote, .. } => HEADER + quote.bytes(),
            Icmp::EchoRequest { .. } | Icmp::EchoReply { .. } => HEADER,
            Icmp::Corruption { notice, size } => {
                (HEADER + notice.bytes()).max(usize::from(*size).saturating_sub(ip))
            }
            Icmp::EspCorruption { notice, size } => {
                (HEADER + notice.bytes()).max(usize::from(*size).saturating_sub(ip))
            }
            Icmp::Survival(notice) => HEADER + notice.bytes(),
            Icmp::Other { .. } => SHORT_HEADER,
        }
    }

    /// Reads the message that `bytes` are, and the length of what is not payload. `ip` is the
    /// length of the IP header.
    pub(crate) fn parse(
        bytes: &[u8],
        (source, destination): (IpAddr, IpAddr),
        ip: usize,
    ) -> Result<(Icmp, usize), ParseError> {
        let v6 = source.is_ipv6();
        let header = header(v6);
        let expect = |expected| match bytes.len() {
            found if found < expected => Err(ParseError::Truncated { header, expected, found }),
            _ => Ok(()),
        };
        expect(SHORT_HEADER)?;
        let (kind, code) = (bytes[0], bytes[1]);
        let mut sum = start(source, destination, bytes.len());
        sum.add(bytes);
        sum.verify(header, u16_at(bytes, Icmp::CHECKSUM))?;
        let is = |kinds: [u8; 2]| kinds[usize::from(v6)] == kind;
        if is(kind::CORRUPTION)
            && (code == 0 || code == BY_TIMESTAMP)
            && let Some(mut notice) = CorruptionNotice::parse(&bytes[SHORT_HEADER..], v6)
        {
            if code == BY_TIMESTAMP {
                notice.timestamp = Some(notice.copy.0);
                notice.copy = CopyId::NONE;
            }
            let size = (ip + bytes.len()).min(usize::from(u16::MAX)) as u16;
            return Ok((Icmp::Corruption { notice, size }, bytes.len()));
        }
        if is(kind::CORRUPTION)
            && code == SURVIVAL
            && let Some(notice) = SurvivalNotice::parse(&bytes[SHORT_HEADER..], v6)
        {
            return Ok((Icmp::Survival(notice), HEADER + notice.bytes()));
        }
        if is(kind::CORRUPTION)
            && code == ESP
            && let Some(notice) = EspNotice::parse(&bytes[SHORT_HEADER..], v6)
        {
            let size = (ip + bytes.len()).min(usize::from(u16::MAX)) as u16;
            return Ok((Icmp::EspCorruption { notice, size }, bytes.len()));
        }
        if is(kind::ECHO_REQUEST) || is(kind::ECHO_REPLY) {
            expect(HEADER)?;
            let (id, seq) = (u16_at(bytes, 4), u16_at(bytes, 6));
            let echo = match is(kind::ECHO_REQUEST) {
                true => Icmp::EchoRequest { id, seq },
                false => Icmp::EchoReply { id, seq },
            };
            return Ok((echo, HEADER));
        }
        let quotes =
            [kind::UNREACHABLE, kind::TOO_BIG, kind::TIME_EXCEEDED, kind::PARAMETER_PROBLEM];
        if !quotes.into_iter().any(is) {
            return Ok((Icmp::Other { kind, code }, SHORT_HEADER));
        }
        expect(HEADER)?;
        let (quote, quoted) = Quote::parse(&bytes[HEADER..], v6)?;
        let word = u32_at(bytes, 4);
        let message = if is(kind::TOO_BIG) && (v6 || code == FRAGMENTATION_NEEDED) {
            Icmp::TooBig { mtu: if v6 { word } else { word & 0xffff }, quote }
        } else if is(kind::UNREACHABLE) {
            Icmp::Unreachable { code, quote }
        } else if is(kind::TIME_EXCEEDED) {
            Icmp::TimeExceeded { code, quote }
        } else {
            let pointer = if v6 { word } else { word >> 24 };
            Icmp::ParameterProblem { code, pointer, quote }
        };
        Ok((message, HEADER + quoted))
    }

    /// Writes the message. `ip` is the length of the IP header.
    pub(crate) fn emit(
        &self,
        (source, destination): (IpAddr, IpAddr),
        ip: usize,
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let begin = out.len();
        let v6 = source.is_ipv6();
        let header = header(v6);
        let mut put = |kinds: [u8; 2], code: u8, word: u32| {
            out.extend_from_slice(&[kinds[usize::from(v6)], code, 0, 0]);
            out.extend_from_slice(&word.to_be_bytes());
        };
        let echo = |id, seq| u32::from(id) << 16 | u32::from(seq);
        let quote = match *self {
            Icmp::Unreachable { code, quote } => {
                put(kind::UNREACHABLE, code, 0);
                Some(quote)
            }
            Icmp::TooBig { mtu, quote } => {
                if !v6 {
                    ip::fits(header, "MTU", mtu, 0xffff)?;
                }
                put(kind::TOO_BIG, if v6 { 0 } else { FRAGMENTATION_NEEDED }, mtu);
                Some(quote)
            }
            Icmp::TimeExceeded { code, quote } => {
                put(kind::TIME_EXCEEDED, code, 0);
                Some(quote)
            }
            Icmp::ParameterProblem { code, pointer, quote } => {
                if !v6 {
                    ip::fits(header, "pointer", pointer, 0xff)?;
                }
                put(kind::PARAMETER_PROBLEM, code, if v6 { pointer } else { pointer << 24 });
                Some(quote)
            }
            Icmp::EchoRequest { id, seq } => {
                put(kind::ECHO_REQUEST, 0, echo(id, seq));
                None
            }
            Icmp::EchoReply { id, seq } => {
                put(kind::ECHO_REPLY, 0, echo(id, seq));
                None
            }
            Icmp::Corruption { notice, .. } => {
                match notice.timestamp {
                    Some(timestamp) => put(kind::CORRUPTION, BY_TIMESTAMP, timestamp),
                    None => put(kind::CORRUPTION, 0, notice.copy.0),
                }
                notice.emit(v6, out)?;
                out.resize(begin + self.len(ip), 0);
                None
            }
            Icmp::EspCorruption { notice, .. } => {
                put(kind::CORRUPTION, ESP, notice.esp.spi);
                notice.emit(v6, out)?;
                out.resize(begin + self.len(ip), 0);
                None
            }
            Icmp::Survival(notice) => {
                put(kind::CORRUPTION, SURVIVAL, notice.link);
                notice.emit(v6, out)?;
                None
            }
            Icmp::Other { kind, code } => {
                out.extend_from_slice(&[kind, code, 0, 0]);
                None
            }
        };
        if let Some(quote) = quote {
            if quote.source.is_ipv6() != v6 {
                return Err(EmitError::Versions { header: Header::Quote });
            }
            quote.emit(out)?;
        }
        let sum = start(source, destination, out.len() - begin + tail.len());
        tail.finish(sum, begin, Icmp::CHECKSUM, out);
        Ok(())
    }
}

fn header(v6: bool) -> Header {
    if v6 { Header::Icmpv6 } else { Header::Icmp }
}

/// Writes an address that has to be of the message's version.
pub(crate) fn emit_address(address: IpAddr, v6: bool, out: &mut Vec<u8>) -> Result<(), EmitError> {
    match address {
        IpAddr::V4(address) if !v6 => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) if v6 => out.extend_from_slice(&address.octets()),
        _ => return Err(EmitError::Versions { header: header(v6) }),
    }
    Ok(())
}

/// Only ICMPv6 has a pseudo header (RFC 4443 §2.3).
fn start(source: IpAddr, destination: IpAddr, len: usize) -> Sum {
    match source {
        IpAddr::V4(_) => Sum::default(),
        IpAddr::V6(_) => Sum::pseudo(source, destination, protocol::ICMPV6, len),
    }
}
