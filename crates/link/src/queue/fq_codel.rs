//! FQ-CoDel.

use super::{Backlog, CoDel, Control, ETHERNET_MTU, Queue, Waiting};
use base::Time;
use core::net::IpAddr;
use std::collections::VecDeque;
use wire::FlowKey;

/// FQ-CoDel (RFC 8290): flows are hashed to queues, which are served in turns of a quantum of bytes
/// and have CoDel each. A queue that was empty has its first turn before the others.
///
/// Beyond the limit, packets are dropped at the head of the longest queue, in bytes: half of its
/// packets, 64 at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDel {
    /// What each queue does.
    pub codel: CoDel,
    /// Bytes that a queue may send in a turn.
    pub quantum: u32,
    /// Whether hosts share the rate before their flows do.
    pub isolation: HostIsolation,
}

impl FqCoDel {
    /// The usual limit (RFC 8290 §5.2.3).
    pub const LIMIT: Queue = Queue::Packets(10_240);
}

impl Default for FqCoDel {
    /// CoDel with marks, a quantum of 1514 bytes, equal shares of all flows.
    fn default() -> FqCoDel {
        let codel = CoDel { ecn: true, ..CoDel::default() };
        FqCoDel { codel, quantum: ETHERNET_MTU, isolation: HostIsolation::Flows }
    }
}

/// Between which hosts the rate is shared first. The words are CAKE's: a flow's quantum is divided by
/// the number of flows of its host that have a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostIsolation {
    /// None: each flow has the same share.
    #[default]
    Flows,
    /// Those from which packets come.
    DualSourceHost,
    /// Those to which packets go.
    DualDestinationHost,
    /// Whichever of the two has more flows.
    Triple,
}

/// The number of queues (RFC 8290 §5.2.5), and of counts of hosts.
const QUEUES: usize = 1024;
/// How many packets are dropped at once, at most (RFC 8290 §4.1).
const BATCH: usize = 64;

/// A queue.
#[derive(Clone, Debug)]
struct FlowQueue<P> {
    backlog: Backlog<P>,
    control: Control,
    /// Bytes that it may send; after a packet it may be negative.
    deficit: i64,
    /// Whether it is in a list of the scheduler.
    listed: bool,
    /// The counts of the hosts between which it is, while it is in a list.
    hosts: [u16; 2],
}

/// The state of FQ-CoDel.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueues<P> {
    settings: FqCoDel,
    /// Perturbs the hash.
    key: u64,
    queues: Vec<FlowQueue<P>>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    /// Queues in the lists, by the hash of the host from which and to which their packets go.
    hosts: [Vec<u32>; 2],
    packets: usize,
    bytes: u64,
}

impl<P: Copy> FlowQueues<P> {
    pub(crate) fn new(settings: FqCoDel, key: u64) -> FlowQueues<P> {
        let empty = FlowQueue {
            backlog: Backlog::new(),
            control: Control::new(settings.codel),
            deficit: 0,
            listed: false,
            hosts: [0; 2],
        };
        FlowQueues {
            settings,
            key,
            queues: vec![empty; QUEUES],
            new: VecDeque::new(),
            old: VecDeque::new(),
            hosts: [vec![0; QUEUES], vec![0; QUEUES]],
            packets: 0,
            bytes: 0,
        }
    }

    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    /// Takes a packet, and drops others, or this one, if the limit is exceeded then. `besides` is
    /// the number of packets and bytes elsewhere that count for the limit.
    pub(crate) fn enqueue(
        &mut self,
        packet: Waiting<P>,
        flow: &FlowKey,
        (limit, besides): (Queue, (usize, u64)),
        mut drop: impl FnMut(P),
    ) {
        let hosts = [hash(self.key, flow.source), hash(self.key, flow.destination)];
        let ports = u64::from(flow.ports.source()) << 16 | u64::from(flow.ports.destination());
        let ends = hash(hosts[0], flow.destination);
        let index = slot(mix(ends ^ (ports << 8 | u64::from(flow.protocol))));
        self.packets += 1;
        self.bytes += u64::from(packet.len);
        let queue = &mut self.queues[usize::from(index)];
        queue.backlog.push(packet);
        if !queue.listed {
            queue.listed = true;
            queue.hosts = hosts.map(slot);
            let hosts = queue.hosts;
            self.count(hosts, 1);
            self.queues[usize::from(index)].deficit = self.quantum(hosts);
            self.new.push_back(index);
        }
        while !limit.holds(self.packets + besides.0, self.bytes + besides.1) {
            let Some(longest) = self.longest() else { return };
            let backlog = &mut self.queues[usize::from(longest)].backlog;
            for _ in 0..(backlog.packets() / 2).clamp(1, BATCH) {
                if let Some(packet) = backlog.pop() {
                    self.packets -= 1;
                    self.bytes -= u64::from(packet.len);
                    drop(packet.packet);
                }
            }
        }
    }

