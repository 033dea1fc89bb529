//! Connections that are opened in two steps: first the one half, then the other.

use super::associations::StreamName;
use super::{Entry, HalfId, Relays, towards};
use crate::{Half, Relay, Side, Split};
use base::Time;
use core::net::IpAddr;
use host::{FourTuple, Opening};
use srp::{Ends, Reason};
use tcp::{Config, Connection, Events, State};
use wire::{Body, Packet};

/// How a connection goes on whose halves are not both connected.
#[derive(Debug)]
pub(super) enum Waiting {
    /// The half towards the server is opened, and its client waits by TCP.
    Syn {
        /// The last copy of its SYN.
        syn: Box<Packet>,
        /// The settings of the half that is to accept it.
        config: Box<Config>,
    },
    /// The half towards the server is opened, and its client waits by SRP: its half is there.
    Stream(StreamName),
    /// The client is accepted, and its handshake is not complete.
    Accepted {
        /// How the connection is split.
        split: Box<Split>,
        /// How it goes on.
        onward: Onward,
    },
    /// The client is connected, and the half towards the server is opened.
    Connecting,
}

/// How a connection goes on towards its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// By TCP.
    Tcp,
    /// By the SRP association with this peer. A new one is opened, from this address, if there is none.
    Srp {
        /// The box's own address.
        local: IpAddr,
        /// The peer.
        remote: IpAddr,
    },
}

impl Relays {
    /// Opens the connection that a SYN asks for on towards its destination; by TCP it is in the name of
    /// the client, with its address and port. Once the server has accepted it, the client is accepted; if
    /// the server refuses it or does not answer, the client is refused. Returns false, and leaves the packet
    /// alone, if there is such a connection, or if both its ends are one, or if the peer takes no more, or if no
    /// more are to be split ([`Relays::drain`]).
    pub fn open(&mut self, now: Time, syn: &Packet, split: &Split, onward: Onward) -> bool {
        if self.is_repeated(syn) {
            return true;
        }
        if self.is_draining {
            return false;
        }
        let Body::Tcp(segment) = &syn.body else { return false };
        let client = FourTuple::of_segment(&syn.ip, segment).reversed();
        let config = Box::new(split.configs[Side::Client as usize].clone());
        let waiting = Waiting::Syn { syn: Box::new(*syn), config };
        self.open_onward(now, (client, None), split, (waiting, onward))
    }

    /// Whether a SYN is that of a client that waits, again. Its last copy is the one that will be answered.
    pub fn is_repeated(&mut self, syn: &Packet) -> bool {
        let Body::Tcp(segment) = &syn.body else { return false };
        let client = FourTuple::of_segment(&syn.ip, segment).reversed();
        let Some(waiting) = self.waiting_mut(&client) else { return false };
        if let Waiting::Syn { syn: last, .. } = waiting {
            **last = *syn;
        }
        true
    }

    /// Accepts the connection that a SYN asks for, and opens it on towards its destination once the
    /// client has completed its handshake. Data of the client's that comes earlier than the server's answer waits; if
    /// the server refuses the connection or does not answer, the client's is reset. Returns false, and
    /// leaves the packet alone, if there is such a connection, or if both its ends are one, or if no more are
    /// to be split ([`Relays::drain`]).
    pub fn accept(&mut self, now: Time, syn: &Packet, split: &Split, onward: Onward) -> bool {
        if self.is_draining {
            return false;
        }
        let Body::Tcp(segment) = &syn.body else { return false };
        let client = FourTuple::of_segment(&syn.ip, segment).reversed();
        if self.is_taken(&client) {
            return false;
        }
        let number = self.next_number();
        let (config, half) =
            (&split.configs[Side::Client as usize], Half::new(number, Side::Client));
        let Some(id) = self.halves.host.accept_syn(now, syn, config, half) else {
            self.give_back(number);
            return false;
        };
        let to_client = HalfId::Tcp(id);
        let relay = Relay::new(split.policy);
        self.halves.access(now, to_client, |half| relay.join(half));
        let waiting = Some(Waiting::Accepted { split: Box::new(split.clone()), onward });
        let halves = [Some(to_client), None];
        self.put(number, Entry { relay, halves, waiting, ..Entry::new(now, client) }, [false; 2]);
        self.statistics.split += 1;
        self.run(now);
        true
    }

