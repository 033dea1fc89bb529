//! TCP segments.

use crate::SeqNumber;
use bitflags::bitflags;
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
    }
}

/// Names one transmitted copy of a range of sequence numbers, so that a notice about a packet can
/// be told from a notice about its retransmission.
///
/// The lab carries it as a field of no bytes; on real packets an unpredictable nonce stands in
/// for it. 0 names no copy (a segment without data).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CopyId(pub u32);

/// A range of received octets, `start` included, `end` not (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SackBlock {
    /// The first octet of the block.
    pub start: SeqNumber,
    /// The octet after the last of the block.
    pub end: SeqNumber,
}

/// Up to four SACK blocks, the most recently received first (RFC 2018 §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<SackBlock>", from = "Vec<SackBlock>")]
pub struct SackBlocks {
    blocks: [SackBlock; SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// As many as fit into the 40 bytes of a header's options.
    pub const MAX: usize = 4;

    /// Adds a block if there is room for one more.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// The blocks in the order of the option.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there is no block.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl From<SackBlocks> for Vec<SackBlock> {
    fn from(blocks: SackBlocks) -> Vec<SackBlock> {
        blocks.as_slice().to_vec()
    }
}

impl From<Vec<SackBlock>> for SackBlocks {
    /// Blocks beyond the fourth find no room.
    fn from(blocks: Vec<SackBlock>) -> SackBlocks {
        let mut result = SackBlocks::default();
        blocks.into_iter().for_each(|block| result.push(block));
        result
    }
}

/// A timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timestamps {
    /// TSval: the sender's timestamp clock.
    pub value: u32,
    /// TSecr: what the receiver's clock was, as the sender knows it.
    pub echo: u32,
}

/// The options of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// Maximum segment size, on a SYN (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale, on a SYN (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK permitted, on a SYN (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sack: SackBlocks,
}

impl Options {
    /// Bytes in the header, padded to a multiple of four.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 3;
        }
        if self.sack_permitted {
            len += 2;
        }
        if self.timestamps.is_some() {
            len += 10;
        }
        if !self.sack.is_empty() {
            len += 2 + 8 * usize::from(self.sack.len);
        }
        len.next_multiple_of(4)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

// Segments are copied at every hop of the code's hot path.
const _: () = assert!(size_of::<Segment>() <= 96);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_lengths_are_those_of_the_wire() {
        let mut options = Options::default();
        assert_eq!(options.len(), 0);
        options.mss = Some(1460);
        assert_eq!(options.len(), 4);
        options.window_scale = Some(7);
        assert_eq!(options.len(), 8);
        options.sack_permitted = true;
        assert_eq!(options.len(), 12);
        let mut sack = Options::default();
        sack.sack.push(SackBlock::default());
        assert_eq!(sack.len(), 12);
        (0..9).for_each(|_| sack.sack.push(SackBlock::default()));
        assert_eq!(sack.len(), 36);
    }
}
