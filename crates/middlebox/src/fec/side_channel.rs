//! The side channel of a coded flow in the lab: the contents of repair packets.

use super::codec::{self, Fault};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::{Packet, Payload};

/// State that a flow's encoder and decoder share: simulated packets have no bytes, so the contents of
/// repair packets travel here.
///
/// The decoder reads a block only once enough of its packets have arrived for a maximum-distance
/// separable code. With [`SideChannel::use_bytes`] it does not rely on that: repair symbols are computed
/// from packets' bytes, and packets are rebuilt from bytes.
#[derive(Clone, Debug, Default)]
pub struct SideChannel(Arc<Mutex<Shelf>>);

/// Counters of an encoder and a decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets tagged.
    pub sources: u64,
    /// Repair packets sent.
    pub repairs: u64,
    /// Losses in the encoded stream.
    pub lost: u64,
    /// Source packets rebuilt.
    pub rebuilt: u64,
    /// Blocks abandoned before all of their source packets were there.
    pub abandoned: u64,
    /// Packets delivered with a congestion mark that they did not arrive with.
    pub marked: u64,
    /// Blocks whose rebuilt bytes differ from the packets sent; any is a bug.
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
    /// The repair symbols, if bytes are used.
    symbols: Vec<Vec<u8>>,
}

/// What has arrived of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrived {
    /// By index.
    here: [u64; 4],
    /// The number of source packets in the block, once a repair packet has arrived.
    pub(super) sources: Option<u8>,
    /// The source packets, if bytes are used.
    packets: Vec<(u8, Packet)>,
}

impl Arrived {
    pub(super) fn note(&mut self, index: u8) {
        self.here[usize::from(index / 64)] |= 1 << (index % 64);
    }

    pub(super) fn has(&self, index: u8) -> bool {
        self.here[usize::from(index / 64)] >> (index % 64) & 1 == 1
    }

    pub(super) fn count(&self) -> u32 {
        self.here.iter().map(|word| word.count_ones()).sum()
    }

    /// Adds a source packet.
    pub(super) fn source(&mut self, index: u8, packet: &Packet, side_channel: &SideChannel) {
        if side_channel.shelf().bytes && !self.has(index) {
            self.packets.push((index, codec::canonical(packet)));
        }
        self.note(index);
    }
}

impl SideChannel {
    /// Blocks kept at most; older ones can no longer be repaired.
    const MOST_BLOCKS: usize = 1024;

    /// Runs the code on the bytes of packets from now on.
    pub fn use_bytes(&self) {
        self.shelf().bytes = true;
    }

    /// The counters.
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

    /// Stores the block that starts at `first`: its packets, canonical, and the number of its repair
    /// packets.
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
        if shelf.blocks.len() > SideChannel::MOST_BLOCKS {
            shelf.blocks.pop_first();
        }
    }

    /// Calls `held` with the payload of every source packet that is kept.
    pub(super) fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        let shelf = self.shelf();
        let sources = shelf.blocks.values().flat_map(|block| &block.sources);
        sources.for_each(|packet| held(packet.payload));
    }

    /// Forgets blocks that start before `first`.
    pub(super) fn forget_before(&self, first: u64) {
        let mut shelf = self.shelf();
        while shelf.blocks.first_entry().is_some_and(|block| *block.key() < first) {
            shelf.blocks.pop_first();
        }
    }

    /// The missing source packets, from index `from` on, of the block that starts at `first`; `None` if
    /// they cannot be rebuilt.
    pub(super) fn rebuild(&self, first: u64, from: u8, arrived: &Arrived) -> Option<Vec<Packet>> {
        let mut shelf = self.shelf();
        let Shelf { bytes, blocks, statistics } = &mut *shelf;
        let block = blocks.get(&first)?;
        let sources = block.sources.iter().zip(0..);
        let missing = sources.filter(|&(_, index)| index >= from && !arrived.has(index));
        let missing: Vec<(u8, Packet)> = missing.map(|(packet, index)| (index, *packet)).collect();
        if !*bytes {
            return Some(missing.into_iter().map(|(_, packet)| packet).collect());
        }
        let k = block.sources.len() as u8;
        let symbols = block.symbols.iter().zip(0..);
        let symbols = symbols.filter(|&(_, number)| arrived.has(k + number));
        let symbols: Vec<(u8, &[u8])> =
            symbols.map(|(symbol, number)| (number, symbol.as_slice())).collect();
        let size = (block.sources.len(), usize::from(block.repairs));
        let rebuilt = codec::decode(size, &arrived.packets, &symbols, &missing);
        statistics.faults += u64::from(rebuilt.is_err());
        rebuilt.ok()
    }
}
