//! Loss, delay, duplication and reordering of chosen packets, such as a protocol's control messages.

#[cfg(test)]
mod tests;

use crate::attack::times;
use crate::table::{Settings, Site};
use base::settings::{Kind, Span};
use base::{Random, Time};
use core::cmp::Reverse;
use host::{Context, DropReason, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BinaryHeap;
use wire::{Body, Mobility, Packet, Payload, Srp, Tfrc};

/// A probability.
const SHARE: Kind = Kind::Number { least: 0.0, most: 1.0 };

base::settings! {
    /// Loses, delays, duplicates and reorders the packets of one protocol that arrive at the node, or that
    /// its host sends, apart from all others. Boxes behind it in the node get what is left of them;
    /// packets that other boxes of the node send are not impaired.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Impairment {
        /// Which packets: those of this protocol over IP.
        pub protocol: Protocol,
        /// Of TCP and UDP, only packets from or to these ports; all if the list is empty.
        pub ports: Vec<u16>,
        /// Only packets that arrive from this neighbour; all if absent.
        pub from: Option<String>,
        /// The probability that a packet is lost, each on its own.
        pub loss: f64 as SHARE,
        /// The probability that a packet passes twice, each on its own; both copies may be delayed.
        pub duplication: f64 as SHARE,
        /// The delay of every packet; none if absent.
        pub delay: Option<Span>,
        /// The probability that a packet is delayed further, by `reordering_delay`, so that later ones
        /// overtake it.
        pub reordering: f64 as SHARE,
        /// That further delay.
        pub reordering_delay: Span,
        /// When it starts; at the start of the run if absent.
        pub start: Option<Span>,
        /// When it stops; at the end of the run if absent.
        pub stop: Option<Span>,
    }
}

impl Default for Impairment {
    fn default() -> Impairment {
        Impairment {
            protocol: Protocol::default(),
            ports: Vec::new(),
            from: None,
            loss: 0.0,
            duplication: 0.0,
            delay: None,
            reordering: 0.0,
            reordering_delay: Span(base::Duration::from_millis(20)),
            start: None,
            stop: None,
        }
    }
}

/// The protocol of a packet, over IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Any.
    #[default]
    Any,
    /// TCP.
    Tcp,
    /// UDP: datagrams of applications, SRP (port 51994), and messages of mobile hosts and base stations
    /// (port 59434).
    Udp,
    /// ICMP and ICMPv6, notices of corruption among them.
    Icmp,
    /// ESP.
    Esp,
    /// Repair packets of erasure codes.
    Repair,
}

base::words!(Protocol);

impl Settings for Impairment {
    fn neighbour(&self) -> Option<&str> {
        self.from.as_deref()
    }

    fn check(&self) -> Result<(), &'static str> {
        let has_ports = matches!(self.protocol, Protocol::Tcp | Protocol::Udp);
        if !self.ports.is_empty() && !has_ports {
            return Err("`ports` are those of TCP or UDP: expected `protocol` to be one of them");
        }
        Ok(())
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let from = self.from.as_deref().map(|neighbour| site.ports_from(neighbour));
        Box::new(Impaired::new(self.clone(), from, (site.random)()))
    }
}

/// The box.
pub struct Impaired {
    settings: Impairment,
    /// The links that packets arrive by, if only those of a neighbour are meant.
    from: Option<Vec<Port>>,
    times: (Time, Time),
    random: Random,
    /// Packets that are delayed, the next first.
    delayed: BinaryHeap<Reverse<Delayed>>,
    /// Packets that were delayed so far, which orders those that are due at the same time.
    count: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug)]
struct Delayed {
    due: (Time, u64),
    from: Option<Port>,
    packet: Packet,
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Delayed) -> bool {
        self.due == other.due
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Delayed) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Delayed) -> core::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    selected: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
}

impl Impaired {
    /// The box with these settings; `from` are the links by which packets arrive that are meant, all if
    /// there is none.
    #[must_use]
    pub fn new(settings: Impairment, from: Option<Vec<Port>>, random: Random) -> Impaired {
        let times = times(settings.start, settings.stop);
        Impaired {
            settings,
            from,
            times,
            random,
            delayed: BinaryHeap::new(),
            count: 0,
            counts: Counts::default(),
        }
    }

