//! Selective acknowledgments (RFC 2018).

use crate::SeqNumber;
use core::fmt;
use core::hash::{Hash, Hasher};
use serde::{Deserialize, Serialize};

/// A range of received octets, `start` included, `end` not (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SackBlock {
    /// The first octet of the block.
    pub start: SeqNumber,
    /// The octet after the last of the block.
    pub end: SeqNumber,
}

/// Up to four SACK blocks, the most recently received first (RFC 2018 §4).
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
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

    /// Forgets all blocks.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Keeps at most so many of the first blocks.
    pub fn truncate(&mut self, count: usize) {
        self.len = self.len.min(count as u8);
    }

    /// The blocks in the order of the option.
    #[must_use]
    #[inline]
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

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl Hash for SackBlocks {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_block_finds_no_room() {
        let mut blocks = SackBlocks::default();
        for n in 0..5 {
            blocks.push(SackBlock { start: SeqNumber(n), end: SeqNumber(n + 1) });
        }
        assert_eq!(blocks.as_slice().len(), 4);
        assert_eq!(blocks.as_slice()[3].start, SeqNumber(3));
        blocks.clear();
        assert_eq!(blocks, SackBlocks::default());
    }
}
