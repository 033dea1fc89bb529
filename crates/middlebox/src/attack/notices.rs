//! Forged notices of corruption (`bbn8333` §6.2, §7.1).

use super::{Aim, Forged, Forgery, any};
use crate::tunnel::Ends;
use base::Random;
use core::net::IpAddr;
use wire::{Body, CopyId, CorruptionNotice, EspNotice, Icmp, Ip, Packet, SeqNumber};

/// Notices of corruption. On the path, the attacker can report every packet of the victim's data, or
/// of the victim's tunnel, as corrupted.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// Nonces are guessed, too. An attacker that need not guess them names no copy.
    nonces: bool,
    /// The associations through which the victim's packets may pass, each with an address of the
    /// attacker of the same IP version.
    tunnels: Vec<(IpAddr, Ends)>,
    /// The port of the victim's end that sends data, as seen at the target.
    port: u16,
    /// SND.UNA and SND.NXT, likewise.
    una: Option<SeqNumber>,
    nxt: Option<SeqNumber>,
}

impl Notices {
    /// Notices, with nonces to be guessed or without.
    #[must_use]
    pub fn new(nonces: bool) -> Notices {
        Notices { nonces, ..Notices::default() }
    }

    /// Notices about the packets of these tunnels, each with an address of the attacker of the same IP
    /// version.
    #[must_use]
    pub fn inside(self, tunnels: Vec<(IpAddr, Ends)>) -> Notices {
        Notices { tunnels, ..self }
    }

    /// The association of a packet, if it is one of `tunnels`, with the attacker's address.
    fn tunnel(&self, packet: &Packet) -> Option<(IpAddr, EspNotice)> {
        self.tunnels.iter().find_map(|&(own, ends)| {
            let Ends { source, destination, .. } = ends;
            Some((own, EspNotice { source, destination, esp: ends.header(packet)? }))
        })
    }
}

impl Forged for Notices {
    fn answers(&self, forgery: &Forgery, packet: &Packet) -> bool {
        forgery.data(packet).is_some() || self.tunnel(packet).is_some()
    }

    fn answer(&mut self, forgery: &Forgery, packet: &Packet) -> Option<Packet> {
        let Forgery { attacker, source, destination, target, size, .. } = *forgery;
        let (ip, icmp) = if let Some(segment) = forgery.data(packet) {
            let len = packet.payload.len;
            let notice = CorruptionNotice::about(source, destination, segment, len);
            (Ip::new(attacker, target), Icmp::Corruption { notice, size })
        } else {
            let (own, notice) = self.tunnel(packet)?;
            (Ip::new(own, notice.source), Icmp::EspCorruption { notice, size })
        };
        Some(Packet { ip, body: Body::Icmp(icmp), ..Packet::BLANK })
    }

    fn blank(&self, forgery: &Forgery) -> Body {
        let notice = CorruptionNotice {
            source: forgery.source,
            destination: forgery.destination,
            source_port: 0,
            destination_port: forgery.destination_port,
            seq: SeqNumber(0),
            len: 1,
            copy: CopyId::NONE,
            timestamp: None,
        };
        Body::Icmp(Icmp::Corruption { notice, size: forgery.size })
    }

    fn observe(&mut self, forgery: &Forgery, packet: &Packet) {
        if let Some(segment) = forgery.data(packet) {
            let end = segment.seq + packet.payload.len;
            self.port = segment.source_port;
            self.una.get_or_insert(segment.seq);
            if self.nxt.is_none_or(|nxt| end.beyond(nxt) > 0) {
                self.nxt = Some(end);
            }
        } else if let Some(segment) = forgery.acknowledgment(packet)
            && self.una.is_some_and(|una| segment.ack.beyond(una) > 0)
        {
            self.una = Some(segment.ack);
        }
    }

    fn guess(&mut self, forgery: &Forgery, aim: Aim, random: &mut Random, packet: &mut Packet) {
        let Body::Icmp(Icmp::Corruption { notice, .. }) = &mut packet.body else { return };
        let (Some(una), Some(nxt)) = (self.una, self.nxt) else { return };
        if notice.destination_port != forgery.destination_port {
            return;
        }
        notice.source_port = self.port;
        notice.seq = match aim {
            Aim::Anywhere => SeqNumber(any(random)),
            // Of nothing in flight, the next is guessed.
            Aim::Window => {
                let in_flight = nxt.beyond(una).max(1) as u64;
                una + ((u64::from(any(random)) * in_flight) >> 32) as u32
            }
        };
        if self.nonces {
            notice.copy = CopyId(any(random));
        }
    }
}

#[cfg(test)]
mod tests;
