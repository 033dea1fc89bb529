//! What the lab carries beside the packets of a coded flow.

use super::codec::{self, Fault};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::Packet;

/// What encoder and decoder of a flow share: simulated packets have no bytes, so that the content of
/// repair packets goes beside them.
///
/// The decoder looks at a block only once enough of its packets have come, as any code of maximum
/// distance allows. If [`Beside::use_bytes`] says so, it does not rely on that: repair symbols are
/// computed from the packets' bytes, and packets are rebuilt from the bytes of others.
#[derive(Clone, Debug, Default)]
pub struct Beside(Arc<Mutex<Shelf>>);

/// What an encoder and a decoder did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that were tagged.
    pub sources: u64,
    /// Repair packets that were sent.
    pub repairs: u64,
    /// Losses in the encoded stream.
    pub lost: u64,
    /// Source packets that were rebuilt.
    pub rebuilt: u64,
    /// Blocks that were given up before all of their source packets were there.
    pub given_up: u64,
    /// Packets delivered that say that congestion was experienced, and said nothing of it when they
    /// came.
    pub marked: u64,
    /// Blocks whose bytes were not those of their packets; any is a bug.
    pub faults: u64,
}

#[derive(Debug, Default)]
struct Shelf {
    bytes: bool,
    blocks: BTreeMap<u64, Block>,
    statistics: Statistics,
}

#[derive(Debug)]
struct Block {
    sources: Vec<Packet>,
    repairs: u8,
    /// If bytes are wanted: those of the repair packets.
    symbols: Vec<Vec<u8>>,
}

/// What has come of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Come {
    /// By index.
    here: [u64; 4],
    /// How many source packets the block has, if a repair packet has told.
    pub(super) sources: Option<u8>,
    /// If bytes are wanted: the source packets.
    packets: Vec<(u8, Packet)>,
}

impl Come {
    pub(super) fn note(&mut self, index: u8) {
        self.here[usize::from(index / 64)] |= 1 << (index % 64);
    }

    pub(super) fn has(&self, index: u8) -> bool {
        self.here[usize::from(index / 64)] >> (index % 64) & 1 == 1
    }

    pub(super) fn count(&self) -> u32 {
        self.here.iter().map(|word| word.count_ones()).sum()
    }

    /// A source packet has come.
    pub(super) fn source(&mut self, index: u8, packet: &Packet, beside: &Beside) {
        if beside.shelf().bytes && !self.has(index) {
            self.packets.push((index, codec::canonical(packet)));
        }
        self.note(index);
    }
}

impl Beside {
    /// So many blocks are kept for a decoder that has not settled them; older ones it cannot repair.
    const MOST_BLOCKS: usize = 1024;

    /// Lets the code run on the bytes of packets from now on.
    pub fn use_bytes(&self) {
        self.shelf().bytes = true;
    }

    /// What was done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shelf().statistics
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Statistics)) {
        count(&mut self.shelf().statistics);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Nothing that is done under the lock leaves the shelf in disorder.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the block that starts at `first`: its packets, canonical, and how many repair packets
    /// are on their way.
    pub(super) fn put(&self, first: u64, sources: Vec<Packet>, repairs: u8) {
        let mut shelf = self.shelf();
        let mut symbols = Vec::new();
        if shelf.bytes {
            match codec::encode(&sources, repairs) {
                Ok(encoded) => symbols = encoded,
                Err(Fault) => shelf.statistics.faults += 1,
            }
        }
        shelf.blocks.insert(first, Block { sources, repairs, symbols });
        if shelf.blocks.len() > Beside::MOST_BLOCKS {
            shelf.blocks.pop_first();
        }
    }

    /// Nobody will want blocks that start before `first`.
    pub(super) fn forget_before(&self, first: u64) {
        let mut shelf = self.shelf();
        while shelf.blocks.first_entry().is_some_and(|block| *block.key() < first) {
            shelf.blocks.pop_first();
        }
    }

    /// Source packets of the block that starts at `first`, from the one with the index `from` on,
    /// that have not come; there is one for every index that has not. `None` if they cannot be had.
    pub(super) fn rebuild(&self, first: u64, from: u8, come: &Come) -> Option<Vec<Packet>> {
        let mut shelf = self.shelf();
        let Shelf { bytes, blocks, statistics } = &mut *shelf;
        let block = blocks.get(&first)?;
        let sources = block.sources.iter().zip(0..);
        let missing = sources.filter(|&(_, index)| index >= from && !come.has(index));
        let missing: Vec<(u8, Packet)> = missing.map(|(packet, index)| (index, *packet)).collect();
        if !*bytes {
            return Some(missing.into_iter().map(|(_, packet)| packet).collect());
        }
        let k = block.sources.len() as u8;
        let symbols = block.symbols.iter().zip(0..);
        let symbols = symbols.filter(|&(_, number)| come.has(k + number));
        let symbols: Vec<(u8, &[u8])> =
            symbols.map(|(symbol, number)| (number, symbol.as_slice())).collect();
        let size = (block.sources.len(), usize::from(block.repairs));
        let rebuilt = codec::decode(size, &come.packets, &symbols, &missing);
        statistics.faults += u64::from(rebuilt.is_err());
        rebuilt.ok()
    }
}
