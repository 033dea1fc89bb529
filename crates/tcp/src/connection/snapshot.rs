//! Snapshots, by which a connection moves to another host or survives a pause.

use super::Connection;
use base::{Clock, Time};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The whole state of a connection at one moment, to be stored or sent.
///
/// It is trusted: a forged snapshot gives full control of the connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    version: u32,
    /// The connection's own time when it was taken.
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
    pub const VERSION: u32 = 20;
}

impl Connection {
    /// Takes a snapshot. Segments and events handed out already are not in it; recording of events
    /// is off after adoption.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            version: Snapshot::VERSION,
            taken_at: self.clock.local(now),
            connection: self.clone(),
        }
    }

    /// Restores the connection of a snapshot. It continues at `now` as it would have continued when
    /// the snapshot was taken, whatever clock that was taken by: deadlines and timestamps are
    /// shifted.
    ///
    /// # Errors
    /// If the snapshot has another version.
    pub fn adopt(snapshot: Snapshot, now: Time) -> Result<Connection, AdoptError> {
        let Snapshot { version, taken_at, mut connection } = snapshot;
        if version != Snapshot::VERSION {
            return Err(AdoptError::Version { found: version, expected: Snapshot::VERSION });
        }
        connection.clock = Clock::showing(taken_at, now);
        connection.sender.log.enable(false);
        Ok(connection)
    }
}
