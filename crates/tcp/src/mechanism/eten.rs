//! ETEN, the sender's side: a notice says which transmitted copy was corrupted (`bbn8333` §2.3).
//!
//! Who makes the notice (an oracle, a router, the receiver) and how it travels is not the
//! sender's business.

use super::{Action, Hooks, Loss, Needs, Rules, Signal, Verdict, View};
use crate::indication::{Indication, Subject};
use serde::{Deserialize, Serialize};
use wire::{CopyId, SeqNumber};

/// Retransmits what a notice names, without touching the congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Eten {
    /// Duplicate acknowledgments and SACK holes that a reported corruption causes are excused:
    /// they do not reduce the window, and each still lets new data out (packet conservation).
    /// Without it the notice only speeds up the retransmission, and the duplicates that follow
    /// halve the window as ever.
    pub suppress_dupacks: bool,
}

impl Default for Eten {
    fn default() -> Eten {
        Eten { suppress_dupacks: true }
    }
}

impl Eten {
    /// What is to be done about a copy that was corrupted.
    pub(super) fn repair(self, seq: SeqNumber, len: u32, copy: CopyId) -> Option<Action> {
        match (len, self.suppress_dupacks) {
            (0, _) => None,
            (_, true) => Some(Action::Lost { seq, copy }),
            (_, false) => Some(Action::RetransmitNow { seq, copy }),
        }
    }
}

impl Rules for Eten {
    const HOOKS: Hooks = Hooks::INDICATION.union(Hooks::LOSS);
    // Whoever finds a packet corrupted tells which it was.
    const NEEDS: Needs =
        Needs::SENDER.union(Needs::MIDDLEBOX).union(Needs::CLEAR_HEADERS);

    fn indication(&mut self, _view: &View, indication: &Indication) -> Option<Action> {
        match indication.subject {
            Subject::Corrupted { seq, copy, len } => self.repair(seq, len, copy),
            _ => None,
        }
    }

    fn loss(&mut self, _view: &View, loss: &Loss) -> Option<Verdict> {
        (loss.signal == Signal::Notice).then_some(Verdict::Corruption)
    }
}
