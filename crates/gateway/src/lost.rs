//! Connections of a gateway before this one that was killed: their state is lost.

use crate::journal::{Journal, lock};
use base::{Random, Time};
use host::{Context, FourTuple};
use middlebox::Resets;
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::info;
use wire::{Body, Packet};

/// Ends that are to be reset, and the journal, from which they are known.
pub(crate) struct Lost {
    resets: Resets,
    /// That of all workers.
    journal: Option<Arc<Mutex<Journal>>>,
}

impl Lost {
    /// Those of the journal that a worker owns, and that are not among the connections which go on there. `random` is for
    /// numbers of segments.
    pub(crate) fn new(
        now: Time,
        journal: Option<Arc<Mutex<Journal>>>,
        random: Random,
        owns: impl Fn(&FourTuple) -> bool,
        goes_on: impl Iterator<Item = FourTuple>,
    ) -> Lost {
        let goes_on: FxHashSet<FourTuple> = goes_on.collect();
        let mut resets = Resets::new(random);
        let mut connections = 0;
        if let Some(journal) = &journal {
            let mut journal = lock(journal);
            goes_on.iter().for_each(|connection| journal.add(*connection));
            let left = journal.connections().filter(|connection| owns(connection));
            for connection in left.filter(|connection| !goes_on.contains(connection)) {
                connections += 1;
                resets.add(now, *connection);
                resets.add(now, connection.reversed());
            }
        }
        if connections > 0 {
            info!(connections, "resetting those of a gateway that has not ended them");
        }
        Lost { resets, journal }
    }

    pub(crate) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// A connection has begun.
    pub(crate) fn on_began(&mut self, connection: FourTuple) {
        self.resets.forget(&connection);
        if let Some(journal) = &self.journal {
            lock(journal).add(connection);
        }
    }

    /// A connection is over.
    pub(crate) fn on_ended(&mut self, connection: &FourTuple) {
        if let Some(journal) = &self.journal {
            lock(journal).remove(connection);
        }
    }

    /// Ends that are still to be reset.
    pub(crate) fn len(&self) -> usize {
        self.resets.len()
    }

    /// Whether a packet, which is of no connection that goes on, is from an end that is to be reset.
    pub(crate) fn refuses(&mut self, now: Time, packet: &Packet) -> bool {
        let Body::Tcp(segment) = &packet.body else { return false };
        let to = FourTuple::of_segment(&packet.ip, segment);
        if !self.is_lost(&to) {
            return false;
        }
        let is_lost = self.resets.take(now, &to, segment.flags);
        self.forget(&to);
        is_lost
    }

    pub(crate) fn poll_timeout(&self) -> Time {
        self.resets.poll_timeout()
    }

    /// Sends what is due.
    pub(crate) fn send(&mut self, now: Time, cx: &mut Context<'_>) {
        let mut silent = Vec::new();
        self.resets.send(now, cx, |connection| silent.push(connection));
        silent.iter().for_each(|connection| self.forget(connection));
    }

    /// One end of a connection is no longer to be reset. If the other is not either, it is over.
    fn forget(&mut self, connection: &FourTuple) {
        if !self.is_lost(connection) {
            self.on_ended(connection);
            self.on_ended(&connection.reversed());
        }
    }

    /// Whether an end of a connection is still to be reset.
    fn is_lost(&self, connection: &FourTuple) -> bool {
        self.resets.contains(connection) || self.resets.contains(&connection.reversed())
    }

    /// The gateway ends, and has reset all that it carries. The last worker removes the file, if none needs it.
    pub(crate) fn end(self) {
        let Some(journal) = self.journal else { return };
        if !self.resets.is_empty() {
            lock(&journal).keep();
        }
        if let Some(journal) = Arc::into_inner(journal) {
            journal.into_inner().unwrap_or_else(PoisonError::into_inner).discard();
        }
    }
}
