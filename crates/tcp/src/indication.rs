//! What the layers below, a router or the peer tell a connection: the one door for all of it.

use core::net::IpAddr;
use wire::{Causes, CopyId, PathFields, Probability, SeqNumber};

/// Something that a connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indication {
    /// Who says so.
    pub source: Source,
    /// What is said.
    pub subject: Subject,
}

/// Who tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// This host itself, or the world in the lab.
    Local,
    /// A router, by an ICMP-like message.
    Router,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A copy of a segment arrived corrupted at some node.
    Corrupted {
        /// The first octet it carried.
        seq: SeqNumber,
        /// Octets it carried; without any, there is nothing to be sent again.
        len: u32,
        /// Which copy it was; [`CopyId::NONE`] for the latest.
        copy: CopyId,
    },
    /// A copy of a segment of the peer's arrived corrupted at some node, on its way to us.
    PeerCorrupted {
        /// The first octet it carried.
        seq: SeqNumber,
        /// Octets it carried.
        len: u32,
        /// Which copy it was; [`CopyId::NONE`] if nobody can tell.
        copy: CopyId,
    },
    /// What the header of a segment says of its path, and of the way back. The segment itself follows.
    Path(PathFields),
    /// How many packets survive on a link of the path, and in the queue to it.
    Link {
        /// The node that says so.
        node: IpAddr,
        /// Which of its links.
        link: u32,
        /// The probabilities; 1 for what it does not know.
        survival: Causes<Probability>,
    },
    /// The way to the peer has changed, or is about to (`koutsianas2007` §1).
    Connectivity(Connectivity),
    /// A packet could not be delivered (an ICMP error that quotes it, RFC 5461).
    Unreachable {
        /// The first octet it carried.
        seq: SeqNumber,
        /// Nothing of the kind will get through: protocol or port unreachable.
        hard: bool,
    },
}

/// What becomes of the way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// It will soon be lost.
    Ending,
    /// There is one, and it may be another than before.
    Changed {
        /// Segments to be sent at once; the initial window if `None`.
        window: Option<u32>,
    },
    /// Others that share it have met its limits: it can take no more than now.
    Full,
}
