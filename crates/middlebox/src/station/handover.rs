//! Messages of mobile hosts and of other base stations, and what they cause.

use super::BaseStation;
use crate::mhp::{Action, Answer, Exchange, Reply, Transferred};
use base::Time;
use core::net::IpAddr;
use host::{FourTuple, Verdict};
use wire::{Body, Ip, Mobility, MobilityMessage, Outcome, Packet};

impl<E: Exchange> BaseStation<E> {
    /// Processes a message from an address.
    pub(super) fn on_message(&mut self, now: Time, from: IpAddr, message: &Mobility) {
        let mobile = match message.message {
            MobilityMessage::Solicit { mobile } => mobile,
            _ => from,
        };
        if !self.keys.verify(mobile, message) {
            self.counts.forged += 1;
            return;
        }
        match message.message {
            MobilityMessage::Solicit { .. } => self.advertise(mobile, from, message.attachment),
            MobilityMessage::Attach { .. } => self.registry.on_attach(now, from, message),
            MobilityMessage::Reset { mobile, fixed, is_done: false } => {
                self.on_reset(now, from, [mobile, fixed], message.attachment);
            }
            MobilityMessage::Resume { .. }
            | MobilityMessage::Reset { .. }
            | MobilityMessage::Advertise { .. } => {}
        }
    }

    /// A mobile host that knows an address of the link alone of this node asks, from an address, for another one.
    fn advertise(&mut self, mobile: IpAddr, from: IpAddr, attachment: u64) {
        let own = self.own[usize::from(mobile.is_ipv6())];
        if own.is_unspecified() {
            return;
        }
        let message = MobilityMessage::Advertise { station: own };
        let message = self.keys.sign(mobile, Mobility::new(attachment, message));
        let (ip, body) = (Ip::new(own, from), Body::Mobility(message));
        self.outgoing.push(Packet { ip, body, ..Packet::BLANK });
    }

    /// A mobile host has lost the state of a connection.
    fn on_reset(
        &mut self,
        now: Time,
        from: IpAddr,
        [mobile, fixed]: [(IpAddr, u16); 2],
        attachment: u64,
    ) {
        // A host may speak of its own connections only.
        if self.registry.mobile(mobile.0) != Some(from) || !self.registry.serves(from) {
            return;
        }
        let client = FourTuple {
            local: mobile.0,
            local_port: mobile.1,
            remote: fixed.0,
            remote_port: fixed.1,
        };
        self.relays.reset(now, &client);
        self.relays.reset(now, &client.reversed());
        self.resets.add(now, client);
        let done = MobilityMessage::Reset { mobile, fixed, is_done: true };
        self.outgoing.push(self.message_to(from, Mobility::new(attachment, done)));
    }

    /// Carries out what registry and exchange want.
    pub(super) fn carry_out(&mut self, now: Time) {
        loop {
            if let Some(action) = self.registry.poll() {
                self.act(now, action);
            } else if let Some(transferred) = self.exchange.poll(now) {
                self.on_transferred(now, transferred);
            } else {
                return;
            }
        }
    }

    fn act(&mut self, now: Time, action: Action<E::Requester>) {
        match action {
            Action::Confirm { mobile, attachment, outcome, is_first } => {
                self.counts.confirmed += 1;
                self.counts.lost += u64::from(outcome == Outcome::Lost);
                let incarnation = self.registry.incarnation();
                let message = MobilityMessage::Resume { outcome, incarnation };
                let message = Mobility::new(attachment, message);
                self.outgoing.push(self.message_to(mobile, message));
                // What was in flight to it is lost, and its connections know nothing of this hop.
                self.relays.reprobe_to(now, self.registry.addresses(mobile));
                if is_first {
                    self.relays.resume_srp_with(now, mobile);
                }
            }
            Action::Fetch { request, from } => {
                if !self.exchange.ask(now, &request, from) {
                    self.registry.on_reply(request.mobile, None);
                }
            }
            Action::Give { mobile, to } => self.give(now, mobile, to),
            Action::Answer { mobile, to, reply } => {
                let (associations, relays) = (Vec::new(), Vec::new());
                let answer = Answer { mobile, reply, associations, relays };
                self.exchange.answer(now, to, answer, Vec::new());
            }
            Action::Release { mobile } => {
                for packet in self.held.remove(&mobile).unwrap_or_default() {
                    if self.take(now, &packet) == Verdict::Forward {
                        self.outgoing.push(packet);
                    }
                }
            }
            Action::Forget { mobile, other } => {
                self.exchange.forget(mobile);
                self.held.remove(&mobile);
                for client in self.connections_of([Some(mobile), other]) {
                    self.relays.remove(now, &client);
                }
                self.relays.take_associations(now, mobile, &mut |_| ());
            }
        }
    }

