//! Attackers in a world.

use crate::scenario::{Attack, AttackKind, Method, Report, Scenario};
use crate::stage::{End, port};
use crate::tunnels::Tunnels;
use base::{Random, Rate};
use core::net::IpAddr;
use host::{DatagramFlow, DatagramSource};
use middlebox::{
    ChangeForger, ChangeGuesser, ChangeTap, EchoLiar, FieldLiar, Forger, Forgery, Guesser, Tap,
};
use sim::{NodeId, World};
use tcp::mechanism::Mechanism;
use wire::{Ip, Udp};

/// Puts an attacker into a world. What it sends has an address of its node; `random` is the chance of
/// a part of it.
pub(crate) fn add(
    scenario: &Scenario,
    (number, attack): (usize, &Attack),
    (world, tunnels): (&mut World<End>, &Tunnels<'_>),
    node: impl Fn(usize) -> NodeId,
    address: impl Fn(usize) -> IpAddr,
    random: impl Fn(&str) -> Random,
) {
    let flow = &scenario.flows[attack.flow];
    let changes = attack.kind == AttackKind::Changes;
    // Who is to hear of corruption, or of a change.
    let target = if flow.report == Report::Forward && !changes { flow.to } else { flow.from };
    let forgery = Forgery {
        attacker: address(attack.at),
        source: address(flow.from),
        destination: address(flow.to),
        destination_port: port(attack.flow),
        target: address(target),
        size: flow.notice_size,
    };
    let forges = attack.kind != AttackKind::Datagrams;
    // Attackers know by which defences they have to get past.
    let nonces = |m: &Mechanism| matches!(m, Mechanism::Guard(guard) if guard.nonce);
    let nonces = flow.sender.mechanisms.iter().any(nonces);
    match attack.method {
        Method::Receiver { claim } => {
            let times = (attack.start, attack.stop);
            if attack.kind == AttackKind::Fields {
                world.add_box(node(attack.at), FieldLiar::new(forgery, claim, times));
            } else {
                let liar = EchoLiar::new(forgery, nonces, times, random("guesses"));
                world.add_box(node(attack.at), liar);
            }
        }
        Method::OnPath { every } if changes => {
            let tap = ChangeTap::new(forgery, every, attack.start, attack.stop);
            world.add_box(node(attack.at), tap);
        }
        Method::OnPath { every } => {
            let tap = Tap::new(forgery, every, attack.start, attack.stop);
            let tap = tap.beside_tunnels(tunnels.tapped(flow, node(attack.at)));
            world.add_box(node(attack.at), if forges { tap } else { tap.inert() });
        }
        Method::Blind { rate, aim } => {
            let ip = Ip::new(forgery.attacker, forgery.target).len();
            let size = if changes {
                (ip + ChangeForger::size()) as u32
            } else {
                u32::from(flow.notice_size)
            };
            // None, then.
            let bits = u64::from(rate) * u64::from(size) * 8;
            let Some(rate) = Rate::from_bps(bits) else { return };
            // Unlike that of another attack from here.
            let flood_port = 1 + number as u16;
            let flood = DatagramFlow {
                stream: u32::MAX, // No flow's.
                remote: forgery.target,
                remote_port: Tap::DISCARD,
                local_port: flood_port,
                payload: size.saturating_sub((ip + Udp::HEADER) as u32),
                rate,
                start: attack.start,
                stop: attack.stop,
                bursts: None,
            };
            let flood = DatagramSource::new(flood, random("flood"));
            let host = world.host_mut(node(attack.at));
            host.send_datagrams(flood);
            if !forges {
                return;
            }
            if changes {
                world.add_box(node(attack.at), ChangeForger(forgery, flood_port));
                let guesser = ChangeGuesser::new(forgery, aim, random("guesses"));
                world.add_box(node(target), guesser);
                return;
            }
            world.add_box(node(attack.at), Forger(forgery, flood_port));
            let guesser = Guesser::new(forgery, aim, nonces, random("guesses"));
            world.add_box(node(target), guesser);
        }
    }
}
