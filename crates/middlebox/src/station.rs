//! A base station of MHP (`yavatkar1994`): it splits the connections of the mobile hosts that are
//! attached to it, and hands them over to the next base station.

mod handover;

use crate::mhp::{Exchange, Keys, Received, Registry, Transfers};
use crate::resets::Resets;
use crate::sending::Sending;
use crate::table::{Settings, Site};
use base::settings::{Bytes, Kind, Span};
use base::{Random, Time};
use core::net::IpAddr;
use host::{Context, FourTuple, Middlebox, Port, Verdict};
use relay::{Handoff, HopRate, Onward, Policy, Relays, Split, Teardown};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcp::mechanism::Needs;
use tcp::{Config, KeepAlive};
use wire::{Body, Flags, Packet, Payload, Segment};

base::settings! {
    /// A base station: it splits the TCP connections of the mobile hosts that are attached to it (box
    /// `mobile`), so that the wireless hop and the wired path have a connection each. When a host
    /// moves to another base station, the state of its connections follows.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Station {
        /// The most data of a connection that the node holds in each direction, besides what its receive
        /// window takes: beyond it, the window closes.
        pub cache: Bytes,
        /// When the end of a stream (FIN) is acknowledged to its sender: at once (`"spoofed"`), as
        /// published, or once the receiver has acknowledged it: then a close that was acknowledged
        /// means that all data was delivered.
        pub semantics: Teardown,
        /// The largest packet of the wireless hop, bytes: segments to the mobile host, and those that it is
        /// told to send, fit into it.
        pub mtu: u32 as Kind::at_least(96),
        /// The rate of the hop to a mobile host, at which SRP sends. With `"measured"`, SRP learns it from
        /// what is delivered.
        pub rate: HopRate,
        /// SRP shares the hop with other traffic: it has a congestion window (RFC 5681), and `rate` is an
        /// upper bound. Else the hop is taken as dedicated to it, and losses do not slow it down.
        pub share: bool,
        /// What becomes of the SRP association with a mobile host when its connections are taken over: the
        /// station restores it at once (`"restored"`), or sends nothing of it before the host does
        /// (`"new"`). The host's setting decides whether it is a new one, and should be the same.
        pub handoff: Handoff,
        /// The most connections that are split at once. Further ones pass as they are.
        pub connections: u32 as Kind::at_least(1),
        /// What the base stations and mobile hosts of a network share: the keys that authenticate
        /// their messages follow from it.
        pub secret: String,
        /// Times at which the node restarts, and loses its state.
        pub restarts: Vec<Span>,
    }
}

impl Default for Station {
    fn default() -> Station {
        Station {
            cache: Bytes(64 << 10),
            semantics: Teardown::default(),
            mtu: 1500,
            rate: HopRate::default(),
            share: false,
            handoff: Handoff::default(),
            connections: 65_536,
            secret: String::new(),
            restarts: Vec::new(),
        }
    }
}

impl Settings for Station {
    fn runs_tcp(&self) -> bool {
        true
    }

    fn needs(&self) -> Needs {
        Needs::MIDDLEBOX | Needs::BOTH_DIRECTIONS | Needs::CLEAR_HEADERS | Needs::SPLIT_CONNECTION
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let restarts = self.restarts.iter().map(|&Span(after)| Time::ZERO + after).collect();
        let random = (site.random)();
        let mut station =
            BaseStation::new(self.clone(), site.own, site.tcp, site.contents.clone(), random);
        if !site.has_streams {
            station.relays.gather();
        }
        Box::new(BaseStation { restarts, ..station })
    }
}

/// The box.
pub struct BaseStation<E: Exchange = Transfers> {
    settings: Station,
    own: [IpAddr; 2],
    tcp: Config,
    random: Random,
    keys: Keys,
    registry: Registry<E::Requester>,
    exchange: E,
    relays: Relays,
    resets: Resets,
    /// Messages to mobile hosts.
    outgoing: Vec<Packet>,
    /// Packets of connections that are being fetched, by the mobile host.
    held: FxHashMap<IpAddr, VecDeque<Packet>>,
    /// Times of restarts, the next first.
    restarts: VecDeque<Time>,
    counts: Counts,
}

