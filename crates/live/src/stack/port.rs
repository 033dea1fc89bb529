//! Where a host's packets go: the device.

use crate::device::{Device, Pieces};
use crate::{Copies, Tun};
use host::{Bytes, Outlet};
use wire::Packet;

/// The device, as something to be written to.
pub(super) struct Port {
    pub(super) device: Device,
    packet: Packet,
    /// Bytes that are not kept anywhere.
    payload: Vec<u8>,
    /// Where it is said which copy of a segment a packet carries.
    pub(super) copies: Option<Copies>,
}

impl Port {
    pub(super) fn new(tun: Tun, copies: Option<Copies>) -> Port {
        Port { device: Device::new(tun), packet: Packet::BLANK, payload: Vec::new(), copies }
    }
}

impl<A: Bytes> Outlet<A> for Port {
    fn packet(&mut self) -> &mut Packet {
        &mut self.packet
    }

    fn send(&mut self, segment_size: u32, _: &mut Option<u32>, application: Option<&A>) {
        if let Some(copies) = &self.copies {
            copies.note(&self.packet);
        }
        let payload = self.packet.payload;
        let mut pieces = Pieces::new();
        let lent = payload.len == 0
            || application.is_some_and(|application| {
                application.lend(payload, &mut |piece| pieces.add(piece))
            });
        if lent && pieces.are_whole() {
            return self.device.send(&self.packet, segment_size, pieces);
        }
        let mut bytes = std::mem::take(&mut self.payload);
        bytes.clear();
        bytes.resize(payload.len as usize, 0);
        // A datagram's bytes are unspecified: they are sent as 0.
        if let Some(application) = application {
            application.fetch(payload, &mut bytes);
        }
        let mut pieces = Pieces::new();
        pieces.add(&bytes);
        self.device.send(&self.packet, segment_size, pieces);
        self.payload = bytes;
    }

    fn segments(&self) -> u16 {
        // The segments of a unit are different copies.
        if self.copies.is_some() { 1 } else { u16::MAX }
    }
}
