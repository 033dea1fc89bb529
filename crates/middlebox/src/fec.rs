//! End-to-end erasure coding (`bbn8333` §5): the sending host adds repair packets to a flow, and
//! the receiving host rebuilds lost packets from them.
//!
//! The code is systematic: source packets, which are the flow's own, are sent at once with a tag.
//! Repair packets follow each block of source packets. Any packets of a block, as many as it has
//! source packets, are enough to rebuild all of its source packets. The encoded stream has its own
//! sequence numbers ([`wire::Place`]), so that the decoder sees every loss although TCP does not.
//! The decoder signals congestion losses to TCP as ECN marks, so that coding hides no congestion
//! (RFC 9265 §5).
//!
//! Besides, each packet may carry a code of its own, with which every node on the path corrects
//! wrong bytes ([`PacketEncoder`]).

mod codec;
mod decoder;
mod encoder;
mod losses;
mod per_packet;
mod rates;
mod side_channel;
mod strength;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, Signal};
pub use encoder::Encoder;
pub use per_packet::{PacketDecoder, PacketEncoder, PacketStrength};
pub use side_channel::{SideChannel, Statistics};
pub use strength::Strength;

use base::Duration;
use core::net::IpAddr;
use wire::{Body, Packet};

/// A flow that is coded in the direction of its data: all TCP connections from one address to
/// another whose port at either end is the flow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The address of the data's sender.
    pub source: IpAddr,
    /// The address of the data's receiver.
    pub destination: IpAddr,
    /// The port.
    pub port: u16,
}

impl Flow {
    fn has_ends(&self, packet: &Packet) -> bool {
        (packet.ip.source, packet.ip.destination) == (self.source, self.destination)
    }

    /// Whether it is a segment to or from the flow's port.
    fn has_port(&self, packet: &Packet) -> bool {
        match &packet.body {
            Body::Tcp(segment) => {
                segment.destination_port == self.port || segment.source_port == self.port
            }
            _ => false,
        }
    }

    /// Whether it is a segment of the flow, in the direction of its data.
    fn carries(&self, packet: &Packet) -> bool {
        self.has_ends(packet) && self.has_port(packet)
    }

    /// Whether it is a segment in the other direction.
    fn answers(&self, packet: &Packet) -> bool {
        (packet.ip.source, packet.ip.destination) == (self.destination, self.source)
            && self.has_port(packet)
    }
}

/// The settings of both ends of a coded flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The source packets of a block, unless it is cut short; at most [`Settings::MOST_SOURCES`].
    pub block: u8,
    /// The number of repair packets that follow them.
    pub strength: Strength,
    /// The longest time that a block stays open at the encoder: then its repair packets follow,
    /// even if it has fewer source packets. Packets behind a gap wait at the decoder for at most
    /// twice as long: once for the encoder, and once for queues.
    pub wait: Duration,
}

impl Settings {
    /// The most source packets that a block may have: there is room for repair packets.
    pub const MOST_SOURCES: u8 = 200;
}

impl Default for Settings {
    /// Blocks of 20, as strong as corruption asks for, cut short after 100 ms.
    fn default() -> Settings {
        Settings { block: 20, strength: Strength::default(), wait: Duration::from_millis(100) }
    }
}
