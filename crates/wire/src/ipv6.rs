//! IPv6 headers and extension headers (RFC 8200).

use crate::ip::{self, Inner, array, protocol, u16_at, u32_at};
use crate::{EmitError, Header, Ip, ParseError, UnparsedOptions};
use core::net::{IpAddr, Ipv6Addr};

pub(crate) const HEADER: usize = 40;

/// Reads the headers; what they say of the packet's end may be beyond that of the bytes.
pub(crate) fn parse(
    bytes: &[u8],
    ip: &mut Ip,
    unparsed: &mut UnparsedOptions,
) -> Result<Inner, ParseError> {
    let end = total_len(bytes)?;
    let first = bytes[6];
    let (protocol, start) = transport(first, &bytes[..end.min(bytes.len())])?;
    unparsed.keep_ip(Header::Extension, first, &bytes[HEADER..start])?;
    let word = u32_at(bytes, 0);
    ip.set_traffic_class((word >> 20) as u8);
    ip.flow_label = word & 0xf_ffff;
    ip.hop_limit = bytes[7];
    ip.source = address(bytes, 8);
    ip.destination = address(bytes, 24);
    ip.identification = 0;
    ip.dont_fragment = false;
    Ok(Inner { protocol, start, end })
}

/// The packet's length as the header says; all of the header is there.
pub(crate) fn total_len(bytes: &[u8]) -> Result<usize, ParseError> {
    if bytes.len() < HEADER {
        let (expected, found) = (HEADER, bytes.len());
        return Err(ParseError::Truncated { header: Header::Ipv6, expected, found });
    }
    Ok(HEADER + usize::from(u16_at(bytes, 4)))
}

pub(crate) fn address(bytes: &[u8], at: usize) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(array::<16>(bytes, at)))
}

/// The transport of a packet and where its header starts, behind all extension headers.
pub(crate) fn transport(first: u8, bytes: &[u8]) -> Result<(u8, usize), ParseError> {
    let (mut next, mut at) = (first, HEADER);
    while let Some((following, len)) = extension(next, &bytes[at..])? {
        next = following;
        at += len;
    }
    Ok((next, at))
}

/// The type of the header behind an extension header of type `kind`, and the latter's length;
/// `None` if `kind` is no extension header.
fn extension(kind: u8, bytes: &[u8]) -> Result<Option<(u8, usize)>, ParseError> {
    let truncated = |expected| ParseError::Truncated {
        header: Header::Extension,
        expected,
        found: bytes.len(),
    };
    match kind {
        protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => {
            let &[next, len, _, left, ..] = bytes else { return Err(truncated(8)) };
            let len = 8 * (1 + usize::from(len));
            if bytes.len() < len {
                return Err(truncated(len));
            }
            if kind == protocol::ROUTING && left > 0 {
                return Err(ParseError::SourceRoute { header: Header::Extension, left });
            }
            Ok(Some((next, len)))
        }
        protocol::FRAGMENT => {
            if bytes.len() < 8 {
                return Err(truncated(8));
            }
            // Even one that is all there is of its packet (RFC 6946).
            let field = u16_at(bytes, 2);
            Err(ParseError::Fragment { offset: field & !7, more: field & 1 != 0 })
        }
        _ => Ok(None),
    }
}

/// The type of the last of a chain of extension headers, and where it starts, in a chain that is just
/// that.
pub(crate) fn last_extension(first: u8, chain: &[u8]) -> Result<Option<(u8, usize)>, ParseError> {
    let (mut kind, mut at, mut last) = (first, 0, None);
    while at < chain.len() {
        let Some((next, len)) = extension(kind, &chain[at..])? else {
            return Err(ParseError::Protocol { found: kind });
        };
        last = Some((kind, at));
        (kind, at) = (next, at + len);
    }
    Ok(last)
}

/// Writes a header for `len` bytes of transport and payload.
pub(crate) fn emit(
    (ip, unparsed): (&Ip, &UnparsedOptions),
    (source, destination): (Ipv6Addr, Ipv6Addr),
    (protocol, len): (u8, usize),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let chain = unparsed.ip_on_wire();
    let first = unparsed.first_on_wire();
    let last = last_extension(first, chain).map_err(EmitError::Kept)?;
    let payload = chain.len() + len;
    if payload > usize::from(u16::MAX) {
        let most = usize::from(u16::MAX);
        return Err(EmitError::TooLong { header: Header::Ipv6, found: payload, most });
    }
    ip::fits(Header::Ipv6, "flow label", ip.flow_label, 0xf_ffff)?;
    let class = u32::from(ip.traffic_class(Header::Ipv6)?);
    out.extend_from_slice(&(6 << 28 | class << 20 | ip.flow_label).to_be_bytes());
    out.extend_from_slice(&(payload as u16).to_be_bytes());
    let first = if last.is_some() { first } else { protocol };
    out.extend_from_slice(&[first, ip.hop_limit]);
    out.extend_from_slice(&source.octets());
    out.extend_from_slice(&destination.octets());
    let start = out.len();
    out.extend_from_slice(chain);
    if let Some((_, last)) = last {
        out[start + last] = protocol;
    }
    Ok(())
}
