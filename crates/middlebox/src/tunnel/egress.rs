//! The egress of a tunnel.

use super::Association;
use base::Time;
use host::{Context, DropReason, Middlebox, Port, Verdict};
use wire::{Ecn, Packet, PathFields};

/// Decapsulates the packets of an association, each once.
#[derive(Clone, Debug)]
pub struct Egress {
    association: Association,
    copies_fields: bool,
}

impl Egress {
    /// The egress of an association; it stands at the association's destination.
    #[must_use]
    pub fn new(association: Association) -> Egress {
        Egress { association, copies_fields: false }
    }

    /// Copies the Cumulative ETEN fields of outer packets to inner ones.
    #[must_use]
    pub fn copying_fields(self) -> Egress {
        Egress { copies_fields: true, ..self }
    }
}

impl Middlebox for Egress {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        let Some(esp) = self.association.ends().header(packet) else { return Verdict::Forward };
        let Some(mut inner) = self.association.open(esp.sequence) else {
            return Verdict::Drop(DropReason::Replay);
        };
        let Some(ecn) = decapsulated(inner.ip.ecn, packet.ip.ecn) else {
            return Verdict::Drop(DropReason::Congestion);
        };
        inner.ip.ecn = ecn;
        if self.copies_fields
            && let Some(fields) = PathFields::of(packet)
        {
            fields.renew(&mut inner);
        }
        *packet = inner;
        Verdict::Forward
    }
}

/// The inner packet's ECN field after decapsulation (RFC 6040 §4.2, figure 4); `None` if the packet is
/// to be dropped, because it experienced congestion and cannot be marked.
pub(super) fn decapsulated(inner: Ecn, outer: Ecn) -> Option<Ecn> {
    match (inner, outer) {
        (Ecn::NotCapable, Ecn::Congested) => None,
        (Ecn::NotCapable, _) => Some(Ecn::NotCapable),
        (_, Ecn::Congested) => Some(Ecn::Congested),
        (Ecn::Capable, Ecn::Capable1) => Some(Ecn::Capable1),
        (inner, _) => Some(inner),
    }
}
