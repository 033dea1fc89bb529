//! The IP option by which nodes report corruption in the packets of a flow (`bbn8333` §2.1.3).
//!
//! It has a type for experiments, in IPv4's header or in IPv6's destination options header.
//!
//! ```text
//! |  type 158 or 0x1e (IPv6)  |  length  |  kind: 1 marked, 2 reports  |  reports ...
//! a report:  | sequence number, 4 bytes | copy, 4 bytes | octets, 2 bytes |
//! ```
//!
//! Kinds from 128 on are a [`crate::Place`]'s. A malformed option is ignored.

use crate::ip::{protocol, u16_at, u32_at};
use crate::{CopyId, SeqNumber, UnparsedOptions};

/// RFC 4727 §2.1: copied, experimental; unknown options are skipped.
const V4_TYPE: u8 = 158;
/// RFC 4727 §3.2: skipped if unknown, unchanged en route.
const V6_TYPE: u8 = 0x1e;
const MARKED: u8 = 1;
const REPORTS: u8 = 2;
/// Bytes of a report.
const REPORT: usize = 10;
/// Bytes of the longest option, behind its length.
const MOST: usize = 1 + CorruptedCopy::MOST * REPORT;

/// A copy of one of the flow's segments that arrived corrupted at some node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CorruptedCopy {
    /// The first octet it carried.
    pub seq: SeqNumber,
    /// Which copy it was.
    pub copy: CopyId,
    /// Octets of sequence space it carried.
    pub len: u16,
}

impl CorruptedCopy {
    /// The number of reports that fit into one packet.
    pub const MOST: usize = 3;

    fn read(bytes: &[u8; REPORT]) -> CorruptedCopy {
        CorruptedCopy {
            seq: SeqNumber(u32_at(bytes, 0)),
            copy: CopyId(u32_at(bytes, 4)),
            len: u16_at(bytes, 8),
        }
    }

    fn write(&self, out: &mut [u8]) {
        out[..4].copy_from_slice(&self.seq.0.to_be_bytes());
        out[4..8].copy_from_slice(&self.copy.0.to_be_bytes());
        out[8..REPORT].copy_from_slice(&self.len.to_be_bytes());
    }
}

impl UnparsedOptions {
    /// Whether the packet arrived corrupted at some node: its payload is invalid, its headers are
    /// as that node has read them.
    #[must_use]
    pub fn is_marked_corrupted(&self) -> bool {
        self.note() == Some(&[MARKED])
    }

    /// Marks the packet as corrupted, over IPv6 or IPv4. False, without effect, if there is no room
    /// beside other options.
    #[must_use]
    pub fn mark_corrupted(&mut self, v6: bool) -> bool {
        self.write_note(v6, &[MARKED])
    }

    /// The corrupted copies of the packet's own flow that nodes on the path have reported.
    pub fn corrupted_copies(&self) -> impl Iterator<Item = CorruptedCopy> {
        let reports = match self.note() {
            Some([REPORTS, reports @ ..]) if reports.len().is_multiple_of(REPORT) => reports,
            _ => &[],
        };
        reports.as_chunks().0.iter().map(CorruptedCopy::read)
    }

    /// Adds a report, over IPv6 or IPv4. False, without effect, if there is no room for it.
    #[must_use]
    pub fn add_corrupted_copy(&mut self, v6: bool, copy: CorruptedCopy) -> bool {
        let mut data = [REPORTS; MOST];
        let mut end = 1;
        for report in self.corrupted_copies().chain([copy]) {
            let Some(room) = data.get_mut(end..end + REPORT) else { return false };
            report.write(room);
            end += REPORT;
        }
        !self.is_marked_corrupted() && self.write_note(v6, &data[..end])
    }

    /// The data of our option, which comes first, its kind included.
    fn note(&self) -> Option<&[u8]> {
        let bytes = self.ip();
        let (start, end) = match *bytes {
            [V4_TYPE, len, ..] if self.first == 0 => (2, usize::from(len)),
            [_, _, V6_TYPE, len, ..] if self.first == protocol::DESTINATION_OPTIONS => {
                (4, 4 + usize::from(len))
            }
            _ => return None,
        };
        bytes.get(start..end).filter(|data| matches!(data, [MARKED | REPORTS, ..]))
    }

    /// Writes our option, if there is no other.
    fn write_note(&mut self, v6: bool, data: &[u8]) -> bool {
        let alone = match self.note() {
            Some(before) => {
                let mut written = UnparsedOptions::NONE;
                written.put_note(v6, before) && written.ip() == self.ip()
            }
            None => self.ip().is_empty(),
        };
        alone && !self.is_zero_size() && self.put_note(v6, data)
    }

