//! What the network has announced of packets that are still to be read.

use base::Time;
use host::{Application, FourTuple, Host, HostIndication};
use std::collections::VecDeque;
use tcp::PeerLosses;
use wire::{Body, Packet, SeqNumber};

/// The causes of losses before segments that are still to be read. The host gets them with their segment, at
/// the same time, as in the lab: it looks for the gap that the segment leaves.
///
/// They are announced before the segment is written to the device, and the device keeps the order.
#[derive(Debug, Default)]
pub(super) struct Announced(VecDeque<(FourTuple, SeqNumber, PeerLosses)>);

impl Announced {
    /// The most segments. Beyond, the oldest are forgotten: they were lost before they were read.
    const MOST: usize = 4096;

    /// Takes an indication to the host; what concerns no segment, it gets at once.
    pub(super) fn take<A: Application>(
        &mut self,
        now: Time,
        indication: &HostIndication,
        host: &mut Host<A>,
    ) {
        let &HostIndication::PeerLosses { connection, before, losses } = indication else {
            return host.indicate(now, indication);
        };
        if self.0.len() == Announced::MOST {
            self.0.pop_front();
        }
        self.0.push_back((connection, before, losses));
    }

    /// Lets the host know what was announced of a packet that it is to get now.
    pub(super) fn tell<A: Application>(&mut self, now: Time, packet: &Packet, host: &mut Host<A>) {
        // Nearly always.
        if self.0.is_empty() {
            return;
        }
        let Body::Tcp(segment) = &packet.body else { return };
        let Some(connection) = FourTuple::of_packet(packet) else { return };
        let is_it = |of: &(FourTuple, SeqNumber, _)| (of.0, of.1) == (connection, segment.seq);
        if let Some(index) = self.0.iter().position(is_it)
            && let Some((_, before, losses)) = self.0.remove(index)
        {
            host.indicate(now, &HostIndication::PeerLosses { connection, before, losses });
        }
    }
}
