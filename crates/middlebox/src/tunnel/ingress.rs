//! Where packets enter a tunnel, and where notices about them come to.

use super::Association;
use base::Time;
use core::net::IpAddr;
use host::{Context, DropReason, Middlebox, Port, Verdict};
use std::collections::VecDeque;
use wire::{Body, CorruptionNotice, Esp, EspNotice, Icmp, Ip, Packet, PathFields, Payload};

/// Hides packets in those of an association; and, if it [`Ingress::resolves`], passes notices about
/// these on to the sources of the packets inside.
#[derive(Clone, Debug)]
pub struct Ingress {
    pub(super) association: Association,
    /// Packets for these enter, in order.
    protected: Vec<IpAddr>,
    copies_fields: bool,
    resolver: Option<Resolver>,
}

/// What the ingress knows of the packets that entered last.
#[derive(Clone, Debug)]
struct Resolver {
    /// Its addresses in IPv4 and IPv6.
    own: [IpAddr; 2],
    most: usize,
    /// Of registered flows, by rising number.
    entered: VecDeque<Entered>,
    /// Source, destination, the port that data goes to, and the size of notices.
    flows: Vec<(IpAddr, IpAddr, u16, u16)>,
}

/// A packet that entered.
#[derive(Clone, Copy, Debug)]
struct Entered {
    sequence: u32,
    /// What to tell its source, and in how many bytes.
    notice: CorruptionNotice,
    size: u16,
    told: bool,
}

impl Ingress {
    /// The beginning of an association, which is at its source. Only packets for `protected`
    /// destinations enter.
    #[must_use]
    pub fn new(association: Association, mut protected: Vec<IpAddr>) -> Ingress {
        protected.sort_unstable();
        Ingress { association, protected, copies_fields: false, resolver: None }
    }

    /// Lets outer packets carry the fields of Cumulative ETEN of their inner ones, as RFC 6040 does
    /// with marks of congestion.
    #[must_use]
    pub fn copying_fields(self) -> Ingress {
        Ingress { copies_fields: true, ..self }
    }

    /// Lets it find out which packet of a registered flow was inside an ESP packet of which it gets a
    /// notice, if that is one of the last `most` of registered flows, and tell that packet's source:
    /// from the one of its `own` addresses, in IPv4 and in IPv6, that is of the flow's version.
    #[must_use]
    pub fn resolves(self, own: [IpAddr; 2], most: usize) -> Ingress {
        let resolver = Resolver { own, most, entered: VecDeque::new(), flows: Vec::new() };
        Ingress { resolver: Some(resolver), ..self }
    }

    /// Tells the source of the flow from `source` to `destination` and its port from now on, in
    /// notices of `size` bytes.
    pub fn register(&mut self, source: IpAddr, destination: IpAddr, port: u16, size: u16) {
        if let Some(resolver) = &mut self.resolver {
            resolver.flows.push((source, destination, port, size));
        }
    }

    /// The packet becomes the outer one of itself.
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
    /// A packet enters with this number.
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
        self.entered.push_back(Entered { sequence, notice, size, told: false });
    }

    /// The notice to the source of the packet that was inside, once.
    fn resolve(&mut self, sequence: u32) -> Option<Packet> {
        let index =
            self.entered.binary_search_by_key(&sequence, |entered| entered.sequence).ok()?;
        let entered = self.entered.get_mut(index)?;
        if std::mem::replace(&mut entered.told, true) {
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
            // Sequence numbers can be guessed. Whoever names the initialization vector has seen the
            // packet; to anybody else, no nonce of a copy is told.
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
}
