//! The segments of a connection that are on the hop, or were lost there.

use base::Time;
use std::collections::VecDeque;
use wire::{Flags, Packet, Segment, SeqNumber};

/// A segment that passed to the mobile host, and is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached {
    pub(super) packet: Packet,
    /// Its first octet.
    pub(super) seq: SeqNumber,
    /// The octet after its last.
    pub(super) end: SeqNumber,
    /// The place of its last copy in the order in which segments took the hop.
    pub(super) order: u64,
    /// When its last copy took the hop.
    pub(super) sent_at: Time,
    /// Retransmissions by this node since the sender's last copy.
    pub(super) copies: u32,
    /// The sender has retransmitted it, or the network has reordered it: what the mobile host says
    /// about it concerns the sender.
    pub(super) is_senders: bool,
    /// The mobile host has it, behind a gap.
    pub(super) is_sacked: bool,
    /// Copies before the last are known to be lost.
    pub(super) is_sole_copy: bool,
    /// Its retransmission is on its way to the queue of the hop.
    pub(super) is_leaving: bool,
}

/// Sequence numbers that a segment takes.
pub(super) fn octets(packet: &Packet, segment: &Segment) -> u32 {
    packet.payload.len + u32::from(segment.flags.contains(Flags::FIN))
}

/// Segments in the order of their sequence numbers, no two with the same first octet.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    segments: VecDeque<Cached>,
}

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }

    pub(super) fn get(&self, index: usize) -> Option<&Cached> {
        self.segments.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Cached> {
        self.segments.get_mut(index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cached> {
        self.segments.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cached> {
        self.segments.iter_mut()
    }

    /// The place of the segment that begins there; if there is none, where it would be.
    pub(super) fn find(&self, seq: SeqNumber) -> Result<usize, usize> {
        self.segments.binary_search_by(|segment| segment.seq.beyond(seq).cmp(&0))
    }

    pub(super) fn insert(&mut self, index: usize, segment: Cached) {
        self.segments.insert(index, segment);
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.segments.remove(index);
    }

    /// The first segment, if this octet is in it.
    pub(super) fn first_with(&self, octet: SeqNumber) -> Option<&Cached> {
        self.segments.front().filter(|first| first.seq.beyond(octet) <= 0)
    }

    /// Removes the first segment if it ends at this octet or before it.
    pub(super) fn pop_before(&mut self, octet: SeqNumber) -> Option<Cached> {
        let first = self.segments.front()?;
        if first.end.beyond(octet) <= 0 { self.segments.pop_front() } else { None }
    }

    /// Marks the segments that are within these octets; returns the last place in the order of
    /// sending of those that were not marked.
    pub(super) fn mark(&mut self, start: SeqNumber, end: SeqNumber) -> Option<u64> {
        let (Ok(from) | Err(from)) = self.find(start);
        let within = self.segments.range_mut(from..);
        let within = within.take_while(|segment| segment.end.beyond(end) <= 0);
        let mut newest = None;
        for segment in within.filter(|segment| !segment.is_sacked) {
            segment.is_sacked = true;
            if segment.copies == 0 || segment.is_sole_copy {
                newest = newest.max(Some(segment.order));
            }
        }
        newest
    }
}
