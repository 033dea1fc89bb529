//! The hop that relays share: at which rate they send over it, and in which order.

mod delivery_rate;
mod pace;
mod scheduler;

use crate::{Half, Next, Side};
use base::settings::{Kind, Setting};
use base::{Duration, Rate, Time};
use core::fmt;
use core::net::IpAddr;
use delivery_rate::DeliveryRate;
use host::Outlet;
use pace::Pace;
use scheduler::Scheduler;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use wire::{Packet, Payload};

/// The rate of a hop, bytes of IP packets: given in bits per second, or measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HopRate {
    /// It is known.
    Given(Rate),
    /// It is learned from what is delivered over the hop.
    #[default]
    Measured,
}

impl HopRate {
    const MEASURED: &str = "measured";
}

impl Setting for HopRate {
    const KIND: Kind = Kind::Either(&[Kind::Rate, Kind::Words(|| &[HopRate::MEASURED])]);
}

impl<'de> Deserialize<'de> for HopRate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<HopRate, D::Error> {
        from.deserialize_str(Written)
    }
}

struct Written;

impl Visitor<'_> for Written {
    type Value = HopRate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate above 0, such as \"1.5 Mbit/s\", or \"measured\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<HopRate, E> {
        match text {
            HopRate::MEASURED => Ok(HopRate::Measured),
            text => text
                .parse()
                .map(HopRate::Given)
                .map_err(|_| E::custom(format_args!("expected {}", &self as &dyn de::Expected))),
        }
    }
}

impl Serialize for HopRate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            HopRate::Given(rate) => to.collect_str(rate),
            HopRate::Measured => to.serialize_str(HopRate::MEASURED),
        }
    }
}

/// A direction of a relay: towards the end at one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowId(u32);

impl FlowId {
    pub(crate) fn new(relay: u32, side: Side) -> FlowId {
        FlowId(2 * relay + side as u32)
    }

    pub(crate) fn relay(self) -> u32 {
        self.0 / 2
    }

    pub(crate) fn side(self) -> Side {
        if self.0.is_multiple_of(2) { Side::Client } else { Side::Server }
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A hop and the directions of relays that lead over it.
#[derive(Debug)]
pub(crate) struct Hop {
    pace: Pace,
    scheduler: Scheduler,
    /// If the rate is measured.
    measured: Option<Measured>,
    given: Option<Rate>,
    /// When a segment may be sent, if one waits.
    wake: Time,
}

/// What is measured of a hop.
#[derive(Debug)]
struct Measured {
    rate: DeliveryRate,
    /// By [`FlowId`].
    flows: Vec<Deliveries>,
}

/// What is known of the deliveries of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Deliveries {
    /// Bytes of data that were delivered in all.
    data: u64,
    /// Bytes of data in its last segment, and those of the headers.
    last: [u32; 2],
}

impl Hop {
    pub(crate) fn new(rate: HopRate) -> Hop {
        let given = match rate {
            HopRate::Given(rate) => Some(rate),
            HopRate::Measured => None,
        };
        let measured = match rate {
            HopRate::Given(_) => None,
            HopRate::Measured => Some(Measured { rate: DeliveryRate::new(), flows: Vec::new() }),
        };
        let (pace, scheduler) = (Pace::new(given), Scheduler::default());
        Hop { pace, scheduler, measured, given, wake: Time::NEVER }
    }

    /// From now on, this is the rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        (self.given, self.measured) = (Some(rate), None);
        self.pace.set(Some(rate));
    }

