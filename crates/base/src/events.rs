//! Events of transports.

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

bitflags! {
    /// What a transport tells its application about one connection or stream.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Events: u16 {
        /// Data may be written: the handshake is complete, or Fast Open does not wait for it.
        const CONNECTED = 1;
        /// Data can be read.
        const READABLE = 1 << 1;
        /// The peer's FIN and all data before it have arrived.
        const PEER_CLOSED = 1 << 2;
        /// The connection is closed.
        const CLOSED = 1 << 3;
        /// The peer has reset the connection.
        const RESET = 1 << 4;
        /// The connection was aborted by a timeout: retransmission, user or keep-alive.
        const TIMED_OUT = 1 << 5;
        /// The peer is unreachable.
        const UNREACHABLE = 1 << 6;
        /// What was written has fallen to the [`LowWater`] that the application has asked for.
        const WRITABLE = 1 << 7;
        /// The handshake is complete, of a connection that was connected before (Fast Open).
        const CONFIRMED = 1 << 8;
        /// The peer has acknowledged our FIN, and all data before it.
        const FINISHED = 1 << 9;
        /// The peer's FIN and all data before it have arrived, and its acknowledgment is
        /// withheld, as the application has requested.
        const PEER_CLOSING = 1 << 10;
    }
}

/// When [`Events::WRITABLE`] is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LowWater {
    /// At most so many bytes are written and not yet acknowledged.
    Unacknowledged(u64),
    /// At most so many bytes are written and not yet sent. It is looked at when an acknowledgment arrives, cumulative
    /// or selective.
    Unsent(u64),
}

impl LowWater {
    /// Whether it is so where so many bytes are unacknowledged and, of them, unsent.
    #[must_use]
    pub fn is_reached(self, unacknowledged: u64, unsent: u64) -> bool {
        match self {
            LowWater::Unacknowledged(bytes) => unacknowledged <= bytes,
            LowWater::Unsent(bytes) => unsent <= bytes,
        }
    }
}
