//! Snoop: a base station repairs the losses of its wireless hop, and hides them from TCP senders
//! (Balakrishnan, Seshan, Amir, Katz: *Improving TCP/IP Performance over Wireless Networks*,
//! MobiCom 1995).
//!
//! The rules are the publication's; numbers that it leaves open, and the treatment of FIN and of
//! queues that overflow, are those of its authors' code in ns-2 (`tcp/snoop.cc`).

mod cache;
mod connection;
#[cfg(test)]
mod tests;

use crate::table::{Settings, Site};
use crate::{Hop, Remedy};
use base::settings::{Kind, Span};
use base::{Duration, Schedule, Time};
use connection::{Connection, Limits};
use host::{Context, FourTuple, LinkEvent, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tcp::mechanism::Needs;
use wire::{Body, Flags, Packet, Payload};

base::settings! {
    /// Keeps the TCP segments that pass to the neighbour behind a wireless hop until they are
    /// acknowledged, and retransmits those that the hop loses. The duplicate acknowledgments and SACK
    /// blocks that would tell the sender of such a loss do not pass. Both directions must pass this node.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Snoop {
        /// The name of the neighbour behind the wireless hop. It must be given.
        pub hop: String,
        /// The most segments of a connection that the node keeps. Those beyond it pass, and are not
        /// retransmitted.
        pub cache: u32 as Kind::at_least(1),
        /// How often a segment is retransmitted over the hop at most, unless its sender has
        /// retransmitted it, too. Then its loss is left to the sender.
        pub retransmissions: u32 as Kind::at_least(1),
        /// The shortest time after which a segment is retransmitted that nothing was heard of. It
        /// follows from the round trip of the hop (SRTT + 4 RTTVAR, at least 2 SRTT) if that is longer.
        pub min_timeout: Span,
    }
}

impl Default for Snoop {
    /// The values of ns-2's `Snoop` but for the cache, which has 100 packets there.
    fn default() -> Snoop {
        Snoop {
            hop: String::new(),
            cache: 256,
            retransmissions: 10,
            min_timeout: Span(Duration::from_millis(100)),
        }
    }
}

impl Settings for Snoop {
    fn neighbour(&self) -> Option<&str> {
        Some(&self.hop)
    }

    fn remedies(hop: &Hop<'_>) -> Vec<Remedy> {
        let hop = hop.neighbour.to_owned();
        vec![Remedy::before_hop(Snoop { hop, cache: 1000, ..Snoop::default() })]
    }

    fn needs(&self) -> Needs {
        Needs::MIDDLEBOX | Needs::BOTH_DIRECTIONS | Needs::CLEAR_HEADERS
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        Box::new(Retransmitter::new(self, site.ports_from(&self.hop)))
    }
}

/// The box.
pub struct Retransmitter {
    /// The ports at which packets from the hop arrive.
    hop: Vec<Port>,
    limits: Limits,
    /// The connections, by the mobile host's name of each.
    places: HashMap<FourTuple, u32, rustc_hash::FxBuildHasher>,
    connections: Vec<Watched>,
    vacant: Vec<u32>,
    /// The next deadline of each connection, or an earlier time.
    schedule: Schedule,
    counts: Counts,
}

struct Watched {
    tuple: FourTuple,
    connection: Connection,
    /// When a packet of it passed last.
    used: Time,
}

impl Watched {
    fn deadline(&self) -> Time {
        self.connection.deadline().min(self.used + Retransmitter::LIFETIME)
    }
}

/// What the box did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Segments retransmitted over the hop.
    retransmitted: u64,
    /// Of them, those that nothing was heard of for the timeout.
    timeouts: u64,
    /// Duplicate ACKs that did not pass.
    suppressed: u64,
    /// Acknowledgments without the SACK blocks above a gap of the hop.
    shortened: u64,
    /// Segments that were retransmitted as often as allowed.
    given_up: u64,
    /// Segments that found the cache full.
    overflow: u64,
    /// Segments of connections that are not watched, because too many are.
    unwatched: u64,
}

impl Retransmitter {
    /// The most connections that are watched at once. The state of one is soft: it begins with any
    /// segment.
    const MOST: usize = 4096;
    /// How long a connection is remembered of which nothing passes.
    const LIFETIME: Duration = Duration::from_secs(60);

    /// A box with these settings. Packets from the hop arrive at these ports.
    #[must_use]
    pub fn new(settings: &Snoop, hop: Vec<Port>) -> Retransmitter {
        let Span(min_timeout) = settings.min_timeout;
        Retransmitter {
            hop,
            limits: Limits {
                cache: settings.cache as usize,
                retransmissions: settings.retransmissions,
                min_timeout,
            },
            places: HashMap::default(),
            connections: Vec::new(),
            vacant: Vec::new(),
            schedule: Schedule::new(),
            counts: Counts::default(),
        }
    }

