//! Packets: plain structs that are `Copy`, and their bytes on the wire.
//!
//! [`Packet::emit`] writes a packet's bytes, [`Packet::parse`] reads them: IPv4, IPv6 with extension
//! headers, TCP with all options, UDP, SRP, TFRC, ICMP and ICMPv6, ESP, repair packets of erasure codes. Any
//! bytes give a packet or a typed error.
//! Unknown options and extension headers are kept in [`UnparsedOptions`] and forwarded unchanged.
//!
//! A simulated packet carries no payload bytes, only the payload's identity ([`Payload`]), so that
//! "every byte, in order, once" can be checked at the sink. Lengths are those the packet has on
//! the wire.

mod accurate_ecn;
mod checksum;
mod coding;
mod connectivity;
mod corruption;
mod damage;
mod echo;
mod error;
mod esp;
mod fast_open;
mod flow;
mod icmp;
mod ip;
mod ipv4;
mod ipv6;
mod link_report;
mod mobility;
mod notice;
mod options;
mod packet;
mod path_fields;
mod payload;
pub mod pcapng;
mod quote;
mod sack;
mod segment;
mod seq;
mod spep;
pub mod srp;
mod survival;
mod tfrc;
mod udp;
mod unparsed;

pub use accurate_ecn::{EcnCounters, EcnFields, EcnOrder};
pub use checksum::PartialChecksum;
pub use coding::{Place, Repair};
pub use connectivity::{ConnectivityChange, ConnectivityOption, Encoding, LocalStatus};
pub use corruption::CorruptedCopy;
pub use damage::Vouched;
pub use echo::CorruptionEcho;
pub use error::{EmitError, Header, ParseError};
pub use esp::{Esp, EspNotice, Protected, ReplayWindow};
#[cfg(feature = "aead")]
pub use esp::{EspAlgorithm, EspKeys, MaterialLength, OpenError};
pub use fast_open::FastOpenCookie;
pub use flow::FlowKey;
pub use icmp::Icmp;
pub use ip::{Ecn, Ip};
pub use link_report::{FrameCounters, LinkReport, LinkReportError};
pub use mobility::{Mobility, MobilityMessage, Outcome};
pub use notice::CorruptionNotice;
pub use options::{Options, Timestamps};
pub use packet::{Body, Packet};
pub use path_fields::{Causes, Code, PathFields, PathForm, Probability};
pub use payload::Payload;
pub use quote::Quote;
pub use sack::{SackBlock, SackBlocks};
pub use segment::{CopyId, Flags, Ports, Segment};
pub use seq::SeqNumber;
pub use spep::Spep;
pub use srp::Srp;
pub use survival::SurvivalNotice;
pub use tfrc::{Tfrc, TfrcMessage};
pub use udp::Udp;
pub use unparsed::UnparsedOptions;
