//! Packets that one worker reads from its queue, and that are for a connection of another.

#![expect(clippy::disallowed_types, reason = "nothing is iterated in the order of its hashes")]

use crate::pool;
use host::FourTuple;
use rustix::io::write;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use wire::Packet;

/// The most packets that wait for a worker. As each is at most a unit of 64 kB, they take at most
/// 32 MiB.
const WAITING: usize = 512;

/// Which worker owns a connection: a keyed hash of its 4-tuple says so, the same for all workers of a
/// stack.
#[derive(Clone)]
pub(super) struct Owners {
    key: RandomState,
    workers: usize,
}

impl Owners {
    pub(super) fn new(workers: usize) -> Owners {
        Owners { key: RandomState::new(), workers }
    }

    /// The owner of a connection.
    pub(super) fn of(&self, tuple: &FourTuple) -> usize {
        (self.key.hash_one(tuple) % self.workers as u64) as usize
    }

    /// The owner of a packet; the first worker, if it belongs to no connection.
    fn of_packet(&self, packet: &Packet) -> usize {
        FourTuple::of_packet(packet).map_or(0, |tuple| self.of(&tuple))
    }
}

/// A packet with the buffer that has it, and the place of its payload there.
pub(super) struct HandedOver {
    pub(super) packet: Packet,
    pub(super) buffer: Vec<u8>,
    pub(super) payload: Range<usize>,
}

/// A worker, as the others see it.
#[derive(Clone)]
struct Peer {
    sender: SyncSender<HandedOver>,
    bell: Arc<OwnedFd>,
}

/// One worker's part in the exchange of packets between workers.
pub(super) struct Steering {
    own: usize,
    owners: Owners,
    /// By number; a worker is among its own.
    peers: Vec<Peer>,
    /// Those that have got packets since the last [`Steering::wake`].
    to_wake: Vec<bool>,
    incoming: Receiver<HandedOver>,
}

/// The outcome of [`Steering::pass_on`].
pub(super) enum PassedOn {
    /// The packet is the worker's own; the buffer is unchanged.
    Own,
    /// It was handed over, and the buffer may be another.
    HandedOver,
    /// It is lost: too many packets wait for its owner, or that worker has ended.
    Dropped,
}

impl Steering {
    /// The parts of workers with these bells, by number.
    pub(super) fn among(bells: &[Arc<OwnedFd>], owners: &Owners) -> Vec<Steering> {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            bells.iter().map(|_| sync_channel(WAITING)).unzip();
        let peers = senders.into_iter().zip(bells);
        let peers: Vec<_> =
            peers.map(|(sender, bell)| Peer { sender, bell: Arc::clone(bell) }).collect();
        let part = |(own, incoming)| Steering {
            own,
            owners: owners.clone(),
            to_wake: vec![false; peers.len()],
            peers: peers.clone(),
            incoming,
        };
        receivers.into_iter().enumerate().map(part).collect()
    }

    /// The next packet that another worker has handed over.
    pub(super) fn next(&mut self) -> Option<HandedOver> {
        self.incoming.try_recv().ok()
    }

    /// Hands a packet of `len` bytes in `buffer` over to its owner, unless that is this worker.
    /// [`Steering::wake`] is to be called afterwards.
    pub(super) fn pass_on(
        &mut self,
        packet: &Packet,
        payload: &Range<usize>,
        buffer: &mut Vec<u8>,
        len: usize,
    ) -> PassedOn {
        let owner = self.owners.of_packet(packet);
        if owner == self.own {
            return PassedOn::Own;
        }
        // Small packets are copied: what waits takes about the memory of its bytes.
        let buffer = match len < buffer.len() / 2 {
            true => buffer[..len].to_vec(),
            false => std::mem::replace(buffer, pool::take()),
        };
        let handed_over = HandedOver { packet: *packet, buffer, payload: payload.clone() };
        if self.peers[owner].sender.try_send(handed_over).is_err() {
            return PassedOn::Dropped;
        }
        self.to_wake[owner] = true;
        PassedOn::HandedOver
    }