    /// The number of segments in the caches.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.connections.iter().map(|watched| watched.connection.cached()).sum()
    }

    /// The number of connections that are watched.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.places.len()
    }

    /// Whether packets that leave by this port take the hop.
    fn leads_to_hop(&self, port: Port) -> bool {
        self.hop.contains(&port.opposite())
    }

    /// The place of a connection. It is watched from now on, if there is room.
    fn place(&mut self, now: Time, tuple: FourTuple) -> Option<u32> {
        let full = self.places.len() >= Retransmitter::MOST;
        let entry = match self.places.entry(tuple) {
            Entry::Occupied(entry) => return Some(*entry.get()),
            Entry::Vacant(_) if full => {
                self.counts.unwatched += 1;
                return None;
            }
            Entry::Vacant(entry) => entry,
        };
        let place = self.vacant.pop().unwrap_or_else(|| {
            let connection = Connection::new(self.limits);
            self.connections.push(Watched { tuple, connection, used: now });
            self.schedule.add()
        });
        self.connections[place as usize].tuple = tuple;
        Some(*entry.insert(place))
    }

    /// Forgets a connection: it is over, or another begins between the same ends.
    fn forget(&mut self, tuple: FourTuple) {
        if let Some(place) = self.places.remove(&tuple) {
            self.connections[place as usize].connection.reset();
            self.schedule.set(place, Time::NEVER);
            self.vacant.push(place);
        }
    }

    /// Brings the wake of a connection forward to its deadline.
    fn schedule(&mut self, now: Time, place: u32) {
        let watched = &mut self.connections[place as usize];
        watched.used = now;
        self.schedule.bring_forward(place, watched.deadline());
    }
}

impl Middlebox for Retransmitter {
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
        let Body::Tcp(segment) = &packet.body else { return Verdict::Forward };
        let to = FourTuple::of_segment(&packet.ip, segment);
        let from_hop = from.is_some_and(|port| self.hop.contains(&port));
        let tuple = if from_hop { to.reversed() } else { to };
        if segment.flags.intersects(Flags::SYN | Flags::RST) {
            self.forget(tuple);
        } else if from_hop
            && segment.flags.contains(Flags::ACK)
            && let Some(&place) = self.places.get(&tuple)
        {
            let connection = &mut self.connections[place as usize].connection;
            let passes = connection.acknowledge(now, packet, &mut self.counts, cx);
            self.schedule(now, place);
            if !passes {
                return Verdict::Consume;
            }
        }
        Verdict::Forward
    }

    // What the queue of the hop does not accept is not kept: its loss is congestion.
    fn queued(&mut self, now: Time, to: Port, packet: &mut Packet, _: &mut Context<'_>) {
        let Body::Tcp(segment) = &packet.body else { return };
        if cache::octets(packet, segment) == 0
            || segment.flags.contains(Flags::SYN)
            || !self.leads_to_hop(to)
        {
            return;
        }
        let tuple = FourTuple::of_segment(&packet.ip, segment);
        if let Some(place) = self.place(now, tuple) {
            let connection = &mut self.connections[place as usize].connection;
            connection.forward(now, packet, segment, &mut self.counts);
            self.schedule(now, place);
        }
    }

    fn link(&mut self, _: Time, port: Port, event: LinkEvent<'_>, _: &mut Context<'_>) {
        if let LinkEvent::Dropped(packet) = event
            && let Body::Tcp(segment) = &packet.body
            && self.leads_to_hop(port)
            && let Some(&place) = self.places.get(&FourTuple::of_segment(&packet.ip, segment))
        {
            self.connections[place as usize].connection.drop(segment.seq);
        }
    }

    fn next_wake(&self) -> Time {
        self.schedule.first().0
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        loop {
            let (at, place) = self.schedule.first();
            if at > now {
                return;
            }
            let Watched { connection, used, tuple } = &mut self.connections[place as usize];
            if *used + Retransmitter::LIFETIME <= now {
                let tuple = *tuple;
                self.forget(tuple);
                continue;
            }
            if connection.deadline() <= now {
                connection.time_out(now, &mut self.counts, cx);
            }
            let deadline = self.connections[place as usize].deadline();
            self.schedule.set(place, deadline);
        }
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.connections.iter().flat_map(|watched| watched.connection.payloads()).for_each(held);
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let counts = &self.counts;
        count("segments retransmitted over the hop", counts.retransmitted);
        count("timeouts of the hop", counts.timeouts);
        count("duplicate ACKs suppressed", counts.suppressed);
        count("ACKs without SACK blocks above a gap", counts.shortened);
        count("segments given up", counts.given_up);
        count("segments not cached: cache full", counts.overflow);
        count("segments not cached: too many connections", counts.unwatched);
    }

    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        gauge("cached_segments", self.cached() as u64);
    }
}
