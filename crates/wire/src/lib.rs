//! Header structs of every packet that lasthop sends: plain values that are `Copy`.
//!
//! A simulated packet carries no payload bytes, only the payload's identity ([`Payload`]), so that
//! "every byte, in order, once" can be checked at the sink. Lengths are those the packet has on
//! the wire.

mod notice;
mod packet;
mod segment;
mod seq;

pub use notice::CorruptionNotice;
pub use packet::{Body, Ecn, Ip, Packet, Payload};
pub use segment::{CopyId, Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
pub use seq::SeqNumber;
