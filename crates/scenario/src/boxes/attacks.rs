//! The boxes of attackers.

use super::tunnels::Tunnels;
use crate::attacks::{Attack, AttackKind, Method};
use crate::flow::Report;
use crate::placement::{Placement, port};
use crate::scenario::Scenario;
use base::{Random, Rate, Seed};
use host::{DatagramFlow, DatagramSource, Middlebox};
use middlebox::{
    BlindAttacker, Changes, DISCARD, FalseEchoes, FalseFields, Forged, Forgery, Guesser, Notices,
    OnPathAttacker,
};
use tcp::mechanism::Mechanism;
use wire::{Ip, Packet, Udp};

/// The attackers of a scenario, each in its node, and what it takes at the target.
pub(super) fn install(
    scenario: &Scenario,
    seed: Seed,
    tunnels: &Tunnels<'_>,
    placement: &mut impl Placement,
) {
    for (number, attack) in scenario.attacks.iter().enumerate() {
        let random = |part: &str| seed.stream(&format!("attack.{number}.{part}"));
        let flow = &scenario.flows[attack.flow];
        let changes = attack.kind == AttackKind::Changes;
        // The end that notices or changes are for.
        let target = if flow.report == Report::Forward && !changes { flow.to } else { flow.from };
        let address = |node| placement.address(attack.flow, node);
        let forgery = Forgery {
            attacker: placement.own(attack.at, flow.ip),
            source: address(flow.from),
            destination: address(flow.to),
            destination_port: port(attack.flow),
            target: address(target),
            size: flow.notice_size,
        };
        // Attackers know by which defences they have to get past.
        let nonces =
            |m: &Mechanism| matches!(m, Mechanism::NoticeAuthentication(guard) if guard.nonce);
        let nonces = flow.sender.mechanisms.iter().any(nonces);
        let inert = attack.kind == AttackKind::Datagrams;
        let installer = Installer { number, attack, target, forgery, inert };
        if let Method::Receiver { claim } = attack.method {
            let times = (attack.start, attack.stop);
            let receiver: Box<dyn Middlebox + Send> = if attack.kind == AttackKind::Fields {
                Box::new(FalseFields::new(forgery, claim, times))
            } else {
                Box::new(FalseEchoes::new(forgery, nonces, times, random("guesses")))
            };
            placement.add_box(attack.at, receiver);
        } else if changes {
            installer.install(&Changes::default(), placement, random);
        } else {
            let tunnels = tunnels.tapped(flow, |ip| placement.own(attack.at, ip));
            installer.install(&Notices::new(nonces).inside(tunnels), placement, random);
        }
    }
}

/// Installs one attack.
struct Installer<'a> {
    number: usize,
    attack: &'a Attack,
    /// The node that forged packets go to.
    target: usize,
    forgery: Forgery,
    /// It sends datagrams without a receiver instead of forged packets.
    inert: bool,
}

impl Installer<'_> {
    fn install<F: Forged + Clone + Send + 'static>(
        &self,
        forged: &F,
        placement: &mut impl Placement,
        random: impl Fn(&str) -> Random,
    ) {
        let Installer { number, attack, target, forgery, inert } = *self;
        match attack.method {
            Method::Receiver { .. } => {}
            Method::OnPath { every } => {
                let (start, stop) = (attack.start, attack.stop);
                let on_path = OnPathAttacker::new(forgery, forged.clone(), every, start, stop);
                let on_path = if inert { on_path.inert() } else { on_path };
                placement.add_box(attack.at, Box::new(on_path));
            }
            Method::Blind { rate, aim } => {
                let ip = Ip::new(forgery.attacker, forgery.target);
                let blank = Packet { ip, body: forged.blank(&forgery), ..Packet::BLANK };
                let bits = u64::from(rate) * u64::from(blank.len()) * 8;
                // A rate of zero sends nothing.
                let Some(rate) = Rate::from_bps(bits) else { return };
                // Other attacks of this node have other ports.
                let port = 1 + number as u16;
                let flood = DatagramFlow {
                    stream: u32::MAX, // No flow's.
                    remote: forgery.target,
                    remote_port: DISCARD,
                    local_port: port,
                    payload: blank.len().saturating_sub((ip.len() + Udp::HEADER) as u32),
                    rate,
                    start: attack.start,
                    stop: attack.stop,
                    bursts: None,
                };
                let flood = DatagramSource::new(flood, random("flood"));
                placement.node_host(attack.at).send_datagrams(flood);
                if !inert {
                    let source = BlindAttacker::new(forgery, forged.clone(), port);
                    placement.add_box(attack.at, Box::new(source));
                    let guesser = Guesser::new(forgery, forged.clone(), aim, random("guesses"));
                    placement.add_box(target, Box::new(guesser));
                }
            }
        }
    }
}
