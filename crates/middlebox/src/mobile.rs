//! The mobile host's side of MHP (`yavatkar1994`): it tells each base station that it is attached to it,
//! and by which one its connections were served before.

mod connections;

use crate::mhp::{Attachment, Keys};
use crate::table::{Settings, Site};
use base::{Duration, Time};
use connections::Connections;
use core::net::IpAddr;
use host::{Context, FourTuple, LinkEvent, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use tcp::mechanism::Needs;
use wire::{Body, Ip, Mobility, MobilityMessage, Outcome, Packet, Payload};

base::settings! {
    /// A mobile host, whose base stations (box `station`) split its connections. It tells each base
    /// station to which it is attached where the connections were before. Until that one has them, the
    /// host sends nothing of them.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Mobile {
        /// What the base stations and mobile hosts of a network share: the keys that authenticate
        /// their messages follow from it.
        pub secret: String,
    }
}

impl Settings for Mobile {
    fn needs(&self) -> Needs {
        Needs::SENDER | Needs::RECEIVER | Needs::MIDDLEBOX
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let mut agent = MobileAgent::new(self, site.own);
        if let Some(station) = site.attached {
            agent.on_attached(Time::ZERO, station);
        }
        Box::new(agent)
    }
}

/// The box in the mobile host.
pub struct MobileAgent {
    own: [IpAddr; 2],
    keys: Keys,
    attachment: Attachment,
    connections: Connections,
    /// Packets of the host that wait for the base station.
    held: VecDeque<Packet>,
    /// Connections whose other ends are to be reset, as this host names them.
    unreset: BTreeSet<[(IpAddr, u16); 2]>,
    /// When the base station is asked again to reset them.
    next_reset: Time,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    attachments: u64,
    resumed: u64,
    lost: u64,
    reset: u64,
    forged: u64,
    dropped: u64,
}

impl MobileAgent {
    /// The most packets that wait for the base station.
    const MOST_HELD: usize = 64;
    /// How often the base station is asked to reset the other ends.
    const RESET_INTERVAL: Duration = Duration::from_millis(500);

    /// The agent of a host with these addresses.
    #[must_use]
    pub fn new(settings: &Mobile, own: [IpAddr; 2]) -> MobileAgent {
        MobileAgent {
            own,
            keys: Keys::new(&settings.secret),
            attachment: Attachment::new(Some(own[1]), 0),
            connections: Connections::default(),
            held: VecDeque::new(),
            unreset: BTreeSet::new(),
            next_reset: Time::NEVER,
            counts: Counts::default(),
        }
    }

    /// The host is attached to a base station. [`Middlebox::wake`] is to be called at
    /// [`Middlebox::next_wake`].
    pub fn on_attached(&mut self, now: Time, station: IpAddr) {
        self.counts.attachments += 1;
        self.attachment.on_attached(now, station);
    }

    /// Processes a message of a base station.
    fn on_message(&mut self, now: Time, message: &Mobility, cx: &mut Context<'_>) {
        if !self.keys.verify(self.own[0], message) {
            self.counts.forged += 1;
            return;
        }
        if let MobilityMessage::Reset { mobile, fixed, is_done: true } = message.message {
            self.unreset.remove(&[mobile, fixed]);
            return;
        }
        match self.attachment.on_message(now, message) {
            Some(Outcome::Complete) => {
                self.counts.resumed += 1;
                self.next_reset = now;
                self.held.drain(..).for_each(|packet| cx.send(packet));
            }
            Some(Outcome::Lost) => {
                self.counts.lost += 1;
                self.held.clear();
                self.reset_all(cx);
            }
            None => {}
        }
    }

    /// Resets all connections: their state is lost.
    fn reset_all(&mut self, cx: &mut Context<'_>) {
        for (connection, reset) in self.connections.take_all() {
            self.counts.reset += 1;
            let FourTuple { local, local_port, remote, remote_port } = connection;
            self.unreset.insert([(local, local_port), (remote, remote_port)]);
            cx.send(reset);
        }
    }

    /// Sends the messages that are due.
    fn tell(&mut self, now: Time, cx: &mut Context<'_>) {
        if let Some((station, message)) = self.attachment.poll(now) {
            cx.send(self.message_to(station, message));
        }
        // No base station: they may go.
        if !self.attachment.is_waiting() {
            self.held.drain(..).for_each(|packet| cx.send(packet));
        }
        if self.next_reset > now {
            return;
        }
        self.next_reset = Time::NEVER;
        if let Some(station) = self.attachment.station().filter(|_| !self.unreset.is_empty()) {
            for &[mobile, fixed] in &self.unreset {
                let message = MobilityMessage::Reset { mobile, fixed, is_done: false };
                let message = Mobility::new(self.attachment.number(), message);
                cx.send(self.message_to(station, message));
            }
            self.next_reset = now + MobileAgent::RESET_INTERVAL;
        }
    }

    fn message_to(&self, station: IpAddr, message: Mobility) -> Packet {
        let body = Body::Mobility(self.keys.sign(self.own[0], message));
        Packet { ip: Ip::new(self.own[0], station), body, ..Packet::BLANK }
    }
}

impl Middlebox for MobileAgent {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        match &packet.body {
            Body::Mobility(message) if from.is_some() => {
                let message = *message;
                self.on_message(now, &message, cx);
                self.tell(now, cx);
                Verdict::Consume
            }
            Body::Tcp(segment) => {
                let to = FourTuple::of_segment(&packet.ip, segment);
                match from {
                    Some(_) => self.connections.on_arrival(&to, segment),
                    None => self.connections.on_departure(&to.reversed(), segment),
                }
                if from.is_some() || !self.attachment.is_waiting() {
                    return Verdict::Forward;
                }
                match self.held.len() < MobileAgent::MOST_HELD {
                    true => self.held.push_back(*packet),
                    false => self.counts.dropped += 1,
                }
                Verdict::Consume
            }
            _ => Verdict::Forward,
        }
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.held.iter().for_each(|packet| held(packet.payload));
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("attachments", self.counts.attachments);
        count("attachments after which transfer resumed", self.counts.resumed);
        count("attachments whose state was lost", self.counts.lost);
        count("connections reset", self.counts.reset);
        count("packets dropped during an attachment", self.counts.dropped);
        count("messages that are not authentic", self.counts.forged);
    }

    fn next_wake(&self) -> Time {
        self.attachment.poll_timeout().min(self.next_reset)
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.tell(now, cx);
    }

    fn link(&mut self, now: Time, _: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        match event {
            LinkEvent::Up { peer } => {
                self.on_attached(now, peer);
                self.tell(now, cx);
            }
            LinkEvent::Down { peer } => self.attachment.on_detached(peer),
            LinkEvent::Corrupted(_) | LinkEvent::Corrected(_) | LinkEvent::Dropped(_) => {}
        }
    }
}
