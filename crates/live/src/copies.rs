//! The copy number of the segment in each packet, which no header carries.

use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::{Body, CopyId, Packet};

/// The copies that hosts of this process sent last, for boxes of this process.
///
/// A mechanism may have to say which copy of a segment was corrupted ([`wire::Segment::copy`]). A
/// network that supported it would carry that in a header; here it goes beside the packets, as in the
/// lab.
#[derive(Clone, Debug, Default)]
pub struct Copies(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    latest: BTreeMap<Key, CopyId>,
    /// The order in which they were sent.
    order: VecDeque<Key>,
}

/// Addresses, ports and sequence number.
type Key = (IpAddr, IpAddr, u16, u16, u32);

fn key(packet: &Packet) -> Option<Key> {
    let Body::Tcp(segment) = &packet.body else { return None };
    let (from, to) = (packet.ip.source, packet.ip.destination);
    let key = (from, to, segment.source_port, segment.destination_port, segment.seq.0);
    (packet.payload.len > 0).then_some(key)
}

impl Copies {
    /// The number of segments remembered: more than any window has.
    const MOST: usize = 1 << 17;

    fn known(&self) -> MutexGuard<'_, Known> {
        // The state is consistent at every point under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a packet that a host sends.
    pub(crate) fn note(&self, packet: &Packet) {
        let (Some(key), Body::Tcp(segment)) = (key(packet), &packet.body) else { return };
        let mut known = self.known();
        if known.latest.insert(key, segment.copy).is_none() {
            known.order.push_back(key);
            if known.order.len() > Copies::MOST
                && let Some(oldest) = known.order.pop_front()
            {
                known.latest.remove(&oldest);
            }
        }
    }

    /// Sets the copy number of a packet that was read from the wire, if it is known.
    pub(crate) fn mark(&self, packet: &mut Packet) {
        let Some(key) = key(packet) else { return };
        if let (Body::Tcp(segment), Some(copy)) = (&mut packet.body, self.known().latest.get(&key))
        {
            segment.copy = *copy;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Ip, Segment, SeqNumber};

    fn packet(seq: u32, copy: u32) -> Packet {
        let segment = Segment { seq: SeqNumber(seq), copy: CopyId(copy), ..Segment::default() };
        let [from, to] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let mut packet = Packet { ip: Ip::new(from, to), ..Packet::BLANK };
        packet.body = Body::Tcp(segment);
        packet.payload.len = 100;
        packet
    }

    fn copy_of(copies: &Copies, seq: u32) -> u32 {
        let mut read = packet(seq, 0);
        copies.mark(&mut read);
        let Body::Tcp(segment) = read.body else { unreachable!("it is one") };
        segment.copy.0
    }

    #[test]
    fn a_packet_is_the_latest_copy_of_its_segment_and_old_ones_are_forgotten() {
        let copies = Copies::default();
        copies.note(&packet(7, 1));
        copies.note(&packet(8, 2));
        copies.note(&packet(7, 3));
        assert_eq!([7, 8, 9].map(|seq| copy_of(&copies, seq)), [3, 2, 0]);
        (0..Copies::MOST as u32).for_each(|n| copies.note(&packet(1000 + n, 4)));
        assert_eq!([7, 1000].map(|seq| copy_of(&copies, seq)), [0, 4]);
    }
}
