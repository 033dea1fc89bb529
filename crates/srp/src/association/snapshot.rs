//! Snapshots, by which an association moves to another station or survives a pause.

use super::Association;
use base::{Clock, Time};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The whole state of one end of an association at one moment, to be stored or sent.
///
/// It is trusted: a forged snapshot gives full control of the association.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    version: u32,
    /// The association's own time when it was taken.
    taken_at: Time,
    association: Association,
}

/// Why a snapshot was not adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AdoptError {
    /// It was taken by another version of lasthop.
    #[error("the snapshot is of version {found}, expected {expected}")]
    Version {
        /// The snapshot's.
        found: u32,
        /// The one that can be adopted.
        expected: u32,
    },
}

impl Snapshot {
    /// The version of the snapshots that this code makes and adopts.
    pub const VERSION: u32 = 7;
}

impl Association {
    /// Takes a snapshot. PDUs and events handed out already are not in it.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            version: Snapshot::VERSION,
            taken_at: self.clock.local(now),
            association: self.clone(),
        }
    }

    /// Restores the association of a snapshot. It continues at `now` as it would have continued when the
    /// snapshot was taken, whatever clock that was taken by: deadlines are shifted. After a
    /// handoff, [`Association::resume`] follows.
    ///
    /// # Errors
    /// If the snapshot has another version.
    pub fn adopt(snapshot: Snapshot, now: Time) -> Result<Association, AdoptError> {
        let Snapshot { version, taken_at, mut association } = snapshot;
        if version != Snapshot::VERSION {
            return Err(AdoptError::Version { found: version, expected: Snapshot::VERSION });
        }
        association.clock = Clock::showing(taken_at, now);
        Ok(association)
    }
}
