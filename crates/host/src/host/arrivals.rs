//! Packets that arrive at a host, and the connections that they are for.

use super::{ConnectionId, FourTuple, Host, Slot};
use crate::{Application, Bytes};
use base::Time;
use core::ops::Range;
use tcp::{Indication, State};
use wire::{
    Body, CorruptedCopy, CorruptionNotice, Flags, Icmp, Packet, PathFields, Payload, Segment,
};

impl<A: Application> Host<A> {
    /// Processes a packet. One that is not this host's ([`Host::takes`]) is dropped, and counted in
    /// [`Statistics::no_connection`].
    ///
    /// [`Statistics::no_connection`]: super::Statistics::no_connection
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) {
        self.take_in(now, packet, |slot, now, segment| {
            slot.connection.handle_segment(now, segment, packet.payload, packet.ecn_fields());
        });
    }

    /// Processes a packet if it belongs to a connection, as a segment or as an ICMP message about one;
    /// returns the connection then. Segments that would open one are none of it.
    pub fn handle_known(&mut self, now: Time, packet: &Packet) -> Option<ConnectionId> {
        let Body::Tcp(segment) = &packet.body else {
            let id = self.connection_of(packet)?;
            self.handle_packet(now, packet);
            return Some(id);
        };
        let tuple = FourTuple::of_segment(&packet.ip, segment);
        let &number = self.by_tuple.get(&tuple)?;
        let id = self.slots[number as usize].id;
        self.take_segment(now, (packet, segment), (tuple, Some(number)), |slot, now, segment| {
            slot.connection.handle_segment(now, segment, packet.payload, packet.ecn_fields());
        });
        Some(id)
    }

    /// Like [`Host::handle_packet`], with the bytes of the payload, as many as the packet
    /// announces. Their identity is their place in the peer's stream. The application stores the
    /// bytes that its connection accepts ([`Bytes::store`]) before it gets the event.
    pub fn handle_bytes(&mut self, now: Time, packet: &Packet, bytes: &[u8])
    where
        A: Bytes,
    {
        self.take_in_bytes(now, packet, bytes.len(), |application, place, accepted| {
            application.store(place, &bytes[accepted]);
        });
    }

    /// Like [`Host::handle_bytes`], with the bytes in the range `payload` of a buffer. Returns the
    /// buffer unless the application keeps it ([`Bytes::keep`]).
    pub fn handle_buffer(
        &mut self,
        now: Time,
        packet: &Packet,
        buffer: Vec<u8>,
        payload: Range<usize>,
    ) -> Option<Vec<u8>>
    where
        A: Bytes,
    {
        let mut kept = Some(buffer);
        self.take_in_bytes(now, packet, payload.len(), |application, place, accepted| {
            let range = payload.start + accepted.start..payload.start + accepted.end;
            kept = kept.take().and_then(|buffer| application.keep(place, buffer, range));
        });
        kept
    }

    /// Processes a packet with `len` bytes of payload, and calls `store` with the application, the
    /// place in the peer's stream and the range of the bytes that its connection accepts, if any.
    fn take_in_bytes(
        &mut self,
        now: Time,
        packet: &Packet,
        len: usize,
        store: impl FnOnce(&mut A, u64, Range<usize>),
    ) where
        A: Bytes,
    {
        if len != packet.payload.len as usize {
            self.statistics.malformed += 1;
            return;
        }
        self.take_in(now, packet, |slot, now, segment| {
            let payload = match slot.connection.place(segment) {
                Some(offset) => Payload { offset, ..packet.payload },
                // Bytes from before the stream are of no use.
                None => Payload { len: 0, ..packet.payload },
            };
            let before = slot.connection.unacknowledged();
            let taken = slot.connection.handle_segment(now, segment, payload, packet.ecn_fields());
            if taken.len > 0 {
                let from = (taken.offset - payload.offset) as usize;
                store(&mut slot.application, taken.offset, from..from + taken.len as usize);
            }
            let after = slot.connection.unacknowledged();
            if after != before {
                slot.application.release(after);
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
        let Body::Tcp(segment) = &packet.body else { return self.take_message(now, packet) };
        let tuple = FourTuple::of_segment(&packet.ip, segment);
        let known = self.by_tuple.get(&tuple).copied();
        if known.is_none() && !self.owns(packet.ip.destination) {
            self.statistics.no_connection += 1;
            return;
        }
        self.take_segment(now, (packet, segment), (tuple, known), take);
    }

    /// Processes a packet that is no segment.
    fn take_message(&mut self, now: Time, packet: &Packet) {
        if !self.takes(packet) {
            self.statistics.no_connection += 1;
            return;
        }
        match &packet.body {
            Body::Icmp(Icmp::Corruption { notice, .. }) => {
                match notice.destination == packet.ip.destination {
                    true => self.notify_of_peer(now, notice),
                    false => self.notify(now, notice),
                }
            }
            Body::Icmp(Icmp::Survival(notice)) => self.on_survival(now, &packet.ip, notice),
            Body::Icmp(icmp) => self.on_icmp(now, icmp),
            Body::Udp(udp) => self.on_datagram(now, *udp, packet.payload),
            Body::Tfrc(tfrc) => self.on_tfrc(now, packet, tfrc),
            // No box has consumed it.
            Body::Srp(_)
            | Body::Repair(_)
            | Body::Esp(_)
            | Body::EspTransport(_)
            | Body::Mobility(_)
            | Body::Tcp(_) => {
                self.statistics.no_connection += 1;
            }
        }
    }

    /// Processes a segment; `known` is the connection with its 4-tuple, if there is one.
    #[inline]
    fn take_segment(
        &mut self,
        now: Time,
        (packet, segment): (&Packet, &Segment),
        (tuple, known): (FourTuple, Option<u32>),
        take: impl FnOnce(&mut Slot<A>, Time, &Segment),
    ) {
        if packet.unparsed.is_marked_corrupted() {
            let (source, destination) = (packet.ip.source, packet.ip.destination);
            let len = packet.payload.len;
            let notice = CorruptionNotice::about(source, destination, segment, len);
            return self.notify_of_peer(now, &notice);
        }
        let known = known.filter(|&id| !self.is_reopened(id, &tuple, segment));
        if known.is_none() && self.is_bogus(tuple.remote) {
            return;
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        let fast_open = if is_syn { packet.unparsed.fast_open() } else { None };
        let id = match known.map_or_else(|| self.accept(now, tuple, segment, fast_open), Ok) {
            Ok(id) => id,
            Err(why) => return self.on_rejected(now, packet, segment, why),
        };
        if let Some(fields) = PathFields::of(packet) {
            self.slots[id as usize].connection.indicate(now, &Indication::Path(fields));
        }
        self.count_memory(id);
        self.statistics.segments += 1;
        let opens = is_syn && self.slots[id as usize].connection.state() == State::SynSent;
        take(&mut self.slots[id as usize], now, segment);
        if opens {
            self.learn_cookie(now, id, segment, fast_open);
        }
        if packet.unparsed.has_ip() {
            // The octets of the segment itself are no longer missing.
            for CorruptedCopy { seq, copy, len } in packet.unparsed.corrupted_copies() {
                let indication = Indication::PeerCorrupted { seq, len: u32::from(len), copy };
                self.slots[id as usize].connection.indicate(now, &indication);
            }
        }
        self.after(now, id);
    }
}
