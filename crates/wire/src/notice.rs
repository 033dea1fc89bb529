//! The ICMP notice of a corrupted packet, from a node to the packet's source.

use crate::icmp::emit_address;
use crate::ip::{array, u16_at, u32_at};
use crate::{CopyId, EmitError, Segment, SeqNumber, ipv4, ipv6};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// A report that one copy of a segment arrived corrupted (`bbn8333` §2.1).
///
/// It identifies the connection as seen from the corrupted packet, the octets it carried and the
/// copy that carried them. On the wire it is an ICMP message of a type for experiments:
///
/// ```text
///  0                   1                   2                   3
/// |  type 253/100 |  code 0 or 3  |           checksum            |
/// |               copy, or with code 3 the timestamp              |
/// |               source address, then destination address        |
/// |          source port          |       destination port        |
/// |                        sequence number                        |
/// |                octets of sequence space it carried            |
/// |                            padding                            |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CorruptionNotice {
    /// The corrupted packet's source, to which the notice goes.
    pub source: IpAddr,
    /// The corrupted packet's destination.
    pub destination: IpAddr,
    /// The corrupted segment's source port.
    pub source_port: u16,
    /// The corrupted segment's destination port.
    pub destination_port: u16,
    /// The first octet it carried.
    pub seq: SeqNumber,
    /// Octets of sequence space it carried; 0 for a pure acknowledgment.
    pub len: u32,
    /// Which copy it was; [`CopyId::NONE`] if the reporter does not know.
    pub copy: CopyId,
    /// In place of that, the timestamp that the copy carried (TSval, RFC 7323 §3.2). Real segments have it, and who has
    /// not seen the segment has to guess it.
    pub timestamp: Option<u32>,
}

impl CorruptionNotice {
    /// Bytes of the smallest packet with a notice in IPv4: its header, ICMP's, and the report.
    pub const SMALLEST: u16 = 20 + 8 + 20;
    /// The same in IPv6.
    pub const SMALLEST_V6: u16 = 40 + 8 + 44;

    /// The notice about `segment` with `payload` bytes from `source` to `destination`.
    #[must_use]
    pub fn about(
        source: IpAddr,
        destination: IpAddr,
        segment: &Segment,
        payload: u32,
    ) -> CorruptionNotice {
        CorruptionNotice {
            source,
            destination,
            source_port: segment.source_port,
            destination_port: segment.destination_port,
            seq: segment.seq,
            len: payload + segment.control_len(),
            copy: segment.copy,
            timestamp: None,
        }
    }

    /// The same notice, which names the copy by the timestamp of `segment` if that has one.
    #[must_use]
    pub fn by_timestamp(self, segment: &Segment) -> CorruptionNotice {
        match segment.options.timestamps {
            Some(stamps) => {
                CorruptionNotice { copy: CopyId::NONE, timestamp: Some(stamps.value), ..self }
            }
            None => self,
        }
    }

    /// Bytes behind the ICMP header, without padding.
    pub(crate) fn bytes(&self) -> usize {
        if self.source.is_ipv6() { 44 } else { 20 }
    }

    /// Reads what follows type, code and checksum, if it is long enough.
    pub(crate) fn parse(bytes: &[u8], v6: bool) -> Option<CorruptionNotice> {
        let width = if v6 { 16 } else { 4 };
        let address = if v6 { ipv6::address } else { ipv4::address };
        let ports = 4 + 2 * width;
        if bytes.len() < ports + 12 {
            return None;
        }
        Some(CorruptionNotice {
            source: address(bytes, 4),
            destination: address(bytes, 4 + width),
            source_port: u16_at(bytes, ports),
            destination_port: u16_at(bytes, ports + 2),
            seq: SeqNumber(u32_at(bytes, ports + 4)),
            len: u32_at(bytes, ports + 8),
            copy: CopyId(u32::from_be_bytes(array(bytes, 0))),
            timestamp: None,
        })
    }

    /// Writes what follows the copy.
    pub(crate) fn emit(&self, v6: bool, out: &mut Vec<u8>) -> Result<(), EmitError> {
        emit_address(self.source, v6, out)?;
        emit_address(self.destination, v6, out)?;
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.seq.0.to_be_bytes());
        out.extend_from_slice(&self.len.to_be_bytes());
        Ok(())
    }
}
