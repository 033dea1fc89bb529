//! Packets that one worker reads from its queue of a device, and that are for a connection of another.

use crate::Error;
use crate::error::Doing;
use host::FourTuple;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::write;
use siphasher::sip::SipHasher13;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use wire::Packet;

/// The most packets that wait for a worker. As each is at most a unit of 64 kB, they take at most
/// 32 MiB.
const WAITING: usize = 512;

/// What wakes a worker.
pub(crate) fn bell() -> Result<Arc<OwnedFd>, Error> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    Ok(Arc::new(bell.doing(|| "making what wakes a thread".to_owned())?))
}

/// Which worker owns a connection: a keyed hash of its 4-tuple says so, the same for all workers and for
/// both directions.
#[derive(Clone, Debug)]
pub struct Owners {
    key: [u64; 2],
    workers: usize,
}

impl Owners {
    /// With a key that others do not know: they could give all connections to one worker.
    ///
    /// # Panics
    /// Without workers.
    #[must_use]
    pub fn new(workers: usize, key: [u64; 2]) -> Owners {
        assert!(workers > 0, "no workers");
        Owners { key, workers }
    }

    /// The number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> [u64; 2] {
        self.key
    }

    /// The rounds of SipHash for each word, and after the last one.
    pub(crate) const ROUNDS: [usize; 2] = [1, 3];
    /// Bytes that are hashed.
    pub(crate) const LEN: usize = 36;

    /// The owner of a connection. A program in the kernel computes the same ([`crate::QueueProgram`]): of both ends, the
    /// lesser one first, the halves of the addresses, those of IPv4 mapped to IPv6; and then the ports.
    #[must_use]
    pub fn of(&self, tuple: &FourTuple) -> usize {
        let FourTuple { local, local_port, remote, remote_port } = *tuple;
        let mut ends = [(halves(local), local_port), (halves(remote), remote_port)];
        ends.sort_unstable();
        let mut hashed = [0; Owners::LEN];
        let (addresses, ports) = hashed.split_at_mut(32);
        let words = ends.into_iter().flat_map(|(halves, _)| halves);
        for (place, word) in addresses.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        for (place, (_, port)) in ports.chunks_exact_mut(2).zip(ends) {
            place.copy_from_slice(&port.to_le_bytes());
        }
        let hash = SipHasher13::new_with_keys(self.key[0], self.key[1]).hash(&hashed);
        (hash % self.workers as u64) as usize
    }

    /// The owner of a packet; the first worker, if it belongs to no connection.
    fn of_packet(&self, packet: &Packet) -> usize {
        FourTuple::of_packet(packet).map_or(0, |tuple| self.of(&tuple))
    }
}

/// The halves of an address.
fn halves(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .to_bits();
    [(bits >> 64) as u64, bits as u64]
}

/// A worker, as the others see it.
struct Peer<P> {
    sender: SyncSender<P>,
    bell: Arc<OwnedFd>,
}

/// One worker's part in the exchange of packets, which are handed over as `P`.
pub(crate) struct Steering<P> {
    own: usize,
    owners: Owners,
    /// By number; a worker is among its own.
    peers: Arc<[Peer<P>]>,
    /// Those that have got packets since the last [`Steering::wake`].
    to_wake: Vec<bool>,
    incoming: Receiver<P>,
}

/// The outcome of [`Steering::pass_on`].
pub(crate) enum PassedOn {
    /// The packet is the worker's own.
    Own,
    /// It was handed over.
    HandedOver,
    /// It is lost: too many packets wait for its owner, or that worker has ended.
    Dropped,
}

