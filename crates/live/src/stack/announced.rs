//! What the network has announced of packets that are still to be read.

use base::Time;
use host::{Application, Host, HostIndication, Ordered};
use std::collections::VecDeque;
use tcp::PeerLosses;
use wire::Packet;

/// The causes of losses before packets that are still to be read. The host gets them with their packet, at
/// the same time, as in the lab: it looks for the gap that the packet leaves.
///
/// They are announced before the packet is written to the device, and the device keeps the order.
#[derive(Debug, Default)]
pub(super) struct Announced(VecDeque<(Ordered, PeerLosses)>);

impl Announced {
    /// The most packets. Beyond, the oldest are forgotten: they were lost before they were read.
    const MOST: usize = 4096;

    /// Takes an indication to the host; what concerns no packet, it gets at once.
    pub(super) fn take<A: Application>(
        &mut self,
        now: Time,
        indication: &HostIndication,
        host: &mut Host<A>,
    ) {
        let &HostIndication::PeerLosses { before, losses } = indication else {
            return host.indicate(now, indication);
        };
        if self.0.len() == Announced::MOST {
            self.0.pop_front();
        }
        self.0.push_back((before, losses));
    }

    /// Lets the host know what was announced of a packet that it is to get now.
    pub(super) fn tell<A: Application>(&mut self, now: Time, packet: &Packet, host: &mut Host<A>) {
        // Nearly always.
        if self.0.is_empty() {
            return;
        }
        let Some(before) = Ordered::of(packet) else { return };
        if let Some(index) = self.0.iter().position(|(of, _)| *of == before)
            && let Some((_, losses)) = self.0.remove(index)
        {
            host.indicate(now, &HostIndication::PeerLosses { before, losses });
        }
    }
}
