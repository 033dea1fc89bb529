//! The flows that a base station knows.

use super::runs::Runs;
use base::{Duration, Time};
use core::hash::BuildHasher;
use core::net::IpAddr;
use core::num::NonZeroUsize;
use lru::LruCache;
use siphasher::sip::SipHasher13;

/// What identifies a flow: source, flow label, destination (`obanaik2003` §4.2.2).
pub(super) type Key = (IpAddr, u32, IpAddr);

/// Hashes keys by a secret, or an attacker could choose flows that share a place in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret(pub(super) u64, pub(super) u64);

impl BuildHasher for Secret {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    runs: Runs,
    /// When its latest packet passed.
    seen: Time,
}

/// The runs of each flow. A packet costs one look-up whatever their number; a new flow takes the place of the
/// one that has been idle longest.
pub(super) struct Flows {
    table: LruCache<Key, Flow, Secret>,
    idle: Duration,
    merge: bool,
    /// What has happened.
    pub(super) counts: Counts,
}

/// Counts of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Flows that were unknown: new ones, and those that were forgotten or came by a handoff.
    pub(super) new: u64,
    /// Flows that made room for another.
    pub(super) evicted: u64,
    /// Flows that were idle too long.
    pub(super) expired: u64,
}

impl Flows {
    /// Room for so many flows, each of which is forgotten after having been idle for this long.
    pub(super) fn new(most: NonZeroUsize, idle: Duration, merge: bool, secret: Secret) -> Flows {
        let (table, counts) = (LruCache::with_hasher(most, secret), Counts::default());
        Flows { table, idle, merge, counts }
    }

    /// Notes a packet of a flow; returns its runs.
    pub(super) fn note(&mut self, now: Time, key: &Key, sequence: u32) -> Runs {
        if let Some(flow) = self.table.get_mut(key) {
            if now.since(flow.seen) > self.idle {
                flow.runs = Runs::default();
                self.counts.expired += 1;
            }
            flow.seen = now;
            match self.merge {
                true => flow.runs.note_merged(sequence),
                false => flow.runs.note(sequence),
            }
            return flow.runs;
        }
        let mut runs = Runs::default();
        runs.note(sequence);
        self.add(now, *key, runs);
        runs
    }

    #[inline(never)]
    fn add(&mut self, now: Time, key: Key, runs: Runs) {
        // At most two for each new one: the time for a packet is bounded.
        for _ in 0..2 {
            let Some((_, oldest)) = self.table.peek_lru() else { break };
            if now.since(oldest.seen) <= self.idle {
                break;
            }
            self.table.pop_lru();
            self.counts.expired += 1;
        }
        self.counts.new += 1;
        if self.table.push(key, Flow { runs, seen: now }).is_some() {
            self.counts.evicted += 1;
        }
    }

    /// The number of flows.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;

    const IDLE: Duration = Duration::from_secs(60);

    fn key(label: u32) -> Key {
        (Ipv6Addr::LOCALHOST.into(), label, Ipv6Addr::LOCALHOST.into())
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn flows(most: usize) -> Flows {
        Flows::new(NonZeroUsize::new(most).unwrap(), IDLE, false, Secret(1, 2))
    }

    #[test]
    fn flows_are_told_apart_by_their_label() {
        let mut flows = flows(10);
        flows.note(at(0), &key(1), 5);
        flows.note(at(0), &key(2), 7);
        assert_eq!(flows.note(at(0), &key(1), 6).blocks()[0], (5, 6));
        assert_eq!(flows.counts, Counts { new: 2, ..Counts::default() });
    }

    #[test]
    fn the_flow_that_has_been_idle_longest_makes_room() {
        let mut flows = flows(2);
        for (label, sequence) in [(1, 1), (2, 1), (1, 2), (3, 1)] {
            flows.note(at(0), &key(label), sequence);
        }
        assert_eq!((flows.len(), flows.counts.evicted), (2, 1));
        assert_eq!(flows.note(at(0), &key(1), 3).blocks()[0], (1, 3));
        assert_eq!(flows.note(at(0), &key(2), 2).blocks()[0], (2, 2), "it begins anew");
    }

    #[test]
    fn idle_flows_expire() {
        let mut flows = flows(10);
        flows.note(at(0), &key(1), 1);
        flows.note(at(0), &key(2), 1);
        assert_eq!(flows.note(at(60), &key(1), 2).blocks()[0], (1, 2));
        assert_eq!(flows.note(at(121), &key(1), 3).blocks()[0], (3, 3), "it begins anew");
        flows.note(at(121), &key(3), 1);
        assert_eq!((flows.len(), flows.counts.expired), (2, 2));
    }
}
