//! Queue disciplines: which packets a queue accepts, marks and drops.

mod codel;
mod drr;
mod fq_codel;
mod red;

pub use codel::CoDel;
pub(crate) use codel::Control;
pub(crate) use drr::RoundRobin;
pub use drr::{Drr, Isolation};
pub(crate) use fq_codel::FlowQueues;
pub use fq_codel::{FqCoDel, HostIsolation};
pub use red::Red;
pub(crate) use red::{Average, Choice, Meeting};

use base::Time;
use std::collections::VecDeque;

/// Bytes of the largest Ethernet frame, without its check sequence: a usual quantum.
const ETHERNET_MTU: u32 = 1514;

/// The limit, whatever the discipline. The packet being transmitted counts.
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
        self.holds(packets + 1, bytes + u64::from(len))
    }

    /// Whether it is not exceeded.
    pub(crate) fn holds(self, packets: usize, bytes: u64) -> bool {
        match self {
            Queue::Unlimited => true,
            Queue::Packets(limit) => packets <= limit as usize,
            Queue::Bytes(limit) => bytes <= limit,
        }
    }
}

/// Which packets a queue drops or marks, and which it sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// First in, first out; a full queue drops arriving packets.
    #[default]
    DropTail,
    /// Drop-tail with random early detection.
    Red(Red),
    /// Drop-tail with controlled delay.
    CoDel(CoDel),
    /// Deficit round robin between classes of packets.
    Drr(Drr),
    /// Deficit round robin between flows, each of which has controlled delay.
    FqCoDel(FqCoDel),
}

impl Discipline {
    /// Whether packets leave the queue in the order in which they came.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        match self {
            Discipline::DropTail | Discipline::Red(_) | Discipline::CoDel(_) => true,
            Discipline::Drr(_) | Discipline::FqCoDel(_) => false,
        }
    }
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

    /// The first packet if it has at most so many bytes.
    pub(crate) fn pop_within(&mut self, bytes: u64) -> Option<Waiting<P>> {
        self.waiting.front().filter(|packet| u64::from(packet.len) <= bytes)?;
        self.pop()
    }

    pub(crate) fn pop_last(&mut self) -> Option<Waiting<P>> {
        let packet = self.waiting.pop_back()?;
        self.bytes -= u64::from(packet.len);
        Some(packet)
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.len);
        Some(packet)
    }
}