    /// The packet to be transmitted next (RFC 8290 §4.2); CoDel may drop some before it.
    pub(crate) fn dequeue(&mut self, now: Time, mut drop: impl FnMut(P)) -> Option<Waiting<P>> {
        loop {
            let (index, new) = self.first()?;
            let queue = &mut self.queues[usize::from(index)];
            if queue.deficit <= 0 {
                let hosts = queue.hosts;
                self.queues[usize::from(index)].deficit += self.quantum(hosts);
                self.requeue(new);
                continue;
            }
            let before = (queue.backlog.packets(), queue.backlog.bytes());
            let packet = queue.control.dequeue(now, &mut queue.backlog, &mut drop);
            self.packets -= before.0 - queue.backlog.packets();
            self.bytes -= before.1 - queue.backlog.bytes();
            if let Some(packet) = packet {
                queue.deficit -= i64::from(packet.len);
                return Some(packet);
            }
            // A new queue has to wait for the old ones once before it can be new again, lest they
            // starve.
            if new { self.requeue(new) } else { self.remove(index) }
        }
    }

    /// Takes out any packet.
    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        loop {
            let (index, new) = self.first()?;
            if let Some(packet) = self.queues[usize::from(index)].backlog.pop() {
                self.packets -= 1;
                self.bytes -= u64::from(packet.len);
                return Some(packet);
            }
            if new { self.requeue(new) } else { self.remove(index) }
        }
    }

    /// The queue whose turn it is, and whether it is a new one.
    fn first(&self) -> Option<(u16, bool)> {
        let new = self.new.front().map(|&index| (index, true));
        new.or_else(|| self.old.front().map(|&index| (index, false)))
    }

    /// Puts the first queue of a list at the end of the old ones.
    fn requeue(&mut self, new: bool) {
        let list = if new { &mut self.new } else { &mut self.old };
        let first = list.pop_front();
        self.old.extend(first);
    }

    /// Removes the first of the old queues from the list.
    fn remove(&mut self, index: u16) {
        self.old.pop_front();
        let queue = &mut self.queues[usize::from(index)];
        queue.listed = false;
        let hosts = queue.hosts;
        self.count(hosts, -1);
    }

    /// Of the queues in the lists, that of the most bytes.
    fn longest(&self) -> Option<u16> {
        let bytes = |index: &u16| self.queues[usize::from(*index)].backlog.bytes();
        let longest = self.new.iter().chain(&self.old).copied().max_by_key(bytes)?;
        (bytes(&longest) > 0).then_some(longest)
    }

    /// Counts a queue of these hosts.
    fn count(&mut self, hosts: [u16; 2], change: i32) {
        for (counts, host) in self.hosts.iter_mut().zip(hosts) {
            let count = &mut counts[usize::from(host)];
            *count = count.saturating_add_signed(change);
        }
    }

    /// Bytes that a queue of these hosts may send in a turn.
    fn quantum(&self, hosts: [u16; 2]) -> i64 {
        let [from, to] = [0, 1].map(|end| self.hosts[end][usize::from(hosts[end])]);
        let flows = match self.settings.isolation {
            HostIsolation::Flows => 1,
            HostIsolation::DualSourceHost => from,
            HostIsolation::DualDestinationHost => to,
            HostIsolation::Triple => from.max(to),
        };
        i64::from((self.settings.quantum / flows.max(1)).max(1))
    }
}

fn slot(hash: u64) -> u16 {
    (hash % QUEUES as u64) as u16
}

fn hash(key: u64, address: IpAddr) -> u64 {
    let address = match address {
        IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
        IpAddr::V6(address) => u128::from(address),
    };
    mix(mix(key ^ address as u64) ^ (address >> 64) as u64)
}

/// The finalizer of splitmix64 (Steele, Lea and Flood 2014): each bit changes half of the bits.
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
