//! Sending what the middlebox sends, and what passes.

use super::Worker;
use crate::device::{Device, Pieces};
use crate::inline::Side;
use crate::tun::VIRTIO_HEADER_LEN;
use base::Time;
use host::{Middlebox, Outgoing};
use wire::Packet;

impl<B: Middlebox> Worker<B> {
    /// Sends the packets of the middlebox.
    pub(super) fn send(&mut self, now: Time) {
        for index in 0..self.outbox.packets.len() {
            let Outgoing { packet, segment_size } = self.outbox.packets[index];
            if self.underlay.as_ref().is_some_and(|underlay| underlay.carries(&packet)) {
                self.send_to_peer(now, &packet);
                continue;
            }
            match self.routes.side(now, packet.ip.destination) {
                Some(side) => self.write(side, &packet, segment_size),
                None => self.counts.unroutable += 1,
            }
        }
        self.outbox.packets.clear();
        // There is no other middlebox behind this one.
        for index in 0..self.outbox.passed.len() {
            let (_, packet) = self.outbox.passed[index];
            match self.routes.side(now, packet.ip.destination) {
                Some(side) => self.write(side, &packet, packet.payload.len),
                None => self.counts.unroutable += 1,
            }
        }
        self.outbox.passed.clear();
        self.outbox.gathered.clear();
        // There is no host here.
        self.outbox.indications.clear();
    }

    /// Sends a packet to the peer.
    fn send_to_peer(&mut self, now: Time, packet: &Packet) {
        let Some(underlay) = &mut self.underlay else { return };
        let (outbox, payloads) = (&self.outbox, &mut self.payloads);
        let mut has_all = true;
        underlay.send(now, packet, &mut |buffer| {
            let mut parts = outbox.payloads(packet.payload);
            has_all =
                parts.all(|part| payloads.lend(part, &mut |bytes| buffer.extend_from_slice(bytes)));
            has_all
        });
        self.counts.without_bytes += u64::from(!has_all);
    }

    /// Writes a packet with bytes that are kept.
    pub(super) fn write(&mut self, to: Side, packet: &Packet, segment_size: u32) {
        if self.boundary.is_some() && self.is_protected(self.clock.now(), to, packet) {
            return self.write_protected(packet, segment_size);
        }
        let mut pieces = Pieces::new();
        let parts = self.outbox.payloads(packet.payload);
        let mut left = packet.payload.len;
        for part in parts {
            if !self.payloads.lend(part, &mut |bytes| pieces.add(bytes)) {
                break;
            }
            left -= part.len;
        }
        if left > 0 {
            self.counts.without_bytes += 1;
            return;
        }
        if !pieces.are_whole() {
            self.joined.clear();
            for part in self.outbox.payloads(packet.payload) {
                // They were there just now.
                self.payloads.lend(part, &mut |bytes| self.joined.extend_from_slice(bytes));
            }
            pieces = Pieces::new();
            pieces.add(&self.joined);
        }
        self.devices[to as usize].send(packet, segment_size, pieces);
    }

    /// Protects a packet with bytes that are kept, and writes it to the WAN.
    fn write_protected(&mut self, packet: &Packet, segment_size: u32) {
        let Some(boundary) = &mut self.boundary else { return };
        let (payloads, joined) = (&mut self.payloads, &mut self.joined);
        joined.clear();
        let mut parts = self.outbox.payloads(packet.payload).filter(|part| part.len > 0);
        if !parts.all(|part| payloads.lend(part, &mut |bytes| joined.extend_from_slice(bytes))) {
            self.counts.without_bytes += 1;
            return;
        }
        self.protected.clear();
        self.protected.resize(VIRTIO_HEADER_LEN, 0);
        let is_segment = packet.payload.len <= segment_size;
        let now = self.clock.now();
        if is_segment && boundary.protect(now, packet, joined, &mut self.protected) {
            self.devices[Side::Wan as usize].write(&self.protected);
        } else {
            self.counts.dropped += 1;
        }
    }

    /// Whether the boundary protects a packet that is to be written to the device of this side. From there, the kernel
    /// may also forward it to another network of users.
    pub(super) fn is_protected(&mut self, now: Time, to: Side, packet: &Packet) -> bool {
        to == Side::Wan
            && self.boundary.as_ref().is_some_and(|boundary| boundary.protects(packet))
            && self.routes.side(now, packet.ip.destination) != Some(Side::Lan)
    }

    /// Writes what was read from one side to the other, perhaps later.
    pub(super) fn write_as_read(&mut self, from: Side, len: usize) {
        let (packet, passing) = (&self.payloads.space()[..len], &mut self.passing[from as usize]);
        if !passing.has_to_wait() {
            self.devices[from.other() as usize].write(packet);
        } else if !passing.push(packet) {
            self.counts.overload += 1;
        }
    }

    /// Writes packets that had to wait. Says whether there are more.
    pub(super) fn write_passing(&mut self, from: Side) -> bool {
        let (to, passing) =
            (&mut self.devices[from.other() as usize], &mut self.passing[from as usize]);
        passing.write(|packet| to.write(packet));
        !passing.is_empty()
    }

    /// Sends what the middlebox has still to send before it stands still.
    pub(super) fn send_rest(&mut self) {
        self.wake(self.clock.now());
        for from in Side::ALL {
            let to = &mut self.devices[from.other() as usize];
            self.passing[from as usize].write_all(|packet| to.write(packet));
        }
        self.flush();
    }

    /// Sends what has waited for more.
    pub(super) fn flush(&mut self) {
        self.devices.iter_mut().for_each(Device::flush);
        if let Some(underlay) = &mut self.underlay {
            underlay.flush();
        }
    }
}
