//! An attacker on the path (`bbn8333` §7.1, `koutsianas2007` §3.6).

use crate::attack::{Changes, EspPackets, Forged, Forgery, Notices, OfEach, Target, times};
use crate::eten::Reporter;
use crate::fec::Flow;
use crate::table::{Settings, Site};
use base::Time;
use base::settings::{Kind, Span};
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Body, Packet, Payload, Udp};

/// An attacker on the path: it reads the victim's packets as they pass, and sends a forged packet after
/// every n-th that it can answer. The packets themselves are forwarded.
#[derive(Clone, Debug)]
pub struct Forger<F> {
    forgery: Forgery,
    forged: F,
    /// It sends inert datagrams instead, at the same times and of the same length.
    inert: bool,
    every: u64,
    start: Time,
    stop: Time,
    passed: u64,
}

/// The port to which inert datagrams go (discard, RFC 863).
pub const DISCARD: u16 = 9;

impl<F: Forged> Forger<F> {
    /// An attacker that answers every n-th packet (at least 1) from `start` to `stop`.
    #[must_use]
    pub fn new(forgery: Forgery, forged: F, every: u64, start: Time, stop: Time) -> Forger<F> {
        let every = every.max(1);
        Forger { forgery, forged, inert: false, every, start, stop, passed: 0 }
    }

    /// The same with datagrams to the discard port: the effect of the load alone.
    #[must_use]
    pub fn inert(self) -> Forger<F> {
        Forger { inert: true, ..self }
    }

    /// Counts a packet that can be answered; returns whether it is the n-th.
    fn is_due(&mut self, now: Time) -> bool {
        if now < self.start || now >= self.stop {
            return false;
        }
        self.passed += 1;
        self.passed.is_multiple_of(self.every)
    }
}

impl<F: Forged> Middlebox for Forger<F> {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if !self.forged.answers(&self.forgery, packet) || !self.is_due(now) {
            return Verdict::Forward;
        }
        let Some(mut forged) = self.forged.answer(&self.forgery, packet) else {
            return Verdict::Forward;
        };
        if self.inert {
            let headers = (forged.ip.len() + Udp::HEADER) as u32;
            forged.body = Body::Udp(Udp { source_port: DISCARD, destination_port: DISCARD });
            let len = u32::from(self.forgery.size).saturating_sub(headers);
            forged.payload = Payload { len, ..Payload::default() };
        }
        cx.send(forged);
        Verdict::Forward
    }
}

/// What an attacker on the path sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forges {
    /// Notices of corruption.
    #[default]
    Notices,
    /// Indications that the connectivity of the flow's receiver has changed.
    Changes,
    /// Packets of the flow's ESP association, which claim that all before them was received (SPEP).
    EspPackets,
    /// UDP datagrams of the size of notices, which no application reads.
    Datagrams,
}

base::words!(Forges);

base::settings! {
    /// Reads the packets of flows as they pass, and answers some of them with forged ones.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct OnPathAttacker {
        /// The names of the attacked flows; all if the list is empty.
        pub flows: Vec<String>,
        /// What it sends: notices that a packet with data was corrupted; ACKs to the flow's sender,
        /// in its receiver's name, that indicate `changes` of connectivity; packets of its association
        /// to its receiver, in its sender's name, that claim by the option of SPEP that all before them was
        /// received (`esp-packets`); or, for comparison, inert UDP datagrams in place of notices.
        pub forges: Forges,
        /// The end of the flow that notices and datagrams go to: the one that true notices go to.
        pub to: Target,
        /// The size of a notice or datagram, bytes of the whole packet.
        pub notice_size: u16 as Kind::at_least(Reporter::SIZE_ICMP),
        /// One notice for this many passing packets with data, one change for this many passing ACKs.
        pub every: u64 as Kind::at_least(1),
        /// When it starts; at the start of the run if absent.
        pub start: Option<Span>,
        /// When it stops; at the end of the run if absent.
        pub stop: Option<Span>,
    }
}

impl Default for OnPathAttacker {
    /// A notice to the sender about every packet with data.
    fn default() -> OnPathAttacker {
        OnPathAttacker {
            flows: Vec::new(),
            forges: Forges::default(),
            to: Target::default(),
            notice_size: Reporter::SIZE_ICMP,
            every: 1,
            start: None,
            stop: None,
        }
    }
}

impl OnPathAttacker {
    fn forger<F: Forged>(&self, site: &Site<'_>, flow: Flow, forged: F) -> Forger<F> {
        let forgery = Forgery::new(site, flow, self.to, self.notice_size);
        let (start, stop) = times(self.start, self.stop);
        Forger::new(forgery, forged, self.every, start, stop)
    }
}

impl Settings for OnPathAttacker {
    fn flows(&self) -> &[String] {
        &self.flows
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let flows = site.flows(&self.flows).into_iter();
        if self.forges == Forges::Changes {
            let forgers = flows.map(|flow| self.forger(site, flow, Changes::default()));
            return Box::new(OfEach(forgers.collect()));
        }
        if self.forges == Forges::EspPackets {
            let forgers = flows.map(|flow| self.forger(site, flow, EspPackets::default()));
            return Box::new(OfEach(forgers.collect()));
        }
        let forgers = flows.map(|flow| {
            let tunnels = site.tunnels.iter().filter(|(inside, _)| *inside == flow);
            let tunnels = tunnels.map(|(_, ends)| (site.address(ends.source.is_ipv6()), *ends));
            // It need not guess what it reads.
            let forged = Notices::new(false).inside(tunnels.collect());
            let forger = self.forger(site, flow, forged);
            if self.forges == Forges::Datagrams { forger.inert() } else { forger }
        });
        Box::new(OfEach(forgers.collect()))
    }
}
