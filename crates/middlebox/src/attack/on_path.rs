//! An attacker on the path.

use super::{Forged, Forgery};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use wire::{Body, Packet, Payload, Udp};

/// An attacker on the path: it reads the victim's packets as they pass, and sends a forged packet after
/// every n-th that it can answer. The packets themselves are forwarded.
#[derive(Clone, Debug)]
pub struct OnPathAttacker<F> {
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

impl<F: Forged> OnPathAttacker<F> {
    /// An attacker that answers every n-th packet (at least 1) from `start` to `stop`.
    #[must_use]
    pub fn new(
        forgery: Forgery,
        forged: F,
        every: u64,
        start: Time,
        stop: Time,
    ) -> OnPathAttacker<F> {
        let every = every.max(1);
        OnPathAttacker { forgery, forged, inert: false, every, start, stop, passed: 0 }
    }

    /// The same with datagrams to the discard port: the effect of the load alone.
    #[must_use]
    pub fn inert(self) -> OnPathAttacker<F> {
        OnPathAttacker { inert: true, ..self }
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

impl<F: Forged> Middlebox for OnPathAttacker<F> {
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
