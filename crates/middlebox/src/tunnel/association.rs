//! What both ends of one direction of a tunnel know.

use core::net::IpAddr;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::{Body, Esp, Packet};

/// The addresses and the numbers of a security association (RFC 4301 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The ingress, which is the source of outer packets.
    pub source: IpAddr,
    /// The egress.
    pub destination: IpAddr,
    /// The security parameters index; from 256 on (RFC 4303 §2.1).
    pub spi: u32,
    /// What initialization vectors are made of, which only the ends know.
    pub key: u64,
}

impl Ends {
    /// The header of the packet with this number.
    ///
    /// The initialization vectors of an association must differ (RFC 4106 §3.1), and off the path
    /// nobody must be able to tell one: these are a permutation of the numbers. It stands for a
    /// keyed one, and does not resist cryptanalysis.
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

/// One direction of a tunnel: its numbers, and the inner packets of those that are under way.
#[derive(Clone, Debug)]
pub struct Association {
    ends: Ends,
    inner: Arc<Mutex<Inner>>,
}

/// Inner packets, by the numbers of the outer ones.
#[derive(Debug)]
struct Inner {
    /// The number of the first in `packets`; beyond 32 bits once there are no more numbers.
    first: u64,
    packets: VecDeque<Option<Packet>>,
}

impl Inner {
    /// The place of the packet with this number, unless it is behind.
    fn index(&self, sequence: u32) -> Option<usize> {
        u64::from(sequence).checked_sub(self.first).map(|index| index as usize)
    }
}

impl Association {
    /// The anti-replay window that RFC 4303 §3.4.3 prefers, packets: what comes later than so many
    /// numbers behind the highest is refused.
    pub const WINDOW: u64 = 64;
    /// More packets cannot be under way; of more, the oldest are lost.
    const MOST: usize = 1 << 18;

    /// One over which nothing was sent.
    #[must_use]
    pub fn new(ends: Ends) -> Association {
        let inner = Inner { first: 1, packets: VecDeque::new() };
        Association { ends, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Its addresses and numbers.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.ends
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing that is done under the lock leaves the queue in disorder.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is inside the next packet, and gives that its number. `None` after 2^32 - 1
    /// packets: numbers must not come again (RFC 4303 §3.3.3).
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

    /// Takes out what is inside the packet with this number, which has arrived. `None` if it has
    /// arrived before, or too late (RFC 4303 §3.4.3), or never was.
    pub(super) fn open(&self, sequence: u32) -> Option<Packet> {
        let mut inner = self.inner();
        let index = inner.index(sequence)?;
        let packet = inner.packets.get_mut(index)?.take()?;
        // What the window leaves behind is never opened.
        while let Some(front) = inner.packets.front()
            && (front.is_none() || inner.first + Association::WINDOW <= u64::from(sequence))
        {
            inner.packets.pop_front();
            inner.first += 1;
        }
        Some(packet)
    }

    /// What is inside a packet of this association, for those from which nothing is hidden: who
    /// reads what is not encrypted (RFC 4543), and the lab itself.
    #[must_use]
    pub fn inside(&self, packet: &Packet) -> Option<Packet> {
        let sequence = self.ends.header(packet)?.sequence;
        let inner = self.inner();
        *inner.packets.get(inner.index(sequence)?)?
    }
}