    /// Wakes the workers that packets were handed over to.
    pub(super) fn wake(&mut self) {
        for (peer, to_wake) in self.peers.iter().zip(&mut self.to_wake) {
            if std::mem::take(to_wake) {
                // It can only fail if the counter is full; then the thread wakes anyway.
                let _ = write(&peer.bell, &1u64.to_ne_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::net::IpAddr;
    use wire::{Body, Icmp, Ip, Quote, Segment, SeqNumber};

    fn tuple(n: u16) -> FourTuple {
        let [local, remote] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        FourTuple { local, local_port: 80, remote, remote_port: n }
    }

    fn packet(n: u16) -> Packet {
        let FourTuple { local, local_port, remote, remote_port } = tuple(n);
        let segment = Segment {
            source_port: remote_port,
            destination_port: local_port,
            ..Segment::default()
        };
        Packet { ip: Ip::new(remote, local), body: Body::Tcp(segment), ..Packet::BLANK }
    }

    fn two() -> [Steering; 2] {
        let bell = || Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        Steering::among(&[bell(), bell()], &Owners::new(2))
            .try_into()
            .unwrap_or_else(|_| unreachable!("two"))
    }

    /// The ports of the peers whose connections a worker owns.
    fn owned_by(steering: &Steering) -> Vec<u16> {
        (0..1000).filter(|&n| steering.owners.of(&tuple(n)) == steering.own).collect()
    }

    #[test]
    fn all_workers_agree_on_the_owner_of_a_connection_and_share_evenly() {
        let [one, other] = two();
        let of_both = [owned_by(&one), owned_by(&other)].concat();
        assert_eq!(of_both.len(), 1000);
        // 15 standard deviations.
        assert!((260..740).contains(&owned_by(&one).len()));
    }

    #[test]
    fn a_packet_comes_to_its_owner_who_is_woken_once() {
        let [mut one, mut other] = two();
        for &n in &owned_by(&one)[..3] {
            let mut buffer = vec![n as u8; 100];
            let passed = other.pass_on(&packet(n), &(40..100), &mut buffer, 100);
            assert!(matches!(passed, PassedOn::HandedOver));
            assert_eq!(buffer.len(), pool::LEN, "a packet that fills its buffer takes it along");
            assert!(matches!(one.pass_on(&packet(n), &(40..100), &mut buffer, 100), PassedOn::Own));
        }
        other.wake();
        other.wake();
        let mut count = [0; 8];
        rustix::io::read(&*one.peers[0].bell, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        for &n in &owned_by(&one)[..3] {
            let HandedOver { packet: handed, buffer, payload } = one.next().unwrap();
            assert_eq!((handed, buffer, payload), (packet(n), vec![n as u8; 100], 40..100));
        }
        assert!(one.next().is_none());
    }

    #[test]
    fn an_icmp_error_comes_to_the_owner_of_the_connection_that_it_quotes() {
        let mut both = two();
        for n in 0..50 {
            let FourTuple { local, local_port, remote, remote_port } = tuple(n);
            let quote = Quote {
                source: local,
                destination: remote,
                len: 40,
                protocol: 6,
                source_port: local_port,
                destination_port: remote_port,
                seq: SeqNumber(0),
            };
            let icmp = Icmp::TooBig { mtu: 1280, quote };
            let router = IpAddr::from([10, 0, 0, 3]);
            let error =
                Packet { ip: Ip::new(router, local), body: Body::Icmp(icmp), ..Packet::BLANK };
            for worker in &mut both {
                let is_owner = worker.owners.of(&tuple(n)) == worker.own;
                let passed = worker.pass_on(&error, &(0..0), &mut vec![0; 100], 68);
                assert_eq!(matches!(passed, PassedOn::Own), is_owner);
            }
        }
    }

    #[test]
    fn packets_of_no_connection_are_the_first_workers() {
        let datagram = Packet::BLANK;
        let [first, second] = two()
            .each_mut()
            .map(|worker| worker.pass_on(&datagram, &(0..0), &mut vec![0; 100], 28));
        assert!(matches!((first, second), (PassedOn::Own, PassedOn::HandedOver)));
    }

    #[test]
    fn what_waits_is_bounded_and_a_worker_that_has_ended_gets_nothing() {
        let [one, mut other] = two();
        let n = owned_by(&one)[0];
        let mut passes = |count: usize| {
            let small = |_: &usize| {
                let mut buffer = vec![0; 1000];
                let passed = other.pass_on(&packet(n), &(0..0), &mut buffer, 40);
                matches!(passed, PassedOn::HandedOver)
            };
            (0..count).filter(small).count()
        };
        assert_eq!(passes(WAITING + 10), WAITING);
        drop(one);
        assert_eq!(passes(1), 0);
    }
}
