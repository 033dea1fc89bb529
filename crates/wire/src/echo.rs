//! What a receiver tells the sender of a corruption that it was told of.

use crate::ip::{u16_at, u32_at};
use crate::{CopyId, SeqNumber};
use serde::{Deserialize, Serialize};

/// TCP options for experiments (RFC 4727 §3.1, RFC 6994).
const KIND: u8 = 253;
/// What tells this experiment from others (RFC 6994 §3.1); not registered.
const EXPERIMENT: u16 = 0xfe7e;
/// The only bit of the flags that means something.
const ALONE: u8 = 1;

/// One copy of a segment arrived corrupted at some node, as the receiver of the stream was told
/// (forward notification, `bbn8333` §2.1.3).
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

    /// What an option says, if it is just this one: any other is kept as it is.
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
