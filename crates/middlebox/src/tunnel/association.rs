//! One direction of a tunnel: a security association and its packets in flight.

use core::net::IpAddr;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::{Body, Esp, Packet, Payload, ReplayWindow};

/// The addresses and identifiers of a security association (RFC 4301 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The ingress, which is the source of outer packets.
    pub source: IpAddr,
    /// The egress.
    pub destination: IpAddr,
    /// The security parameters index; from 256 on (RFC 4303 §2.1).
    pub spi: u32,
    /// The secret of the ends, from which initialization vectors are derived.
    pub key: u64,
}

impl Ends {
    /// The ESP header with this sequence number.
    ///
    /// The initialization vectors of an association must differ (RFC 4106 §3.1), and must not be
    /// predictable off the path: they are a permutation of the sequence numbers. It stands for a keyed
    /// one, and does not resist cryptanalysis.
    pub(super) fn esp(&self, sequence: u32) -> Esp {
        // SplitMix64's finaliser, which is a bijection.
        let mut word = (u64::from(sequence)).wrapping_add(self.key);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let iv = (word ^ word >> 31).to_be_bytes();
        Esp { spi: self.spi, sequence, iv }
    }

    /// The ESP header of a packet of this association.
    pub(crate) fn header(&self, packet: &Packet) -> Option<Esp> {
        let ends = (packet.ip.source, packet.ip.destination);
        match packet.body {
            Body::Esp(esp) if ends == (self.source, self.destination) && esp.spi == self.spi => {
                Some(esp)
            }
            _ => None,
        }
    }
}

/// One direction of a tunnel: its identifiers, and the inner packets in flight.
#[derive(Clone, Debug)]
pub struct Association {
    ends: Ends,
    inner: Arc<Mutex<Inner>>,
}

/// Inner packets, by the outer packets' sequence numbers.
#[derive(Debug)]
struct Inner {
    /// The sequence number of the first of `packets`; above 32 bits when none is left.
    first: u64,
    packets: VecDeque<Option<Packet>>,
    /// The numbers of the packets that were opened.
    opened: ReplayWindow,
}

impl Inner {
    /// The index of the packet with this sequence number, unless it is forgotten.
    fn index(&self, sequence: u32) -> Option<usize> {
        u64::from(sequence).checked_sub(self.first).map(|index| index as usize)
    }
}

impl Association {
    /// The most packets in flight; beyond, the oldest are forgotten.
    const MOST: usize = 1 << 18;

    /// An association that has sent nothing.
    #[must_use]
    pub fn new(ends: Ends) -> Association {
        let inner = Inner { first: 1, packets: VecDeque::new(), opened: ReplayWindow::default() };
        Association { ends, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Its addresses and identifiers.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.ends
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing that is done under the lock leaves the queue in disorder.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Encapsulates a packet and returns its sequence number; `None` after 2^32 - 1 packets, because
    /// numbers must not repeat (RFC 4303 §3.3.3).
    pub(super) fn seal(&self, packet: Packet) -> Option<u32> {
        let mut inner = self.inner();
        let sequence = u32::try_from(inner.first + inner.packets.len() as u64).ok()?;
        if inner.packets.len() == Association::MOST {
            inner.packets.pop_front();
            inner.first += 1;
        }
        inner.packets.push_back(Some(packet));
        Some(sequence)
    }

    /// Decapsulates the packet with this sequence number. `None` if it was a duplicate, too late
    /// (RFC 4303 §3.4.3), or never sent.
    pub(super) fn open(&self, sequence: u32) -> Option<Packet> {
        let mut inner = self.inner();
        if !inner.opened.check(sequence.into()) {
            return None;
        }
        let index = inner.index(sequence)?;
        let packet = inner.packets.get_mut(index)?.take()?;
        inner.opened.update(sequence.into());
        // What the window refuses is never opened.
        while !inner.packets.is_empty() && !inner.opened.check(inner.first) {
            inner.packets.pop_front();
            inner.first += 1;
        }
        Some(packet)
    }

    /// Calls `held` with the payload of every packet in flight.
    pub(super) fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.inner().packets.iter().flatten().for_each(|packet| held(packet.payload));
    }

    /// The inner packet of a packet of this association, for nodes that can read it: with
    /// authentication only (RFC 4543), and for the lab itself.
    #[must_use]
    pub fn inside(&self, packet: &Packet) -> Option<Packet> {
        let sequence = self.ends.header(packet)?.sequence;
        let inner = self.inner();
        *inner.packets.get(inner.index(sequence)?)?
    }
}