impl<P> Steering<P> {
    /// The parts of workers with these bells, by number; none, if there is only one.
    pub(crate) fn among(bells: &[Arc<OwnedFd>], owners: &Owners) -> Vec<Option<Steering<P>>> {
        if let [_] = bells {
            return vec![None];
        }
        let (senders, receivers): (Vec<_>, Vec<_>) =
            bells.iter().map(|_| sync_channel(WAITING)).unzip();
        let peers = senders.into_iter().zip(bells);
        let peers: Arc<[_]> =
            peers.map(|(sender, bell)| Peer { sender, bell: Arc::clone(bell) }).collect();
        let part = |(own, incoming)| Steering {
            own,
            owners: owners.clone(),
            to_wake: vec![false; peers.len()],
            peers: Arc::clone(&peers),
            incoming,
        };
        receivers.into_iter().enumerate().map(part).map(Some).collect()
    }

    /// The next packet that another worker has handed over.
    pub(crate) fn next(&mut self) -> Option<P> {
        self.incoming.try_recv().ok()
    }

    /// Hands a packet, as `hand_over` makes it, over to its owner, unless that is this worker. [`Steering::wake`] is to
    /// be called afterwards.
    pub(crate) fn pass_on(&mut self, packet: &Packet, hand_over: impl FnOnce() -> P) -> PassedOn {
        let owner = self.owners.of_packet(packet);
        if owner == self.own {
            return PassedOn::Own;
        }
        if self.peers[owner].sender.try_send(hand_over()).is_err() {
            return PassedOn::Dropped;
        }
        self.to_wake[owner] = true;
        PassedOn::HandedOver
    }

    /// Wakes the workers that packets were handed over to.
    pub(crate) fn wake(&mut self) {
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

    /// Workers that hand packets over as numbers.
    fn two() -> [Steering<u16>; 2] {
        let bells = [(); 2].map(|()| bell().unwrap());
        let mut parts = Steering::among(&bells, &Owners::new(2, [1, 2])).into_iter().flatten();
        [(); 2].map(|()| parts.next().unwrap())
    }

    /// The ports of the peers whose connections a worker owns.
    fn owned_by(steering: &Steering<u16>) -> Vec<u16> {
        (0..1000).filter(|&n| steering.owners.of(&tuple(n)) == steering.own).collect()
    }

    #[test]
    fn all_workers_agree_on_the_owner_of_a_connection_and_share_evenly() {
        let [one, other] = two();
        let of_both = [owned_by(&one), owned_by(&other)].concat();
        assert_eq!(of_both.len(), 1000);
        // 15 standard deviations.
        assert!((260..740).contains(&owned_by(&one).len()));
        // So do both directions.
        let of = |tuple: &FourTuple| one.owners.of(tuple);
        assert!((0..1000).map(tuple).all(|tuple| of(&tuple) == of(&tuple.reversed())));
    }

    #[test]
    fn a_packet_comes_to_its_owner_who_is_woken_once() {
        let [mut one, mut other] = two();
        for &n in &owned_by(&one)[..3] {
            assert!(matches!(other.pass_on(&packet(n), || n), PassedOn::HandedOver));
            assert!(matches!(one.pass_on(&packet(n), || unreachable!()), PassedOn::Own));
        }
        other.wake();
        other.wake();
        let mut count = [0; 8];
        rustix::io::read(&*one.peers[0].bell, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        for &n in &owned_by(&one)[..3] {
            assert_eq!(one.next(), Some(n));
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
                let passed = worker.pass_on(&error, || n);
                assert_eq!(matches!(passed, PassedOn::Own), is_owner);
            }
        }
    }

    #[test]
    fn packets_of_no_connection_are_the_first_workers() {
        let datagram = Packet::BLANK;
        let [first, second] = two().each_mut().map(|worker| worker.pass_on(&datagram, || 0));
        assert!(matches!((first, second), (PassedOn::Own, PassedOn::HandedOver)));
    }

    #[test]
    fn what_waits_is_bounded_and_a_worker_that_has_ended_gets_nothing() {
        let [one, mut other] = two();
        let n = owned_by(&one)[0];
        let mut passes = |count: usize| {
            (0..count)
                .filter(|_| matches!(other.pass_on(&packet(n), || n), PassedOn::HandedOver))
                .count()
        };
        assert_eq!(passes(WAITING + 10), WAITING);
        drop(one);
        assert_eq!(passes(1), 0);
    }
}
