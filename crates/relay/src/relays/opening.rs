//! Connections that are opened in two steps: on towards the server first; then the client is accepted.

use super::associations::StreamName;
use super::{Entry, HalfId, Relays, towards};
use crate::{Half, Relay, Side, Split};
use base::Time;
use core::net::IpAddr;
use host::{FourTuple, Opening};
use srp::{Ends, Reason};
use tcp::{Config, Connection, Events, State};
use wire::{Body, Packet};

/// A client that waits for its server's answer.
#[derive(Debug)]
pub(super) enum Waiting {
    /// By TCP.
    Syn {
        /// The last copy of its SYN.
        syn: Box<Packet>,
        /// The settings of the half that is to accept it.
        config: Box<Config>,
    },
    /// By SRP: its half is there.
    Stream(StreamName),
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
        let Body::Tcp(segment) = &syn.body else { return false };
        let client = FourTuple::of_segment(&syn.ip, segment).reversed();
        if let Some(waiting) = self.waiting_mut(&client) {
            if let Waiting::Syn { syn: last, .. } = waiting {
                **last = *syn;
            }
            return true;
        }
        if self.is_draining {
            return false;
        }
        let config = Box::new(split.configs[Side::Client as usize].clone());
        let waiting = Waiting::Syn { syn: Box::new(*syn), config };
        self.open_onward(now, (client, None), split, (waiting, onward))
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
        let to_server = match onward {
            Onward::Tcp => self.connect(now, number, &client, split).map(HalfId::Tcp),
            Onward::Srp { local, remote } => {
                self.open_stream(now, number, &client, [local, remote]).map(HalfId::Srp)
            }
        };
        let Some(id) = to_server else {
            if (number as usize) < self.splits.len() {
                self.vacant.push(number);
            }
            return false;
        };
        let relay = Relay::new(split.policy);
        self.halves.access(now, id, |half| relay.join(half));
        if let Some(HalfId::Srp(name)) = to_client {
            self.halves.associations.assign(name, number, Side::Client);
        }
        let halves = [to_client, to_server];
        self.put(
            number,
            Entry { relay, halves, waiting: Some(waiting), ..Entry::new(now, client) },
            [false; 2],
        );
        self.statistics.split += 1;
        self.run(now);
        true
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

    /// The half towards the server has had events: if it has accepted the connection, or is over, its
    /// client need not wait any longer.
    pub(super) fn on_answer(&mut self, now: Time, number: u32, side: Side, events: Events) {
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        let is_over = events.contains(Events::CLOSED);
        if entry.waiting.is_none() || !(is_over || events.contains(Events::CONNECTED)) {
            return;
        }
        if is_over {
            return self.refuse(now, number, side, events);
        }
        if side == Side::Client {
            return;
        }
        let accepted = match entry.waiting.take() {
            Some(Waiting::Syn { syn, config }) => {
                let half = Half::new(number, Side::Client);
                self.halves.host.accept_syn(now, &syn, &config, half).map(HalfId::Tcp)
            }
            Some(Waiting::Stream(name)) => {
                self.halves.associations.accept_stream(name);
                Some(HalfId::Srp(name))
            }
            None => return,
        };
        let Some(to_client) = accepted else { return self.abandon(now, number) };
        let Some(Some(Entry { relay, halves, .. })) = self.splits.get_mut(number as usize) else {
            return;
        };
        halves[Side::Client as usize] = Some(to_client);
        self.halves.access(now, to_client, |half| relay.join(half));
        // What the server has sent already is passed on.
        if let [Some(to_client), Some(to_server)] = *halves {
            self.halves.access_both(now, [to_server, to_client], |near, far| {
                relay.handle(now, (Side::Server, Events::READABLE), near, Some(far));
            });
        }
    }

    /// A half is over before both were there: the other end is told.
    fn refuse(&mut self, now: Time, number: u32, side: Side, events: Events) {
        let Some(entry) = self.finish(number) else { return };
        match (side, entry.waiting) {
            (Side::Server, Some(Waiting::Syn { syn, .. })) => {
                self.halves.host.reset_sender(now, &syn);
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
            (Side::Client, _) => self.abort_halves(now, entry.halves),
            (Side::Server, None) => {}
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
        let Some(number) = number else { return false };
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
