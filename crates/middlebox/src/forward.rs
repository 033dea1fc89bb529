//! Forward ETEN: the node at the end of a link tells the destination what was corrupted
//! (`bbn8333` §2.1.3).

use crate::eten::Registrations;
use base::Time;
use core::net::IpAddr;
use host::{Context, LinkEvent, Middlebox, Port};
use wire::{Body, CorruptionNotice, Icmp, Ip, Packet};

/// Sends word of every corrupted segment of data on to its destination. Only flows that registered
/// have it.
#[derive(Clone, Debug)]
pub struct Forwarder {
    address: IpAddr,
    size: u16,
    registered: Registrations,
}

impl Forwarder {
    /// A forwarder at `address` whose notices have `size` bytes.
    #[must_use]
    pub fn new(address: IpAddr, size: u16) -> Forwarder {
        Forwarder { address, size, registered: Registrations::default() }
    }

    /// Tells the destination of the flow from `source` to `destination` and its port of corruption
    /// from now on.
    pub fn register(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.registered.add(source, destination, destination_port);
    }
}

impl Middlebox for Forwarder {
    fn inspects_packets(&self) -> bool {
        false
    }

    fn link(&mut self, _now: Time, _: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        let LinkEvent::Corrupted(packet) = event else {
            return;
        };
        let Some(notice) = self.registered.notice(packet).filter(|notice| notice.len > 0) else {
            return;
        };
        cx.send.push(Packet {
            ip: Ip::new(self.address, notice.destination),
            body: Body::Icmp(Icmp::Corruption { notice, size: self.size }),
            ..Packet::BLANK
        });
    }
}
