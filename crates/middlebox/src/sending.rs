//! The packets of a box's own hosts, on their way to the node.

use host::{Context, Outlet};
use wire::{Packet, Payload};

/// Hands the packets of a host that belongs to a box to the box's node.
pub(crate) struct Sending<'a, 'b> {
    cx: &'a mut Context<'b>,
    packet: Packet,
}

impl<'a, 'b> Sending<'a, 'b> {
    pub(crate) fn new(cx: &'a mut Context<'b>) -> Sending<'a, 'b> {
        Sending { cx, packet: Packet::BLANK }
    }
}

impl<A> Outlet<A> for Sending<'_, '_> {
    fn packet(&mut self) -> &mut Packet {
        &mut self.packet
    }

    fn send(&mut self, segment_size: u32, _: &mut Option<u32>, _: Option<&A>) {
        match segment_size {
            0 => self.cx.send(self.packet),
            _ => self.cx.send_unit(self.packet, segment_size),
        }
    }

    fn gather(&mut self, payloads: &mut dyn Iterator<Item = Payload>) {
        self.packet.payload = self.cx.gather(payloads);
    }

    fn segments(&self) -> u16 {
        self.cx.segments()
    }
}
