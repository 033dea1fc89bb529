//! Connections that are opened in two steps: on towards the server first; then the client is accepted.

use super::{Entry, Relays, towards};
use crate::{Half, Relay, Side, Split};
use base::Time;
use host::{FourTuple, Opening};
use tcp::{Config, Connection, Events, State};
use wire::{Body, Packet};

/// A client that waits for its server's answer.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The last copy of its SYN.
    syn: Packet,
    /// The settings of the half that is to accept it.
    config: Config,
}

impl Relays {
    /// Opens the connection that a SYN asks for on towards its destination, in the name of the client:
    /// with its address and port. Once the server has accepted it, the client is accepted; if the server
    /// refuses it or does not answer, the client is refused. Returns false, and leaves the packet alone,
    /// if there is such a connection, or if both its ends are one.
    pub fn open(&mut self, now: Time, syn: &Packet, split: &Split) -> bool {
        let Body::Tcp(segment) = &syn.body else { return false };
        let client = FourTuple::of_segment(&syn.ip, segment).reversed();
        if let Some(waiting) = self.waiting_mut(&client) {
            waiting.syn = *syn;
            return true;
        }
        if self.is_taken(&client) {
            return false;
        }
        let number = self.next_number();
        let FourTuple { local, local_port, remote, remote_port } = towards(Side::Server, &client);
        let [to_client, config] = split.configs.clone();
        let to_server = self.host.connect(
            now,
            Opening {
                at: now,
                remote,
                remote_port,
                local: Some(local),
                local_port: Some(local_port),
                config,
                application: Half::new(number, Side::Server),
            },
        );
        let relay = Relay::new(split.policy);
        if let Some(id) = to_server {
            self.host.access(now, id, |half, _| relay.join(half));
        }
        let waiting = Some(Box::new(Waiting { syn: *syn, config: to_client }));
        let entry = Entry { relay, halves: [None, to_server], waiting, ..Entry::new(client) };
        self.put(number, entry, [false; 2]);
        self.statistics.split += 1;
        self.run(now);
        true
    }

    fn waiting_mut(&mut self, client: &FourTuple) -> Option<&mut Waiting> {
        let number = self.number_of(client)?;
        self.splits.get_mut(number as usize)?.as_mut()?.waiting.as_deref_mut()
    }

    /// The half towards the server has had events: if it has accepted the connection, or is over, its
    /// client need not wait any longer.
    pub(super) fn on_answer(&mut self, now: Time, number: u32, events: Events) {
        if !events.intersects(Events::CONNECTED | Events::CLOSED) {
            return;
        }
        let Some(Some(entry)) = self.splits.get_mut(number as usize) else { return };
        let Some(waiting) = entry.waiting.take() else { return };
        let Waiting { syn, config } = *waiting;
        if events.contains(Events::CLOSED) {
            self.host.reset_sender(now, &syn);
            self.take(number);
            self.statistics.over += 1;
            return;
        }
        let half = Half::new(number, Side::Client);
        let Some(to_client) = self.host.accept_syn(now, &syn, &config, half) else {
            return self.abandon(now, number);
        };
        let Some(Some(Entry { relay, halves, .. })) = self.splits.get_mut(number as usize) else {
            return;
        };
        halves[Side::Client as usize] = Some(to_client);
        self.host.access(now, to_client, |half, _| relay.join(half));
        if let Some(to_server) = halves[Side::Server as usize] {
            // What the server has sent already is passed on.
            self.host.access(now, to_server, |_, half| half.events |= Events::READABLE);
        }
    }

    /// Resets the ends of a connection, and forgets it. A client that waits is not told: if it still
    /// wants the connection, its next SYN opens another one.
    pub(super) fn abandon(&mut self, now: Time, number: u32) {
        let Some(Entry { halves, .. }) = self.take(number) else { return };
        for id in halves.into_iter().flatten() {
            self.host.access(now, id, |half, _| half.abort());
        }
        self.statistics.over += 1;
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
        let halves = halves.into_iter().flatten();
        if !halves.clone().all(|id| self.host.connection(id).is_none_or(waits)) {
            return false;
        }
        halves.for_each(|id| {
            self.host.access(now, id, |connection, _| connection.fail());
        });
        self.run(now);
        true
    }
}
