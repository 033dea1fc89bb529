//! The box of a gateway, by its mode.

use base::Time;
use host::{Context, LinkEvent, Middlebox, Port, Verdict};
use middlebox::{Gateway, Splitter};
use wire::{Packet, Payload};

/// The box.
pub(crate) enum Plane {
    /// Mode `spoof`.
    Spoof(Splitter),
    /// Mode `pair`.
    Pair(Gateway),
}

impl Plane {
    fn get(&self) -> &dyn Middlebox {
        match self {
            Plane::Spoof(splitter) => splitter,
            Plane::Pair(gateway) => gateway,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Middlebox {
        match self {
            Plane::Spoof(splitter) => splitter,
            Plane::Pair(gateway) => gateway,
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
        self.get_mut().packet(now, from, packet, cx)
    }

    fn next_wake(&self) -> Time {
        self.get().next_wake()
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.get_mut().wake(now, cx);
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
    }
}
