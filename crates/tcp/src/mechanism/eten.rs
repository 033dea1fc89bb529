//! ETEN, the sender's side: a notice says which transmitted copy was corrupted (`bbn8333` §2.3).
//!
//! Who makes the notice (an oracle, a router, the receiver) and how it travels is not the
//! sender's business.

use super::{Action, Hooks, Loss, Needs, Outcome, Rules, Signal, Verdict, View};
use crate::indication::{Indication, Subject};
use serde::{Deserialize, Serialize};
use wire::{CopyId, SeqNumber};

/// Which reported corruptions are excused: the duplicate acknowledgments and SACK holes that they
/// cause do not reduce the window, and each still lets new data out (packet conservation). The
/// notice of any other only speeds up the retransmission, and the duplicates that follow halve the
/// window as ever. The report does not say which its simulator excused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Suppression {
    /// Every one.
    #[default]
    All,
    /// The first; then none until all that was outstanding at that notice is acknowledged.
    First,
    /// Not one.
    None,
}

impl Suppression {
    /// Every rule.
    pub const EVERY: [Suppression; 3] = [Suppression::All, Suppression::First, Suppression::None];
}

/// Retransmits what a notice names, without touching the congestion state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Eten {
    /// Which reported corruptions are excused.
    pub suppress_dupacks: Suppression,
    /// With [`Suppression::First`]: the octet after the last that was outstanding at the notice that
    /// was excused last.
    #[serde(skip_serializing_if = "is_zero")]
    excused: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Eten {
    /// A sender with this setting.
    #[must_use]
    pub fn new(suppress_dupacks: Suppression) -> Eten {
        Eten { suppress_dupacks, excused: 0 }
    }

    fn excuses(&self, view: &View) -> bool {
        match self.suppress_dupacks {
            Suppression::All => true,
            Suppression::First => view.una >= self.excused,
            Suppression::None => false,
        }
    }

    /// What is to be done about a copy that was corrupted.
    pub(super) fn repair(
        &self,
        view: &View,
        seq: SeqNumber,
        len: u32,
        copy: CopyId,
    ) -> Option<Action> {
        match (len, self.excuses(view)) {
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

    fn hooks(&self) -> Hooks {
        match self.suppress_dupacks {
            Suppression::First => Self::HOOKS.union(Hooks::OUTCOME),
            Suppression::All | Suppression::None => Self::HOOKS,
        }
    }

    fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        match indication.subject {
            Subject::Corrupted { seq, copy, len } => self.repair(view, seq, len, copy),
            _ => None,
        }
    }

    fn loss(&mut self, _view: &View, loss: &Loss) -> Option<Verdict> {
        (loss.signal == Signal::Notice).then_some(Verdict::Corruption)
    }

    fn outcome(&mut self, view: &View, outcome: Outcome) {
        if outcome == Outcome::Believed && self.excuses(view) {
            self.excused = view.nxt;
        }
    }
}