/// Counts of a base station.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    confirmed: u64,
    handed_over: u64,
    taken_over: u64,
    lost: u64,
    refused: u64,
    forged: u64,
    held: u64,
    overflowed: u64,
    received: Received,
}

impl BaseStation {
    /// A base station of the lab with these addresses and settings of TCP, which exchanges state by a TCP of its own;
    /// `contents` has the bytes. `random` is for secrets.
    #[must_use]
    pub fn new(
        settings: Station,
        own: [IpAddr; 2],
        tcp: &Config,
        contents: crate::Contents,
        random: Random,
    ) -> BaseStation {
        let keys = Keys::new(&settings.secret);
        let exchange = |random| Transfers::new(own, keys, contents, random);
        BaseStation::with_exchange(settings, own, tcp, random, exchange)
    }
}

impl<E: Exchange> BaseStation<E> {
    /// The most packets that are held for a mobile host.
    const MOST_HELD: usize = 256;
    /// What may wait to be sent of a connection over TCP however little is in flight, bytes: all that is held moves with
    /// the mobile host. With so little, SRP does not fill the hop.
    const WAITING: u64 = 64 << 10;

    /// A base station with these addresses and settings of TCP, and with the exchange that `exchange` makes. `random` is
    /// for secrets.
    #[must_use]
    pub fn with_exchange(
        settings: Station,
        own: [IpAddr; 2],
        tcp: &Config,
        random: Random,
        exchange: impl FnOnce(Random) -> E,
    ) -> BaseStation<E> {
        let keys = Keys::new(&settings.secret);
        let mut later = random;
        let secrets = core::array::from_fn(|_| fork(&mut later));
        let [of_relays, of_exchange, of_resets, of_associations] = secrets;
        let incarnation = later.bits() as u32;
        let mut relays = Relays::new(own[0], of_relays);
        let hop = (settings.mtu, settings.rate, settings.share);
        relays.enable_srp(srp_config(hop, srp::Config::default().overhead), of_associations);
        BaseStation {
            own,
            tcp: tcp.clone(),
            registry: Registry::new(own, incarnation),
            exchange: exchange(of_exchange),
            relays,
            resets: Resets::new(of_resets),
            outgoing: Vec::new(),
            settings,
            random: later,
            keys,
            held: FxHashMap::default(),
            restarts: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// The split connections.
    #[must_use]
    pub fn relays(&self) -> &Relays {
        &self.relays
    }

    /// The split connections, to be looked at, or to be reset. [`Middlebox::wake`] is to be called afterwards.
    pub fn relays_mut(&mut self) -> &mut Relays {
        &mut self.relays
    }

    /// From now on, segments carry bytes whose payloads do not continue each other, and packets of SRP have `overheads`
    /// bytes of headers before that of SRP, over IPv4 and over IPv6.
    pub fn gather(&mut self, overheads: [u32; 2]) {
        let Station { mtu, rate, share, .. } = self.settings;
        self.relays.gather();
        let of_hop = |overhead| srp_config((mtu, rate, share), overhead);
        self.relays.set_srp_hop(overheads.map(of_hop));
    }

    /// Packets of SRP reach a mobile host from now on: those before were lost. [`Middlebox::wake`] is to be called
    /// afterwards.
    pub fn on_reachable(&mut self, now: Time, mobile: IpAddr) {
        self.relays.resume_srp_with(now, mobile);
    }

    /// The way to other base stations.
    pub fn exchange_mut(&mut self) -> &mut E {
        &mut self.exchange
    }

    /// Whether nothing is left: no connection, no transfer, no packet.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let relays = &self.relays;
        let is_quiet = relays.open_connections() == 0 && relays.host().open_connections() == 0;
        is_quiet && self.exchange.open() == 0 && self.held.is_empty()
    }

    /// Loses all state.
    pub fn restart(&mut self) {
        let random = fork(&mut self.random);
        let (settings, exchange) = (self.settings.clone(), |random| self.exchange.anew(random));
        let fresh = BaseStation::with_exchange(settings, self.own, &self.tcp, random, exchange);
        let (restarts, counts) = (core::mem::take(&mut self.restarts), self.counts);
        *self = BaseStation { restarts, counts, ..fresh };
    }

    /// Processes a packet that passes.
    fn take(&mut self, now: Time, packet: &Packet) -> Verdict {
        let segment = match &packet.body {
            Body::Mobility(message) if self.own.contains(&packet.ip.destination) => {
                self.on_message(now, packet.ip.source, message);
                return Verdict::Consume;
            }
            Body::Tcp(_) if self.exchange.handle_packet(now, packet) => return Verdict::Consume,
            Body::Tcp(segment) => segment,
            Body::Icmp(_) if self.relays.handle_packet(now, packet) => return Verdict::Consume,
            Body::Srp(_) if self.own.contains(&packet.ip.destination) => {
                self.on_srp(now, packet);
                return Verdict::Consume;
            }
            _ => return Verdict::Forward,
        };
        let ends = [packet.ip.source, packet.ip.destination];
        let mobiles = ends.map(|address| self.registry.mobile(address));
        let mut mobiles = mobiles.into_iter().flatten();
        if let Some(mobile) = mobiles.clone().find(|&mobile| self.registry.fetches(mobile)) {
            self.hold(mobile, packet);
            return Verdict::Consume;
        }
        if !mobiles.clone().any(|mobile| self.registry.serves(mobile)) {
            return Verdict::Forward;
        }
        let is_lost = mobiles.any(|mobile| self.registry.has_lost(mobile));
        self.on_segment(now, packet, segment, is_lost)
    }

    /// Processes a packet of SRP to this node.
    fn on_srp(&mut self, now: Time, packet: &Packet) {
        let Some(mobile) = self.registry.mobile(packet.ip.source) else { return };
        if self.registry.fetches(mobile) {
            return self.hold(mobile, packet);
        }
        // Of a host that has moved on, nothing is known here any more.
        if self.registry.serves(mobile) {
            self.relays.handle_srp(now, packet, !self.registry.has_lost(mobile));
        }
    }

    /// Opens the connections of the streams that mobile hosts have opened.
    fn open_incoming(&mut self, now: Time) {
        while let Some((name, client)) = self.relays.poll_incoming() {
            let split = self.split([client.local, client.remote]);
            let onward = self.onward(client.remote);
            self.relays.open_incoming(now, (name, client), &split, onward);
        }
    }

    /// How a connection goes on to an address.
    fn onward(&self, to: IpAddr) -> Onward {
        match self.registry.mobile(to) {
            Some(mobile) if self.relays.has_association(mobile) => {
                Onward::Srp { local: self.own[usize::from(mobile.is_ipv6())], remote: mobile }
            }
            _ => Onward::Tcp,
        }
    }

    /// Keeps a packet of a connection that is being fetched.
    fn hold(&mut self, mobile: IpAddr, packet: &Packet) {
        let held = self.held.entry(mobile).or_default();
        if held.len() == Self::MOST_HELD {
            self.counts.overflowed += 1;
            return;
        }
        held.push_back(*packet);
        self.counts.held += 1;
    }

    /// Processes a segment from or to a mobile host whose connections are here.
    fn on_segment(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &Segment,
        is_lost: bool,
    ) -> Verdict {
        let opens = segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN;
        if opens {
            self.relays.forget(now, packet);
        }
        if self.relays.handle_packet(now, packet) {
            return Verdict::Consume;
        }
        let is_full = self.relays.open_connections() >= self.settings.connections as usize;
        if opens && !is_lost && !is_full {
            let split = self.split([packet.ip.source, packet.ip.destination]);
            let onward = self.onward(packet.ip.destination);
            if self.relays.open(now, packet, &split, onward) {
                return Verdict::Consume;
            }
        }
        // A half that it is for is not there yet, or over. The other half has numbers of its own, and its end must not
        // get this.
        let ends = FourTuple::of_segment(&packet.ip, segment);
        if self.relays.carries(&ends) {
            return Verdict::Consume;
        }
        // Its state is lost: its sender must not wait in vain.
        let wants_reset = self.resets.take(now, &ends, segment.flags);
        if is_lost || wants_reset {
            self.counts.refused += 1;
            self.relays.reset_sender(packet);
            return Verdict::Consume;
        }
        // It was opened before the host was attached, or is over.
        Verdict::Forward
    }

    /// How the connection between a client and a server is split.
    fn split(&self, ends: [IpAddr; 2]) -> Split {
        let mut mobiles = ends.into_iter().filter_map(|end| self.registry.mobile(end));
        let default = Policy::default();
        let policy = Policy {
            capacity: Some(self.settings.cache.0),
            waiting: match mobiles.any(|mobile| self.relays.has_association(mobile)) {
                true => default.waiting,
                false => Self::WAITING,
            },
            teardown: self.settings.semantics,
        };
        let most = |end: IpAddr| {
            // Behind the headers of IP and TCP.
            let headers = if end.is_ipv6() { 60 } else { 40 };
            u16::try_from(self.settings.mtu - headers).unwrap_or(u16::MAX)
        };
        let config = |end: IpAddr| Config {
            // Segments of the wireless hop fit into its packets. They become large ones of the wired path;
            // what goes over the hop is sent as it comes.
            mss: match self.registry.mobile(end) {
                Some(_) => self.tcp.mss.min(most(end)),
                None => self.tcp.mss,
            },
            nagle: self.registry.mobile(end).is_none(),
            // An end that vanishes while nothing is outstanding would be remembered for ever.
            keep_alive: self.tcp.keep_alive.or(Some(KeepAlive::default())),
            ..self.tcp.clone()
        };
        Split { configs: ends.map(config), policy }
    }

    /// Carries out what is to be done, and sends all that may be sent.
    fn proceed(&mut self, now: Time, cx: &mut Context<'_>) {
        self.carry_out(now);
        self.open_incoming(now);
        self.outgoing.drain(..).for_each(|packet| cx.send(packet));
        self.relays.transmit(now, &mut Sending::new(cx));
        // An end that does not answer is gone.
        self.resets.send(now, cx, |_| ());
        self.exchange.transmit(now, cx);
    }
}

/// The settings of SRP over a hop with this MTU and rate, which it may share, behind so many bytes of headers.
pub(crate) fn srp_config((mtu, rate, share): (u32, HopRate, bool), overhead: u32) -> srp::Config {
    let segment_size = mtu.saturating_sub(overhead + wire::Srp::DATA as u32);
    let rate = match rate {
        HopRate::Given(rate) => Some(rate),
        HopRate::Measured => None,
    };
    srp::Config { segment_size, overhead, rate, share, ..srp::Config::default() }
}

/// A stream of randomness that depends on another one.
pub(crate) fn fork(random: &mut Random) -> Random {
    base::Seed(random.bits()).stream("fork")
}

impl<E: Exchange> Middlebox for BaseStation<E> {
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
        let verdict = self.take(now, packet);
        if verdict == Verdict::Consume {
            self.proceed(now, cx);
        }
        verdict
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.relays.held_payloads(held);
        self.exchange.held_payloads(held);
        self.held.values().flatten().for_each(|packet| held(packet.payload));
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let statistics = self.relays.statistics();
        count("split connections", statistics.split);
        count("split connections that are over", statistics.over);
        count("bytes held at most", statistics.held_at_most);
        count("attachments confirmed", self.counts.confirmed);
        count("connections handed over", self.counts.handed_over);
        count("connections taken over", self.counts.taken_over);
        count("bytes of state received", self.counts.received.state);
        count("bytes of data received with it", self.counts.received.data);
        count("packets held during a handover", self.counts.held);
        count("packets dropped during a handover", self.counts.overflowed);
        count("attachments whose state was lost", self.counts.lost);
        count("segments answered with a reset", self.counts.refused);
        let srp = self.relays.srp_statistics();
        count("SRP segments", srp.segments);
        count("SRP retransmissions", srp.retransmissions);
        count("SRP timeouts", srp.timeouts);
        count("messages that are not authentic", self.counts.forged);
    }

    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        gauge("held_bytes", self.relays.held());
        gauge("split_connections", self.relays.open_connections() as u64);
    }

    fn next_wake(&self) -> Time {
        let restart = self.restarts.front().copied().unwrap_or(Time::NEVER);
        restart
            .min(self.relays.poll_timeout())
            .min(self.exchange.poll_timeout())
            .min(self.resets.poll_timeout())
            .min(self.registry.poll_timeout())
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        if self.restarts.front().is_some_and(|&at| at <= now) {
            self.restarts.pop_front();
            return self.restart();
        }
        self.relays.handle_timeout(now);
        self.exchange.handle_timeout(now);
        self.expire(now);
        self.proceed(now, cx);
    }
}
