//! TCP spoofing: a box before a long hop splits the connections that pass (`ishac2001` §2).

mod handshakes;
#[cfg(test)]
mod tests;

use crate::left_alone::{is_syn, reason, want_of_room};
use crate::sending::Sending;
use crate::table::{Settings, Site};
use crate::{Hop, Remedy};
use base::settings::{Bytes, Kind, Setting, names};
use base::{Random, Time};
use core::net::IpAddr;
use handshakes::{Complete, Handshakes};
use host::{Context, FourTuple, HostIndication, LinkEvent, Middlebox, Port, Verdict};
use relay::{HopRate, Limits, Onward, Policy, Relays, Seen, Split, Teardown};
use serde::{Deserialize, Serialize};
use tcp::mechanism::Needs;
use tcp::{Config, KeepAlive};
use wire::{Body, Packet, Payload, Segment};

/// By whose handshake the connection with a server is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connect {
    /// By the client's, which passes end to end (`ishac2001` §2).
    #[default]
    EndToEnd,
    /// By one of the node's own, before it answers the client: a client is accepted or refused as the
    /// server does it. Each half has options of its own.
    First,
    /// By one of the node's own, after it has accepted the client: it need not wait for the hop. Where the
    /// server refuses the connection or does not answer, the client's is reset.
    AtOnce,
}

impl Setting for Connect {
    const KIND: Kind = Kind::Words(names::<Connect>);
}

base::settings! {
    /// Splits the TCP connections that pass the node in both directions, at this node. The handshake
    /// stays end to end (`connect`); data and teardown are spoofed: the node acknowledges them in the name of
    /// the other end, and carries them on in a connection of its own.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Spoofer {
        /// By whose handshake the connection with a server is made: the client's, as published; or the node's,
        /// before (`first`) or after (`at-once`) it accepts the client.
        pub connect: Connect,
        /// The most data of a connection that the node holds in each direction, besides what its receive
        /// window takes: beyond it, the window closes. Without a limit if absent, as published.
        pub cache: Option<Bytes>,
        /// When the end of a stream (FIN) is acknowledged to its sender: at once, as published, or once
        /// the receiver has acknowledged it.
        pub teardown: Teardown,
        /// The neighbour of the node at the other end of the long hop.
        pub hop: Option<String>,
        /// The rate of the hop: the node sends over it at this rate, with equal shares for the addresses
        /// behind it, so that its queue does not overflow. With `"measured"`, the node learns the rate from
        /// what is delivered over the hop. Needs `hop`. Without, each connection sends as its congestion
        /// control lets it, as published.
        pub rate: Option<HopRate>,
        /// The most connections that are split at once. Further ones pass as they are.
        pub connections: u32 as Kind::at_least(1),
        /// The most of them that a user has: an address that is not behind the hop, in IPv6 a network of 64 bits.
        /// Without a limit if absent.
        pub connections_per_user: Option<u32> as Kind::at_least(1),
        /// The most data that all connections hold together. Each user may hold as much as is free: one alone
        /// fills half of it, two a third each. Without a limit if absent.
        pub memory: Option<Bytes>,
    }
}

impl Default for Spoofer {
    fn default() -> Spoofer {
        Spoofer {
            connect: Connect::default(),
            cache: None,
            teardown: Teardown::default(),
            hop: None,
            rate: None,
            connections: Splitter::CONNECTIONS,
            connections_per_user: None,
            memory: None,
        }
    }
}

impl Settings for Spoofer {
    fn runs_tcp(&self) -> bool {
        true
    }

    fn neighbour(&self) -> Option<&str> {
        self.hop.as_deref()
    }

    fn check(&self) -> Result<(), &'static str> {
        match (&self.hop, self.rate) {
            (None, Some(_)) => {
                Err("`rate` needs `hop`: the neighbour at the other end of the hop with that rate")
            }
            _ => Ok(()),
        }
    }

    /// As published, but with a cache that is limited, to what auto-tuned windows take at most; and one
    /// that does not overrun the hop.
    fn remedies(hop: &Hop<'_>) -> Vec<Remedy> {
        let plain = Spoofer { cache: Some(Bytes(16 << 20)), ..Spoofer::default() };
        let mended = Spoofer {
            hop: Some(hop.neighbour.to_owned()),
            rate: Some(hop.rate.map_or(HopRate::Measured, HopRate::Given)),
            ..plain.clone()
        };
        vec![Remedy::before_hop(plain), Remedy::before_hop(mended)]
    }

    fn needs(&self) -> Needs {
        Needs::MIDDLEBOX | Needs::BOTH_DIRECTIONS | Needs::CLEAR_HEADERS | Needs::SPLIT_CONNECTION
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        Box::new(self.splitter(site))
    }
}

