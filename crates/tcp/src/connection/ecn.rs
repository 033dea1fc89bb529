//! The negotiation of explicit congestion notification, and its fallback (RFC 3168 §6.1.1).

use super::{Connection, Negotiated};
use serde::{Deserialize, Serialize};
use wire::Flags;

/// What our SYNs have said about ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EcnOffer {
    /// No SYN was sent.
    #[default]
    Unsent,
    /// The first SYN offered ECN.
    Made,
    /// A later one did not: ECT is not set (RFC 3168 §6.1.1).
    Withdrawn,
}

/// Whether a SYN offers ECN, or a SYN-ACK accepts it (RFC 3168 §6.1.1). A SYN-ACK sets ECE only, so
/// that a host that reflects reserved bits does not negotiate ECN.
pub(super) fn is_ecn_setup(flags: Flags) -> bool {
    let both = Flags::ECE | Flags::CWR;
    flags & both == if flags.contains(Flags::ACK) { Flags::ECE } else { both }
}

impl Connection {
    /// The ECN flags of a SYN, or of a SYN-ACK that `answers` one. A retransmitted SYN offers no
    /// ECN: a middlebox may have dropped the first one for its flags (RFC 3168 §6.1.1.1).
    pub(super) fn ecn_setup(&mut self, answers: bool) -> Flags {
        if !self.negotiated.contains(Negotiated::ECN) {
            return Flags::empty();
        }
        if answers {
            return if self.sends_ect() { Flags::ECE } else { Flags::empty() };
        }
        self.ecn_offer = match self.ecn_offer {
            EcnOffer::Unsent => EcnOffer::Made,
            EcnOffer::Made | EcnOffer::Withdrawn => EcnOffer::Withdrawn,
        };
        if self.sends_ect() { Flags::ECE | Flags::CWR } else { Flags::empty() }
    }

    /// Sends the SYN again without ECN, if a reset may be a middlebox's answer to the offer (RFC
    /// 3168 §6.1.1.1); false if none was made, or it was withdrawn.
    pub(super) fn retry_without_ecn(&mut self) -> bool {
        let offered = self.negotiated.contains(Negotiated::ECN) && self.ecn_offer == EcnOffer::Made;
        if offered {
            self.sender.retransmit_syn();
        }
        offered
    }

    /// Whether new data is ECN-capable. A peer that has seen our offer before we withdrew it may
    /// send such data, and its marks are echoed, all the same (RFC 3168 §6.1.1).
    #[inline]
    pub(super) fn sends_ect(&self) -> bool {
        self.negotiated.contains(Negotiated::ECN) && self.ecn_offer != EcnOffer::Withdrawn
    }
}
