//! Freeze-TCP (Goff, Moronski, Phatak, Gupta, INFOCOM 2000): a receiver that expects to lose its
//! connectivity closes its window, so that the sender waits instead of backing off.

use super::{Action, Hooks, Needs, Rules, View};
use crate::indication::{Connectivity, Indication};
use serde::{Deserialize, Serialize};

base::settings! {
    /// The receiver announces a window of zero before connectivity ends, and its window, three times,
    /// when it is back. The sender is any TCP.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Freeze {
        #[serde(skip_serializing_if = "core::ops::Not::not")]
        frozen: bool,
    }
}

impl Rules for Freeze {
    const HOOKS: Hooks = Hooks::INDICATION;
    const NEEDS: Needs = Needs::RECEIVER;

    fn indication(&mut self, _view: &View, indication: &Indication) -> Option<Action> {
        match *indication {
            Indication::Connectivity(Connectivity::Ending) => {
                self.frozen = true;
                Some(Action::CloseWindow)
            }
            Indication::Connectivity(Connectivity::Changed { .. }) if self.frozen => {
                self.frozen = false;
                Some(Action::OpenWindow)
            }
            _ => None,
        }
    }
}