    /// Whether a packet is meant.
    fn selects(&self, now: Time, from: Option<Port>, packet: &Packet) -> bool {
        let is_from = |ports: &Vec<Port>| from.is_some_and(|port| ports.contains(&port));
        if now < self.times.0 || now >= self.times.1 || !self.from.as_ref().is_none_or(is_from) {
            return false;
        }
        let (protocol, ports) = of(&packet.body);
        let Impairment { protocol: wanted, ports: among, .. } = &self.settings;
        let is_among = |port: u16| among.contains(&port);
        (*wanted == Protocol::Any || *wanted == protocol)
            && (among.is_empty() || ports.into_iter().flatten().any(is_among))
    }

    /// By how much a copy of a packet is delayed.
    fn delay(&mut self) -> Option<base::Duration> {
        let Impairment { delay, reordering, reordering_delay, .. } = self.settings;
        let is_late = draw(&mut self.random, reordering);
        self.counts.reordered += u64::from(is_late);
        let further = is_late.then_some(reordering_delay.0);
        match (delay, further) {
            (None, None) => None,
            (delay, further) => {
                let none = base::Duration::ZERO;
                Some(delay.map_or(none, |Span(delay)| delay) + further.unwrap_or(none))
            }
        }
    }
}

/// Draws whether something of this probability happens.
fn draw(random: &mut Random, probability: f64) -> bool {
    probability > 0.0 && random.chance(probability)
}

/// The protocol of a packet, and its ports.
fn of(body: &Body) -> (Protocol, Option<[u16; 2]>) {
    match body {
        Body::Tcp(segment) => {
            (Protocol::Tcp, Some([segment.source_port, segment.destination_port]))
        }
        Body::Udp(udp) => (Protocol::Udp, Some([udp.source_port, udp.destination_port])),
        Body::Srp(Srp { source_port, destination_port, .. }) => {
            (Protocol::Udp, Some([*source_port, *destination_port]))
        }
        Body::Tfrc(Tfrc { source_port, destination_port, .. }) => {
            (Protocol::Udp, Some([*source_port, *destination_port]))
        }
        Body::Mobility(_) => (Protocol::Udp, Some([Mobility::PORT; 2])),
        Body::Icmp(_) => (Protocol::Icmp, None),
        Body::Esp(_) | Body::EspTransport(_) => (Protocol::Esp, None),
        Body::Repair(_) => (Protocol::Repair, None),
    }
}

impl Middlebox for Impaired {
    fn shares_state(&self) -> bool {
        false
    }

    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if !self.selects(now, from, packet) {
            return Verdict::Forward;
        }
        self.counts.selected += 1;
        if draw(&mut self.random, self.settings.loss) {
            self.counts.lost += 1;
            return Verdict::Drop(DropReason::Loss);
        }
        let is_twice = draw(&mut self.random, self.settings.duplication);
        self.counts.duplicated += u64::from(is_twice);
        let mut verdict = Verdict::Consume;
        for copy in 0..1 + u8::from(is_twice) {
            match self.delay() {
                Some(delay) => {
                    self.count += 1;
                    let due = (now + delay, self.count);
                    self.delayed.push(Reverse(Delayed { due, from, packet: *packet }));
                }
                None if copy == 0 => verdict = Verdict::Forward,
                None => cx.pass_on(from, *packet),
            }
        }
        verdict
    }

    fn next_wake(&self) -> Time {
        self.delayed.peek().map_or(Time::NEVER, |Reverse(next)| next.due.0)
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        while let Some(Reverse(next)) = self.delayed.peek()
            && next.due.0 <= now
            && let Some(Reverse(Delayed { from, packet, .. })) = self.delayed.pop()
        {
            cx.pass_on(from, packet);
        }
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.delayed.iter().for_each(|Reverse(delayed)| held(delayed.packet.payload));
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets selected", self.counts.selected);
        count("selected packets lost", self.counts.lost);
        count("selected packets duplicated", self.counts.duplicated);
        count("selected packets reordered", self.counts.reordered);
    }
}
