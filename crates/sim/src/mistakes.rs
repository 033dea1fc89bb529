//! An oracle that errs: it reports some of the packets that a queue dropped as corrupted (`bbn8333`
//! §8.3 proposes it, to measure the cost of such mistakes).

use base::{Duration, Random, Rate, Time};
use core::net::IpAddr;
use link::Config;
use std::collections::BTreeMap;
use wire::{Body, Packet};

/// A flow: source, destination, and the port that data goes to.
pub(crate) type Flow = (IpAddr, IpAddr, u16);

/// The flows whose drops may be reported as corruption, and the pending notices.
pub(crate) struct Mistakes {
    /// Its place in the schedule.
    component: u32,
    flows: Vec<(Flow, f64, Random)>,
    /// By the time of the notice, then in the order of the drops.
    pending: BTreeMap<(Time, u64), Packet>,
    drops: u64,
}

/// The rate and delay of an idle link direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    rate: Option<Rate>,
    delay: Duration,
}

impl Passage {
    pub(crate) fn of(config: &Config) -> Passage {
        let rate = config.trace.as_ref().map(link::DeliveryTrace::mean_rate).or(config.rate);
        Passage { rate, delay: config.delay }
    }

    /// The time that a packet takes. It is never 0: a source that answers at once would send into
    /// the same full queue for ever.
    fn time(self, len: u32) -> Duration {
        let sending = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(u64::from(len)));
        (sending + self.delay).max(Duration::from_micros(1))
    }
}

impl Mistakes {
    pub(crate) fn new(component: u32) -> Mistakes {
        Mistakes { component, flows: Vec::new(), pending: BTreeMap::new(), drops: 0 }
    }

    pub(crate) fn component(&self) -> u32 {
        self.component
    }

    pub(crate) fn add(&mut self, flow: Flow, probability: f64, random: Random) {
        self.flows.push((flow, probability, random));
    }

    /// Handles a dropped packet. Corruption would have been detected at the end of the link; so the
    /// source is notified when the packet could have arrived there.
    pub(crate) fn dropped(&mut self, now: Time, packet: &Packet, passage: Passage) {
        let Body::Tcp(segment) = &packet.body else { return };
        let flow = (packet.ip.source, packet.ip.destination, segment.destination_port);
        let Some((_, probability, random)) = self.flows.iter_mut().find(|known| known.0 == flow)
        else {
            return;
        };
        if random.chance(*probability) {
            let at = now + passage.time(packet.len());
            self.pending.insert((at, self.drops), *packet);
            self.drops += 1;
        }
    }

    /// The packet of the next notice, if that is due.
    pub(crate) fn due(&mut self, now: Time) -> Option<Packet> {
        let first = self.pending.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When the next notice is due.
    pub(crate) fn next(&self) -> Time {
        self.pending.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at)
    }
}
