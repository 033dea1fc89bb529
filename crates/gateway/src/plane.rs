//! The box of a gateway, by its mode.

use crate::records::Records;
use base::Time;
use host::{Context, LinkEvent, Middlebox, Port, Verdict};
use middlebox::{Gateway, Splitter};
use relay::Relays;
use scenario::Work;
use tcp::Config;
use wire::{Packet, Payload};

/// The box.
pub(crate) struct Plane {
    kind: Kind,
    /// Where connections that have ended are sent.
    records: Option<Records>,
}

pub(crate) enum Kind {
    /// Mode `spoof`.
    Spoof(Splitter),
    /// Mode `pair`.
    Pair(Gateway),
}

impl Plane {
    pub(crate) fn new(kind: Kind, records: Option<Records>) -> Plane {
        let mut plane = Plane { kind, records: None };
        plane.record(records);
        plane
    }

    /// The connections that it carries, to be looked at.
    pub(crate) fn relays(&mut self) -> &mut Relays {
        match &mut self.kind {
            Kind::Spoof(splitter) => splitter.relays_mut(),
            Kind::Pair(gateway) => gateway.relays_mut(),
        }
    }

    /// Sends connections that end from now on there.
    pub(crate) fn record(&mut self, records: Option<Records>) {
        self.relays().keep_ended(records.is_some());
        self.records = records;
    }

    /// Sets what may be set while it runs.
    pub(crate) fn set(&mut self, work: &Work, tcp: &Config) {
        match (&mut self.kind, work) {
            (Kind::Spoof(splitter), Work::Spoof(spoofer)) => splitter.set(spoofer, tcp),
            (Kind::Pair(gateway), Work::Pair(pair, _)) => gateway.set(pair, tcp),
            // Its mode stays.
            (Kind::Spoof(_), _) | (Kind::Pair(_), _) => {}
        }
    }

    /// Takes note of the connections that have ended.
    fn note_ended(&mut self) {
        if let Some(records) = self.records.take() {
            self.relays().take_ended().for_each(|ended| records.note(ended));
            self.records = Some(records);
        }
    }

    fn get(&self) -> &dyn Middlebox {
        match &self.kind {
            Kind::Spoof(splitter) => splitter,
            Kind::Pair(gateway) => gateway,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Middlebox {
        match &mut self.kind {
            Kind::Spoof(splitter) => splitter,
            Kind::Pair(gateway) => gateway,
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
        let verdict = self.get_mut().packet(now, from, packet, cx);
        self.note_ended();
        verdict
    }

    fn next_wake(&self) -> Time {
        self.get().next_wake()
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.get_mut().wake(now, cx);
        self.note_ended();
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.get().held_payloads(held);
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.get().counts(count);
    }

    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        self.get().gauges(gauge);
    }

    fn link(&mut self, now: Time, port: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        self.get_mut().link(now, port, event, cx);
        self.note_ended();
    }
}