    /// Opens the connection of a stream that a peer has opened ([`Relays::poll_incoming`]) on towards its
    /// server. If that is not possible, the stream is refused.
    pub fn open_incoming(
        &mut self,
        now: Time,
        (name, client): (StreamName, FourTuple),
        split: &Split,
        onward: Onward,
    ) {
        let near = Some(HalfId::Srp(name));
        let waiting = Waiting::Stream(name);
        if !self.open_onward(now, (client, near), split, (waiting, onward)) {
            self.halves.associations.refuse(name, Reason::Refused);
        }
    }

    /// Opens the half towards the server.
    fn open_onward(
        &mut self,
        now: Time,
        (client, to_client): (FourTuple, Option<HalfId>),
        split: &Split,
        (waiting, onward): (Waiting, Onward),
    ) -> bool {
        if self.is_taken(&client) {
            return false;
        }
        let number = self.next_number();
        let Some(id) = self.open_half(now, number, &client, (split, onward)) else {
            self.give_back(number);
            return false;
        };
        let relay = Relay::new(split.policy);
        self.halves.access(now, id, |half| relay.join(half));
        if let Some(HalfId::Srp(name)) = to_client {
            self.halves.associations.assign(name, number, Side::Client);
        }
        let (halves, waiting) = ([to_client, Some(id)], Some(waiting));
        self.put(number, Entry { relay, halves, waiting, ..Entry::new(now, client) }, [false; 2]);
        self.statistics.split += 1;
        self.run(now);
        true
    }

    /// Opens the half of a relay towards its server.
    fn open_half(
        &mut self,
        now: Time,
        number: u32,
        client: &FourTuple,
        (split, onward): (&Split, Onward),
    ) -> Option<HalfId> {
        match onward {
            Onward::Tcp => self.connect(now, number, client, split).map(HalfId::Tcp),
            Onward::Srp { local, remote } => {
                self.open_stream(now, number, client, [local, remote]).map(HalfId::Srp)
            }
        }
    }

    /// The number of a relay is not used.
    fn give_back(&mut self, number: u32) {
        if (number as usize) < self.splits.len() {
            self.vacant.push(number);
        }
    }

    /// Opens a TCP connection to the server in the name of the client.
    fn connect(
        &mut self,
        now: Time,
        number: u32,
        client: &FourTuple,
        split: &Split,
    ) -> Option<host::ConnectionId> {
        let FourTuple { local, local_port, remote, remote_port } = towards(Side::Server, client);
        let opening = Opening {
            at: now,
            remote,
            remote_port,
            local: Some(local),
            local_port: Some(local_port),
            config: split.configs[Side::Server as usize].clone(),
            application: Half::new(number, Side::Server),
        };
        self.halves.host.connect(now, opening)
    }

    /// Opens a stream to the server.
    fn open_stream(
        &mut self,
        now: Time,
        number: u32,
        client: &FourTuple,
        [local, remote]: [IpAddr; 2],
    ) -> Option<StreamName> {
        let associations = &mut self.halves.associations;
        let token = match associations.with(remote) {
            Some(token) => token,
            None => associations.connect(now, local, remote)?,
        };
        let ends = Ends {
            client: client.local,
            client_port: client.local_port,
            server: client.remote,
            server_port: client.remote_port,
        };
        let name = associations.open(now, token, ends)?;
        associations.assign(name, number, Side::Server);
        Some(name)
    }

    pub(super) fn waiting_mut(&mut self, client: &FourTuple) -> Option<&mut Waiting> {
        let number = self.number_of(client)?;
        self.splits.get_mut(number as usize)?.as_mut()?.waiting.as_mut()
    }

    /// A half has had events: if it is connected, or over, the connection goes on.
    pub(super) fn on_answer(&mut self, now: Time, number: u32, side: Side, events: Events) {
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        let awaited = match entry.waiting {
            None if side == Side::Client && events.contains(Events::CONNECTED) => {
                return self.on_open(number);
            }
            None => return,
            Some(Waiting::Accepted { .. }) => Side::Client,
            Some(Waiting::Syn { .. } | Waiting::Stream(_) | Waiting::Connecting) => Side::Server,
        };
        if events.contains(Events::CLOSED) {
            return self.refuse(now, number, side, events);
        }
        if side != awaited || !events.contains(Events::CONNECTED) {
            return;
        }
        let client = entry.client;
        let (side, half) = match entry.waiting.replace(Waiting::Connecting) {
            Some(Waiting::Accepted { split, onward }) => {
                (Side::Server, self.open_half(now, number, &client, (&split, onward)))
            }
            Some(Waiting::Syn { syn, config }) => {
                let half = Half::new(number, Side::Client);
                let accepted = self.halves.host.accept_syn(now, &syn, &config, half);
                (Side::Client, accepted.map(HalfId::Tcp))
            }
            Some(Waiting::Stream(name)) => {
                self.halves.associations.accept_stream(name);
                (Side::Client, Some(HalfId::Srp(name)))
            }
            Some(Waiting::Connecting) | None => return self.begin(now, number),
        };
        let Some(half) = half else { return self.abandon(now, number) };
        let Some(Some(Entry { relay, halves, .. })) = self.splits.get_mut(number as usize) else {
            return;
        };
        halves[side as usize] = Some(half);
        self.halves.access(now, half, |half| relay.join(half));
        if side == Side::Client {
            self.begin(now, number);
        }
    }

