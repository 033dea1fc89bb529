//! What arrives at a host, and which connection it is for.

use super::{Host, Key, Slot};
use crate::{Application, Bytes};
use base::Time;
use core::net::IpAddr;
use tcp::{Indication, Source, Subject};
use wire::{
    Body, CorruptedCopy, CorruptionNotice, Icmp, Packet, PathFields, Payload, Segment,
    SurvivalNotice,
};

impl<A: Application> Host<A> {
    /// Takes in a packet that is addressed to this host.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) {
        self.take_in(now, packet, |slot, now, segment| {
            slot.connection.handle_segment(now, segment, packet.payload, packet.ip.ecn);
        });
    }

    /// The same with the bytes of its payload, which are as many as the packet says. The identity of these is their place in the peer's
    /// stream; the application is given what its connection takes of them before it hears of it.
    pub fn handle_bytes(&mut self, now: Time, packet: &Packet, bytes: &[u8])
    where
        A: Bytes,
    {
        if bytes.len() != packet.payload.len as usize {
            self.statistics.malformed += 1;
            return;
        }
        self.take_in(now, packet, |slot, now, segment| {
            let payload = match slot.connection.place(segment) {
                Some(offset) => Payload { offset, ..packet.payload },
                // Of what begins before the stream, nothing is of use.
                None => Payload { len: 0, ..packet.payload },
            };
            let taken = slot.connection.handle_segment(now, segment, payload, packet.ip.ecn);
            if taken.len > 0 {
                let from = (taken.offset - payload.offset) as usize;
                slot.application.store(taken.offset, &bytes[from..from + taken.len as usize]);
            }
        });
    }

    #[inline]
    fn take_in(
        &mut self,
        now: Time,
        packet: &Packet,
        take: impl FnOnce(&mut Slot<A>, Time, &Segment),
    ) {
        let segment = match &packet.body {
            Body::Tcp(segment) => segment,
            Body::Icmp(Icmp::Corruption { notice, .. }) => {
                return match notice.destination == packet.ip.destination {
                    true => self.notify_of_peer(now, notice),
                    false => self.notify(now, Source::Router, notice),
                };
            }
            Body::Icmp(Icmp::Survival(notice)) => {
                return self.on_survival(now, packet.ip.source, notice);
            }
            Body::Icmp(icmp) => return self.on_icmp(now, icmp),
            Body::Udp(udp) => return self.on_datagram(*udp, packet.payload),
            // There is no decoder, or no gateway, that would have taken it.
            Body::Repair(_) | Body::Esp(_) => {
                self.statistics.strays += 1;
                return;
            }
        };
        if packet.rare.is_marked_corrupted() {
            let (source, destination) = (packet.ip.source, packet.ip.destination);
            let len = packet.payload.len;
            let notice = CorruptionNotice::about(source, destination, segment, len);
            return self.notify_of_peer(now, &notice);
        }
        let key = Key::of(packet, segment);
        let known = self.by_key.get(&key).copied().filter(|&id| !self.is_reopened(id, segment));
        if known.is_none() && self.is_bogus(key.remote) {
            return;
        }
        let id = match known.map_or_else(|| self.accept(now, key, segment), Ok) {
            Ok(id) => id,
            Err(why) => return self.on_stray(now, packet, segment, why),
        };
        if let Some(fields) = PathFields::of(packet) {
            let told = Indication { source: Source::Router, subject: Subject::Path(fields) };
            self.slots[id as usize].connection.indicate(now, &told);
        }
        self.weigh(id);
        self.statistics.segments += 1;
        take(&mut self.slots[id as usize], now, segment);
        if packet.rare.has_ip() {
            // What the segment itself has brought is no longer missing.
            for CorruptedCopy { seq, copy, len } in packet.rare.corrupted_copies() {
                let subject = Subject::PeerCorrupted { seq, len: u32::from(len), copy };
                let indication = Indication { source: Source::Router, subject };
                self.slots[id as usize].connection.indicate(now, &indication);
            }
        }
        self.after(now, id);
    }

    /// Tells the connection that a copy of one of its peer's segments was corrupted.
    fn notify_of_peer(&mut self, now: Time, notice: &CorruptionNotice) {
        let key = Key {
            remote: notice.source,
            remote_port: notice.source_port,
            local_port: notice.destination_port,
        };
        let CorruptionNotice { seq, len, copy, .. } = *notice;
        let subject = Subject::PeerCorrupted { seq, len, copy };
        let id = self.concerned(key, &subject);
        self.tell(now, id, Source::Router, subject);
    }

    /// Tells the connection that a copy of one of its segments was corrupted.
    pub fn notify(&mut self, now: Time, source: Source, notice: &CorruptionNotice) {
        let key = Key {
            remote: notice.destination,
            remote_port: notice.destination_port,
            local_port: notice.source_port,
        };
        let CorruptionNotice { seq, len, copy, .. } = *notice;
        let subject = Subject::Corrupted { seq, len, copy };
        let id = self.concerned(key, &subject);
        self.tell(now, id, source, subject);
    }

    /// A node tells of a link on the path of a connection.
    fn on_survival(&mut self, now: Time, node: IpAddr, notice: &SurvivalNotice) {
        let key = Key {
            remote: notice.destination,
            remote_port: notice.destination_port,
            local_port: notice.source_port,
        };
        let subject = Subject::Link { node, link: notice.link, survival: notice.survival };
        let id = self.by_key.get(&key).copied();
        self.tell(now, id, Source::Router, subject);
    }

    /// Tells a connection of something, if it is there.
    fn tell(&mut self, now: Time, id: Option<u32>, source: Source, subject: Subject) {
        let Some(id) = id else {
            self.statistics.strays += 1;
            return;
        };
        self.slots[id as usize].connection.indicate(now, &Indication { source, subject });
        self.after(now, id);
    }

    /// The connection that news of a corrupted segment is about: the one that is named, or the only
    /// one that can be meant if a bit of the ports was damaged, too (`bbn8333` §2.1, §6). To try
    /// these 32 costs the same however many connections there are, and whoever forges has to know
    /// the ports all the same.
    fn concerned(&mut self, key: Key, subject: &Subject) -> Option<u32> {
        if let Some(&id) = self.by_key.get(&key) {
            return Some(id);
        }
        let damaged = (0..u16::BITS).flat_map(|bit| {
            let (remote_port, local_port) = (key.remote_port ^ 1 << bit, key.local_port ^ 1 << bit);
            [Key { remote_port, ..key }, Key { local_port, ..key }]
        });
        let known = damaged.filter_map(|key| self.by_key.get(&key).copied());
        let mut meant =
            known.filter(|&id| self.slots[id as usize].connection.is_concerned(subject));
        let (Some(id), None) = (meant.next(), meant.next()) else { return None };
        self.statistics.recovered += 1;
        Some(id)
    }
}
