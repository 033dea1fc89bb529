//! Survival notices in place of fields in headers (`bbn8333` §4.1).

use super::Survival;
use base::Random;
use core::net::IpAddr;
use host::{Context, Port};
use wire::{Body, Causes, Icmp, Ip, Packet, Probability, SurvivalNotice};

/// Sends notices about links, with a given probability per packet.
#[derive(Clone, Debug)]
pub struct Traceback {
    addresses: Vec<IpAddr>,
    probability: f64,
    random: Random,
    /// Source, destination, and port of the data.
    registered: Vec<(IpAddr, IpAddr, u16)>,
}

impl Traceback {
    /// A node with these addresses that sends the source of a packet, with this probability, the survival
    /// of the link that the packet is on.
    #[must_use]
    pub fn new(addresses: Vec<IpAddr>, probability: f64, random: Random) -> Traceback {
        Traceback { addresses, probability, random, registered: Vec::new() }
    }

    /// Registers the flow from `source` to `destination` and its port.
    pub fn register(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.registered.push((source, destination, destination_port));
    }

    /// Considers a packet on a link with this survival; `of` names the cause.
    #[inline]
    pub(super) fn consider(
        &mut self,
        packet: &Packet,
        Port(link): Port,
        survival: &Survival,
        of: fn(Probability) -> Causes<Probability>,
        cx: &mut Context<'_>,
    ) {
        let Body::Tcp(segment) = &packet.body else { return };
        let Ip { source, destination, .. } = packet.ip;
        let flow = (source, destination, segment.destination_port);
        if !self.registered.contains(&flow) || !self.random.chance(self.probability) {
            return;
        }
        let own = self.addresses.iter().find(|own| own.is_ipv6() == source.is_ipv6());
        let Some(&own) = own else { return };
        let notice = SurvivalNotice {
            destination,
            source_port: segment.source_port,
            destination_port: segment.destination_port,
            link,
            survival: of(Probability::of(survival.share)),
        };
        let body = Body::Icmp(Icmp::Survival(notice));
        cx.send(Packet { ip: Ip::new(own, source), body, ..Packet::BLANK });
    }
}
