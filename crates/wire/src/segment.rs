//! TCP segments (RFC 9293 §3.1).

use crate::checksum::{Sum, Tail};
use crate::ip::{protocol, u16_at, u32_at};
use crate::{EmitError, Header, Options, ParseError, SeqNumber, UnparsedOptions};
use bitflags::bitflags;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

bitflags! {
    /// The control bits of a TCP header (RFC 9293 §3.1).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub struct Flags: u16 {
        /// No more data from the sender.
        const FIN = 1;
        /// Synchronise sequence numbers.
        const SYN = 1 << 1;
        /// Reset the connection.
        const RST = 1 << 2;
        /// Push.
        const PSH = 1 << 3;
        /// The acknowledgment field is significant.
        const ACK = 1 << 4;
        /// The urgent pointer is significant.
        const URG = 1 << 5;
        /// Congestion was experienced (RFC 3168 §6.1).
        const ECE = 1 << 6;
        /// The congestion window was reduced (RFC 3168 §6.1).
        const CWR = 1 << 7;
        /// Accurate ECN (RFC 9768 §2.1), once the nonce sum.
        const AE = 1 << 8;
        /// The first missing segment was lost to corruption (`obanaik2003` §4.2.3): the first of the three
        /// reserved bits, not assigned to it.
        const ELN = 1 << 9;
        /// The three reserved bits.
        const RESERVED = 0b111 << 9;
    }
}

/// The number of one transmitted copy of a range of sequence numbers. It distinguishes a notice
/// about a packet from a notice about its retransmission.
///
/// In the lab it is a field of zero bytes; real packets do not have it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CopyId(pub u32);

impl CopyId {
    /// No copy in particular: a segment without data, or one that was a real packet.
    pub const NONE: CopyId = CopyId(0);
}

/// Both ports of a segment, to be compared at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports(u32);

impl Ports {
    /// Those of what is no segment.
    pub const NONE: Ports = Ports::new(0, 0);

    /// The ports of a segment from one to another.
    #[must_use]
    #[inline]
    pub const fn new(source: u16, destination: u16) -> Ports {
        Ports(source as u32 | (destination as u32) << 16)
    }

    /// The sender's port.
    #[must_use]
    #[inline]
    pub const fn source(self) -> u16 {
        self.0 as u16
    }

    /// The receiver's port.
    #[must_use]
    #[inline]
    pub const fn destination(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// A TCP header. Its payload travels beside it in the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The sequence number of the first octet (of the SYN, if there is one).
    pub seq: SeqNumber,
    /// The next octet expected, if [`Flags::ACK`] is set.
    pub ack: SeqNumber,
    /// The control bits.
    pub flags: Flags,
    /// The window field as transmitted, unscaled.
    pub window: u16,
    /// The urgent pointer.
    pub urgent: u16,
    /// The options.
    pub options: Options,
    /// Which transmitted copy this is.
    pub copy: CopyId,
}

impl Segment {
    /// Bytes of the header without options.
    pub const HEADER: usize = 20;

    /// Bytes of the header with its options.
    #[must_use]
    #[inline]
    pub fn header_len(&self) -> usize {
        Segment::HEADER + self.options.len()
    }

    /// Octets of sequence space that the control bits occupy.
    #[must_use]
    pub fn control_len(&self) -> u32 {
        u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN))
    }
}

impl Segment {
    /// The place of the checksum in the header.
    pub(crate) const CHECKSUM: usize = 16;

    /// Reads the segment that `bytes` are, and the length of its header. Its checksum is verified
    /// unless it is `trusted`.
    pub(crate) fn parse(
        bytes: &[u8],
        (source, destination): (IpAddr, IpAddr),
        unparsed: &mut UnparsedOptions,
        trusted: bool,
    ) -> Result<(Segment, usize), ParseError> {
        let found = bytes.len();
        let truncated = |expected| ParseError::Truncated { header: Header::Tcp, expected, found };
        if found < Segment::HEADER {
            return Err(truncated(Segment::HEADER));
        }
        let header_len = usize::from(bytes[12] >> 4) * 4;
        if header_len < Segment::HEADER {
            return Err(ParseError::Field {
                header: Header::Tcp,
                field: "data offset",
                found: header_len as u32,
                expected: "of 20 bytes or more",
            });
        }
        if found < header_len {
            return Err(truncated(header_len));
        }
        if !trusted {
            let mut sum = Sum::pseudo(source, destination, protocol::TCP, found);
            sum.add(bytes);
            sum.verify(Header::Tcp, u16_at(bytes, Segment::CHECKSUM))?;
        }
        let mut segment = Segment {
            source_port: u16_at(bytes, 0),
            destination_port: u16_at(bytes, 2),
            seq: SeqNumber(u32_at(bytes, 4)),
            ack: SeqNumber(u32_at(bytes, 8)),
            flags: Flags::from_bits_truncate(u16_at(bytes, 12)),
            window: u16_at(bytes, 14),
            urgent: u16_at(bytes, 18),
            ..Segment::default()
        };
        let options = &bytes[Segment::HEADER..header_len];
        crate::options::parse(options, &mut segment.options, unparsed)?;
        Ok((segment, header_len))
    }

    /// Writes the segment.
    pub(crate) fn emit(
        &self,
        (source, destination): (IpAddr, IpAddr),
        unparsed: &UnparsedOptions,
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let start = out.len();
        let header_len = Segment::HEADER + self.options.len_with(unparsed.tcp_options().len());
        let offset_and_flags = (header_len as u16 / 4) << 12 | self.flags.bits();
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.seq.0.to_be_bytes());
        out.extend_from_slice(&self.ack.0.to_be_bytes());
        out.extend_from_slice(&offset_and_flags.to_be_bytes());
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.urgent.to_be_bytes());
        self.options.emit(unparsed.tcp_options(), out)?;
        let len = out.len() - start + tail.len();
        let sum = Sum::pseudo(source, destination, protocol::TCP, len);
        tail.finish(sum, start, Segment::CHECKSUM, out);
        Ok(())
    }
}

// Segments are copied at every hop of the code's hot path.
const _: () = assert!(size_of::<Segment>() <= 96);
