//! The box of a gateway, by its mode.

use crate::ending::Ending;
use crate::lost::Lost;
use crate::mhp::{Agent, Mailbox};
use crate::records::Records;
use base::Time;
use host::{Context, HostIndication, LinkEvent, Middlebox, Port, Verdict};
use live::inline::Side;
use middlebox::{BaseStation, Gateway, Reporter, Splitter};
use relay::{Change, Handover, Relays};
use scenario::Work;
use std::net::IpAddr;
use tcp::Config;
use tracing::warn;
use wire::{Packet, Payload};

/// The box.
pub(crate) struct Plane {
    kind: Kind,
    /// Those of a gateway before this one.
    lost: Lost,
    /// Where connections that have ended are sent.
    records: Option<Records>,
    /// It is about to end.
    ending: Option<Ending>,
}

pub(crate) enum Kind {
    /// Mode `spoof`.
    Spoof(Splitter),
    /// Mode `pair`.
    Pair(Gateway),
    /// Mode `station`.
    Station(Box<BaseStation<Mailbox>>),
    /// Mode `mobile`.
    Mobile(Box<Agent>),
    /// Mode `spep` in user space: the lab's box, which relays none, either.
    Spep(Box<dyn Middlebox + Send>, Relays),
    /// Mode `notify`, which relays none either.
    Notify(Box<Reporter>, Relays),
}

impl Kind {
    /// Goes on with the connections of the gateway before this one. Those that cannot be continued are lost.
    pub(crate) fn take_over(&mut self, now: Time, connections: Handover) {
        self.relays().take_over(now, connections, |connection, error| {
            warn!(%connection, %error, "not taken over");
        });
        // There is no way to the other gateway yet.
        self.relays().suspend_srp(now);
    }

    pub(crate) fn relays(&mut self) -> &mut Relays {
        match self {
            Kind::Spoof(splitter) => splitter.relays_mut(),
            Kind::Pair(gateway) => gateway.relays_mut(),
            Kind::Station(station) => station.relays_mut(),
            Kind::Mobile(agent) => agent.relays(),
            Kind::Spep(_, none) | Kind::Notify(_, none) => none,
        }
    }
}

impl Plane {
    pub(crate) fn new(kind: Kind, lost: Lost, records: Option<Records>) -> Plane {
        let mut plane = Plane { kind, lost, records: None, ending: None };
        plane.record(records);
        plane
    }

    /// All connections, for a gateway that takes the place of this one.
    pub(crate) fn hand_over(&mut self, now: Time) -> Handover {
        self.relays().hand_over(now)
    }

    /// Ends of connections of a gateway before this one that are still to be reset.
    pub(crate) fn lost_ends(&self) -> usize {
        self.lost.len()
    }

    /// Resets all that it carries, and carries no more. Says whether it has carried any.
    pub(crate) fn reset_all(&mut self, now: Time) -> bool {
        let relays = self.relays();
        let carries = relays.connections().next().is_some();
        // One that began until the thread has ended would be lost.
        relays.drain(true);
        relays.reset_all(now);
        self.ending = Some(Ending::default());
        carries
    }

    /// Sends the resets again.
    pub(crate) fn repeat_resets(&mut self) {
        if let Some(ending) = &mut self.ending {
            ending.repeat();
        }
    }

    /// It has ended, and its connections are reset.
    pub(crate) fn end(self) {
        self.flush_records();
        self.lost.end();
    }

    /// The connections that it carries, to be looked at.
    pub(crate) fn relays(&mut self) -> &mut Relays {
        self.kind.relays()
    }

    /// Sends connections that end from now on there.
    pub(crate) fn record(&mut self, records: Option<Records>) {
        let keeps = records.is_some() || self.lost.has_journal();
        self.relays().keep_changes(keeps);
        self.records = records;
    }