impl Spoofer {
    /// The box, at its place.
    #[must_use]
    pub fn splitter(&self, site: &Site<'_>) -> Splitter {
        let split = self.split(site.tcp);
        let mut splitter = Splitter::new(site.address(false), (site.random)(), split);
        if !site.has_streams {
            splitter.relays_mut().gather();
        }
        if let Some(neighbour) = &self.hop {
            splitter.hop = site.ports_from(neighbour);
        }
        if let Some(rate) = self.rate {
            splitter.relays.set_hop(rate);
        }
        splitter.relays.set_limits(self.limits());
        Splitter { connect: self.connect, ..splitter.with_limit(self.connections) }
    }

    fn limits(&self) -> Limits {
        let Spoofer { connections_per_user, memory, .. } = *self;
        Limits { connections_per_user, memory: memory.map(|Bytes(bytes)| bytes) }
    }

    /// The way in which connections are split by a TCP with these settings.
    fn split(&self, tcp: &Config) -> Split {
        let capacity = self.cache.map(|Bytes(bytes)| bytes);
        split(tcp, Policy { capacity, teardown: self.teardown, ..Policy::default() })
    }
}

/// The way in which connections are split: with these settings, as far as they suit a relay.
fn split(config: &Config, policy: Policy) -> Split {
    let config = Config {
        // Its sender has decided to send it now.
        nagle: false,
        // An end that vanishes while nothing is outstanding would be remembered for ever.
        keep_alive: config.keep_alive.or(Some(KeepAlive::default())),
        ..config.clone()
    };
    Split { configs: [config.clone(), config], policy }
}

/// The box.
pub struct Splitter {
    relays: Relays,
    handshakes: Handshakes,
    split: Split,
    connect: Connect,
    /// Where packets from behind the hop arrive.
    hop: Vec<Port>,
    /// The most connections that are split at once.
    limit: u32,
}

impl Splitter {
    /// The most connections that are split at once, by default.
    const CONNECTIONS: u32 = 65_536;

    /// A box with an address that splits connections like this. `random` is for secrets.
    #[must_use]
    pub fn new(address: IpAddr, random: Random, split: Split) -> Splitter {
        let relays = Relays::new(address, random);
        Splitter {
            relays,
            handshakes: Handshakes::default(),
            split,
            connect: Connect::default(),
            hop: Vec::new(),
            limit: Splitter::CONNECTIONS,
        }
    }

    /// Splits at most so many connections at once; further ones pass as they are.
    #[must_use]
    pub fn with_limit(self, limit: u32) -> Splitter {
        Splitter { limit, ..self }
    }

    /// Sets the rate of a hop whose packets arrive by these links ([`Relays::set_hop`]).
    pub fn set_hop(&mut self, ports: Vec<Port>, rate: HopRate) {
        self.hop = ports;
        self.relays.set_hop(rate);
    }

    /// Sets what may be set while it runs, for connections that are split from now on: these settings, but for
    /// [`Spoofer::hop`], and a rate that is measured or none at all; and those of its TCP.
    pub fn set(&mut self, spoofer: &Spoofer, tcp: &Config) {
        (self.split, self.connect) = (spoofer.split(tcp), spoofer.connect);
        self.limit = spoofer.connections;
        self.relays.set_limits(spoofer.limits());
        if let Some(HopRate::Given(rate)) = spoofer.rate {
            self.relays.set_hop_rate(rate);
        }
    }

    /// The split connections.
    #[must_use]
    pub fn relays(&self) -> &Relays {
        &self.relays
    }

    /// The split connections, to be handed over to another box or taken over from one. [`Middlebox::wake`]
    /// is to be called afterwards.
    pub fn relays_mut(&mut self) -> &mut Relays {
        &mut self.relays
    }

    /// Makes connections with servers by handshakes of the node's own, or lets those of clients pass.
    #[must_use]
    pub fn with_connect(self, connect: Connect) -> Splitter {
        Splitter { connect, ..self }
    }

    /// Considers a segment of a connection that is not split. Returns whether the segment is taken.
    fn consider(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &Packet,
        segment: &Segment,
    ) -> bool {
        let tuple = FourTuple::of_segment(&packet.ip, segment);
        match self.connect {
            Connect::First | Connect::AtOnce if !self.handshakes.knows(&tuple) => {
                is_syn(segment) && self.open(now, from, packet, segment)
            }
            _ => self.adopt(now, from, packet, segment) && self.handle(now, from, packet),
        }
    }

