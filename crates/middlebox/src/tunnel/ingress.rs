//! The ingress of a tunnel, which also resolves notices about its packets.

use super::Association;
use base::Time;
use core::net::IpAddr;
use host::{Context, DropReason, Middlebox, Port, Verdict};
use std::collections::VecDeque;
use wire::{Body, CorruptionNotice, Esp, EspNotice, Icmp, Ip, Packet, PathFields, Payload};

/// Encapsulates packets; with [`Ingress::resolves`] it also translates notices about outer packets
/// into notices to the sources of the inner ones.
#[derive(Clone, Debug)]
pub struct Ingress {
    pub(super) association: Association,
    /// Packets to these destinations are encapsulated, in order.
    protected: Vec<IpAddr>,
    copies_fields: bool,
    resolver: Option<Resolver>,
}

/// The state for resolving notices: the packets that entered last.
#[derive(Clone, Debug)]
struct Resolver {
    /// Its addresses in IPv4 and IPv6.
    own: [IpAddr; 2],
    most: usize,
    /// Packets of registered flows, by rising sequence number.
    entered: VecDeque<Entered>,
    /// Source, destination, port of the data, and size of notices.
    flows: Vec<(IpAddr, IpAddr, u16, u16)>,
}

/// A packet that entered.
#[derive(Clone, Copy, Debug)]
struct Entered {
    sequence: u32,
    /// The notice to its source, and its size in bytes.
    notice: CorruptionNotice,
    size: u16,
    notified: bool,
}

impl Ingress {
    /// The ingress of an association; it stands at the association's source. Only packets for
    /// `protected` destinations are encapsulated.
    #[must_use]
    pub fn new(association: Association, mut protected: Vec<IpAddr>) -> Ingress {
        protected.sort_unstable();
        Ingress { association, protected, copies_fields: false, resolver: None }
    }

    /// Copies the Cumulative ETEN fields of inner packets to outer ones, as RFC 6040 does with ECN.
    #[must_use]
    pub fn copying_fields(self) -> Ingress {
        Ingress { copies_fields: true, ..self }
    }

    /// Resolves notices about the last `most` outer packets of registered flows, and notifies the source
    /// of the inner packet, from the address among `own` (IPv4 and IPv6) of the flow's IP version.
    #[must_use]
    pub fn resolves(self, own: [IpAddr; 2], most: usize) -> Ingress {
        let resolver = Resolver { own, most, entered: VecDeque::new(), flows: Vec::new() };
        Ingress { resolver: Some(resolver), ..self }
    }

    /// Registers the flow from `source` to `destination` and its port, with notices of `size` bytes.
    pub fn register(&mut self, source: IpAddr, destination: IpAddr, port: u16, size: u16) {
        if let Some(resolver) = &mut self.resolver {
            resolver.flows.push((source, destination, port, size));
        }
    }

    /// Encapsulates a packet in place.
    fn encapsulate(&mut self, forwarded: bool, packet: &mut Packet) -> Verdict {
        // RFC 4301 §5.1.2.1: who forwards counts the hop on the inner header.
        if forwarded {
            packet.ip.hop_limit = packet.ip.hop_limit.saturating_sub(1);
            if packet.ip.hop_limit == 0 {
                return Verdict::Drop(DropReason::HopLimit);
            }
        }
        let Some(sequence) = self.association.seal(*packet) else {
            return Verdict::Drop(DropReason::SequenceExhausted);
        };
        if let Some(resolver) = &mut self.resolver {
            resolver.note(sequence, packet);
        }
        let ends = self.association.ends();
        let Ip { ecn, dscp, dont_fragment, .. } = packet.ip;
        let plain = Ip::new(ends.source, ends.destination);
        let dont_fragment = plain.dont_fragment && (dont_fragment || packet.ip.source.is_ipv6());
        let mut outer = Packet {
            ip: Ip { ecn, dscp, dont_fragment, ..plain },
            body: Body::Esp(ends.esp(sequence)),
            // Ciphertext of no stream: each packet's differs.
            payload: Payload {
                stream: ends.spi,
                offset: u64::from(sequence) << 17,
                len: Esp::sealed_len(packet.len()),
            },
            ..Packet::BLANK
        };
        if self.copies_fields
            && let Some(fields) = PathFields::of(packet)
        {
            fields.put(ends.source.is_ipv6(), &mut outer.unparsed);
            outer.unparsed.set_zero_size(packet.unparsed.is_zero_size());
        }
        *packet = outer;
        Verdict::Forward
    }
}

impl Resolver {
    /// Records a packet that enters with this sequence number.
    fn note(&mut self, sequence: u32, packet: &Packet) {
        let Body::Tcp(segment) = &packet.body else { return };
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let flow = (source, destination, segment.destination_port);
        let known = self.flows.iter().find(|known| (known.0, known.1, known.2) == flow);
        let Some(&(.., size)) = known else { return };
        if self.entered.len() >= self.most {
            self.entered.pop_front();
        }
        let notice = CorruptionNotice::about(source, destination, segment, packet.payload.len);
        self.entered.push_back(Entered { sequence, notice, size, notified: false });
    }

    /// The notice to the source of the inner packet, once.
    fn resolve(&mut self, sequence: u32) -> Option<Packet> {
        let index =
            self.entered.binary_search_by_key(&sequence, |entered| entered.sequence).ok()?;
        let entered = self.entered.get_mut(index)?;
        if std::mem::replace(&mut entered.notified, true) {
            return None;
        }
        let Entered { notice, size, .. } = *entered;
        let [v4, v6] = self.own;
        let own = if notice.source.is_ipv6() { v6 } else { v4 };
        Some(Packet {
            ip: Ip::new(own, notice.source),
            body: Body::Icmp(Icmp::Corruption { notice, size }),
            ..Packet::BLANK
        })
    }
}

impl Middlebox for Ingress {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        let ends = self.association.ends();
        if let Body::Icmp(Icmp::EspCorruption { notice, .. }) = &packet.body
            && let EspNotice { source, destination, esp } = *notice
            && (source, destination, esp.spi) == (ends.source, ends.destination, ends.spi)
            && packet.ip.destination == ends.source
        {
            // Sequence numbers can be guessed. A reporter that names the initialization vector has
            // seen the packet; only then the notice reveals the nonce of the copy.
            if let Some(resolver) = &mut self.resolver
                && esp == ends.esp(esp.sequence)
            {
                resolver.resolve(esp.sequence).into_iter().for_each(|notice| cx.send(notice));
            }
            return Verdict::Consume;
        }
        if self.protected.binary_search(&packet.ip.destination).is_err() {
            return Verdict::Forward;
        }
        self.encapsulate(from.is_some(), packet)
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.association.held_payloads(held);
    }
}
