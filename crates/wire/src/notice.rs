//! What a node tells a source about a corrupted packet.

use crate::{CopyId, Segment, SeqNumber};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// A report that one copy of a segment arrived corrupted (`bbn8333` §2.1).
///
/// It identifies the connection as seen from the corrupted packet, the octets it carried and the
/// copy that carried them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CorruptionNotice {
    /// The corrupted packet's source, to whom the notice goes.
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
    /// Which copy it was.
    pub copy: CopyId,
}

impl CorruptionNotice {
    /// The notice about `segment` with `payload` bytes on its way from `source` to `destination`.
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
        }
    }
}
