//! Relays that move to another box.

#[cfg(test)]
mod tests;

use super::{Entry, Relays, SIDES, towards};
use crate::{Half, Relay, Side};
use base::Time;
use host::{ConnectionSnapshot, FourTuple};
use serde::{Deserialize, Serialize};
use tcp::Events;
use thiserror::Error;
use wire::{Packet, Payload};

/// A split connection at one moment, to be stored or sent: both halves, the bytes between them, and how
/// they are relayed.
///
/// It is trusted: a forged snapshot gives full control of the connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RelaySnapshot {
    version: u32,
    client: FourTuple,
    relay: Relay,
    /// By [`Side`]; `None` if it is over.
    halves: [Option<ConnectionSnapshot<Half>>; 2],
    /// By [`Side`], whether the end is behind the hop.
    behind_hop: [bool; 2],
}

/// Why a snapshot was not adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AdoptError {
    /// It was taken by another version of lasthop.
    #[error("the snapshot of the relay is of version {found}, expected {expected}")]
    Version {
        /// The snapshot's.
        found: u32,
        /// The one that can be adopted.
        expected: u32,
    },
    /// A half was not adopted.
    #[error(transparent)]
    Half(#[from] host::AdoptError),
    /// The box has a connection between these ends already.
    #[error("there is a connection {0} already")]
    Taken(FourTuple),
}

impl RelaySnapshot {
    /// The version of the snapshots that this code makes and adopts.
    pub const VERSION: u32 = 1;

    /// The connection as its client names it.
    #[must_use]
    pub fn client(&self) -> FourTuple {
        self.client
    }
}

impl Relays {
    /// The split connections, as their clients name them.
    pub fn connections(&self) -> impl Iterator<Item = FourTuple> {
        self.splits.iter().flatten().map(|entry| entry.client)
    }

    /// The number of the relay of a connection.
    pub(super) fn number_of(&self, client: &FourTuple) -> Option<u32> {
        let half = |side| self.host.connection_at(&towards(side, client));
        let id = half(Side::Client).or_else(|| half(Side::Server))?;
        let number = self.host.application(id)?.relay;
        let entry = self.splits.get(number as usize)?.as_ref()?;
        (entry.client == *client).then_some(number)
    }

    /// A snapshot of a split connection, which its client names so; `None` if there is none, or if its
    /// client is not accepted yet. To be taken
    /// after [`Relays::transmit`]: what was sent is not in it.
    #[must_use]
    pub fn snapshot(&self, now: Time, client: &FourTuple) -> Option<RelaySnapshot> {
        let entry = self.splits[self.number_of(client)? as usize].as_ref()?;
        let Entry { relay, halves, waiting: None, .. } = entry else { return None };
        Some(RelaySnapshot {
            version: RelaySnapshot::VERSION,
            client: *client,
            relay: relay.clone(),
            halves: halves.map(|id| self.host.snapshot_connection(now, id?)),
            behind_hop: SIDES.map(|side| relay.is_scheduled(side)),
        })
    }

    /// The bytes that a split connection holds, as payloads of the packets that brought them.
    pub fn held_payloads_of(&self, client: &FourTuple, held: &mut dyn FnMut(Payload)) {
        let number = self.number_of(client).map(|number| number as usize);
        let Some(entry) = number.and_then(|number| self.splits[number].as_ref()) else { return };
        for half in entry.halves.iter().flatten().filter_map(|&id| self.host.connection(id)) {
            half.held_payloads().for_each(&mut *held);
        }
        entry.relay.rest().for_each(held);
    }

    /// Resets both ends of a split connection; of one whose client is not accepted yet, the server's.
    pub fn reset(&mut self, now: Time, client: &FourTuple) {
        if let Some(number) = self.number_of(client) {
            self.abandon(now, number);
            self.run(now);
        }
    }

    /// Answers a segment of a connection that does not exist with a reset.
    pub fn reset_sender(&mut self, now: Time, packet: &Packet) {
        self.host.reset_sender(now, packet);
    }

    /// Removes a split connection, after a snapshot of it; its ends are not told. Returns whether there
    /// was one.
    pub fn remove(&mut self, now: Time, client: &FourTuple) -> bool {
        let entry = self.number_of(client).and_then(|number| self.take(number));
        let Some(Entry { halves, .. }) = entry else { return false };
        for id in halves.into_iter().flatten() {
            self.host.access(now, id, |half, _| half.fail());
        }
        self.statistics.removed += 1;
        self.run(now);
        true
    }

    /// Continues a split connection of another box, which goes on at `now` as it would have gone on
    /// there when the snapshot was taken. [`Relays::transmit`] is to be called afterwards. If this box has
    /// a hop, the ends that were behind the hop of the other one are behind this one.
    ///
    /// # Errors
    /// If the snapshot has another version, or there is such a connection already. Nothing has changed
    /// then.
    pub fn adopt(&mut self, now: Time, snapshot: RelaySnapshot) -> Result<(), AdoptError> {
        let RelaySnapshot { version, client, mut relay, halves, behind_hop } = snapshot;
        if version != RelaySnapshot::VERSION {
            return Err(AdoptError::Version { found: version, expected: RelaySnapshot::VERSION });
        }
        if self.is_taken(&client) {
            return Err(AdoptError::Taken(client));
        }
        let mut adopted = [None; 2];
        for (place, half) in adopted.iter_mut().zip(halves) {
            match half.map(|half| self.host.adopt_connection(now, half)).transpose() {
                Ok(id) => *place = id,
                Err(error) => {
                    for id in adopted.into_iter().flatten() {
                        self.host.access(now, id, |connection, half| {
                            // Its number is that of a relay in the other box.
                            half.relay = Half::NO_RELAY;
                            connection.fail();
                        });
                    }
                    self.run(now);
                    return Err(error.into());
                }
            }
        }
        if self.hop.is_none() {
            for side in SIDES.into_iter().filter(|&side| behind_hop[side as usize]) {
                let Some(far) = adopted[side as usize] else { continue };
                self.host.access(now, far, |far, _| relay.unschedule(side, far));
            }
        }
        let number = self.next_number();
        self.put(number, Entry { relay, halves: adopted, ..Entry::new(client) }, behind_hop);
        for id in adopted.into_iter().flatten() {
            self.host.access(now, id, |_, half| {
                half.relay = number;
                // What was scheduled there is passed on here at once, without a hop.
                half.events |= Events::READABLE;
            });
        }
        self.statistics.adopted += 1;
        self.run(now);
        self.count_held(number);
        Ok(())
    }
}
