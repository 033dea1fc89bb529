//! Forged indications of a change of connectivity (`koutsianas2007` §3.6).

use super::{Aim, Forged, Forgery, any};
use base::Random;
use wire::{
    Body, ConnectivityChange, Ip, LocalStatus, Packet, SackBlocks, Segment, SeqNumber, Timestamps,
};

/// Acknowledgments that indicate a change of the receiver's connectivity. On the path, the attacker can
/// send one after each acknowledgment of the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    /// The receiver's latest acknowledgment, as seen at the target.
    last: Option<Segment>,
    /// The latest value of the option's C bit; each indication toggles it.
    c: bool,
}

impl Changes {
    /// The next indication, in a copy of an acknowledgment.
    fn next(&mut self, like: Segment) -> Segment {
        self.c = !self.c;
        changed(like, self.c)
    }
}

/// A copy of an acknowledgment that indicates a change of the receiver's connectivity.
fn changed(like: Segment, c: bool) -> Segment {
    let mut segment = like;
    segment.options.sack = SackBlocks::default();
    segment.options.connectivity =
        ConnectivityChange { c, cs: LocalStatus::New, ..ConnectivityChange::default() }.into();
    segment
}

/// A blank segment with the indication.
fn blank() -> Segment {
    let mut like = Segment::default();
    like.options.timestamps = Some(Timestamps::default());
    changed(like, false)
}

impl Forged for Changes {
    fn answers(&self, forgery: &Forgery, packet: &Packet) -> bool {
        forgery.acknowledgment(packet).is_some()
    }

    fn answer(&mut self, forgery: &Forgery, packet: &Packet) -> Option<Packet> {
        let segment = self.next(*forgery.acknowledgment(packet)?);
        let ip = Ip::new(forgery.destination, forgery.source);
        Some(Packet { ip, body: Body::Tcp(segment), ..Packet::BLANK })
    }

    fn blank(&self, _: &Forgery) -> Body {
        Body::Tcp(blank())
    }

    fn observe(&mut self, forgery: &Forgery, packet: &Packet) {
        if let Some(segment) = forgery.acknowledgment(packet) {
            self.last = Some(*segment);
        }
    }

    fn guess(&mut self, forgery: &Forgery, aim: Aim, random: &mut Random, packet: &mut Packet) {
        let Body::Tcp(blank) = &mut packet.body else { return };
        let Some(mut like) = self.last.filter(|_| blank.options.connectivity.is_some()) else {
            return;
        };
        if aim == Aim::Anywhere {
            like.seq = SeqNumber(any(random));
            like.ack = SeqNumber(any(random));
            like.options.timestamps = Some(Timestamps { value: any(random), echo: any(random) });
        }
        *blank = self.next(like);
        packet.ip.source = forgery.destination;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlindAttacker, Forger, Guesser};
    use base::{Seed, Time};
    use core::net::IpAddr;
    use host::{Middlebox, Outbox, Port, Verdict};
    use wire::Payload;

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

    /// The attacker's datagrams as they arrive at the box.
    fn flood() -> Packet {
        let Forgery { attacker, target, .. } = forgery();
        let udp = wire::Udp { source_port: 9, destination_port: 9 };
        let len = (blank().header_len() - wire::Udp::HEADER) as u32;
        let payload = Payload { len, ..Payload::default() };
        let body = Body::Udp(udp);
        let mut packet = Packet { ip: Ip::new(attacker, target), body, payload, ..Packet::BLANK };
        let size = packet.len();
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        BlindAttacker::new(forgery(), Changes::default(), 9).packet(
            Time::ZERO,
            None,
            &mut packet,
            &mut cx,
        );
        assert_eq!(packet.len(), size, "it takes as much of the links");
        packet
    }

    fn pass(middlebox: &mut impl Middlebox, mut packet: Packet) -> (Packet, Vec<Packet>) {
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        let port = Some(Port(0));
        assert_eq!(middlebox.packet(Time::ZERO, port, &mut packet, &mut cx), Verdict::Forward);
        (packet, outbox.into_packets())
    }

    fn segment(packet: &Packet) -> Segment {
        let Body::Tcp(segment) = packet.body else { panic!("no segment") };
        segment
    }

    #[test]
    fn a_tap_sends_a_change_behind_every_second_acknowledgment_and_each_is_new() {
        let mut tap = Forger::new(forgery(), Changes::default(), 2, Time::ZERO, Time::NEVER);
        let mut sent = Vec::new();
        for ack in 1..=6 {
            let (passed, forged) = pass(&mut tap, acknowledgment(ack));
            assert_eq!(passed, acknowledgment(ack));
            sent.extend(forged.iter().map(segment));
        }
        assert_eq!(sent.iter().map(|s| s.ack.0).collect::<Vec<_>>(), [2, 4, 6]);
        let options = sent.iter().map(|s| s.options.connectivity.get().map(|o| (o.c, o.cs)));
        let new = LocalStatus::New;
        assert!(options.eq([Some((true, new)), Some((false, new)), Some((true, new))]));
    }

    #[test]
    fn the_strongest_guess_is_like_the_last_acknowledgment_and_in_its_receivers_name() {
        let mut guesser =
            Guesser::new(forgery(), Changes::default(), Aim::Window, Seed(1).stream("attack.0"));
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
        let mut guesser = Guesser::new(forgery(), Changes::default(), Aim::Anywhere, random);
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
