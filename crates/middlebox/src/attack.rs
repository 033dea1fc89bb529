//! Who forges notices of corruption (`bbn8333` §6.2, §7.1), by what they know.

use crate::tunnel::Ends;
use base::{Random, Time};
use core::net::IpAddr;
use host::{Context, Middlebox, Passage, Port};
use wire::{
    Body, CopyId, CorruptionNotice, EspNotice, Icmp, Ip, Packet, Payload, Segment, SeqNumber, Udp,
};

/// Whose notices are forged, and what they look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgery {
    /// The address of the attacker.
    pub attacker: IpAddr,
    /// The victim's end that sends data.
    pub source: IpAddr,
    /// The one that receives it.
    pub destination: IpAddr,
    /// The port that data goes to.
    pub destination_port: u16,
    /// To which of them the notices go.
    pub target: IpAddr,
    /// Bytes of a notice, with its headers.
    pub size: u16,
}

impl Forgery {
    /// The notice that says nothing yet but whose it is.
    #[must_use]
    pub fn notice(&self) -> CorruptionNotice {
        CorruptionNotice {
            source: self.source,
            destination: self.destination,
            source_port: 0,
            destination_port: self.destination_port,
            seq: SeqNumber(0),
            len: 1,
            copy: CopyId::NONE,
        }
    }

    /// A segment of the victim's that carries something.
    pub(crate) fn data<'a>(&self, packet: &'a Packet) -> Option<&'a Segment> {
        let ends = (packet.ip.source, packet.ip.destination);
        match &packet.body {
            Body::Tcp(segment) if packet.payload.len > 0 => (ends
                == (self.source, self.destination)
                && segment.destination_port == self.destination_port)
                .then_some(segment),
            _ => None,
        }
    }

    /// A segment of the other direction.
    pub(crate) fn acknowledgment<'a>(&self, packet: &'a Packet) -> Option<&'a Segment> {
        let ends = (packet.ip.destination, packet.ip.source);
        match &packet.body {
            Body::Tcp(segment) => (ends == (self.source, self.destination)
                && segment.source_port == self.destination_port)
                .then_some(segment),
            _ => None,
        }
    }
}

/// In the node of a blind attacker: the datagrams that its host sends from a port leave as notices of the
/// same size, which say nothing yet but whose they are. [`Guesser`] does the rest.
#[derive(Clone, Copy, Debug)]
pub struct Forger(pub Forgery, pub u16);

impl Middlebox for Forger {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Passage {
        let Forger(forgery, port) = self;
        if from.is_none()
            && packet.ip.destination == forgery.target
            && matches!(packet.body, Body::Udp(udp) if udp.source_port == *port)
        {
            let (notice, size) = (forgery.notice(), forgery.size);
            packet.body = Body::Icmp(Icmp::Corruption { notice, size });
            packet.payload = Payload::default();
        }
        Passage::Forward
    }
}

/// Where a blind attacker guesses that the victim's sequence numbers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Among all 2^32.
    #[default]
    Anywhere,
    /// Among those in flight: the strongest guess that there is.
    Window,
}

/// What a blind attacker's guesses come to: it stands at the target's door and writes them into the
/// notices that arrive. So whoever made these on the other side of the network knows no more of
/// the victim than its addresses and ports, or where its window is at this very moment.
#[derive(Clone, Debug)]
pub struct Guesser {
    forgery: Forgery,
    aim: Aim,
    /// Nonces are guessed, too. Who need not guess them names no copy.
    nonces: bool,
    random: Random,
    seen: Seen,
}

/// What has been seen of the victim.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    port: u16,
    /// SND.UNA and SND.NXT.
    una: Option<SeqNumber>,
    nxt: Option<SeqNumber>,
}

impl Guesser {
    /// At the door of the target, with its own stream of randomness.
    #[must_use]
    pub fn new(forgery: Forgery, aim: Aim, nonces: bool, random: Random) -> Guesser {
        Guesser { forgery, aim, nonces, random, seen: Seen::default() }
    }

    fn see(&mut self, packet: &Packet) {
        if let Some(segment) = self.forgery.data(packet) {
            let end = segment.seq + packet.payload.len;
            self.seen.port = segment.source_port;
            self.seen.una.get_or_insert(segment.seq);
            if self.seen.nxt.is_none_or(|nxt| end.beyond(nxt) > 0) {
                self.seen.nxt = Some(end);
            }
        } else if let Some(segment) = self.forgery.acknowledgment(packet)
            && self.seen.una.is_some_and(|una| segment.ack.beyond(una) > 0)
        {
            self.seen.una = Some(segment.ack);
        }
    }

    /// A uniform number below `end`, 2^32 for 0.
    fn below(&mut self, end: u32) -> u32 {
        let bits = self.random.bits() >> 32;
        if end == 0 { bits as u32 } else { ((bits * u64::from(end)) >> 32) as u32 }
    }