    fn put_note(&mut self, v6: bool, data: &[u8]) -> bool {
        let mut bytes = Vec::with_capacity(UnparsedOptions::MOST_IP);
        let len = data.len() as u8;
        if v6 {
            let words = (4 + data.len()).div_ceil(8);
            bytes.extend_from_slice(&[protocol::TCP, words as u8 - 1, V6_TYPE, len]);
            bytes.extend_from_slice(data);
            // RFC 8200 §4.2: Pad1, or PadN.
            match 8 * words - bytes.len() {
                0 => {}
                1 => bytes.push(0),
                more => bytes.extend_from_slice(&[1, more as u8 - 2]),
            }
            bytes.resize(8 * words, 0);
            self.set_ipv6_extensions(protocol::DESTINATION_OPTIONS, &bytes).is_ok()
        } else {
            bytes.extend_from_slice(&[V4_TYPE, 2 + len]);
            bytes.extend_from_slice(data);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            self.set_ipv4_options(&bytes).is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(n: u32) -> CorruptedCopy {
        CorruptedCopy { seq: SeqNumber(n), copy: CopyId(n + 1), len: 536 }
    }

    #[test]
    fn a_packet_carries_three_reports_and_no_more() {
        for v6 in [false, true] {
            let mut unparsed = UnparsedOptions::NONE;
            for n in 1..=3 {
                assert!(unparsed.add_corrupted_copy(v6, copy(n)));
                let reports: Vec<_> = unparsed.corrupted_copies().collect();
                assert_eq!(reports, (1..=n).map(copy).collect::<Vec<_>>());
            }
            let full = unparsed;
            assert!(!unparsed.add_corrupted_copy(v6, copy(4)));
            assert_eq!((unparsed, unparsed.is_marked_corrupted()), (full, false));
            assert_eq!(unparsed.ip().len(), if v6 { 40 } else { 36 });
        }
    }

    #[test]
    fn a_mark_is_a_mark_and_no_report() {
        for (v6, bytes) in [(false, 4), (true, 8)] {
            let mut unparsed = UnparsedOptions::NONE;
            assert!(!unparsed.is_marked_corrupted());
            assert!(unparsed.mark_corrupted(v6) && unparsed.is_marked_corrupted());
            assert_eq!((unparsed.corrupted_copies().count(), unparsed.ip().len()), (0, bytes));
            assert!(!unparsed.add_corrupted_copy(v6, copy(1)) && unparsed.is_marked_corrupted());
        }
    }

    #[test]
    fn the_layout_is_that_of_the_standards() {
        let mut unparsed = UnparsedOptions::NONE;
        assert!(unparsed.add_corrupted_copy(false, copy(0x01020304)));
        assert_eq!(unparsed.ip(), [158, 13, 2, 1, 2, 3, 4, 1, 2, 3, 5, 2, 24, 0, 0, 0]);
        let mut unparsed = UnparsedOptions::NONE;
        assert!(unparsed.mark_corrupted(true));
        assert_eq!(
            (unparsed.first_extension(), unparsed.ip()),
            (60, &[6, 0, 30, 1, 1, 1, 1, 0][..])
        );
    }

    #[test]
    fn other_options_stay_as_they_are() {
        let mut unparsed = UnparsedOptions::NONE;
        unparsed.set_ipv4_options(&[148, 4, 0, 0]).unwrap();
        assert!(!unparsed.mark_corrupted(false) && !unparsed.add_corrupted_copy(false, copy(1)));
        assert_eq!(unparsed.ip(), [148, 4, 0, 0]);
        // Ours in front of another.
        unparsed.set_ipv4_options(&[158, 3, 1, 1, 148, 4, 0, 0]).unwrap();
        assert!(unparsed.is_marked_corrupted() && !unparsed.mark_corrupted(false));
    }

    #[test]
    fn what_is_malformed_says_nothing() {
        let options = [[158, 2, 0, 0], [158, 4, 1, 1], [158, 4, 2, 0], [158, 3, 3, 0]];
        for options in options {
            let mut unparsed = UnparsedOptions::NONE;
            unparsed.set_ipv4_options(&options).unwrap();
            assert!(!unparsed.is_marked_corrupted() && unparsed.corrupted_copies().count() == 0);
        }
        for chain in
            [[6, 0, 30, 5, 1, 0, 0, 0], [6, 0, 30, 0, 1, 0, 0, 0], [6, 0, 1, 4, 30, 1, 1, 0]]
        {
            let mut unparsed = UnparsedOptions::NONE;
            unparsed.set_ipv6_extensions(60, &chain).unwrap();
            assert!(!unparsed.is_marked_corrupted() && unparsed.corrupted_copies().count() == 0);
        }
    }
}
