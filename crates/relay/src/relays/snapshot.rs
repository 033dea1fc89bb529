//! Relays that move to another box.

#[cfg(test)]
mod tests;

use super::opening::Waiting;
use super::{Entry, HalfId, Relays, SIDES, StreamName};
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
    halves: [Option<HalfSnapshot>; 2],
    /// Its client, which waits for the server, has opened it over SRP.
    is_waiting: bool,
    /// By [`Side`], whether the end is behind the hop.
    behind_hop: [bool; 2],
}

/// A half of a [`RelaySnapshot`].
#[derive(Clone, Debug, Serialize, Deserialize)]
enum HalfSnapshot {
    Tcp(Box<ConnectionSnapshot<Half>>),
    /// A stream of an association, which moves by itself.
    Srp(StreamName),
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
    /// The association of a half has not been adopted.
    #[error("there is no association for the half of connection {0}")]
    NoAssociation(FourTuple),
    /// The box has a connection between these ends already.
    #[error("there is a connection {0} already")]
    Taken(FourTuple),
}

impl RelaySnapshot {
    /// The version of the snapshots that this code makes and adopts.
    pub const VERSION: u32 = 3;

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

    /// Whether the connection between these ends is split here, whichever of them has opened it, and perhaps not open yet.
    #[must_use]
    pub fn carries(&self, ends: &FourTuple) -> bool {
        [*ends, ends.reversed()].iter().any(|client| self.by_client.contains_key(client))
    }

    /// The number of the relay of a connection.
    pub(super) fn number_of(&self, client: &FourTuple) -> Option<u32> {
        self.by_client.get(client).copied()
    }

    /// A snapshot of a split connection, which its client names so; `None` if there is none, or if it is
    /// half-open and its client is no stream's. To be taken after [`Relays::transmit`]: what was sent is not in
    /// it.
    #[must_use]
    pub fn snapshot(&self, now: Time, client: &FourTuple) -> Option<RelaySnapshot> {
        let entry = self.splits[self.number_of(client)? as usize].as_ref()?;
        let Entry { relay, halves, waiting, .. } = entry;
        if !matches!(waiting, None | Some(Waiting::Stream(_))) {
            return None;
        }
        let half = |id: Option<HalfId>| match id? {
            HalfId::Tcp(id) => {
                let snapshot = self.halves.host.snapshot_connection(now, id)?;
                Some(HalfSnapshot::Tcp(Box::new(snapshot)))
            }
            HalfId::Srp(name) => {
                self.halves.associations.contains(name).then_some(HalfSnapshot::Srp(name))
            }
        };
        Some(RelaySnapshot {
            version: RelaySnapshot::VERSION,
            client: *client,
            relay: relay.clone(),
            halves: halves.map(half),
            is_waiting: waiting.is_some(),
            behind_hop: SIDES.map(|side| relay.is_scheduled(side)),
        })
    }

