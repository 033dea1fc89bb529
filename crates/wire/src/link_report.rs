//! What the driver of a link, or its agent, reports to a program that notifies sources of corruption.

use crate::{Packet, ParseError};
use thiserror::Error;

/// A report about a link, from the node at its end: a datagram on a local socket.
///
/// ```text
///  0                   1                   2                   3
/// |   version 1   |     kind      |               0               |
/// kind 0: the first octets of the packet of a frame that arrived damaged, from its IP header on
/// kind 1: the frames received intact, 8 octets | the frames received damaged, 8 octets
/// ```
///
/// Numbers are in network byte order. A damaged frame is reported with all headers of its packet, up to the end
/// of TCP's, if they are intact, or with none; what follows the headers is not looked at. Counts are cumulative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkReport {
    /// A frame has arrived damaged. If it had a TCP segment whose headers are intact: these, and the length of its
    /// payload.
    Damaged(Option<Box<Packet>>),
    /// The frames that have arrived so far.
    Counters(FrameCounters),
}

/// Frames that have arrived by a link since it or its agent was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounters {
    /// Intact ones.
    pub received: u64,
    /// Those whose checksum was wrong.
    pub damaged: u64,
}

/// Why a datagram is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkReportError {
    /// It is of another version, or empty.
    #[error("expected a link report of version 1, found version {0}")]
    Version(u8),
    /// It is of another kind.
    #[error("expected kind 0 (frame) or 1 (counters), found {0}")]
    Kind(u8),
    /// It has another length.
    #[error("expected {expected} octets, found {found}")]
    Length {
        /// As many as there must be, or at least.
        expected: usize,
        /// As many as there are.
        found: usize,
    },
    /// It has headers that cannot be intact.
    #[error("in the damaged frame: {0}")]
    Headers(#[from] ParseError),
}

impl LinkReport {
    /// Octets of a report of a damaged frame that hold the longest headers: these, IP's and TCP's.
    pub const MOST_USED: usize = LinkReport::HEADER + 100 + 60;

    const VERSION: u8 = 1;
    const HEADER: usize = 4;
    const DAMAGED: u8 = 0;
    const COUNTERS: u8 = 1;

    /// Reads a datagram.
    ///
    /// # Errors
    /// If it is no report of this version.
    pub fn parse(bytes: &[u8]) -> Result<LinkReport, LinkReportError> {
        let version = bytes.first().copied().unwrap_or(0);
        if version != LinkReport::VERSION {
            return Err(LinkReportError::Version(version));
        }
        let length = |expected| LinkReportError::Length { expected, found: bytes.len() };
        let Some((header, rest)) = bytes.split_at_checked(LinkReport::HEADER) else {
            return Err(length(LinkReport::HEADER));
        };
        match header[1] {
            LinkReport::DAMAGED if rest.is_empty() => Ok(LinkReport::Damaged(None)),
            LinkReport::DAMAGED => match Packet::parse_headers(rest) {
                Ok(packet) => Ok(LinkReport::Damaged(Some(Box::new(packet)))),
                // Fragments have no whole segment.
                Err(ParseError::Protocol { .. } | ParseError::Fragment { .. }) => {
                    Ok(LinkReport::Damaged(None))
                }
                Err(error) => Err(error.into()),
            },
            LinkReport::COUNTERS => match <[u8; 16]>::try_from(rest) {
                Ok(counts) => {
                    let both = u128::from_be_bytes(counts);
                    let (received, damaged) = ((both >> 64) as u64, both as u64);
                    Ok(LinkReport::Counters(FrameCounters { received, damaged }))
                }
                Err(_) => Err(length(LinkReport::HEADER + 16)),
            },
            kind => Err(LinkReportError::Kind(kind)),
        }
    }

    /// Writes the report of a damaged frame with this packet into `out`, which is emptied before: its first octets,
    /// which hold all headers.
    pub fn write_damaged(packet: &[u8], out: &mut Vec<u8>) {
        let most = LinkReport::MOST_USED - LinkReport::HEADER;
        out.clear();
        out.extend_from_slice(&[LinkReport::VERSION, LinkReport::DAMAGED, 0, 0]);
        out.extend_from_slice(&packet[..packet.len().min(most)]);
    }
}

impl FrameCounters {
    /// The report.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..2].copy_from_slice(&[LinkReport::VERSION, LinkReport::COUNTERS]);
        bytes[4..12].copy_from_slice(&self.received.to_be_bytes());
        bytes[12..].copy_from_slice(&self.damaged.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_documented_layout() {
        let counters = FrameCounters { received: 0x0102, damaged: 3 };
        let bytes = counters.to_bytes();
        assert_eq!(bytes, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(LinkReport::parse(&bytes), Ok(LinkReport::Counters(counters)));
        assert_eq!(
            LinkReport::parse(&bytes[..19]),
            Err(LinkReportError::Length { expected: 20, found: 19 })
        );
    }

    #[test]
    fn a_damaged_frame_of_which_nothing_is_intact_is_one_all_the_same() {
        assert_eq!(LinkReport::parse(&[1, 0, 0, 0]), Ok(LinkReport::Damaged(None)));
    }

    #[test]
    fn what_is_of_another_version_or_kind_is_refused() {
        assert_eq!(LinkReport::parse(&[]), Err(LinkReportError::Version(0)));
        assert_eq!(LinkReport::parse(&[2, 0, 0, 0]), Err(LinkReportError::Version(2)));
        assert_eq!(LinkReport::parse(&[1, 2, 0, 0]), Err(LinkReportError::Kind(2)));
        assert_eq!(
            LinkReport::parse(&[1, 0]),
            Err(LinkReportError::Length { expected: 4, found: 2 })
        );
    }
}
