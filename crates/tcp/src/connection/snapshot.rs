//! Connections that move: from one host to another, or through a pause.

use super::Connection;
use super::clock::Clock;
use base::Time;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Everything about a connection at one moment, to be stored or sent.
///
/// It is trusted: whoever can forge one can do with the connection what they like.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    version: u32,
    /// What the connection's clock showed.
    taken_at: Time,
    connection: Connection,
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
    pub const VERSION: u32 = 9;
}

impl Connection {
    /// A snapshot. What has been handed out already (segments, events) is not in it; who watches the
    /// connection has to ask again.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            version: Snapshot::VERSION,
            taken_at: self.clock.local(now),
            connection: self.clone(),
        }
    }

    /// The connection of a snapshot, going on at `now` as it would have gone on when the snapshot
    /// was taken, whatever clock that was taken by: deadlines and timestamps move along.
    ///
    /// # Errors
    /// If the snapshot has another version.
    pub fn adopt(snapshot: Snapshot, now: Time) -> Result<Connection, AdoptError> {
        let Snapshot { version, taken_at, mut connection } = snapshot;
        if version != Snapshot::VERSION {
            return Err(AdoptError::Version { found: version, expected: Snapshot::VERSION });
        }
        connection.clock = Clock::showing(taken_at, now);
        connection.sender.log.keep(false);
        Ok(connection)
    }
}