    /// The bytes that a split connection holds, but for those of streams of an association, as payloads of
    /// the packets that brought them.
    pub fn held_payloads_of(&self, client: &FourTuple, held: &mut dyn FnMut(Payload)) {
        let number = self.number_of(client).map(|number| number as usize);
        let Some(entry) = number.and_then(|number| self.splits[number].as_ref()) else { return };
        for half in entry.halves.iter().flatten().filter_map(|&id| self.halves.connection(id)) {
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

    /// Resets all split connections, and ends all associations.
    pub fn reset_all(&mut self, now: Time) {
        (0..self.splits.len() as u32).for_each(|number| self.abandon(now, number));
        self.abort_srp(now);
    }

    /// Answers a segment of a connection that does not exist with a reset.
    pub fn reset_sender(&mut self, packet: &Packet) {
        self.halves.host.reset_sender(packet);
    }

    /// Removes a split connection, after a snapshot of it; its ends are not told. Returns whether there
    /// was one.
    pub fn remove(&mut self, now: Time, client: &FourTuple) -> bool {
        let entry = self.number_of(client).and_then(|number| self.take(number));
        let Some(Entry { halves, .. }) = entry else { return false };
        for id in halves.into_iter().flatten() {
            self.halves.fail(now, id);
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
    /// If the snapshot has another version, or there is such a connection already, which is open. Nothing has changed
    /// then, but that its streams, which no relay continues, are reset.
    pub fn adopt(&mut self, now: Time, snapshot: RelaySnapshot) -> Result<(), AdoptError> {
        let streams = snapshot.halves.each_ref().map(|half| match half {
            Some(HalfSnapshot::Srp(name)) => Some(*name),
            Some(HalfSnapshot::Tcp(_)) | None => None,
        });
        let adopted = self.try_adopt(now, snapshot);
        if adopted.is_err() {
            for name in streams.into_iter().flatten() {
                self.halves.associations.abort_unassigned(name);
            }
            self.run(now);
        }
        adopted
    }

    fn try_adopt(&mut self, now: Time, snapshot: RelaySnapshot) -> Result<(), AdoptError> {
        let RelaySnapshot { version, client, mut relay, halves, is_waiting, behind_hop } = snapshot;
        if version != RelaySnapshot::VERSION {
            return Err(AdoptError::Version { found: version, expected: RelaySnapshot::VERSION });
        }
        // One that is only being opened here has no bytes yet.
        if let Some(Waiting::Syn { .. }) = self.waiting_mut(&client)
            && let Some(number) = self.number_of(&client)
        {
            self.abandon(now, number);
            self.run(now);
        }
        if self.is_taken(&client) {
            return Err(AdoptError::Taken(client));
        }
        let mut adopted = [None; 2];
        for (place, half) in adopted.iter_mut().zip(halves) {
            match half.map(|half| self.adopt_half(now, &client, half)).transpose() {
                Ok(id) => *place = id,
                Err(error) => {
                    for id in adopted.into_iter().flatten() {
                        if let HalfId::Tcp(id) = id {
                            self.halves.host.access(now, id, |connection, half| {
                                // Its number is that of a relay in the other box.
                                half.relay = Half::NO_RELAY;
                                connection.fail();
                            });
                        }
                    }
                    self.run(now);
                    return Err(error);
                }
            }
        }
        if self.hop.is_none() {
            for side in SIDES.into_iter().filter(|&side| behind_hop[side as usize]) {
                let Some(far) = adopted[side as usize] else { continue };
                self.halves.access(now, far, |far| relay.unschedule(side, far));
            }
        }
        let number = self.next_number();
        let waiting = match adopted[Side::Client as usize] {
            Some(HalfId::Srp(name)) if is_waiting => Some(Waiting::Stream(name)),
            _ => None,
        };
        let is_over = SIDES.map(|side| relay.is_over_at(side));
        let entry = Entry { relay, halves: adopted, waiting, ..Entry::new(now, client) };
        self.put(number, entry, behind_hop);
        for (side, id) in SIDES.into_iter().zip(adopted) {
            match id {
                Some(HalfId::Tcp(id)) => {
                    self.halves.host.access(now, id, |_, half| {
                        half.relay = number;
                        // What was scheduled there is passed on here at once, without a hop.
                        half.events |= Events::READABLE;
                    });
                }
                // One that is over has no more events.
                Some(HalfId::Srp(name)) if !is_over[side as usize] => {
                    self.halves.associations.assign(name, number, side);
                }
                Some(HalfId::Srp(_)) | None => {}
            }
        }
        self.statistics.adopted += 1;
        self.run(now);
        self.count_held(number);
        Ok(())
    }

    fn adopt_half(
        &mut self,
        now: Time,
        client: &FourTuple,
        half: HalfSnapshot,
    ) -> Result<HalfId, AdoptError> {
        match half {
            HalfSnapshot::Tcp(half) => {
                Ok(HalfId::Tcp(self.halves.host.adopt_connection(now, *half)?))
            }
            HalfSnapshot::Srp(name) => match self.halves.associations.stream(name) {
                Some(_) => Ok(HalfId::Srp(name)),
                None => Err(AdoptError::NoAssociation(*client)),
            },
        }
    }
}
