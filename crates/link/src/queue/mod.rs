//! Queue disciplines: which packets a queue accepts, marks and drops.

mod codel;
mod red;

pub use codel::CoDel;
pub(crate) use codel::Control;
pub use red::Red;
pub(crate) use red::{Average, Choice, Meeting};

use base::Time;
use std::collections::VecDeque;

/// The drop-tail limit, whatever the discipline. The packet being transmitted counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// Everything fits.
    #[default]
    Unlimited,
    /// A number of packets.
    Packets(u32),
    /// A number of bytes.
    Bytes(u64),
}

impl Queue {
    /// Whether a packet of `len` bytes fits behind these.
    pub(crate) fn has_room(self, packets: usize, bytes: u64, len: u32) -> bool {
        match self {
            Queue::Unlimited => true,
            Queue::Packets(limit) => packets < limit as usize,
            Queue::Bytes(limit) => bytes + u64::from(len) <= limit,
        }
    }
}

/// What a queue does before it is full. All send packets in the order in which they came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// Nothing.
    #[default]
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
}

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) packet: P,
    pub(crate) len: u32,
    pub(crate) since: Time,
    /// Whether it may be marked.
    pub(crate) capable: bool,
    pub(crate) marked: bool,
    /// The number of wrong bytes that its own code corrects.
    pub(crate) corrects: u8,
}

/// Packets that wait, but for the one in transmission.
#[derive(Clone, Debug)]
pub(crate) struct Backlog<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
}

impl<P: Copy> Backlog<P> {
    pub(crate) const fn new() -> Backlog<P> {
        Backlog { waiting: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn push(&mut self, packet: Waiting<P>) {
        self.bytes += u64::from(packet.len);
        self.waiting.push_back(packet);
    }

    /// Puts back the packet that was taken out last.
    pub(crate) fn put_back(&mut self, packet: Waiting<P>) {
        self.bytes += u64::from(packet.len);
        self.waiting.push_front(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.len);
        Some(packet)
    }
}