    /// Sets what may be set while it runs.
    pub(crate) fn set(&mut self, work: &Work, tcp: &Config) {
        match (&mut self.kind, work) {
            (Kind::Spoof(splitter), Work::Spoof(spoofer)) => splitter.set(spoofer, tcp),
            (Kind::Pair(gateway), Work::Pair(pair, _)) => gateway.set(pair, tcp),
            (Kind::Notify(reporter, _), Work::Notify(notifier)) => {
                reporter.set_limit(notifier.notices);
            }
            // Nothing of it may be set, or its mode is another, which stays.
            _ => {}
        }
    }

    /// What is recorded so far is in the file when this returns.
    pub(crate) fn flush_records(&self) {
        if let Some(records) = &self.records {
            records.flush();
        }
    }

    /// Takes note of the connections that have begun and ended.
    fn note_changes(&mut self) {
        let Plane { kind, lost, records, .. } = self;
        for change in kind.relays().take_changes() {
            match change {
                Change::Began(connection) => lost.on_began(connection),
                Change::Ended(ended) => {
                    lost.on_ended(&ended.carried.client);
                    if let Some(records) = records {
                        records.note(ended);
                    }
                }
            }
        }
    }

    /// The way to other base stations, of one.
    pub(crate) fn mailbox(&mut self) -> Option<&mut Mailbox> {
        match &mut self.kind {
            Kind::Station(station) => Some(station.exchange_mut()),
            _ => None,
        }
    }

    /// The agent of a mobile host.
    pub(crate) fn agent(&mut self) -> Option<&mut Agent> {
        match &mut self.kind {
            Kind::Mobile(agent) => Some(agent),
            _ => None,
        }
    }

    /// The addresses of the router have changed, from which it sends notices.
    pub(crate) fn set_addresses(&mut self, addresses: Vec<IpAddr>) {
        if let Kind::Notify(reporter, _) = &mut self.kind {
            reporter.set_addresses(addresses);
        }
    }

    fn get(&self) -> &dyn Middlebox {
        match &self.kind {
            Kind::Spoof(splitter) => splitter,
            Kind::Pair(gateway) => gateway,
            Kind::Station(station) => &**station,
            Kind::Mobile(agent) => &agent.agent,
            Kind::Spep(station, _) => &**station,
            Kind::Notify(reporter, _) => &**reporter,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Middlebox {
        match &mut self.kind {
            Kind::Spoof(splitter) => splitter,
            Kind::Pair(gateway) => gateway,
            Kind::Station(station) => &mut **station,
            Kind::Mobile(agent) => &mut agent.agent,
            Kind::Spep(station, _) => &mut **station,
            Kind::Notify(reporter, _) => &mut **reporter,
        }
    }
}

impl Middlebox for Plane {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        // What comes from the LAN is the mobile host's own.
        let from = match self.kind {
            Kind::Mobile(..) => from.filter(|port| *port != Side::Lan.port()),
            _ => from,
        };
        let verdict = self.get_mut().packet(now, from, packet, cx);
        self.note_changes();
        if verdict == Verdict::Forward && self.lost.refuses(now, packet) {
            self.relays().reset_sender(packet);
            self.get_mut().wake(now, cx);
            return Verdict::Consume;
        }
        verdict
    }

    fn queued(&mut self, now: Time, to: Port, packet: &mut Packet, cx: &mut Context<'_>) {
        self.get_mut().queued(now, to, packet, cx);
    }

    fn next_wake(&self) -> Time {
        self.get().next_wake().min(self.lost.poll_timeout())
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.get_mut().wake(now, cx);
        self.lost.send(now, cx);
        self.note_changes();
        if let Some(ending) = &mut self.ending {
            ending.wake(cx);
        }
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.get().held_payloads(held);
    }

    fn indicate(&mut self, now: Time, indication: &HostIndication) {
        self.get_mut().indicate(now, indication);
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.get().counts(count);
    }

    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        self.get().gauges(gauge);
    }

    fn link(&mut self, now: Time, port: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        match (&mut self.kind, event) {
            (Kind::Station(station), LinkEvent::Up { peer }) => {
                station.on_reachable(now, peer);
                station.wake(now, cx);
            }
            _ => self.get_mut().link(now, port, event, cx),
        }
        self.note_changes();
    }
}
