//! What users take of a box: connections, and memory.

use super::{Entry, HalfId, Relays};
use crate::Side;
use crate::users::user_of;
use core::net::IpAddr;
use rustc_hash::FxHashMap;
use tcp::Pressure;

/// What the users of a box may take of it. A user is an address that is not behind the hop, in IPv6 a network of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Connections of a user that are split at once; without a limit if `None`.
    pub connections_per_user: Option<u32>,
    /// Bytes that all connections hold. Each user may hold as much as is free, so that one who fills all that he
    /// may leaves half of it to others, two leave a third, and so on (Choudhury and Hahne 1998, dynamic
    /// thresholds). It is exceeded by at most 16 KiB in each direction of a connection, and by what receive windows
    /// have announced. Without a limit if `None`.
    pub memory: Option<u64>,
}

/// The users of a box.
#[derive(Default)]
pub(super) struct Users {
    limits: Limits,
    users: FxHashMap<IpAddr, User>,
}

#[derive(Clone, Copy, Debug, Default)]
struct User {
    connections: u32,
    held: u64,
}

impl Entry {
    /// The end that is not behind the hop, as far as that is known.
    pub(super) fn user_side(&self) -> Side {
        let client = Side::Client as usize;
        let is_far = self.behind_hop[client] || matches!(self.halves[client], Some(HalfId::Srp(_)));
        if is_far { Side::Server } else { Side::Client }
    }

    /// Whose it is.
    pub(super) fn user(&self) -> IpAddr {
        user_of(match self.user_side() {
            Side::Client => self.client.local,
            Side::Server => self.client.remote,
        })
    }
}

impl Users {
    /// Bytes that a connection holds, or 0 where memory is not limited: they are not counted then.
    fn counted(&self, held: u64) -> u64 {
        if self.limits.memory.is_some() { held } else { 0 }
    }

    pub(super) fn add(&mut self, user: IpAddr, held: u64) {
        let held = self.counted(held);
        let user = self.users.entry(user).or_default();
        user.connections += 1;
        user.held += held;
    }

    pub(super) fn remove(&mut self, user: IpAddr, held: u64) {
        let held = self.counted(held);
        let Some(it) = self.users.get_mut(&user) else { return };
        it.connections -= 1;
        it.held -= held;
        if it.connections == 0 {
            self.users.remove(&user);
        }
    }

    /// The user of a connection may turn out to be its other end.
    pub(super) fn find_of(&mut self, entry: &mut Entry) {
        let user = entry.user();
        let before = core::mem::replace(&mut entry.user, user);
        if before != user {
            self.remove(before, entry.held);
            self.add(user, entry.held);
        }
    }

    /// A connection of a user holds as many bytes now, and held as many before.
    pub(super) fn set_held(&mut self, user: IpAddr, held: [u64; 2]) {
        let [before, now] = held.map(|held| self.counted(held));
        if before != now
            && let Some(user) = self.users.get_mut(&user)
        {
            user.held = user.held + now - before;
        }
    }

    /// The bytes that a user may hold besides those that he does, where all hold so many; without a limit if
    /// `None`.
    pub(super) fn share(&self, user: IpAddr, held_by_all: u64) -> Option<u64> {
        let free = self.limits.memory?.saturating_sub(held_by_all);
        let held = self.users.get(&user).map_or(0, |user| user.held);
        Some(free.saturating_sub(held))
    }
}

impl Relays {
    /// Sets what users may take. Connections that there are stay.
    pub fn set_limits(&mut self, limits: Limits) {
        self.users = Users { limits, ..Users::default() };
        for entry in self.splits.iter().flatten() {
            self.users.add(entry.user, entry.held);
        }
    }

    /// Whether this user has as many connections as he may.
    #[must_use]
    pub fn is_full(&self, user: IpAddr) -> bool {
        let Users { limits, users } = &self.users;
        let has = users.get(&user_of(user)).map_or(0, |user| user.connections);
        limits.connections_per_user.is_some_and(|most| has >= most)
    }

    /// Whether the connections hold as many bytes as they may.
    #[must_use]
    pub fn is_memory_used_up(&self) -> bool {
        self.users.limits.memory.is_some_and(|most| self.held >= most)
    }

    /// Tells a relay what its user may hold at present, and lets windows shrink if that is nothing.
    pub(super) fn limit_memory(&mut self, number: u32) {
        if self.users.limits.memory.is_none() {
            return;
        }
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        let share = self.users.share(entry.user, self.held);
        entry.relay.set_share(share);
        let is_pressed = share == Some(0);
        if core::mem::replace(&mut entry.is_pressed, is_pressed) == is_pressed {
            return;
        }
        let pressure = if is_pressed { Pressure::Window } else { Pressure::None };
        for half in entry.halves.into_iter().flatten() {
            if let HalfId::Tcp(id) = half {
                self.halves.host.set_pressure(id, pressure);
            }
        }
    }
}
