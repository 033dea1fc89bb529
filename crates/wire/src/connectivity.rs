//! What the ends of a connection tell each other of changes of connectivity.

use crate::ip::u16_at;
use serde::{Deserialize, Serialize};

/// TCP options for experiments (RFC 4727 §3.1, RFC 6994).
const KIND: u8 = 253;
/// What tells this experiment from others (RFC 6994 §3.1); not registered.
const EXPERIMENT: u16 = 0xcc1d;
/// An unassigned kind, for the encoding of the report.
const DRAFT_KIND: u8 = 200;

const C: u8 = 1 << 4;
const EC: u8 = 1 << 3;
const CS: u8 = 0b11 << 1;
const ECS: u8 = 1;

/// The connectivity-change indication option (`koutsianas2007` §3.1).
///
/// ```text
///  0                   1                   2                   3                   4
/// |   kind 253    |   length 5    |       experiment 0xcc1d       |  0  |C|EC|CS |ECS|
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConnectivityChange {
    /// LOCAL_CCI: changes its value with every indication that its sender has from its own layers
    /// below.
    pub c: bool,
    /// REMOTE_CCI: the last C that its sender has taken up.
    pub ec: bool,
    /// How far its sender is with its own indication.
    pub cs: LocalStatus,
    /// REMOTE_CCI_STATUS: its sender echoes the peer's.
    pub ecs: bool,
    /// The form of the option.
    pub encoding: Encoding,
}

/// LOCAL_CCI_STATUS: how far an end is with telling its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LocalStatus {
    /// There is nothing to tell.
    #[default]
    Idle,
    /// The peer has not echoed it.
    New,
    /// The peer is to hear that its echo has come.
    EchoAck,
}

/// The form of the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// An option for experiments of five bytes (RFC 6994).
    #[default]
    Experimental,
    /// Three bytes of a kind of its own, as the report has it; no number was ever assigned.
    Draft,
}

impl Encoding {
    /// Bytes of the option, without padding.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Encoding::Experimental => 5,
            Encoding::Draft => 3,
        }
    }

    /// Bytes of the option with the no-operations that align it.
    #[must_use]
    pub const fn aligned(self) -> usize {
        self.size().next_multiple_of(4)
    }
}

impl ConnectivityChange {
    /// What an option says, if it is one of these: any other is kept as it is. Reserved bits are
    /// ignored.
    pub(crate) fn parse(option: &[u8]) -> Option<ConnectivityChange> {
        let (bits, encoding) = match *option {
            [KIND, 5, _, _, bits] if u16_at(option, 2) == EXPERIMENT => {
                (bits, Encoding::Experimental)
            }
            [DRAFT_KIND, 3, bits] => (bits, Encoding::Draft),
            _ => return None,
        };
        let cs = match (bits & CS) >> 1 {
            0 => LocalStatus::Idle,
            1 => LocalStatus::New,
            2 => LocalStatus::EchoAck,
            _ => return None,
        };
        let is = |bit| bits & bit != 0;
        Some(ConnectivityChange { c: is(C), ec: is(EC), cs, ecs: is(ECS), encoding })
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Experimental => {
                out.extend_from_slice(&[KIND, 5]);
                out.extend_from_slice(&EXPERIMENT.to_be_bytes());
            }
            Encoding::Draft => out.extend_from_slice(&[DRAFT_KIND, 3]),
        }
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        out.push(bit(self.c, C) | bit(self.ec, EC) | (self.cs as u8) << 1 | bit(self.ecs, ECS));
    }
}
