//! Errors listed packet by packet.

use super::{Damage, Model, Process, Transmission};
use crate::Fate;
use base::Random;
use std::sync::Arc;
use thiserror::Error;

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedPacket {
    /// Its number, from 0, among those that are transmitted.
    pub index: u64,
    /// What happens to it.
    pub damage: Damage,
}

/// Which packets are damaged, by their number among those that are transmitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTrace {
    damaged: Arc<[DamagedPacket]>,
    length: Option<u64>,
}

/// Why a list is not a [`PacketTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketTraceError {
    /// A packet does not come after the one before it in the list.
    #[error("entry {entry}: packet {found} after packet {last}: expected numbers that increase")]
    Order {
        /// Its place in the list, from 0.
        entry: usize,
        /// Its number.
        found: u64,
        /// The number before it.
        last: u64,
    },
    /// The trace is repeated before its end.
    #[error("repeated after {length} packets: expected more than its last damaged one, {last}")]
    Length {
        /// After how many packets.
        length: u64,
        /// The last damaged packet.
        last: u64,
    },
}

impl PacketTrace {
    /// A trace of damaged packets, in order; if it has a `length`, it starts again after so many
    /// packets, otherwise all that follow are intact.
    ///
    /// # Errors
    /// If the list is not in order, or longer than `length`.
    pub fn new(
        damaged: impl IntoIterator<Item = DamagedPacket>,
        length: Option<u64>,
    ) -> Result<PacketTrace, PacketTraceError> {
        let damaged: Arc<[DamagedPacket]> = damaged.into_iter().collect();
        for (entry, pair) in damaged.windows(2).enumerate() {
            let (last, found) = (pair[0].index, pair[1].index);
            if found <= last {
                return Err(PacketTraceError::Order { entry: entry + 1, found, last });
            }
        }
        match (length, damaged.last()) {
            (Some(length), Some(last)) if length <= last.index => {
                Err(PacketTraceError::Length { length, last: last.index })
            }
            // Nothing, repeated, is nothing.
            (_, None) => Ok(PacketTrace { damaged, length: None }),
            _ => Ok(PacketTrace { damaged, length }),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Replay {
    trace: PacketTrace,
    /// The number of the next packet.
    packet: u64,
    /// The place in the list of the next that is damaged.
    entry: usize,
}

impl Model for PacketTrace {
    type Process = Replay;

    fn start(&self, _random: &mut Random) -> Replay {
        Replay { trace: self.clone(), packet: 0, entry: 0 }
    }
}

impl Process for Replay {
    fn next(&mut self, _packet: Transmission, _random: &mut Random) -> Fate {
        if self.trace.length == Some(self.packet) {
            (self.packet, self.entry) = (0, 0);
        }
        let number = self.packet;
        self.packet += 1;
        match self.trace.damaged.get(self.entry) {
            Some(next) if next.index == number => {
                self.entry += 1;
                next.damage.into()
            }
            _ => Fate::Intact,
        }
    }
}
