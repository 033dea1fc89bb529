//! The bytes of SRP's PDUs.

use super::{Chunk, Continue, Ends, Limits, Pdu, Reason, Sack, Segment, Srp};
use crate::checksum::{Sum, Tail};
use crate::ip::{self, protocol, u16_at, u32_at};
use crate::{EmitError, Header, Udp};
use core::net::IpAddr;

const OPEN: u8 = 1;
const OPENED: u8 = 2;
const DATA: u8 = 3;
const SACK: u8 = 4;
const PROBE: u8 = 5;
const RESET: u8 = 6;
const RENEW: u8 = 7;

/// The last byte of the data ends the stream.
const END: u8 = 1 << 7;
const PROBE_IS_PROMPT: u8 = 1 << 7;
const PROMPT: u8 = 1 << 6;
const COPY: u8 = 0xf;

const REASONS: [Reason; 6] = [
    Reason::Aborted,
    Reason::Refused,
    Reason::Unreachable,
    Reason::TimedOut,
    Reason::Unknown,
    Reason::Full,
];

fn reason(code: u32) -> Option<Reason> {
    REASONS.get(code as usize).copied()
}

impl Srp {
    /// Reads the PDU in the payload of a UDP datagram, and the length of its header; `None` if it is
    /// none of this version.
    pub(crate) fn parse(udp: Udp, bytes: &[u8]) -> Option<(Srp, usize)> {
        let Udp { source_port, destination_port } = udp;
        if !Srp::has_port(source_port, destination_port) {
            return None;
        }
        let (channel, bytes) =
            bytes.split_at_checked(Srp::channel(source_port, destination_port))?;
        let (&[first, by_type, high, low, a, b, c, d], rest) = bytes.split_first_chunk()?;
        if first >> 4 != Srp::VERSION || channel.iter().any(|&byte| byte != 0) {
            return None;
        }
        let (number, token) = (u16::from_be_bytes([high, low]), u32::from_be_bytes([a, b, c, d]));
        let pdu = match first & 0xf {
            OPEN | OPENED if by_type == 0 && rest.len() == 6 => {
                let (window, streams) = (u32_at(rest, 0), u16_at(rest, 4));
                let limits = Limits { segments: number, window, streams };
                match first & 0xf {
                    OPEN => Pdu::Open(limits),
                    _ => Pdu::Opened(limits),
                }
            }
            RENEW if by_type == 0 && rest.len() == 10 => {
                let (window, streams) = (u32_at(rest, 0), u16_at(rest, 4));
                let limits = Limits { segments: number, window, streams };
                Pdu::Renew { first: u32_at(rest, 6), limits }
            }
            DATA => Pdu::Data(Segment::parse(by_type, number, rest)?),
            SACK => Pdu::Sack(Sack::parse(by_type, number, rest)?),
            PROBE if by_type == 0 && number != 0 && rest.is_empty() => Pdu::Probe { number },
            RESET if number == 0 && rest.is_empty() => {
                Pdu::Reset { reason: reason(by_type.into())? }
            }
            _ => return None,
        };
        let srp = Srp { source_port, destination_port, token, pdu };
        Some((srp, srp.len()))
    }

