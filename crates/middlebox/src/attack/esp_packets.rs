//! Forged packets of a security association (`obanaik2003` §4.2).

use super::{Aim, Forged, Forgery, any};
use crate::spep::everything_before;
use base::Random;
use wire::{Body, Esp, Ip, Packet, Segment, Spep};

/// Packets in the name of a flow's sender that a receiver without authentication takes for those of the flow's
/// association. Their option claims that everything before them was received (SPEP).
#[derive(Clone, Copy, Debug, Default)]
pub struct EspPackets {
    /// The association's latest packet: flow label and header.
    last: Option<(u32, Esp)>,
}

/// The header of a packet of the flow's hosts in the direction of its data.
fn header(forgery: &Forgery, packet: &Packet) -> Option<Esp> {
    let ends = (packet.ip.source, packet.ip.destination);
    packet.esp().filter(|_| ends == (forgery.source, forgery.destination))
}

/// Makes a packet one of the flow's sender.
fn forge(forgery: &Forgery, flow_label: u32, spi: u32, sequence: u32, packet: &mut Packet) {
    packet.ip.source = forgery.source;
    packet.ip.flow_label = flow_label;
    packet.body = Body::Tcp(Segment::default());
    // Over IPv4 there is no option.
    if Spep::put(packet) {
        Spep { blocks: everything_before(sequence) }.renew(packet);
    }
    // A blank segment always fits.
    let _ = packet.protect(Esp::numbered(spi, sequence.into()));
}

impl Forged for EspPackets {
    fn answers(&self, forgery: &Forgery, packet: &Packet) -> bool {
        header(forgery, packet).is_some()
    }

    /// A packet with the number that follows.
    fn answer(&mut self, forgery: &Forgery, packet: &Packet) -> Option<Packet> {
        let esp = header(forgery, packet)?;
        let ip = Ip::new(forgery.source, forgery.destination);
        let mut forged = Packet { ip, ..Packet::BLANK };
        let sequence = esp.sequence.wrapping_add(1);
        forge(forgery, packet.ip.flow_label, esp.spi, sequence, &mut forged);
        Some(forged)
    }

    fn blank(&self, _: &Forgery) -> Body {
        Body::Tcp(Segment::default())
    }

    fn observe(&mut self, forgery: &Forgery, packet: &Packet) {
        if let Some(esp) = header(forgery, packet) {
            self.last = Some((packet.ip.flow_label, esp));
        }
    }

    fn guess(&mut self, forgery: &Forgery, aim: Aim, random: &mut Random, packet: &mut Packet) {
        let Some((flow_label, esp)) = self.last else { return };
        let (spi, sequence) = match aim {
            Aim::Anywhere => (any(random), any(random)),
            // One that is not taken for a replay.
            Aim::Window => (esp.spi, esp.sequence.wrapping_add(1 + (any(random) >> 1))),
        };
        forge(forgery, flow_label, spi, sequence, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use core::net::{IpAddr, Ipv6Addr};

    fn forgery() -> Forgery {
        let [attacker, source, destination] =
            [9, 1, 2].map(|n| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n)));
        let target = destination;
        Forgery { attacker, source, destination, destination_port: 5001, target, size: 180 }
    }

    fn genuine() -> Packet {
        let Forgery { source, destination, .. } = forgery();
        let mut ip = Ip::new(source, destination);
        ip.flow_label = 77;
        let mut packet = Packet { ip, body: Body::Tcp(Segment::default()), ..Packet::BLANK };
        assert!(packet.protect(Esp::numbered(1 << 31 | 5, 1000)));
        packet
    }

    fn guessed(aim: Aim, random: &mut Random) -> Packet {
        let mut forged = EspPackets::default();
        forged.observe(&forgery(), &genuine());
        let Forgery { attacker, target, .. } = forgery();
        let body = forged.blank(&forgery());
        let mut packet = Packet { ip: Ip::new(attacker, target), body, ..Packet::BLANK };
        forged.guess(&forgery(), aim, random, &mut packet);
        assert_eq!((packet.ip.source, packet.ip.flow_label), (forgery().source, 77));
        packet
    }

    #[test]
    fn the_strongest_guess_names_the_association_and_a_later_number_and_claims_all_before_it() {
        let mut random = Seed(1).stream("attack.0");
        for _ in 0..100 {
            let packet = guessed(Aim::Window, &mut random);
            let esp = packet.esp().unwrap();
            assert_eq!(esp.spi, 1 << 31 | 5);
            assert!((1..=1 << 31).contains(&esp.sequence.wrapping_sub(1000)));
            let [(first, last), ..] = Spep::of(&packet).unwrap().blocks;
            assert_eq!((last, last.wrapping_sub(first)), (esp.sequence, 1 << 30));
        }
    }

    #[test]
    fn other_guesses_are_uniform() {
        let mut random = Seed(1).stream("attack.0");
        let mut counts = [[0; 4]; 2];
        for _ in 0..4000 {
            let esp = guessed(Aim::Anywhere, &mut random).esp().unwrap();
            counts[0][(esp.spi >> 30) as usize] += 1;
            counts[1][(esp.sequence >> 30) as usize] += 1;
        }
        // 1000 each, with a standard deviation of 27.
        assert!(
            counts.as_flattened().iter().all(|count| (870..=1130).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn on_the_path_nothing_is_guessed() {
        let forged = EspPackets::default().answer(&forgery(), &genuine()).unwrap();
        let esp = forged.esp().unwrap();
        assert_eq!((esp.spi, esp.sequence), (1 << 31 | 5, 1001));
    }
}
