//! Who forges indications of a change of connectivity (`koutsianas2007` §3.6), by what they know.

use crate::attack::Turns;
use crate::{Aim, Forgery};
use base::{Random, Time};
use host::{Context, Middlebox, Passage, Port};
use wire::{
    Body, ConnectivityChange, Ip, LocalStatus, Packet, Payload, SackBlocks, Segment, SeqNumber,
    Timestamps,
};

/// An acknowledgment like another, which says that the receiver's connectivity has changed.
fn forged(like: Segment, c: bool) -> Segment {
    let mut segment = like;
    segment.options.sack = SackBlocks::default();
    segment.options.connectivity =
        Some(ConnectivityChange { c, cs: LocalStatus::New, ..ConnectivityChange::default() });
    segment
}

/// In the node of a blind attacker: the datagrams that its host sends from a port leave as forged
/// segments that say nothing yet but to whom. [`ChangeGuesser`] does the rest.
#[derive(Clone, Copy, Debug)]
pub struct ChangeForger(pub Forgery, pub u16);

impl ChangeForger {
    /// Such a segment.
    fn blank() -> Segment {
        let mut like = Segment::default();
        like.options.timestamps = Some(Timestamps::default());
        forged(like, false)
    }

    /// Bytes of its headers behind that of IP.
    #[must_use]
    pub fn size() -> usize {
        ChangeForger::blank().header_len()
    }
}

impl Middlebox for ChangeForger {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Passage {
        let ChangeForger(forgery, port) = self;
        if from.is_none()
            && packet.ip.destination == forgery.target
            && matches!(packet.body, Body::Udp(udp) if udp.source_port == *port)
        {
            packet.body = Body::Tcp(ChangeForger::blank());
            packet.payload = Payload::default();
        }
        Passage::Forward
    }
}

/// What a blind attacker's guesses come to, at the target's door, where they are written into what
/// arrives: whoever made that knows no more of the victim than its addresses and ports, or, with
/// the strongest guess, its last acknowledgment.
#[derive(Clone, Debug)]
pub struct ChangeGuesser {
    forgery: Forgery,
    aim: Aim,
    random: Random,
    last: Option<Segment>,
    c: bool,
}

impl ChangeGuesser {
    /// At the door of the target, with its own stream of randomness.
    #[must_use]
    pub fn new(forgery: Forgery, aim: Aim, random: Random) -> ChangeGuesser {
        ChangeGuesser { forgery, aim, random, last: None, c: false }
    }

    fn any(&mut self) -> u32 {
        (self.random.bits() >> 32) as u32
    }

    fn guess(&mut self) -> Option<Segment> {
        let mut like = self.last?;
        if self.aim == Aim::Anywhere {
            like.seq = SeqNumber(self.any());
            like.ack = SeqNumber(self.any());
            like.options.timestamps = Some(Timestamps { value: self.any(), echo: self.any() });
        }
        self.c = !self.c;
        Some(forged(like, self.c))
    }
}

impl Middlebox for ChangeGuesser {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Passage {
        if from.is_none() {
            return Passage::Forward;
        }
        if let Some(segment) = self.forgery.acknowledgment(packet) {
            self.last = Some(*segment);
        } else if (packet.ip.source, packet.ip.destination)
            == (self.forgery.attacker, self.forgery.target)
            && let Body::Tcp(blank) = &mut packet.body
            && blank.options.connectivity.is_some()
            && let Some(segment) = self.guess()
        {
            *blank = segment;
            packet.ip.source = self.forgery.destination;
        }
        Passage::Forward
    }
}

/// An attacker on the path: behind every n-th acknowledgment that passes it sends one like it, which
/// says that the receiver's connectivity has changed.
#[derive(Clone, Debug)]
pub struct ChangeTap {
    forgery: Forgery,
    turns: Turns,
    c: bool,
}

impl ChangeTap {
    /// One that follows every n-th acknowledgment (at least 1) from `start` to `stop`.
    #[must_use]
    pub fn new(forgery: Forgery, every: u64, start: Time, stop: Time) -> ChangeTap {
        ChangeTap { forgery, turns: Turns::new(every, start, stop), c: false }
    }
}

impl Middlebox for ChangeTap {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Passage {
        let Some(segment) = self.forgery.acknowledgment(packet) else { return Passage::Forward };
        if self.turns.take(now) {
            self.c = !self.c;
            let Forgery { source, destination, .. } = self.forgery;
            let ip = Ip::new(destination, source);
            let body = Body::Tcp(forged(*segment, self.c));
            cx.send.push(Packet { ip, body, ..Packet::BLANK });
        }
        Passage::Forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use core::net::IpAddr;

