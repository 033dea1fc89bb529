//! Segments as diagrams show them.

use super::MSS;
use core::fmt;
use core::ops::RangeInclusive;
use wire::{ConnectivityChange, EcnCounters, EcnOrder, Flags};

/// A segment as a diagram shows it, with sequence numbers relative to either side's SYN.
#[derive(Clone, PartialEq)]
pub(super) struct Seg {
    pub(super) flags: Flags,
    pub(super) seq: u32,
    pub(super) len: u32,
    pub(super) ack: u32,
    pub(super) sack: Vec<(u32, u32)>,
    /// An echo of a corruption: the first octet, the copy, whether it is all there is to say.
    pub(super) echo: Option<(u32, u32, bool)>,
    /// What it says of a change of connectivity.
    pub(super) change: Option<ConnectivityChange>,
    /// Its AccECN option.
    pub(super) counters: Option<EcnCounters>,
    /// Bytes; of segments that the peer sends.
    pub(super) window: Option<u32>,
}

/// The sequence number of segment `n`.
pub(super) fn at(n: u32) -> u32 {
    1 + (n - 1) * MSS
}

/// Segment `n`, from a side that has received nothing but the other's SYN.
pub(super) fn data(n: u32) -> Seg {
    bytes((n - 1) * MSS, n * MSS)
}

/// The segments of a range.
pub(super) fn each(range: RangeInclusive<u32>) -> Vec<Seg> {
    range.map(data).collect()
}

/// Bytes `from..to` of the stream.
pub(super) fn bytes(from: u32, to: u32) -> Seg {
    Seg {
        flags: Flags::ACK,
        seq: 1 + from,
        len: to - from,
        ack: 1,
        sack: vec![],
        echo: None,
        change: None,
        counters: None,
        window: None,
    }
}

/// An acknowledgment of everything before segment `n`.
pub(super) fn ack(n: u32) -> Seg {
    Seg { ack: at(n), ..bytes(0, 0) }
}

/// A SYN.
pub(super) fn syn() -> Seg {
    Seg { flags: Flags::SYN, seq: 0, ack: 0, ..bytes(0, 0) }
}

/// A SYN that acknowledges the other's.
pub(super) fn syn_ack() -> Seg {
    Seg { flags: Flags::SYN | Flags::ACK, ack: 1, ..syn() }
}

/// A reset that acknowledges nothing.
pub(super) fn reset(seq: u32) -> Seg {
    Seg { flags: Flags::RST, seq, ack: 0, ..bytes(0, 0) }
}

impl Seg {
    /// With a FIN after its data.
    pub(super) fn fin(self) -> Seg {
        Seg { flags: self.flags | Flags::FIN, ..self }
    }

    /// As a reset.
    pub(super) fn rst(self) -> Seg {
        Seg { flags: self.flags | Flags::RST, ..self }
    }

    /// Sent after this many octets of sequence space.
    pub(super) fn seq(self, seq: u32) -> Seg {
        Seg { seq, ..self }
    }

    /// Acknowledging this many octets of sequence space.
    pub(super) fn acking(self, ack: u32) -> Seg {
        Seg { ack, ..self }
    }

    /// Saying that congestion was experienced.
    pub(super) fn ece(self) -> Seg {
        Seg { flags: self.flags | Flags::ECE, ..self }
    }

    /// Saying that the window was reduced.
    pub(super) fn cwr(self) -> Seg {
        Seg { flags: self.flags | Flags::CWR, ..self }
    }

    /// Saying that the first missing segment was lost to corruption.
    pub(super) fn eln(self) -> Seg {
        Seg { flags: self.flags | Flags::ELN, ..self }
    }

    /// With this number in the three flags AE, CWR and ECE.
    pub(super) fn ace(self, ace: u8) -> Seg {
        let others = self.flags - (Flags::AE | Flags::CWR | Flags::ECE);
        let mut seg = Seg { flags: others, ..self };
        seg.flags.set(Flags::AE, ace & 4 > 0);
        seg.flags.set(Flags::CWR, ace & 2 > 0);
        seg.flags.set(Flags::ECE, ace & 1 > 0);
        seg
    }

    /// With an AccECN option of these counters: ECT(0), CE, ECT(1).
    pub(super) fn counting(self, counters: &[u32]) -> Seg {
        Seg { counters: Some(EcnCounters::new(EcnOrder::Ect0First, counters)), ..self }
    }

    /// With one more SACK block.
    pub(super) fn sack(self, segments: RangeInclusive<u32>) -> Seg {
        self.sack_bytes(at(*segments.start()), at(segments.end() + 1))
    }

    pub(super) fn sack_bytes(mut self, start: u32, end: u32) -> Seg {
        self.sack.push((start, end));
        self
    }

    /// With the echo that this copy of segment `n` was corrupted.
    pub(super) fn echoes(self, n: u32, copy: u32) -> Seg {
        Seg { echo: Some((at(n), copy, false)), ..self }
    }

    /// Saying so for no other reason.
    pub(super) fn echoes_alone(self, n: u32, copy: u32) -> Seg {
        Seg { echo: Some((at(n), copy, true)), ..self }
    }

    /// Saying this of a change of connectivity.
    pub(super) fn change(self, change: ConnectivityChange) -> Seg {
        Seg { change: Some(change), ..self }
    }

    /// Offering a window of this many bytes.
    pub(super) fn window(self, bytes: u32) -> Seg {
        Seg { window: Some(bytes), ..self }
    }
}

impl fmt::Debug for Seg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(&self.flags, &mut *f)?;
        write!(f, " {}:{} ack {}", self.seq, self.seq + self.len, self.ack)?;
        if !self.sack.is_empty() {
            write!(f, " sack {:?}", self.sack)?;
        }
        if let Some(echo) = self.echo {
            write!(f, " echo {echo:?}")?;
        }
        if let Some(change) = self.change {
            let ConnectivityChange { c, ec, cs, ecs, .. } = change;
            write!(f, " c {c} {cs:?} ec {ec} {ecs}")?;
        }
        if let Some(counters) = self.counters {
            write!(f, " counters {counters:?}")?;
        }
        Ok(())
    }
}
