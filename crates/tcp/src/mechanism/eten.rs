//! ETEN, the sender's side: a notice says which transmitted copy was corrupted (`bbn8333` §2.3).
//!
//! The source of the notice (an oracle, a router, the receiver) and its transport do not matter
//! here.

use super::{Action, Hooks, Loss, Needs, Outcome, Rules, Signal, Verdict, View};
use crate::indication::Indication;
use serde::{Deserialize, Serialize};
use wire::{CopyId, SeqNumber};

/// Which reported corruptions suppress the congestion response: the duplicate acknowledgments and
/// SACK holes that they cause do not reduce the window, and each still releases new data (packet
/// conservation). The notice of any other only brings the retransmission forward, and the following
/// duplicates halve the window as usual. The report does not say which its simulator suppressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Suppression {
    /// All of them.
    #[default]
    All,
    /// The first; then none until all that was outstanding at that notice is acknowledged.
    First,
    /// None.
    None,
}

base::words!(Suppression);

impl Suppression {
    /// Every rule.
    pub const EVERY: [Suppression; 3] = [Suppression::All, Suppression::First, Suppression::None];
}

base::settings! {
    /// Retransmits what a notice names, without touching the congestion state.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Eten {
        /// Which reported corruptions keep their duplicate ACKs from reducing the window.
        pub suppress_dupacks: Suppression,
        /// With [`Suppression::First`]: SND.NXT at the last notice that suppressed a response.
        #[serde(skip_serializing_if = "is_zero")]
        suppressed_until: u64,
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Eten {
    /// A sender with this setting.
    #[must_use]
    pub fn new(suppress_dupacks: Suppression) -> Eten {
        Eten { suppress_dupacks, suppressed_until: 0 }
    }

    fn suppresses(&self, view: &View) -> bool {
        match self.suppress_dupacks {
            Suppression::All => true,
            Suppression::First => view.una >= self.suppressed_until,
            Suppression::None => false,
        }
    }

    /// The action for a corrupted copy.
    pub(super) fn action_for(
        &self,
        view: &View,
        seq: SeqNumber,
        len: u32,
        copy: CopyId,
    ) -> Option<Action> {
        match (len, self.suppresses(view)) {
            (0, _) => None,
            (_, true) => Some(Action::Lost { seq, copy }),
            (_, false) => Some(Action::RetransmitNow { seq, copy }),
        }
    }
}

impl Rules for Eten {
    const HOOKS: Hooks = Hooks::INDICATION.union(Hooks::LOSS);
    // The node that finds a corrupted packet reports which one.
    const NEEDS: Needs = Needs::SENDER.union(Needs::MIDDLEBOX).union(Needs::CLEAR_HEADERS);

    fn hooks(&self) -> Hooks {
        match self.suppress_dupacks {
            Suppression::First => Self::HOOKS.union(Hooks::OUTCOME),
            Suppression::All | Suppression::None => Self::HOOKS,
        }
    }

    fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        match *indication {
            Indication::Corrupted { seq, copy, len, .. } => self.action_for(view, seq, len, copy),
            _ => None,
        }
    }

    fn loss(&mut self, _view: &View, loss: &Loss) -> Option<Verdict> {
        (loss.signal == Signal::Notice).then_some(Verdict::Corruption)
    }

    fn outcome(&mut self, view: &View, outcome: Outcome) {
        if outcome == Outcome::Accepted && self.suppresses(view) {
            self.suppressed_until = view.nxt;
        }
    }
}
