//! End-to-end erasure coding (`bbn8333` §5): repair packets that the sending host adds to a flow, and
//! of which the receiving host rebuilds what was lost.
//!
//! The code is systematic: source packets, which are the flow's own, go out at once with a tag. A
//! block of them is followed by repair packets, and from as many packets of the block as it has
//! source packets, whichever they are, all of these can be rebuilt. The encoded stream has its own
//! sequence numbers ([`wire::Place`]), so that the receiver sees every loss although TCP does not;
//! what congestion lost is told to TCP as ECN tells it, so that coding hides no congestion
//! (RFC 9265 §5).
//!
//! SideChannel that, each packet may carry a code of its own, by which every node that it comes to corrects
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
    /// Where data comes from.
    pub source: IpAddr,
    /// Where it goes.
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
            Body::Udp(_) | Body::Icmp(_) | Body::Repair(_) | Body::Esp(_) => false,
        }
    }

    /// Whether it is a segment of the flow, in the direction of its data.
    fn carries(&self, packet: &Packet) -> bool {
        self.has_ends(packet) && self.has_port(packet)
    }

    /// Whether it is a segment that comes back.
    fn answers(&self, packet: &Packet) -> bool {
        (packet.ip.source, packet.ip.destination) == (self.destination, self.source)
            && self.has_port(packet)
    }
}

/// What both ends of a coded flow must know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The source packets of a block, unless it is cut short; at most [`Settings::MOST_SOURCES`].
    pub block: u8,
    /// How many repair packets follow them.
    pub strength: Strength,
    /// How long a block stays open at the sender: then its repair packets follow, however few source
    /// packets there are. What comes behind a gap waits at the receiver twice as long at most: once
    /// for the sender, and once for queues.
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