    fn guess(&mut self, notice: &mut CorruptionNotice) {
        let Seen { port, una, nxt } = self.seen;
        let (Some(una), Some(nxt)) = (una, nxt) else { return };
        notice.source_port = port;
        notice.seq = match self.aim {
            Aim::Anywhere => SeqNumber(self.below(0)),
            // Of nothing in flight, the next is guessed.
            Aim::Window => una + self.below(nxt.beyond(una).max(1) as u32),
        };
        if self.nonces {
            notice.copy = CopyId(self.below(0));
        }
    }
}

impl Middlebox for Guesser {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Passage {
        self.see(packet);
        let Forgery { attacker, target, .. } = self.forgery;
        let arrives = from.is_some();
        if arrives
            && (packet.ip.source, packet.ip.destination) == (attacker, target)
            && let Body::Icmp(Icmp::Corruption { notice, .. }) = &mut packet.body
            && notice.destination_port == self.forgery.destination_port
        {
            self.guess(notice);
        }
        Passage::Forward
    }
}

/// An attacker on the path: it reads the victim's packets as they pass, and claims of every n-th
/// that carries data that it was corrupted, although it goes on its way. Where a tunnel hides them, it
/// claims so of every n-th packet of the tunnel.
#[derive(Clone, Debug)]
pub struct Tap {
    forgery: Forgery,
    /// Through which the victim's packets may pass it, each with its own address to write to the
    /// ingress from.
    tunnels: Vec<(IpAddr, Ends)>,
    /// It sends inert datagrams instead, at the same times and as long.
    inert: bool,
    turns: Turns,
}

/// Which of what passes an attacker on the path takes up: every n-th within a time.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    every: u64,
    start: Time,
    stop: Time,
    passed: u64,
}

impl Turns {
    /// Every n-th (at least 1) from `start` to `stop`.
    pub(crate) fn new(every: u64, start: Time, stop: Time) -> Turns {
        Turns { every: every.max(1), start, stop, passed: 0 }
    }

    /// Something passes: whether it is one of those.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        if now < self.start || now >= self.stop {
            return false;
        }
        self.passed += 1;
        self.passed.is_multiple_of(self.every)
    }
}

impl Tap {
    /// The port to which inert datagrams go (discard, RFC 863).
    pub const DISCARD: u16 = 9;

    /// One that answers every n-th packet (at least 1) from `start` to `stop`.
    #[must_use]
    pub fn new(forgery: Forgery, every: u64, start: Time, stop: Time) -> Tap {
        let turns = Turns::new(every, start, stop);
        Tap { forgery, tunnels: Vec::new(), inert: false, turns }
    }

    /// One that takes the packets of these associations for the victim's, too, each with an address of
    /// the attacker's that is of the same version of IP.
    #[must_use]
    pub fn beside_tunnels(self, tunnels: Vec<(IpAddr, Ends)>) -> Tap {
        Tap { tunnels, ..self }
    }

    /// What it could claim of a packet.
    fn claim(&self, packet: &Packet) -> Option<(Ip, Icmp)> {
        let Forgery { attacker, source, destination, target, size, .. } = self.forgery;
        if let Some(segment) = self.forgery.data(packet) {
            let len = packet.payload.len;
            let notice = CorruptionNotice::about(source, destination, segment, len);
            return Some((Ip::new(attacker, target), Icmp::Corruption { notice, size }));
        }
        let mut tunnels = self.tunnels.iter();
        let (own, ends, esp) =
            tunnels.find_map(|(own, ends)| Some((*own, ends, ends.header(packet)?)))?;
        let notice = EspNotice { source: ends.source, destination: ends.destination, esp };
        Some((Ip::new(own, ends.source), Icmp::EspCorruption { notice, size }))
    }

    /// The same with datagrams that nobody reads, for comparison.
    #[must_use]
    pub fn inert(self) -> Tap {
        Tap { inert: true, ..self }
    }
}

impl Middlebox for Tap {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Passage {
        let Some((ip, claim)) = self.claim(packet) else { return Passage::Forward };
        if !self.turns.take(now) {
            return Passage::Forward;
        }
        cx.send.push(if self.inert {
            let len = u32::from(self.forgery.size).saturating_sub((ip.len() + Udp::HEADER) as u32);
            let body = Body::Udp(Udp { source_port: Tap::DISCARD, destination_port: Tap::DISCARD });
            Packet { ip, body, payload: Payload { len, ..Payload::default() }, ..Packet::BLANK }
        } else {
            Packet { ip, body: Body::Icmp(claim), ..Packet::BLANK }
        });
        Passage::Forward
    }
}

#[cfg(test)]
mod tests;
