//! The split connections of a box, with all halves in one host.

use crate::{Half, Policy, Relay, Side};
use base::{Random, Time};
use core::net::IpAddr;
use host::{ConnectionId, FourTuple, Host, Outlet};
use tcp::{Config, Connection, Handshake, State};
use wire::Packet;

/// Split connections.
pub struct Relays {
    host: Host<Half>,
    splits: Vec<Option<Entry>>,
    vacant: Vec<u32>,
    statistics: Statistics,
}

struct Entry {
    relay: Relay,
    /// By [`Side`].
    halves: [ConnectionId; 2],
}

/// How a connection is split.
#[derive(Clone, Debug)]
pub struct Split {
    /// The settings of the halves, by the [`Side`] that each speaks with.
    pub configs: [Config; 2],
    /// How its relay treats it.
    pub policy: Policy,
}

/// Counts of split connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections that were split.
    pub split: u64,
    /// Those that are over.
    pub over: u64,
}

impl Relays {
    /// None yet. `address` is the box's own, `random` is for secrets.
    #[must_use]
    pub fn new(address: IpAddr, random: Random) -> Relays {
        let host = Host::new(address, random);
        let (splits, vacant, statistics) = (Vec::new(), Vec::new(), Statistics::default());
        Relays { host, splits, vacant, statistics }
    }

    /// The host of the halves.
    #[must_use]
    pub fn host(&self) -> &Host<Half> {
        &self.host
    }

    /// Counts.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The number of split connections that are not over.
    #[must_use]
    pub fn open(&self) -> usize {
        self.splits.len() - self.vacant.len()
    }

    /// Splits a connection whose handshake has passed. `client` names it as its client does. Returns
    /// false if there is such a connection, or if both its ends are one.
    pub fn split(
        &mut self,
        now: Time,
        client: FourTuple,
        handshake: &Handshake,
        split: &Split,
    ) -> bool {
        let towards = |side| match side {
            Side::Client => client.reversed(),
            Side::Server => client,
        };
        let sides = [Side::Client, Side::Server];
        let exists = |side: &Side| self.host.connection_at(&towards(*side)).is_some();
        // Forged packets may name the same end twice: there is no room for two halves.
        if client == client.reversed() || sides.iter().any(exists) {
            return false;
        }
        let number = self.vacant.pop().unwrap_or(self.splits.len() as u32);
        let halves = sides.map(|side| {
            // Each half takes the place of the other end.
            let end = match side {
                Side::Client => tcp::Side::Passive,
                Side::Server => tcp::Side::Active,
            };
            let (config, half) = (&split.configs[side as usize], Half::new(number, side));
            self.host.adopt_handshake(now, towards(side), (end, handshake), config, half)
        });
        let [Some(to_client), Some(to_server)] = halves else {
            unreachable!("no connection has these 4-tuples")
        };
        let halves = [to_client, to_server];
        let relay = self.host.access_both(now, halves, |both| {
            Relay::new(split.policy, both.map(|(connection, _)| connection))
        });
        let entry = relay.map(|relay| Entry { relay, halves });
        match self.splits.get_mut(number as usize) {
            Some(place) => *place = entry,
            None => self.splits.push(entry),
        }
        self.statistics.split += 1;
        self.run(now);
        true
    }

    /// Processes a packet if it is for a half; returns whether it is: it belongs to a split connection.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) -> bool {
        let is_taken = self.host.handle_known(now, packet);
        if is_taken {
            self.run(now);
        }
        is_taken
    }

    /// Forgets the split connection of a packet, which opens a new one between the same ends, if its
    /// halves have nothing more to do but to wait in TIME-WAIT. Returns whether it did.
    pub fn forget(&mut self, now: Time, packet: &Packet) -> bool {
        let id = self.host.connection_of(packet);
        let number = id.and_then(|id| Some(self.host.application(id)?.relay));
        let Some(number) = number else { return false };
        let Some(Entry { halves, .. }) = self.splits[number as usize] else { return false };
        let waits =
            |connection: &Connection| matches!(connection.state(), State::TimeWait | State::Closed);
        if !halves.iter().all(|&id| self.host.connection(id).is_none_or(waits)) {
            return false;
        }
        for id in halves {
            self.host.access(now, id, |connection, _| connection.fail());
        }
        self.run(now);
        true
    }

    /// When [`Relays::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.host.poll_timeout()
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.host.handle_timeout(now);
        self.run(now);
    }

    /// Sends all that may be sent now. To be called after every other call.
    pub fn transmit(&mut self, now: Time, outlet: &mut impl Outlet<Half>) {
        // The owner asks for the next deadline after each call anyway.
        let _ = self.host.transmit(now, outlet);
    }

    /// Lets the relays handle the events of their halves.
    fn run(&mut self, now: Time) {
        while let Some(id) = self.host.poll_request() {
            let Some(&Half { relay: number, side, .. }) = self.host.application(id) else {
                continue;
            };
            let Some(Entry { relay, halves }) = &mut self.splits[number as usize] else { continue };
            let ids = [id, halves[side.other() as usize]];
            let both = self.host.access_both(now, ids, |[(near, half), (far, _)]| {
                relay.handle(now, (side, half.take_events()), near, Some(far));
            });
            if both.is_none() {
                // The other half is over, and its connection removed.
                self.host.access(now, id, |near, half| {
                    relay.handle(now, (side, half.take_events()), near, None);
                });
            }
            if relay.is_over() {
                self.splits[number as usize] = None;
                self.vacant.push(number);
                self.statistics.over += 1;
            }
        }
    }
}
