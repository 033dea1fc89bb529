//! ETEN, the sender's side: a notice says which transmitted copy was corrupted (`bbn8333` §2.3).
//!
//! Who makes the notice (an oracle, a router, the receiver) and how it travels is not the
//! sender's business.

use super::{Action, Hooks, Loss, Needs, Rules, Signal, Verdict, View};
use crate::indication::{Indication, Subject};
use serde::{Deserialize, Serialize};

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

impl Rules for Eten {
    const HOOKS: Hooks = Hooks::INDICATION.union(Hooks::LOSS);
    // Whoever finds a packet corrupted tells which it was.
    const NEEDS: Needs =
        Needs::SENDER.union(Needs::MIDDLEBOX).union(Needs::CLEAR_HEADERS);

    fn indication(&mut self, _view: &View, indication: &Indication) -> Option<Action> {
        let Subject::Corrupted { seq, copy, len: 1.. } = indication.subject else {
            return None;
        };
        Some(if self.suppress_dupacks {
            Action::Lost { seq, copy }
        } else {
            Action::RetransmitNow { seq, copy }
        })
    }

    fn loss(&mut self, _view: &View, loss: &Loss) -> Option<Verdict> {
        (loss.signal == Signal::Notice).then_some(Verdict::Corruption)
    }
}