    fn on_transferred(&mut self, now: Time, transferred: Transferred<E::Requester>) {
        match transferred {
            Transferred::Request(request, station, to) => {
                self.registry.on_request(now, &request, station, to);
            }
            Transferred::Answer(mobile, None) => self.registry.on_reply(mobile, None),
            Transferred::Answer(mobile, Some(answer)) => {
                let Answer { reply, associations, relays, .. } = answer;
                if self.registry.fetches(mobile) {
                    let own = self.own[usize::from(mobile.is_ipv6())];
                    for snapshot in associations {
                        let from = (snapshot, self.settings.handoff);
                        self.relays.adopt_association(now, own, from);
                    }
                    for snapshot in relays {
                        // One that cannot be adopted is lost; its ends are reset by their next segments.
                        if self.relays.adopt(now, snapshot).is_ok() {
                            self.counts.taken_over += 1;
                        }
                    }
                }
                self.counts.received = self.exchange.received();
                self.registry.on_reply(mobile, Some(reply));
            }
        }
    }

    /// Hands the connections of a mobile host over.
    fn give(&mut self, now: Time, mobile: IpAddr, to: E::Requester) {
        let (mut relays, mut data) = (Vec::new(), Vec::new());
        for client in self.connections_of(self.registry.addresses(mobile)) {
            // Both ends have all data; and thousands of these would be longer on their way than what is open.
            if self.relays.forget_over(now, &client) {
                continue;
            }
            match self.relays.snapshot(now, &client) {
                Some(snapshot) => {
                    relays.push(snapshot);
                    self.relays.held_payloads_of(&client, &mut |payload| data.push(payload));
                    self.relays.remove(now, &client);
                }
                // It is being opened: its client will open it again, at the next base station.
                None => self.relays.reset(now, &client),
            }
        }
        self.counts.handed_over += relays.len() as u64;
        let mut hold = |payload| data.push(payload);
        let associations = self.relays.take_associations(now, mobile, &mut hold);
        let answer = Answer { mobile, reply: Reply::State, associations, relays };
        self.exchange.answer(now, to, answer, data);
    }

    /// The split connections of the mobile host with these addresses, as their clients name them.
    fn connections_of(&self, addresses: [Option<IpAddr>; 2]) -> Vec<FourTuple> {
        let is_of = |address: IpAddr| addresses.contains(&Some(address));
        let all = self.relays.connections();
        all.filter(|client| is_of(client.local) || is_of(client.remote)).collect()
    }

    /// A message to a mobile host.
    fn message_to(&self, mobile: IpAddr, message: Mobility) -> Packet {
        let own = self.own[usize::from(mobile.is_ipv6())];
        let body = Body::Mobility(self.keys.sign(mobile, message));
        Packet { ip: Ip::new(own, mobile), body, ..Packet::BLANK }
    }

    /// Forgets mobile hosts that were not heard of for long.
    pub(super) fn expire(&mut self, now: Time) {
        if self.registry.poll_timeout() > now {
            return;
        }
        let relays = &self.relays;
        let clients: Vec<FourTuple> = relays.connections().collect();
        self.registry.expire(now, |addresses| {
            let is_of = |address: IpAddr| addresses.contains(&Some(address));
            clients.iter().any(|client| is_of(client.local) || is_of(client.remote))
        });
    }
}
