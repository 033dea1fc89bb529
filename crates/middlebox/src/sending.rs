//! The packets of a box's own hosts, on their way to the node.

use host::{Context, Outlet};
use wire::Packet;

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

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.cx.send(self.packet);
    }
}