    /// Both halves are there, and the server has accepted: what they have received already is passed on.
    fn begin(&mut self, now: Time, number: u32) {
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        entry.waiting = None;
        if !self.awaits_client(number) {
            self.on_open(number);
        }
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        let (relay, [Some(to_client), Some(to_server)]) = (&mut entry.relay, entry.halves) else {
            return;
        };
        self.halves.access_both(now, [to_client, to_server], |to_client, to_server| {
            relay.handle(now, (Side::Client, Events::READABLE), to_client, Some(to_server));
            relay.handle(now, (Side::Server, Events::READABLE), to_server, Some(to_client));
        });
    }

    /// A half is over before both were there: the other end is told.
    fn refuse(&mut self, now: Time, number: u32, side: Side, events: Events) {
        let Some(entry) = self.finish(number) else { return };
        match (side, entry.waiting) {
            (Side::Server, Some(Waiting::Syn { syn, .. })) => {
                // That an association is over says nothing of the server: the client's next SYN goes another way.
                if !self.halves.is_of_ended_association(entry.halves[Side::Server as usize]) {
                    self.halves.host.reset_sender(&syn);
                }
            }
            (Side::Server, Some(Waiting::Stream(name))) => {
                let reason = if events.contains(Events::TIMED_OUT) {
                    Reason::TimedOut
                } else if events.contains(Events::UNREACHABLE) {
                    Reason::Unreachable
                } else {
                    Reason::Refused
                };
                self.halves.associations.refuse(name, reason);
            }
            (Side::Client, _) | (Side::Server, Some(Waiting::Connecting)) => {
                self.abort_halves(now, entry.halves);
            }
            // The half that would be told is not there yet.
            (Side::Server, None | Some(Waiting::Accepted { .. })) => {}
        }
    }

    /// Resets the ends of a connection, and forgets it. A client that waits by TCP is not told: if it still
    /// wants the connection, its next SYN opens another one.
    pub(super) fn abandon(&mut self, now: Time, number: u32) {
        let Some(Entry { halves, waiting, .. }) = self.finish(number) else { return };
        if let Some(Waiting::Stream(name)) = waiting {
            self.halves.associations.refuse(name, Reason::Aborted);
        }
        self.abort_halves(now, halves);
    }

    fn abort_halves(&mut self, now: Time, halves: [Option<HalfId>; 2]) {
        for id in halves.into_iter().flatten() {
            self.halves.access(now, id, |half| half.abort());
        }
    }

    /// Forgets the split connection of a packet, which opens a new one between the same ends, if its
    /// halves have nothing more to do but to wait in TIME-WAIT. Returns whether it did.
    pub fn forget(&mut self, now: Time, packet: &Packet) -> bool {
        let id = self.halves.host.connection_of(packet);
        let number = id.and_then(|id| Some(self.halves.host.application(id)?.relay));
        number.is_some_and(|number| self.forget_waiting(now, number))
    }

    /// Forgets the split connection that its client names so, if its halves have nothing more to do but to wait in
    /// TIME-WAIT. Returns whether it did.
    pub fn forget_over(&mut self, now: Time, client: &FourTuple) -> bool {
        self.number_of(client).is_some_and(|number| self.forget_waiting(now, number))
    }

    fn forget_waiting(&mut self, now: Time, number: u32) -> bool {
        let Some(Entry { halves, .. }) = self.splits[number as usize] else { return false };
        let waits =
            |connection: &Connection| matches!(connection.state(), State::TimeWait | State::Closed);
        let halves = halves.into_iter().flatten();
        let is_over = |id| match id {
            HalfId::Tcp(id) => self.halves.host.connection(id).is_none_or(waits),
            HalfId::Srp(_) => false,
        };
        if !halves.clone().all(is_over) {
            return false;
        }
        halves.for_each(|id| self.halves.fail(now, id));
        self.run(now);
        true
    }
}
