//! The TCP option by which a receiver echoes a corruption report to the sender.

use crate::ip::{u16_at, u32_at};
use crate::{CopyId, SeqNumber};
use serde::{Deserialize, Serialize};

/// TCP options for experiments (RFC 4727 §3.1, RFC 6994).
const KIND: u8 = 253;
/// The experiment identifier (RFC 6994 §3.1); not registered.
const EXPERIMENT: u16 = 0xfe7e;
/// The only defined bit of the flags.
const ALONE: u8 = 1;

/// The echo of a report that one copy of a segment arrived corrupted at some node (forward
/// notification, `bbn8333` §2.1.3). The receiver of the data sends it to the sender.
///
/// ```text
///  0                   1                   2                   3
/// |   kind 253    |   length 15   |        experiment 0xfe7e      |
/// |                        sequence number                        |
/// |                             copy                              |
/// |    octets that it carried     |  flags: 0, or 1 for `alone`   |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CorruptionEcho {
    /// The first octet that the copy carried.
    pub seq: SeqNumber,
    /// Which copy it was; [`CopyId::NONE`] if that is unknown.
    pub copy: CopyId,
    /// Octets of sequence space that it carried.
    pub len: u16,
    /// This acknowledgment was sent because of the report and for no other reason: no segment has
    /// left the network.
    pub alone: bool,
}

impl CorruptionEcho {
    /// Bytes of the option, without padding.
    pub(crate) const LEN: usize = 15;

    /// Parses an option; `None` if it is another, which is kept unparsed.
    pub(crate) fn parse(option: &[u8]) -> Option<CorruptionEcho> {
        if option.len() != CorruptionEcho::LEN
            || option[0] != KIND
            || u16_at(option, 2) != EXPERIMENT
            || option[14] & !ALONE != 0
        {
            return None;
        }
        Some(CorruptionEcho {
            seq: SeqNumber(u32_at(option, 4)),
            copy: CopyId(u32_at(option, 8)),
            len: u16_at(option, 12),
            alone: option[14] == ALONE,
        })
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[KIND, CorruptionEcho::LEN as u8]);
        out.extend_from_slice(&EXPERIMENT.to_be_bytes());
        out.extend_from_slice(&self.seq.0.to_be_bytes());
        out.extend_from_slice(&self.copy.0.to_be_bytes());
        out.extend_from_slice(&self.len.to_be_bytes());
        out.push(u8::from(self.alone));
    }
}