    /// The rate, if it is known.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.given.or_else(|| self.measured.as_ref()?.rate.rate())
    }

    /// Adds a direction of a relay, to a user at this address, whose half has delivered so many bytes.
    pub(crate) fn add(&mut self, flow: FlowId, address: IpAddr, delivered: u64) {
        self.scheduler.add(flow, address);
        if let Some(Measured { flows, .. }) = &mut self.measured {
            if flows.len() <= flow.index() {
                flows.resize(flow.index() + 1, Deliveries::default());
            }
            flows[flow.index()] = Deliveries { data: delivered, ..Deliveries::default() };
        }
    }

    pub(crate) fn remove(&mut self, flow: FlowId) {
        self.scheduler.remove(flow);
    }

    /// Whether a direction of a relay leads over the hop.
    pub(crate) fn contains(&self, flow: FlowId) -> bool {
        self.scheduler.contains(flow)
    }

    /// There may be something to be passed on in this direction.
    pub(crate) fn make_ready(&mut self, flow: FlowId) {
        self.scheduler.make_ready(flow);
    }

    /// The direction in which a segment may be passed on now.
    pub(crate) fn next(&mut self, now: Time) -> Option<FlowId> {
        if self.pace.allows(now) { self.scheduler.next() } else { None }
    }

    /// A segment was passed on in this direction, if there was one; `next` is what may follow.
    pub(crate) fn on_passed(&mut self, flow: FlowId, next: Next) {
        match next {
            Next::Segment => self.scheduler.make_ready(flow),
            Next::Blocked => self.scheduler.block(flow),
            Next::Nothing => {}
        }
    }

    /// All that may be sent now is sent.
    pub(crate) fn on_transmitted(&mut self, now: Time) {
        let waits = self.scheduler.has_ready();
        self.wake = if waits { self.pace.next(now) } else { Time::NEVER };
        if !waits && self.pace.allows(now) {
            self.on_idle();
        }
    }

    pub(crate) fn poll_timeout(&self) -> Time {
        self.wake
    }

    fn on_idle(&mut self) {
        if let Some(Measured { rate, .. }) = &mut self.measured {
            rate.on_idle();
        }
    }

    /// A half whose peer is over the hop has sent `segments` segments, with so many bytes of data in
    /// each and of headers.
    fn on_sent(&mut self, now: Time, flow: FlowId, (data, headers): (u32, u32), total: u32) {
        if self.pace.charge(now, total, self.wake != Time::NEVER) {
            self.on_idle();
        }
        self.scheduler.charge(flow, total);
        if data == 0 {
            return;
        }
        self.scheduler.unblock(flow);
        if let Some(Measured { flows, .. }) = &mut self.measured {
            flows[flow.index()].last = [data, headers];
        }
    }

    /// Whether [`Hop::on_delivered`] has an effect.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    /// The half of a flow has delivered so many bytes of data in all. `rtt` is its latest round trip.
    pub(crate) fn on_delivered(&mut self, now: Time, flow: FlowId, data: u64, rtt: Duration) {
        let Some(Measured { rate, flows }) = &mut self.measured else { return };
        let Some(deliveries) = flows.get_mut(flow.index()) else { return };
        let new = data - core::mem::replace(&mut deliveries.data, data);
        if new == 0 {
            return;
        }
        let [segment, headers] = deliveries.last.map(u64::from);
        let bytes = new + new * headers / segment.max(1);
        if rate.on_delivered(now, bytes, rtt) {
            self.pace.set(rate.pace());
        }
    }
}

/// Counts what the halves send over the hop.
pub(crate) struct Metered<'a, O> {
    pub(crate) now: Time,
    pub(crate) hop: &'a mut Hop,
    pub(crate) outlet: &'a mut O,
}

impl<O: Outlet<Half>> Outlet<Half> for Metered<'_, O> {
    fn packet(&mut self) -> &mut Packet {
        self.outlet.packet()
    }

    fn send(&mut self, segment_size: u32, route: &mut Option<u32>, half: Option<&Half>) {
        let flow = half.map(|half| FlowId::new(half.relay, half.side));
        if let Some(flow) = flow.filter(|&flow| self.hop.contains(flow)) {
            let packet = self.outlet.packet();
            let data = packet.payload.len;
            let headers = packet.len() - data;
            let segments = data.div_ceil(segment_size.max(1)).max(1);
            let each = (data.min(segment_size), headers);
            self.hop.on_sent(self.now, flow, each, data + segments * headers);
        }
        self.outlet.send(segment_size, route, half);
    }

    fn gather(&mut self, payloads: &mut dyn Iterator<Item = Payload>) {
        self.outlet.gather(payloads);
    }

    fn segments(&self) -> u16 {
        self.outlet.segments()
    }
}