    /// Splits the connection whose handshake this segment completes, if it does.
    fn adopt(&mut self, now: Time, from: Option<Port>, packet: &Packet, segment: &Segment) -> bool {
        let tuple = FourTuple::of_segment(&packet.ip, segment);
        let complete = self.handshakes.see(now, tuple, (from, packet), segment);
        let Some(Complete { handshake, ports }) = complete else { return false };
        let behind_hop = ports.map(|port| port.is_some_and(|port| self.hop.contains(&port)));
        let client = tuple.reversed();
        if !self.has_room(if behind_hop[0] { client.remote } else { client.local }) {
            return false;
        }
        let seen = Seen { client, handshake, behind_hop };
        self.relays.split(now, &seen, &self.split)
    }

    /// Opens the connection that a SYN asks for, if it can be split. If too many are half-open, its handshake passes, and
    /// it is split afterwards.
    fn open(&mut self, now: Time, from: Option<Port>, syn: &Packet, segment: &Segment) -> bool {
        if self.relays.is_repeated(syn) {
            return true;
        }
        if let Some(why) = reason(syn) {
            self.handshakes.left.count(why);
            return false;
        }
        let is_from_hop = from.is_some_and(|port| self.hop.contains(&port));
        if !self.has_room(if is_from_hop { syn.ip.destination } else { syn.ip.source }) {
            return false;
        }
        if !self.relays.admits(now, syn) {
            let tuple = FourTuple::of_segment(&syn.ip, segment);
            // It completes none.
            self.handshakes.see(now, tuple, (from, syn), segment);
            return false;
        }
        match self.connect {
            Connect::AtOnce => self.relays.accept(now, syn, &self.split, Onward::Tcp),
            Connect::First | Connect::EndToEnd => {
                self.relays.open(now, syn, &self.split, Onward::Tcp)
            }
        }
    }

    /// Whether one more connection of a user may be split.
    fn has_room(&mut self, user: IpAddr) -> bool {
        let why = want_of_room(&self.relays, self.limit, user);
        if let Some(why) = why {
            self.handshakes.left.count(why);
        }
        why.is_none()
    }

    /// Processes a packet if it is of a split connection.
    fn handle(&mut self, now: Time, from: Option<Port>, packet: &Packet) -> bool {
        match from.is_some_and(|port| self.hop.contains(&port)) {
            true => self.relays.handle_hop_packet(now, packet),
            false => self.relays.handle_packet(now, packet),
        }
    }

    fn transmit(&mut self, now: Time, cx: &mut Context<'_>) {
        self.relays.transmit(now, &mut Sending::new(cx));
    }
}

impl Middlebox for Splitter {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        // The node's own connections pass as they are.
        if from.is_none() {
            return Verdict::Forward;
        }
        let segment = match &packet.body {
            Body::Tcp(segment) => Some(segment),
            _ => None,
        };
        let is_new = segment.is_some_and(is_syn) && self.relays.forget(now, packet);
        let is_taken = (!is_new && self.handle(now, from, packet))
            || segment.is_some_and(|segment| self.consider(now, from, packet, segment));
        if !is_taken {
            return Verdict::Forward;
        }
        self.relays.transmit_soon(now, &mut Sending::new(cx));
        Verdict::Consume
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.relays.held_payloads(held);
    }

    fn indicate(&mut self, now: Time, indication: &HostIndication) {
        self.relays.indicate(now, indication);
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let statistics = self.relays.statistics();
        count("split connections", statistics.split);
        count("split connections that are over", statistics.over);
        count("bytes held at most", statistics.held_at_most);
        count("bytes held at most of one connection", statistics.held_of_one_at_most);
        count("notices of corruption", statistics.notices);
        count("notices of corruption, incredible", statistics.incredible_notices);
        count("rate of the hop, bit/s", self.relays.hop_rate().map_or(0, |rate| rate.as_bps()));
        self.handshakes.left.report(count);
    }

    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        gauge("held_bytes", self.relays.held());
        gauge("split_connections", self.relays.open_connections() as u64);
    }

    fn link(&mut self, now: Time, port: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        if matches!(event, LinkEvent::Up { .. }) && self.hop.contains(&port) {
            self.relays.reprobe_hop(now);
            self.transmit(now, cx);
        }
    }

    fn next_wake(&self) -> Time {
        self.relays.poll_timeout()
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.relays.handle_timeout(now);
        self.transmit(now, cx);
    }
}
