//! The connections of a mobile host over SRP: each is split in the host, between its own TCP and a stream
//! of an association with the base station.

use super::Mobile;
use crate::sending::Sending;
use crate::station::srp_config;
use base::{Random, Time};
use core::net::IpAddr;
use host::{Context, FourTuple, Verdict};
use relay::{Handoff, HopRate, Onward, Policy, Relays, Split};
use tcp::{Config, KeepAlive};
use wire::{Body, Flags, Packet, Payload};

pub(super) struct Hop {
    own: [IpAddr; 2],
    relays: Relays,
    split: Split,
    handoff: Handoff,
    /// The MTU and the rate of the hop, and whether SRP shares it.
    hop: (u32, HopRate, bool),
}

impl Hop {
    pub(super) fn new(settings: &Mobile, own: [IpAddr; 2], tcp: &Config, random: Random) -> Hop {
        let mut random = random;
        let [of_relays, of_associations] =
            core::array::from_fn(|_| crate::station::fork(&mut random));
        let mut relays = Relays::new(own[0], of_relays);
        let hop = (settings.mtu, settings.rate, settings.share);
        relays.enable_srp(srp_config(hop, srp::Config::default().overhead), of_associations);
        let config = Config {
            nagle: false,
            keep_alive: tcp.keep_alive.or(Some(KeepAlive::default())),
            ..tcp.clone()
        };
        let (capacity, teardown) = (Some(settings.cache.0), settings.semantics);
        let policy = Policy { capacity, teardown, ..Policy::default() };
        let split = Split { configs: [config.clone(), config], policy };
        Hop { own, relays, split, handoff: settings.handoff, hop }
    }

    /// As [`super::MobileAgent::gather`].
    pub(super) fn gather(&mut self, overheads: [u32; 2]) {
        self.relays.gather();
        self.relays.set_srp_hop(overheads.map(|overhead| srp_config(self.hop, overhead)));
    }

    pub(super) fn relays_mut(&mut self) -> &mut Relays {
        &mut self.relays
    }

    /// Whether this box has the connection between these ends, perhaps not open yet.
    pub(super) fn carries(&self, ends: &FourTuple) -> bool {
        self.relays.carries(ends)
    }

    /// Processes a TCP segment of the host. One of a connection that is not split passes.
    pub(super) fn on_departure(&mut self, now: Time, packet: &Packet, station: IpAddr) -> Verdict {
        let Body::Tcp(segment) = &packet.body else { return Verdict::Forward };
        let opens = segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN;
        if opens {
            self.relays.forget(now, packet);
        }
        let onward = self.onward(station);
        let is_taken = self.relays.handle_packet(now, packet)
            || opens && self.relays.open(now, packet, &self.split, onward);
        if is_taken { Verdict::Consume } else { Verdict::Forward }
    }

    fn onward(&self, station: IpAddr) -> Onward {
        Onward::Srp { local: self.own[usize::from(station.is_ipv6())], remote: station }
    }

    /// Processes a packet of SRP to the host.
    pub(super) fn on_srp(&mut self, now: Time, packet: &Packet) {
        self.relays.handle_srp(now, packet, false);
        while let Some((name, client)) = self.relays.poll_incoming() {
            self.relays.open_incoming(now, (name, client), &self.split, Onward::Tcp);
        }
    }

    /// The hop is interrupted, or the base station does not have the connections yet.
    pub(super) fn suspend(&mut self, now: Time) {
        self.relays.suspend_srp(now);
    }

    /// This base station has the connections.
    pub(super) fn resume(&mut self, now: Time, station: IpAddr) {
        // The base station learns by it, too, that its connections to the host go over SRP.
        if self.relays.open_associations() == 0 {
            let local = self.own[usize::from(station.is_ipv6())];
            self.relays.connect_srp(now, local, station);
        }
        self.relays.resume_srp(now, station, self.handoff);
        // Without an address or a route, the host's TCP could neither send nor be reached. It tries again at once when an
        // acknowledgment comes.
        self.relays.reprobe_to(now, self.own.map(Some));
    }

    /// The state of all connections is lost.
    pub(super) fn abort(&mut self, now: Time) {
        self.relays.abort_srp(now);
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.relays.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.relays.handle_timeout(now);
    }

    pub(super) fn transmit(&mut self, now: Time, cx: &mut Context<'_>) {
        self.relays.transmit(now, &mut Sending::new(cx));
    }

    pub(super) fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.relays.held_payloads(held);
    }

    pub(super) fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let statistics = self.relays.statistics();
        count("split connections", statistics.split);
        count("split connections that are over", statistics.over);
        let srp = self.relays.srp_statistics();
        count("SRP segments", srp.segments);
        count("SRP retransmissions", srp.retransmissions);
        count("SRP timeouts", srp.timeouts);
    }
}