    /// Reads a PDU that something else than UDP carries, and the length of its header; data follows. `None` if
    /// it is none of this version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<(Srp, usize)> {
        Srp::parse(Udp { source_port: Srp::PORT, destination_port: Srp::PORT }, bytes)
    }

    /// Writes the PDU without the header of UDP; data is to follow.
    ///
    /// # Errors
    /// If a field has no place in the format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.emit_pdu(out)
    }

    /// Writes the datagram: the header of UDP, that of the PDU, and the data.
    pub(crate) fn emit(
        &self,
        (source, destination): (IpAddr, IpAddr),
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let header = Header::Srp;
        let (start, len) = (out.len(), Udp::HEADER + self.len() + tail.len());
        let Ok(field) = u16::try_from(len) else {
            let most = usize::from(u16::MAX);
            return Err(EmitError::TooLong { header, found: len, most });
        };
        if !Srp::has_port(self.source_port, self.destination_port) {
            let found = self.destination_port;
            return Err(EmitError::Port { header, found, expected: Srp::PORT });
        }
        if tail.len() > 0 && !self.pdu.carries_data() {
            return Err(EmitError::TooLong { header, found: tail.len(), most: 0 });
        }
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&field.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.resize(out.len() + Srp::channel(self.source_port, self.destination_port), 0);
        self.emit_pdu(out)?;
        let sum = Sum::pseudo(source, destination, protocol::UDP, len);
        if tail.finish(sum, start, Udp::CHECKSUM, out) == 0 {
            // That would mean that there is none.
            ip::put_u16(&mut out[start..], Udp::CHECKSUM, 0xffff);
        }
        Ok(())
    }

    fn emit_pdu(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let (kind, by_type, number) = match &self.pdu {
            Pdu::Open(limits) => (OPEN, 0, limits.segments),
            Pdu::Opened(limits) => (OPENED, 0, limits.segments),
            Pdu::Renew { limits, .. } => (RENEW, 0, limits.segments),
            Pdu::Data(segment) => (DATA, segment.first_byte()?, segment.stream),
            Pdu::Sack(sack) => (SACK, sack.checked_length()?, sack.probe),
            Pdu::Probe { number: 0 } => return Err(field("probe number but 0", 0, 0)),
            Pdu::Probe { number } => (PROBE, 0, *number),
            Pdu::Reset { reason } => (RESET, *reason as u8, 0),
        };
        out.extend_from_slice(&[Srp::VERSION << 4 | kind, by_type]);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&self.token.to_be_bytes());
        match &self.pdu {
            Pdu::Open(limits) | Pdu::Opened(limits) => limits.emit(out),
            Pdu::Renew { first, limits } => {
                limits.emit(out);
                out.extend_from_slice(&first.to_be_bytes());
            }
            Pdu::Data(segment) => segment.emit(out)?,
            Pdu::Sack(sack) => sack.emit(out),
            Pdu::Probe { .. } | Pdu::Reset { .. } => {}
        }
        Ok(())
    }
}

impl Limits {
    /// Writes what is not in the common header.
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&self.streams.to_be_bytes());
    }
}

fn field(field: &'static str, found: u32, most: u32) -> EmitError {
    EmitError::Field { header: Header::Srp, field, found, most }
}

impl Segment {
    fn parse(by_type: u8, stream: u16, rest: &[u8]) -> Option<Segment> {
        let (fixed, rest) = rest.split_first_chunk::<8>()?;
        let (number, word) = (u32_at(fixed, 0), u32_at(fixed, 4));
        let (end, copy) = (by_type & END != 0, by_type & COPY);
        let chunk = match (by_type >> 4 & 7, word) {
            (0, offset) => Chunk::Data { offset, end },
            (1, version) => Chunk::Open(Ends::parse(version, rest)?),
            (2, 0) => Chunk::Accept,
            (3, limit) => Chunk::Credit { limit },
            (4, code) => Chunk::Reset { reason: reason(code)? },
            (5, 0) => Chunk::Finished,
            (kind @ (6 | 7), received) => {
                Chunk::Continue(Continue::parse((received, end), rest, kind == 7)?)
            }
            _ => return None,
        };
        let is_whole = match chunk {
            Chunk::Data { .. } => true,
            Chunk::Open(ends) => !end && rest.len() == ends.len(),
            // The end is its own, and its length is checked.
            Chunk::Continue(_) => true,
            _ => !end && rest.is_empty(),
        };
        (copy > 0 && is_whole).then_some(Segment { number, copy, stream, chunk })
    }

    fn first_byte(&self) -> Result<u8, EmitError> {
        if !(1..=Segment::MOST_COPIES).contains(&self.copy) {
            let most = Segment::MOST_COPIES.into();
            return Err(field("copy from 1 on and", self.copy.into(), most));
        }
        let kind = match self.chunk {
            Chunk::Data { end: false, .. } => 0,
            Chunk::Data { end: true, .. } => END,
            Chunk::Open(_) => 1 << 4,
            Chunk::Accept => 2 << 4,
            Chunk::Credit { .. } => 3 << 4,
            Chunk::Reset { .. } => 4 << 4,
            Chunk::Finished => 5 << 4,
            Chunk::Continue(Continue { is_whole, ends, .. }) => {
                let kind = if ends.is_some() { 7 } else { 6 };
                kind << 4 | if is_whole { END } else { 0 }
            }
        };
        Ok(kind | self.copy)
    }

    fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let word = match self.chunk {
            Chunk::Data { offset, .. } => offset,
            Chunk::Open(ends) => {
                if ends.client.is_ipv4() {
                    4
                } else {
                    6
                }
            }
            Chunk::Continue(it) => it.received,
            Chunk::Credit { limit } => limit,
            Chunk::Reset { reason } => reason as u32,
            Chunk::Accept | Chunk::Finished => 0,
        };
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(&word.to_be_bytes());
        match self.chunk {
            Chunk::Open(ends) => ends.emit(out),
            Chunk::Continue(Continue { limit, ends, .. }) => {
                out.extend_from_slice(&limit.to_be_bytes());
                ends.map_or(Ok(()), |ends| ends.emit(out))
            }
            _ => Ok(()),
        }
    }
}

