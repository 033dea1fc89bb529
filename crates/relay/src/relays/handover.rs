//! All connections of a box, which another one in its place goes on with.

use super::carried::Life;
use super::{AdoptError, AssociationSnapshot, RelaySnapshot, Relays};
use crate::Handoff;
use base::{Duration, Time};
use core::net::IpAddr;
use host::FourTuple;
use serde::{Deserialize, Serialize};

/// All split connections and associations of a box at one moment, with what is known of them.
///
/// It is trusted: a forged one gives full control of the connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Handover {
    is_draining: bool,
    /// Each with the address of this box that its peer knows.
    associations: Vec<(IpAddr, AssociationSnapshot)>,
    connections: Vec<(RelaySnapshot, Account)>,
}

/// What [`Relays::carried`] says of a connection besides what is in its snapshot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Account {
    age: Duration,
    life: Life,
    /// Since its last event.
    idle: Duration,
    /// By [`crate::Side`].
    passed: [u64; 2],
    /// By [`crate::Side`].
    behind_hop: [bool; 2],
}

impl Handover {
    /// The connections, as their clients name them.
    pub fn connections(&self) -> impl ExactSizeIterator<Item = FourTuple> {
        self.connections.iter().map(|(snapshot, _)| snapshot.client())
    }
}

impl Relays {
    /// Gives up the connections of which no snapshot can be taken: the server has not answered yet. What was
    /// opened of them is reset.
    pub fn reset_half_open(&mut self, now: Time) {
        let half_open = self.splits.iter().flatten().filter(|entry| entry.waiting.is_some());
        let clients: Vec<FourTuple> = half_open.map(|entry| entry.client).collect();
        for client in clients {
            if self.snapshot(now, &client).is_none() {
                self.reset(now, &client);
            }
        }
    }

    /// All connections and associations, for a box that takes the place of this one. Connections of which no
    /// snapshot can be taken are not among them ([`Relays::reset_half_open`]). To be called after
    /// [`Relays::transmit`]; nothing has changed here.
    #[must_use]
    pub fn hand_over(&self, now: Time) -> Handover {
        let entries = self.splits.iter().flatten();
        let connections = entries.filter_map(|entry| {
            let account = Account {
                age: now.since(entry.began),
                life: entry.life,
                idle: now.since(entry.life.active()),
                passed: super::SIDES.map(|side| entry.relay.passed(side)),
                behind_hop: entry.behind_hop,
            };
            Some((self.snapshot(now, &entry.client)?, account))
        });
        Handover {
            is_draining: self.is_draining,
            associations: self.halves.associations.snapshots(now).collect(),
            connections: connections.collect(),
        }
    }

    /// Goes on with all that another box has handed over, and passes those to `lost` that cannot be continued, with
    /// the reason. [`Relays::transmit`] is to be called afterwards.
    pub fn take_over(
        &mut self,
        now: Time,
        handover: Handover,
        mut lost: impl FnMut(FourTuple, AdoptError),
    ) {
        let Handover { is_draining, associations, connections } = handover;
        self.is_draining = is_draining;
        for (local, snapshot) in associations {
            self.adopt_association(now, local, (snapshot, Handoff::Restored));
        }
        for (snapshot, account) in connections {
            let client = snapshot.client();
            match self.adopt(now, snapshot) {
                Ok(()) => self.continue_account(now, &client, account),
                Err(error) => lost(client, error),
            }
        }
    }

    fn continue_account(&mut self, now: Time, client: &FourTuple, account: Account) {
        // What was adopted may be over already.
        let Some(number) = self.number_of(client) else { return };
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        entry.began = now - account.age;
        entry.life = account.life.continued(now - account.idle);
        entry.relay.continue_passed(account.passed);
        let behind_hop = account.behind_hop;
        for side in super::SIDES.into_iter().filter(|&side| behind_hop[side as usize]) {
            self.schedule(number, side);
        }
    }
}
