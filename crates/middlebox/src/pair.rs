//! One of two gateways, which carry the TCP connections that pass them over the hop between by SRP.

use crate::left_alone::{Left, LeftAlone, is_syn, reason, want_of_room};
use crate::sending::Sending;
use crate::station::fork;
use crate::table::{Settings, Site};
use base::settings::{Bytes, Kind};
use base::{Duration, Random, Time};
use core::net::IpAddr;
use host::{Context, LinkEvent, Middlebox, Port, Verdict};
use relay::{Handoff, HopRate, Limits, Onward, Policy, Relays, Split, Teardown};
use serde::{Deserialize, Serialize};
use tcp::mechanism::Needs;
use tcp::{Config, KeepAlive};
use wire::{Body, Packet, Payload};

base::settings! {
    /// One of two gateways at the ends of a hop (the other has the same box). It splits the TCP connections
    /// that enter the hop, and carries all of them over it by the streams of one SRP association: a server is
    /// connected to first, and then its client is accepted.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Pair {
        /// The neighbour of the node at the other end of the hop: the other gateway.
        pub hop: String,
        /// The rate of the hop in the direction away from the gateway, of IP packets. With `"measured"`, which is
        /// the default, the gateway learns it from what is delivered.
        pub rate: Option<HopRate>,
        /// The hop carries other traffic, too: a congestion window bounds what is in flight, with the additive
        /// increase and multiplicative decrease of TCP, and `rate` is the most. Without, all that is lost counts
        /// as corrupted.
        pub share: bool,
        /// Where the hop loses at least one of 256 packets and is not shared, and for the first 256, what is sent last
        /// before there is nothing more to send is sent once more, and a probe follows: so the loss of a short message
        /// costs no timeout. After an interruption of a hop that is not shared, the first of what was probably lost is sent
        /// again at once, too. It takes an eighth of the rate at most.
        pub repeat: bool,
        /// The largest packet of the hop, bytes.
        pub mtu: u32 as Kind::at_least(Pair::LEAST_MTU),
        /// Packets over the hop are as long as those in the encrypted channel of `lasthopd`: 30 bytes longer.
        pub channel: bool,
        /// The most data of a connection that the gateway holds in each direction, besides what receive
        /// windows take.
        pub cache: Bytes,
        /// When the end of a stream (FIN) is acknowledged to its sender: at once, or once the receiver has
        /// acknowledged it.
        pub teardown: Teardown,
        /// The most connections that are carried at once. Further ones pass as they are.
        pub connections: u32 as Kind::at_least(1),
        /// The most of them that a user has: an address that is not behind the hop, in IPv6 a network of 64 bits.
        /// Without a limit if absent.
        pub connections_per_user: Option<u32> as Kind::at_least(1),
        /// The most data that all connections hold together. Each user may hold as much as is free: one alone
        /// fills half of it, two a third each. Without a limit if absent.
        pub memory: Option<Bytes>,
    }
}

impl Pair {
    /// The smallest MTU of a hop, bytes.
    const LEAST_MTU: u16 = 96;
}

impl Default for Pair {
    fn default() -> Pair {
        Pair {
            hop: String::new(),
            rate: None,
            share: false,
            repeat: true,
            mtu: 1500,
            channel: false,
            cache: Bytes(4 << 20),
            teardown: Teardown::default(),
            connections: Gateway::CONNECTIONS,
            connections_per_user: None,
            memory: None,
        }
    }
}

impl Settings for Pair {
    fn runs_tcp(&self) -> bool {
        true
    }

    fn neighbour(&self) -> Option<&str> {
        Some(&self.hop)
    }

    fn needs(&self) -> Needs {
        Needs::MIDDLEBOX
            | Needs::BOTH_DIRECTIONS
            | Needs::CLEAR_HEADERS
            | Needs::SPLIT_CONNECTION
            | Needs::HOP_TRANSPORT
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let channel = if self.channel { wire::Srp::CHANNEL as u32 } else { 0 };
        let mut gateway = self.gateway(site, srp::Config::default().overhead + channel);
        if self.channel {
            gateway.relays.set_srp_channel();
        }
        Box::new(gateway)
    }
}