impl Continue {
    fn parse((received, is_whole): (u32, bool), rest: &[u8], has_ends: bool) -> Option<Continue> {
        let (limit, rest) = rest.split_first_chunk()?;
        let version = if rest.len() == 12 { 4 } else { 6 };
        let ends = match has_ends {
            true => Some(Ends::parse(version, rest)?),
            false if rest.is_empty() => None,
            false => return None,
        };
        Some(Continue { received, limit: u32::from_be_bytes(*limit), is_whole, ends })
    }
}

impl Ends {
    fn parse(version: u32, rest: &[u8]) -> Option<Ends> {
        let (client, server, ports) = match version {
            4 => {
                let (client, rest) = rest.split_first_chunk::<4>()?;
                let (server, ports) = rest.split_first_chunk::<4>()?;
                (IpAddr::from(*client), IpAddr::from(*server), ports)
            }
            6 => {
                let (client, rest) = rest.split_first_chunk::<16>()?;
                let (server, ports) = rest.split_first_chunk::<16>()?;
                (IpAddr::from(*client), IpAddr::from(*server), ports)
            }
            _ => return None,
        };
        let &[a, b, c, d] = ports else { return None };
        let [client_port, server_port] = [[a, b], [c, d]].map(u16::from_be_bytes);
        Some(Ends { client, server, client_port, server_port })
    }

    fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        match (self.client, self.server) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                out.extend_from_slice(&client.octets());
                out.extend_from_slice(&server.octets());
            }
            (IpAddr::V6(client), IpAddr::V6(server)) => {
                out.extend_from_slice(&client.octets());
                out.extend_from_slice(&server.octets());
            }
            _ => return Err(EmitError::Versions { header: Header::Srp }),
        }
        out.extend_from_slice(&self.client_port.to_be_bytes());
        out.extend_from_slice(&self.server_port.to_be_bytes());
        Ok(())
    }
}

impl Sack {
    fn parse(length: u8, probe: u16, rest: &[u8]) -> Option<Sack> {
        let (fixed, bits) = rest.split_first_chunk::<{ Srp::SACK - Srp::COMMON }>()?;
        let flags = fixed[14];
        let is_valid = usize::from(length) == bits.len()
            && bits.len() <= Sack::MOST_BYTES
            && flags & !(PROBE_IS_PROMPT | PROMPT | COPY) == 0
            && fixed[15] == 0;
        if !is_valid {
            return None;
        }
        let mut bitmap = [0; Sack::MOST_BYTES / 4];
        for (word, bytes) in bitmap.iter_mut().zip(bits.chunks(4)) {
            let mut all = [0; 4];
            all[..bytes.len()].copy_from_slice(bytes);
            *word = u32::from_le_bytes(all);
        }
        Some(Sack {
            cumulative: u32_at(fixed, 0),
            latest: u32_at(fixed, 4),
            span: u16_at(fixed, 8),
            start: u16_at(fixed, 10),
            stream: u16_at(fixed, 12),
            limit: u32_at(fixed, 16),
            probe,
            copy: flags & COPY,
            length,
            is_prompt: flags & PROMPT != 0,
            is_probe_prompt: flags & PROBE_IS_PROMPT != 0,
            bitmap,
        })
    }

    fn checked_length(&self) -> Result<u8, EmitError> {
        let most = Sack::MOST_BYTES as u32;
        let beyond = self.bitmap_bytes().skip(self.length.into()).any(|byte| byte != 0);
        if u32::from(self.length) > most || beyond {
            return Err(field("bitmap length", self.length.into(), most));
        }
        if self.copy > COPY {
            return Err(field("copy", self.copy.into(), COPY.into()));
        }
        Ok(self.length)
    }

    fn bitmap_bytes(&self) -> impl Iterator<Item = u8> {
        self.bitmap.iter().flat_map(|word| word.to_le_bytes())
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let mut flags = self.copy;
        flags |= if self.is_prompt { PROMPT } else { 0 };
        flags |= if self.is_probe_prompt { PROBE_IS_PROMPT } else { 0 };
        out.extend_from_slice(&self.cumulative.to_be_bytes());
        out.extend_from_slice(&self.latest.to_be_bytes());
        for field in [self.span, self.start, self.stream] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(&[flags, 0]);
        out.extend_from_slice(&self.limit.to_be_bytes());
        out.extend(self.bitmap_bytes().take(self.length.into()));
    }
}
