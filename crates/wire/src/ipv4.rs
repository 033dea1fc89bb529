//! IPv4 headers (RFC 791).

use crate::checksum::Sum;
use crate::ip::{self, Inner, array, u16_at};
use crate::{EmitError, Header, Ip, ParseError, UnparsedOptions};
use core::net::{IpAddr, Ipv4Addr};

const HEADER: usize = 20;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

/// Loose and strict source routes.
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// Reads the header; what it says of the packet's end may be beyond that of the bytes.
pub(crate) fn parse(
    bytes: &[u8],
    ip: &mut Ip,
    unparsed: &mut UnparsedOptions,
) -> Result<Inner, ParseError> {
    let (header_len, total) = lengths(bytes)?;
    let mut sum = Sum::default();
    sum.add(&bytes[..header_len]);
    sum.verify(Header::Ipv4, u16_at(bytes, 10))?;
    whole(u16_at(bytes, 6))?;
    let options = &bytes[HEADER..header_len];
    check_options(options)?;
    unparsed.keep_ip(Header::Ipv4, 0, options)?;
    ip.source = address(bytes, 12);
    ip.destination = address(bytes, 16);
    ip.set_traffic_class(bytes[1]);
    ip.identification = u16_at(bytes, 4);
    ip.dont_fragment = u16_at(bytes, 6) & DONT_FRAGMENT != 0;
    ip.hop_limit = bytes[8];
    ip.flow_label = 0;
    Ok(Inner { protocol: bytes[9], start: header_len, end: total })
}

/// Length of the header and total length, both plausible; all of the header is there.
pub(crate) fn lengths(bytes: &[u8]) -> Result<(usize, usize), ParseError> {
    let truncated =
        |expected| ParseError::Truncated { header: Header::Ipv4, expected, found: bytes.len() };
    if bytes.len() < HEADER {
        return Err(truncated(HEADER));
    }
    let field = |field, found: usize, expected| ParseError::Field {
        header: Header::Ipv4,
        field,
        found: found as u32,
        expected,
    };
    let header_len = usize::from(bytes[0] & 0xf) * 4;
    if header_len < HEADER {
        return Err(field("header length", header_len, "of 20 bytes or more"));
    }
    if bytes.len() < header_len {
        return Err(truncated(header_len));
    }
    let total = usize::from(u16_at(bytes, 2));
    if total < header_len {
        return Err(field("total length", total, "not below the header length"));
    }
    Ok((header_len, total))
}

/// Refuses fragments.
fn whole(field: u16) -> Result<(), ParseError> {
    let (offset, more) = (field & 0x1fff, field & MORE_FRAGMENTS != 0);
    if offset == 0 && !more {
        return Ok(());
    }
    // 13 bits of offset in units of eight bytes.
    Err(ParseError::Fragment { offset: offset << 3, more })
}

/// Where in the whole a fragment belongs, in bytes.
pub(crate) fn fragment_offset(bytes: &[u8]) -> u16 {
    u16_at(bytes, 6) << 3
}

pub(crate) fn address(bytes: &[u8], at: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(array::<4>(bytes, at)))
}

/// Walks over options, which are kept unparsed.
pub(crate) fn check_options(options: &[u8]) -> Result<(), ParseError> {
    if !options.len().is_multiple_of(4) || options.len() > 40 {
        return Err(ParseError::Field {
            header: Header::Ipv4,
            field: "length of options",
            found: options.len() as u32,
            expected: "of a multiple of 4 bytes, at most 40",
        });
    }
    let mut rest = options;
    while let [kind, after @ ..] = rest {
        match *kind {
            0 => break,
            1 => rest = after,
            kind => {
                let len = after.first().copied().unwrap_or(0);
                if len < 2 || usize::from(len) > rest.len() {
                    return Err(ParseError::OptionLength {
                        header: Header::Ipv4,
                        kind,
                        found: len,
                        expected: "2 or more, within the header",
                    });
                }
                if SOURCE_ROUTES.contains(&kind) {
                    // The pointer counts from 1 and is beyond the option at the route's end.
                    let pointer = rest.get(2).copied().unwrap_or(0);
                    if pointer <= len {
                        let left = len - pointer.saturating_sub(1);
                        return Err(ParseError::SourceRoute { header: Header::Ipv4, left });
                    }
                }
                rest = &rest[usize::from(len)..];
            }
        }
    }
    Ok(())
}

/// Writes a header for `len` bytes of transport and payload.
pub(crate) fn emit(
    (ip, unparsed): (&Ip, &UnparsedOptions),
    (source, destination): (Ipv4Addr, Ipv4Addr),
    (protocol, len): (u8, usize),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let options = unparsed.ip_on_wire();
    check_options(options).map_err(EmitError::Kept)?;
    let header_len = HEADER + options.len();
    let total = header_len + len;
    if total > usize::from(u16::MAX) {
        let most = usize::from(u16::MAX);
        return Err(EmitError::TooLong { header: Header::Ipv4, found: total, most });
    }
    let start = out.len();
    let fragment = if ip.dont_fragment { DONT_FRAGMENT } else { 0 };
    out.extend_from_slice(&[0x40 | (header_len / 4) as u8, ip.traffic_class(Header::Ipv4)?]);
    out.extend_from_slice(&(total as u16).to_be_bytes());
    out.extend_from_slice(&ip.identification.to_be_bytes());
    out.extend_from_slice(&fragment.to_be_bytes());
    out.extend_from_slice(&[ip.hop_limit, protocol, 0, 0]);
    out.extend_from_slice(&source.octets());
    out.extend_from_slice(&destination.octets());
    out.extend_from_slice(options);
    let mut sum = Sum::default();
    sum.add(&out[start..]);
    ip::put_u16(out, start + 10, sum.checksum());
    Ok(())
}
