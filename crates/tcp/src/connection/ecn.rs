//! The negotiation of explicit congestion notification, and its fallback (RFC 3168 §6.1.1).

use super::accurate_ecn::ace_of;
use super::{Connection, Negotiated};
use crate::config::EcnMode;
use serde::{Deserialize, Serialize};
use wire::Flags;

/// What SYNs have said about ECN: ours or, once the peer's has arrived, those of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EcnOffer {
    /// No SYN was sent.
    #[default]
    Unsent,
    /// The first SYN offered ECN.
    Made,
    /// So did the second, which only an offer of accurate ECN does (RFC 9768 §3.1.4.1).
    Repeated,
    /// A later one of either end did not: ECT is not set (RFC 3168 §6.1.1).
    Withdrawn,
}

/// Whether a SYN offers ECN, or a SYN-ACK accepts it (RFC 3168 §6.1.1). A SYN-ACK sets ECE only, so
/// that a host that reflects reserved bits does not negotiate ECN.
pub(super) fn is_ecn_setup(flags: Flags) -> bool {
    let both = Flags::ECE | Flags::CWR;
    flags & both == if flags.contains(Flags::ACK) { Flags::ECE } else { both }
}

/// What of ECN the peer's SYN or SYN-ACK leaves to an end that offers `mode` (RFC 9768, table 2).
pub(super) fn answered_ecn(mode: EcnMode, flags: Flags) -> Negotiated {
    let classic = match mode {
        EcnMode::Off => false,
        EcnMode::Classic => is_ecn_setup(flags),
        EcnMode::Accurate => {
            match (flags.contains(Flags::ACK), ace_of(flags)) {
                (_, 0b000) => return Negotiated::empty(),
                (false, 0b011) | (true, 0b001) => true,
                // A host that reflects reserved bits.
                (true, 0b111) => return Negotiated::empty(),
                // Unused combinations are reserved for later forms of accurate ECN (§3.1.3).
                _ => return Negotiated::ACCURATE_ECN,
            }
        }
    };
    if classic { Negotiated::ECN } else { Negotiated::empty() }
}

impl Connection {
    /// The ECN flags of a SYN, or of a SYN-ACK that `answers` one. A retransmitted SYN offers no
    /// ECN: a middlebox may have dropped the first one for its flags (RFC 3168 §6.1.1.1).
    pub(super) fn ecn_setup(&mut self, answers: bool) -> Flags {
        if let Some(accurate) = &mut self.accurate_ecn {
            let timeouts = self.sender.consecutive_timeouts();
            return if answers { accurate.syn_ack_flags(timeouts) } else { Flags::empty() };
        }
        if !self.negotiated.contains(Negotiated::ECN) {
            return Flags::empty();
        }
        if answers {
            return if self.sends_ect() { Flags::ECE } else { Flags::empty() };
        }
        self.ecn_offer = match self.ecn_offer {
            EcnOffer::Unsent => EcnOffer::Made,
            EcnOffer::Made if self.ecn_mode == EcnMode::Accurate => EcnOffer::Repeated,
            EcnOffer::Made | EcnOffer::Repeated | EcnOffer::Withdrawn => EcnOffer::Withdrawn,
        };
        if !self.sends_ect() {
            return Flags::empty();
        }
        let mut flags = Flags::ECE | Flags::CWR;
        flags.set(Flags::AE, self.ecn_mode == EcnMode::Accurate);
        flags
    }

    /// Sends the SYN again without ECN, if a reset may be a middlebox's answer to the offer (RFC
    /// 3168 §6.1.1.1); false if none was made, or it was withdrawn.
    pub(super) fn retry_without_ecn(&mut self) -> bool {
        let offers = matches!(self.ecn_offer, EcnOffer::Made | EcnOffer::Repeated);
        let offered = self.negotiated.contains(Negotiated::ECN) && offers;
        if offered {
            self.ecn_offer = EcnOffer::Repeated;
            self.sender.retransmit_syn();
        }
        offered
    }

    /// Whether new data is ECN-capable. A peer that has seen our offer before we withdrew it may
    /// send such data, and its marks are echoed, all the same (RFC 3168 §6.1.1).
    #[inline]
    pub(super) fn sends_ect(&self) -> bool {
        match &self.accurate_ecn {
            Some(accurate) => accurate.sends_ect(),
            None => {
                self.negotiated.contains(Negotiated::ECN) && self.ecn_offer != EcnOffer::Withdrawn
            }
        }
    }
}