impl Pair {
    /// The box, at its place. Its packets have `overhead` bytes of headers before that of SRP.
    #[must_use]
    pub fn gateway(&self, site: &Site<'_>, overhead: u32) -> Gateway {
        let mut random = (site.random)();
        let [of_relays, of_associations]: [Random; 2] = core::array::from_fn(|_| fork(&mut random));
        let mut relays = Relays::new(site.own[0], of_relays);
        if !site.has_streams {
            relays.gather();
        }
        relays.set_limits(self.limits());
        let srp = self.srp(overhead);
        relays.enable_srp(srp.clone(), of_associations);
        let peer = site.address_of(&self.hop);
        Gateway {
            relays,
            split: self.split(site.tcp),
            srp,
            own: peer.map_or(site.own[0], |peer| site.address(peer.is_ipv6())),
            peer,
            hop: site.ports_from(&self.hop),
            limit: self.connections,
            next_attempt: Time::ZERO,
            left: LeftAlone::default(),
        }
    }

    /// What may have arrived of a stream and not be read: where there is little memory, a few streams must not fill
    /// it.
    fn window(&self) -> u64 {
        let most = srp::Config::default().window;
        self.memory.map_or(most, |Bytes(bytes)| (bytes / 64).clamp(1 << 18, most))
    }

    fn limits(&self) -> Limits {
        let Pair { connections_per_user, memory, .. } = *self;
        Limits { connections_per_user, memory: memory.map(|Bytes(bytes)| bytes) }
    }

    /// The settings of the association.
    fn srp(&self, overhead: u32) -> srp::Config {
        let rate = match self.rate {
            Some(HopRate::Given(rate)) => Some(rate),
            Some(HopRate::Measured) | None => None,
        };
        let streams = u16::try_from(self.connections).unwrap_or(Gateway::STREAMS);
        srp::Config {
            rate,
            share: self.share,
            repeat: self.repeat,
            overhead,
            segment_size: segment_size(self.mtu, overhead),
            streams: streams.min(Gateway::STREAMS),
            window: self.window(),
            ..srp::Config::default()
        }
    }

    /// The way in which connections are split by a TCP with these settings.
    fn split(&self, tcp: &Config) -> Split {
        let config = Config {
            // Its sender has decided to send it now.
            nagle: false,
            keep_alive: tcp.keep_alive.or(Some(KeepAlive::default())),
            ..tcp.clone()
        };
        let (capacity, teardown) = (Some(self.cache.0), self.teardown);
        let policy = Policy { capacity, teardown, ..Policy::default() };
        Split { configs: [config.clone(), config], policy }
    }
}

/// The data of a segment in a packet of the longest kind.
fn segment_size(mtu: u32, overhead: u32) -> u32 {
    mtu.saturating_sub(overhead + wire::Srp::DATA as u32)
}

/// The box.
pub struct Gateway {
    relays: Relays,
    split: Split,
    srp: srp::Config,
    own: IpAddr,
    /// The other gateway.
    peer: Option<IpAddr>,
    /// Where packets from behind the hop arrive.
    hop: Vec<Port>,
    /// The most connections that are split at once.
    limit: u32,
    /// When an association is opened, if there is none.
    next_attempt: Time,
    /// Connections that passed as they are.
    left: LeftAlone,
}

impl Gateway {
    /// The most connections that are carried at once, by default.
    const CONNECTIONS: u32 = 16_384;
    /// The most that the other gateway may open: half the numbers of streams.
    const STREAMS: u16 = 1 << 15;
    /// The time between attempts to open an association.
    const RETRY: Duration = Duration::from_secs(1);

    /// The split connections.
    #[must_use]
    pub fn relays(&self) -> &Relays {
        &self.relays
    }

    /// The split connections, to be looked at.
    pub fn relays_mut(&mut self) -> &mut Relays {
        &mut self.relays
    }

    /// Sets what may be set while it runs: the rate of the hop and whether it is shared; and, for connections that
    /// are split from now on, how they are split, and how many at once.
    pub fn set(&mut self, pair: &Pair, tcp: &Config) {
        (self.split, self.limit) = (pair.split(tcp), pair.connections);
        self.relays.set_limits(pair.limits());
        let new = pair.srp(self.srp.overhead);
        let (rate, share) = (new.rate, new.share);
        if (rate, share) != (self.srp.rate, self.srp.share) {
            self.set_hop(srp::Config { rate, share, ..self.srp.clone() });
        }
    }

    fn set_hop(&mut self, srp: srp::Config) {
        self.relays.set_srp_hop([srp.clone(), srp.clone()]);
        self.srp = srp;
    }

    /// The longest packet that is sent over the hop, bytes.
    fn longest_packet(&self) -> u32 {
        self.srp.segment_size + self.srp.overhead + wire::Srp::DATA as u32
    }

    /// Whether this one opens the association: the one with the lower address.
    fn opens(&self) -> bool {
        self.peer.is_some_and(|peer| self.own < peer)
    }

