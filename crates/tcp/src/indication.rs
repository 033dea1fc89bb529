//! Indications: what lower layers, routers or the peer report to a connection.

use core::net::IpAddr;
use wire::{Causes, CopyId, PathFields, Probability, SeqNumber};

/// A report to a connection.
///
/// The source is no part of it: an indication is accepted for what it proves to know of the
/// connection (ports, sequence numbers, copies: RFC 5927 §4.1), not for the address that it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indication {
    /// A copy of a segment arrived corrupted at some node.
    Corrupted {
        /// The first octet it carried.
        seq: SeqNumber,
        /// Octets it carried; with 0, no retransmission is needed.
        len: u32,
        /// Which copy it was; [`CopyId::NONE`] for the latest.
        copy: CopyId,
    },
    /// A copy of a segment from the peer arrived corrupted at some node.
    PeerCorrupted {
        /// The first octet it carried.
        seq: SeqNumber,
        /// Octets it carried.
        len: u32,
        /// Which copy it was; [`CopyId::NONE`] if that is unknown.
        copy: CopyId,
    },
    /// The CETEN fields of a segment's header, about its path and the reverse path. The segment
    /// itself follows.
    Path(PathFields),
    /// The survival probability of packets on a link of the path and in its queue.
    Link {
        /// The reporting node.
        node: IpAddr,
        /// The number of the link at that node.
        link: u32,
        /// The probabilities; 1 for an unknown cause.
        survival: Causes<Probability>,
    },
    /// The path to the peer has changed, or is about to (`koutsianas2007` §1).
    Connectivity(Connectivity),
    /// A packet could not be delivered (an ICMP error that quotes it, RFC 5461).
    Unreachable {
        /// The first octet it carried.
        seq: SeqNumber,
        /// A hard error: protocol or port unreachable.
        hard: bool,
    },
    /// A packet was larger than the next link takes (an ICMP error that quotes it, RFC 1191 §4, RFC
    /// 8201 §4).
    TooBig {
        /// The first octet it carried.
        seq: SeqNumber,
        /// The link's MTU less the fixed headers of IP and TCP, bytes.
        mss: u16,
    },
}

/// The change of connectivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// Connectivity will soon be lost.
    Ending,
    /// There is connectivity, perhaps over another path.
    Changed {
        /// Segments to be sent at once; the initial window if `None`.
        window: Option<u32>,
    },
    /// Connections that share the path have met its limit: the window must not grow in slow start.
    Full,
}
