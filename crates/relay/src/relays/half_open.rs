//! Connections that are not open at both ends yet: SYNs with forged addresses may begin as many as they like.

use super::{HalfId, Relays};
use crate::users::user_of;
use crate::{ByUser, Side};
use base::{Duration, Time};
use core::net::IpAddr;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use tcp::State;
use wire::Packet;

/// Those that are half-open.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    /// In the order in which they began, with their numbers; those that are open, or over, are skipped.
    ages: VecDeque<(Time, u32)>,
    /// By the client.
    pub(super) users: ByUser,
    known: Known,
}

/// Users whose clients have shown that they are there, as forged addresses do not: the last ones.
#[derive(Debug, Default)]
struct Known {
    users: FxHashSet<IpAddr>,
    /// In the order in which they came.
    order: VecDeque<IpAddr>,
}

impl Known {
    /// The most that are remembered.
    const MOST: usize = 4096;

    fn add(&mut self, address: IpAddr) {
        let user = user_of(address);
        if !self.users.insert(user) {
            return;
        }
        self.order.push_back(user);
        if self.order.len() > Known::MOST
            && let Some(first) = self.order.pop_front()
        {
            self.users.remove(&first);
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        self.users.contains(&user_of(address))
    }
}

impl Relays {
    /// The most connections that may be half-open.
    pub const HALF_OPEN: usize = 4096;
    /// The most of one user that may be half-open.
    pub const HALF_OPEN_OF_ONE: usize = 512;
    /// If there are as many as there may be, the oldest gives way if it is half-open for so long: its SYN has been
    /// repeated twice (RFC 6298 §2, after 1 and 3 seconds).
    const PATIENCE: Duration = Duration::from_secs(5);

    /// The number of connections that are half-open: not both halves are connected.
    #[must_use]
    pub fn half_open_connections(&self) -> usize {
        self.half_open.users.total()
    }

    /// Whether the connection that a SYN asks for may be opened: neither its user nor all together have too many that
    /// are half-open. One that is so for long may be given up for it; for a user whose clients have shown before that they
    /// are there, any. If not, the SYN should pass.
    pub fn admits(&mut self, now: Time, syn: &Packet) -> bool {
        if self.half_open.users.of(syn.ip.source) >= Relays::HALF_OPEN_OF_ONE {
            return false;
        }
        if self.half_open_connections() < Relays::HALF_OPEN {
            return true;
        }
        let is_known = self.half_open.known.has(syn.ip.source);
        match self.oldest_half_open() {
            Some((began, number)) if is_known || now.since(began) >= Relays::PATIENCE => {
                self.abandon(now, number);
                // Its number is used again: nothing must be left to be said of it.
                self.run(now);
                true
            }
            _ => false,
        }
    }

    /// A connection that was put into the table begins half-open.
    pub(super) fn on_half_open(&mut self, number: u32) {
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        entry.is_half_open = true;
        let (began, user) = (entry.began, entry.client.local);
        self.half_open.users.add(user);
        if self.half_open.ages.len() >= 2 * Relays::HALF_OPEN {
            // One that lasts keeps those behind it in the list.
            let mut ages = core::mem::take(&mut self.half_open.ages);
            ages.retain(|age| self.is_half_open(age));
            self.half_open.ages = ages;
        }
        self.half_open.ages.push_back((began, number));
    }

    /// Its client is connected, or has been asked by the peer that knows it. The server has accepted before.
    pub(super) fn on_open(&mut self, number: u32) {
        if let Some(client) = self.not_half_open(number) {
            self.half_open.known.add(client);
        }
    }

    /// A connection is half-open no longer, perhaps because it is over. Returns its client's address if it was.
    pub(super) fn not_half_open(&mut self, number: u32) -> Option<IpAddr> {
        let entry = self.splits.get_mut(number as usize)?.as_mut()?;
        let client = entry.client.local;
        core::mem::take(&mut entry.is_half_open).then(|| self.half_open.users.remove(client))?;
        Some(client)
    }

    /// Whether the client of a connection has still to show that it is there.
    pub(super) fn awaits_client(&self, number: u32) -> bool {
        let Some(Some(entry)) = self.splits.get(number as usize) else { return false };
        let Some(HalfId::Tcp(id)) = entry.halves[Side::Client as usize] else { return false };
        let half = self.halves.host.connection(id);
        half.is_some_and(|half| half.state() == State::SynReceived)
    }

    fn is_half_open(&self, &(began, number): &(Time, u32)) -> bool {
        let entry = self.splits.get(number as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.is_half_open && entry.began == began)
    }

    /// The one that is so for longest.
    fn oldest_half_open(&mut self) -> Option<(Time, u32)> {
        while let Some(age) = self.half_open.ages.front().copied() {
            if self.is_half_open(&age) {
                return Some(age);
            }
            self.half_open.ages.pop_front();
        }
        None
    }
}
