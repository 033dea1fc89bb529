//! Indications: what lower layers, routers or the peer report to a connection.

use core::net::IpAddr;
use serde::{Deserialize, Serialize};
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
        /// In place of that, its timestamp.
        timestamp: Option<u32>,
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
    /// The causes of packets of the peer that are missing before the segment that follows (`obanaik2003` §4.2).
    PeerLosses(PeerLosses),
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

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LossCause {
    /// A queue had no room for it, or nothing is known.
    #[default]
    Congestion,
    /// A link damaged it.
    Corruption,
}

/// The causes of consecutive packets that are missing, in the order in which they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerLosses {
    runs: [(LossCause, u32); PeerLosses::MOST_RUNS],
}

impl PeerLosses {
    /// The most runs of one cause; what is beyond them is forgotten. Three blocks of received packets lie
    /// between four gaps.
    pub const MOST_RUNS: usize = 7;

    /// Adds `count` packets with this cause.
    pub fn push(&mut self, cause: LossCause, count: u32) {
        let used = self.runs.iter().take_while(|run| run.1 > 0).count();
        match used.checked_sub(1) {
            Some(last) if self.runs[last].0 == cause => {
                self.runs[last].1 = self.runs[last].1.saturating_add(count);
            }
            _ if used < PeerLosses::MOST_RUNS => self.runs[used] = (cause, count),
            _ => {}
        }
    }

    /// The runs of packets with one cause, each with its length.
    pub fn runs(&self) -> impl Iterator<Item = (LossCause, u32)> {
        self.runs.iter().copied().take_while(|run| run.1 > 0)
    }

    /// The cause of each packet.
    pub fn iter(&self) -> impl Iterator<Item = LossCause> {
        self.runs.iter().flat_map(|&(cause, count)| (0..count).map(move |_| cause))
    }

    /// Whether no packet is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs[0].1 == 0
    }

    /// Packets with this cause.
    #[must_use]
    pub fn count(&self, cause: LossCause) -> u64 {
        let runs = self.runs.iter().filter(|run| run.0 == cause);
        runs.map(|run| u64::from(run.1)).sum()
    }
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
