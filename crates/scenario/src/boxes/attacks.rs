//! Blind attackers: the datagrams of a host, a box that forges them, and one at the target.

use crate::attacks::Blind;
use crate::placement::{Placement, port};
use crate::scenario::Scenario;
use base::{Random, Rate};
use host::{DatagramFlow, DatagramSource};
use middlebox::{
    BlindAttacker, Changes, DISCARD, EspPackets, Forged, Forgery, Forges, Guesser, Notices, Target,
};
use wire::{Ip, Packet, Udp};

/// A blind attacker.
pub(super) struct Attacker<'a, R> {
    pub(super) scenario: &'a Scenario,
    /// Its number, its node and its settings.
    pub(super) number: usize,
    pub(super) at: usize,
    pub(super) settings: Blind,
    /// The random streams of its parts.
    pub(super) random: R,
}

impl<R: Fn(&str) -> Random> Attacker<'_, R> {
    /// Installs it.
    pub(super) fn install(&self, placement: &mut impl Placement) {
        match self.settings.forges {
            Forges::Changes => return self.install_as(&Changes::default(), placement),
            Forges::EspPackets => return self.install_as(&EspPackets::default(), placement),
            Forges::Notices | Forges::Datagrams => {}
        }
        // Attackers know by which defences they have to get past.
        let nonces = self.scenario.flows[self.settings.flow].has_nonces();
        self.install_as(&Notices::new(nonces), placement);
    }

    fn install_as<F: Forged + Clone + Send + 'static>(
        &self,
        forged: &F,
        placement: &mut impl Placement,
    ) {
        let Blind { flow: index, forges, to, rate, aim, start, stop } = self.settings;
        let flow = &self.scenario.flows[index];
        let target = if to == Target::Receiver { flow.to } else { flow.from };
        let address = |node| placement.address(index, node);
        let forgery = Forgery {
            attacker: placement.own(self.at, flow.ip),
            source: address(flow.from),
            destination: address(flow.to),
            destination_port: port(index),
            target: address(target),
            size: flow.notice_size,
        };
        let ip = Ip::new(forgery.attacker, forgery.target);
        let blank = Packet { ip, body: forged.blank(&forgery), ..Packet::BLANK };
        let bits = u64::from(rate) * u64::from(blank.len()) * 8;
        // A rate of zero sends nothing.
        let Some(rate) = Rate::from_bps(bits) else { return };
        // Other attacks of this node have other ports.
        let port = 1 + self.number as u16;
        let flood = DatagramFlow {
            stream: u32::MAX, // No flow's.
            remote: forgery.target,
            remote_port: DISCARD,
            local_port: port,
            payload: blank.len().saturating_sub((ip.len() + Udp::HEADER) as u32),
            rate,
            start,
            stop,
            bursts: None,
        };
        let flood = DatagramSource::new(flood, (self.random)("flood"));
        placement.node_host(self.at).send_datagrams(flood);
        if forges != Forges::Datagrams {
            let source = BlindAttacker::new(forgery, forged.clone(), port);
            placement.add_box(self.at, Box::new(source));
            let guesser = Guesser::new(forgery, forged.clone(), aim, (self.random)("guesses"));
            placement.add_box(target, Box::new(guesser));
        }
    }
}
