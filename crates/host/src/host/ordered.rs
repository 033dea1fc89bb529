//! Packets that have a place in their connection.

use crate::FourTuple;
use wire::{Body, Packet, SeqNumber, TfrcMessage};

/// A packet, by its place among those of its sender, as the receiver knows it: others may be missing before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// A segment of a TCP connection.
    Segment {
        /// The connection.
        connection: FourTuple,
        /// The segment's first octet.
        seq: SeqNumber,
    },
    /// A data packet of TFRC.
    Tfrc {
        /// The ends of the flow.
        ends: FourTuple,
        /// The packet's number.
        sequence: u32,
    },
}

impl Ordered {
    /// The place of a packet that has arrived; `None` if it has none.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Ordered> {
        match &packet.body {
            Body::Tcp(segment) => {
                let connection = FourTuple::of_segment(&packet.ip, segment);
                Some(Ordered::Segment { connection, seq: segment.seq })
            }
            Body::Tfrc(tfrc) => {
                let TfrcMessage::Data { sequence, .. } = tfrc.message else { return None };
                let ends = FourTuple::of_tfrc(&packet.ip, tfrc);
                Some(Ordered::Tfrc { ends, sequence })
            }
            _ => None,
        }
    }
}
