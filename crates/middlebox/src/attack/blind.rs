//! An attacker off the path, which guesses sequence numbers.

use super::{Aim, Forged, Forgery};
use base::{Random, Time};
use host::{Context, Middlebox, Port, Verdict};
use wire::{Body, Packet, Payload};

/// The box at the attacker's node: datagrams that its host sends from a port leave as forged packets
/// that name the victim's ends and are otherwise blank. [`Guesser`] fills them in.
#[derive(Clone, Copy, Debug)]
pub struct BlindAttacker<F> {
    forgery: Forgery,
    forged: F,
    port: u16,
}

impl<F: Forged> BlindAttacker<F> {
    /// A box whose host sends datagrams from `port` to the target.
    pub fn new(forgery: Forgery, forged: F, port: u16) -> BlindAttacker<F> {
        BlindAttacker { forgery, forged, port }
    }
}

impl<F: Forged> Middlebox for BlindAttacker<F> {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if from.is_none()
            && packet.ip.destination == self.forgery.target
            && matches!(packet.body, Body::Udp(udp) if udp.source_port == self.port)
        {
            packet.body = self.forged.blank(&self.forgery);
            packet.payload = Payload::default();
        }
        Verdict::Forward
    }
}

/// The box at the target: fills a guess into every forged packet that arrives. So the attacker knows
/// only the victim's addresses and ports or, with the strongest guess, the sequence numbers at that
/// moment.
#[derive(Clone, Debug)]
pub struct Guesser<F> {
    forgery: Forgery,
    forged: F,
    aim: Aim,
    random: Random,
}

impl<F: Forged> Guesser<F> {
    /// A box at the target, with its own random stream.
    #[must_use]
    pub fn new(forgery: Forgery, forged: F, aim: Aim, random: Random) -> Guesser<F> {
        Guesser { forgery, forged, aim, random }
    }
}

impl<F: Forged> Middlebox for Guesser<F> {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        self.forged.observe(&self.forgery, packet);
        let Forgery { attacker, target, .. } = self.forgery;
        if from.is_some() && (packet.ip.source, packet.ip.destination) == (attacker, target) {
            self.forged.guess(&self.forgery, self.aim, &mut self.random, packet);
        }
        Verdict::Forward
    }
}