    /// Opens an association if there is none and it is time to.
    fn connect(&mut self, now: Time) {
        if let Some(peer) = self.peer.filter(|_| self.opens() && self.next_attempt <= now)
            && !self.relays.has_association(peer)
        {
            self.next_attempt = now + Gateway::RETRY;
            self.relays.connect_srp(now, self.own, peer);
        }
    }

    /// Processes a TCP segment. One of a connection that is not split passes.
    fn on_segment(&mut self, now: Time, from: Port, packet: &Packet) -> Verdict {
        let Body::Tcp(segment) = &packet.body else { return Verdict::Forward };
        let opens = is_syn(segment);
        if opens {
            self.relays.forget(now, packet);
        }
        let enters = opens && !self.hop.contains(&from);
        let is_taken = self.relays.handle_packet(now, packet) || (enters && self.open(now, packet));
        if is_taken { Verdict::Consume } else { Verdict::Forward }
    }

    /// Opens the connection that a SYN asks for, if it may be opened.
    fn open(&mut self, now: Time, syn: &Packet) -> bool {
        if self.relays.is_repeated(syn) {
            return true;
        }
        let peer = self.peer.filter(|&peer| self.relays.has_association(peer));
        let why = reason(syn).or(peer.is_none().then_some(Left::NoPeer));
        let why = why.or_else(|| want_of_room(&self.relays, self.limit, syn.ip.source));
        let why = why.or_else(|| (!self.relays.admits(now, syn)).then_some(Left::Overflow));
        if let Some(why) = why {
            self.left.count(why);
            return false;
        }
        peer.is_some_and(|remote| {
            let onward = Onward::Srp { local: self.own, remote };
            self.relays.open(now, syn, &self.split, onward)
        })
    }

    /// Processes a packet of SRP. The other gateway's are for this one.
    fn on_srp(&mut self, now: Time, packet: &Packet) -> Verdict {
        if packet.ip.destination != self.own || Some(packet.ip.source) != self.peer {
            return Verdict::Forward;
        }
        self.relays.handle_srp(now, packet, true);
        while let Some((name, client)) = self.relays.poll_incoming() {
            self.relays.open_incoming(now, (name, client), &self.split, Onward::Tcp);
        }
        Verdict::Consume
    }

    fn transmit(&mut self, now: Time, cx: &mut Context<'_>) {
        self.relays.transmit(now, &mut Sending::new(cx));
    }
}

impl Middlebox for Gateway {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        // The node's own connections pass as they are.
        let Some(from) = from else { return Verdict::Forward };
        let verdict = match packet.body {
            Body::Srp(_) => self.on_srp(now, packet),
            _ => self.on_segment(now, from, packet),
        };
        if verdict == Verdict::Consume {
            self.relays.transmit_soon(now, &mut Sending::new(cx));
        }
        verdict
    }

    /// While the hop is down, nothing is sent, and no time passes for timeouts.
    fn link(&mut self, now: Time, _: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        match (event, self.peer) {
            (LinkEvent::Down { peer }, Some(own)) if peer == own => self.relays.suspend_srp(now),
            (LinkEvent::Up { peer }, Some(own)) if peer == own => {
                self.relays.resume_srp(now, peer, Handoff::Restored);
                self.transmit(now, cx);
            }
            (LinkEvent::Mtu { peer, bytes }, Some(own)) if peer == own => {
                let segment_size = segment_size(bytes, self.srp.overhead);
                self.set_hop(srp::Config { segment_size, ..self.srp.clone() });
            }
            _ => {}
        }
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.relays.held_payloads(held);
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let statistics = self.relays.statistics();
        count("split connections", statistics.split);
        count("split connections that are over", statistics.over);
        count("bytes held at most", statistics.held_at_most);
        count("bytes held at most of one connection", statistics.held_of_one_at_most);
        let srp = self.relays.srp_statistics();
        self.left.report(count);
        count("SRP segments", srp.segments);
        count("SRP retransmissions", srp.retransmissions);
        count("SRP repetitions", srp.repetitions);
        count("SRP timeouts", srp.timeouts);
    }

    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        gauge("longest_packet_bytes", self.longest_packet().into());
        gauge("associations", self.relays.open_associations() as u64);
        gauge("held_bytes", self.relays.held());
        gauge("split_connections", self.relays.open_connections() as u64);
    }

    fn next_wake(&self) -> Time {
        let waits =
            self.peer.is_some_and(|peer| self.opens() && !self.relays.has_association(peer));
        let attempt = if waits { self.next_attempt } else { Time::NEVER };
        self.relays.poll_timeout().min(attempt)
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.connect(now);
        self.relays.handle_timeout(now);
        self.transmit(now, cx);
    }
}

#[cfg(test)]
mod tests;