    fn forgery() -> Forgery {
        let [attacker, source, destination] = [9, 1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let target = source;
        Forgery { attacker, source, destination, destination_port: 5001, target, size: 60 }
    }

    fn acknowledgment(ack: u32) -> Packet {
        let Forgery { source, destination, .. } = forgery();
        let mut segment = Segment { source_port: 5001, ack: SeqNumber(ack), ..Segment::default() };
        segment.destination_port = 50_000;
        segment.seq = SeqNumber(77);
        segment.options.timestamps = Some(Timestamps { value: ack + 1, echo: 5 });
        Packet { ip: Ip::new(destination, source), body: Body::Tcp(segment), ..Packet::BLANK }
    }

    /// What the attacker's host sends, as it arrives at the door.
    fn flood() -> Packet {
        let Forgery { attacker, target, .. } = forgery();
        let udp = wire::Udp { source_port: 9, destination_port: 9 };
        let len = (ChangeForger::size() - wire::Udp::HEADER) as u32;
        let payload = Payload { len, ..Payload::default() };
        let body = Body::Udp(udp);
        let mut packet = Packet { ip: Ip::new(attacker, target), body, payload, ..Packet::BLANK };
        let size = packet.len();
        let mut send = Vec::new();
        let mut cx = Context { send: &mut send };
        ChangeForger(forgery(), 9).packet(Time::ZERO, None, &mut packet, &mut cx);
        assert_eq!(packet.len(), size, "it takes as much of the links");
        packet
    }

    fn pass(middlebox: &mut impl Middlebox, mut packet: Packet) -> (Packet, Vec<Packet>) {
        let mut send = Vec::new();
        let mut cx = Context { send: &mut send };
        let port = Some(Port(0));
        assert_eq!(middlebox.packet(Time::ZERO, port, &mut packet, &mut cx), Passage::Forward);
        (packet, send)
    }

    fn segment(packet: &Packet) -> Segment {
        let Body::Tcp(segment) = packet.body else { panic!("no segment") };
        segment
    }

    #[test]
    fn a_tap_sends_a_change_behind_every_second_acknowledgment_and_each_is_new() {
        let mut tap = ChangeTap::new(forgery(), 2, Time::ZERO, Time::NEVER);
        let mut sent = Vec::new();
        for ack in 1..=6 {
            let (passed, forged) = pass(&mut tap, acknowledgment(ack));
            assert_eq!(passed, acknowledgment(ack));
            sent.extend(forged.iter().map(segment));
        }
        assert_eq!(sent.iter().map(|s| s.ack.0).collect::<Vec<_>>(), [2, 4, 6]);
        let told = sent.iter().map(|s| s.options.connectivity.map(|o| (o.c, o.cs)));
        let new = LocalStatus::New;
        assert!(told.eq([Some((true, new)), Some((false, new)), Some((true, new))]));
    }

    #[test]
    fn the_strongest_guess_is_like_the_last_acknowledgment_and_in_its_receivers_name() {
        let mut guesser = ChangeGuesser::new(forgery(), Aim::Window, Seed(1).stream("attack.0"));
        assert_eq!(pass(&mut guesser, flood()).0, flood(), "there is nothing yet to be like");
        pass(&mut guesser, acknowledgment(1000));
        let (forged, _) = pass(&mut guesser, flood());
        assert_eq!(forged.ip, acknowledgment(1000).ip);
        let mut plain = segment(&forged);
        assert!(plain.options.connectivity.take().is_some_and(|o| o.cs == LocalStatus::New));
        assert_eq!(plain, segment(&acknowledgment(1000)));
    }

    #[test]
    fn other_guesses_are_uniform_in_all_that_is_checked() {
        let random = Seed(1).stream("attack.0");
        let mut guesser = ChangeGuesser::new(forgery(), Aim::Anywhere, random);
        pass(&mut guesser, acknowledgment(1));
        let guesses: Vec<_> = (0..4000).map(|_| segment(&pass(&mut guesser, flood()).0)).collect();
        let quarters = |number: fn(&Segment) -> u32| {
            let mut counts = [0; 4];
            guesses.iter().for_each(|guess| counts[(number(guess) >> 30) as usize] += 1);
            counts
        };
        let value = |s: &Segment| s.options.timestamps.map_or(0, |stamps| stamps.value);
        // 1000 each, with a standard deviation of 27.
        for count in [quarters(|s| s.seq.0), quarters(|s| s.ack.0), quarters(value)].concat() {
            assert!((870..=1130).contains(&count), "{count}");
        }
    }
}
