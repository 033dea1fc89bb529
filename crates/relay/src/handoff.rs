//! What becomes of an SRP association when its streams move to another box.

use base::Time;
use base::settings::{Kind, Setting, names};
use serde::{Deserialize, Serialize};
use srp::Association;

/// The association over the hop after a handoff (`yavatkar1994`: by its §2.4 restored, by its §1 and figure 3
/// a new one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handoff {
    /// It goes on where it was.
    #[default]
    Restored,
    /// The end that has opened it opens a new one, in which its streams go on.
    New,
}

impl Setting for Handoff {
    const KIND: Kind = Kind::Words(names::<Handoff>);
}

impl Handoff {
    /// The hop is there again.
    pub(crate) fn resume(self, now: Time, association: &mut Association) {
        match self {
            Handoff::Restored => association.resume(now),
            Handoff::New => association.renew(now),
        }
    }

    /// The box continues an association of another one, which its peer has opened.
    pub(crate) fn take_over(self, now: Time, association: &mut Association) {
        match self {
            Handoff::Restored => association.resume(now),
            Handoff::New => association.await_renewal(now),
        }
    }
}
