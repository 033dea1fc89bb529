//! The TCP option by which the ends of a connection signal changes of connectivity.

use crate::ip::u16_at;
use core::fmt;
use serde::{Deserialize, Serialize};

/// TCP options for experiments (RFC 4727 §3.1, RFC 6994).
const KIND: u8 = 253;
/// The experiment identifier (RFC 6994 §3.1); not registered.
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
    /// LOCAL_CCI: the bit toggles with every indication from the sender's own lower layers.
    pub c: bool,
    /// REMOTE_CCI: the last C that the sender has accepted from its peer.
    pub ec: bool,
    /// The state of the sender's own indication.
    pub cs: LocalStatus,
    /// REMOTE_CCI_STATUS: the sender echoes the peer's indication.
    pub ecs: bool,
    /// The form of the option.
    pub encoding: Encoding,
}

/// LOCAL_CCI_STATUS: the state of an end's own indication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LocalStatus {
    /// No indication is being signalled.
    #[default]
    Idle,
    /// The peer has not echoed the indication yet.
    New,
    /// The echo has arrived and is to be acknowledged.
    EchoAck,
}

/// The form of the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// An option for experiments of five bytes (RFC 6994).
    #[default]
    Experimental,
    /// Three bytes of a kind of its own, as in the report; no kind was ever assigned.
    Draft,
}

base::words!(Encoding);

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
    /// Parses an option; `None` if it is another, which is kept unparsed. Reserved bits are
    /// ignored.
    pub(crate) fn parse(option: &[u8]) -> Option<ConnectivityChange> {
        let (bits, encoding) = match *option {
            [KIND, 5, _, _, bits] if u16_at(option, 2) == EXPERIMENT => {
                (bits, Encoding::Experimental)
            }
            [DRAFT_KIND, 3, bits] => (bits, Encoding::Draft),
            _ => return None,
        };
        ConnectivityChange::from_bits(bits, encoding)
    }

    /// The option whose last byte has these bits; `None` if their status is unknown.
    fn from_bits(bits: u8, encoding: Encoding) -> Option<ConnectivityChange> {
        let cs = match (bits & CS) >> 1 {
            0 => LocalStatus::Idle,
            1 => LocalStatus::New,
            2 => LocalStatus::EchoAck,
            _ => return None,
        };
        let is = |bit| bits & bit != 0;
        Some(ConnectivityChange { c: is(C), ec: is(EC), cs, ecs: is(ECS), encoding })
    }

    fn bits(self) -> u8 {
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        bit(self.c, C) | bit(self.ec, EC) | (self.cs as u8) << 1 | bit(self.ecs, ECS)
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Experimental => {
                out.extend_from_slice(&[KIND, 5]);
                out.extend_from_slice(&EXPERIMENT.to_be_bytes());
            }
            Encoding::Draft => out.extend_from_slice(&[DRAFT_KIND, 3]),
        }
        out.push(self.bits());
    }
}

/// The connectivity-change indication option of a segment, or its absence, in one byte: a packet's
/// size is limited.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Option<ConnectivityChange>", into = "Option<ConnectivityChange>")]
pub struct ConnectivityOption(u8);

/// The bits above those of the option.
const PRESENT: u8 = 1 << 7;
const DRAFT: u8 = 1 << 6;

impl ConnectivityOption {
    /// No option.
    pub const NONE: ConnectivityOption = ConnectivityOption(0);

    /// The option, if there is one.
    #[must_use]
    pub fn get(self) -> Option<ConnectivityChange> {
        let encoding = if self.0 & DRAFT == 0 { Encoding::Experimental } else { Encoding::Draft };
        if self.is_some() { ConnectivityChange::from_bits(self.0, encoding) } else { None }
    }

    /// Whether there is one.
    #[must_use]
    #[inline]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    /// Removes the option and returns it.
    pub fn take(&mut self) -> Option<ConnectivityChange> {
        core::mem::take(self).get()
    }
}

impl From<ConnectivityChange> for ConnectivityOption {
    fn from(change: ConnectivityChange) -> ConnectivityOption {
        let draft = if change.encoding == Encoding::Draft { DRAFT } else { 0 };
        ConnectivityOption(PRESENT | draft | change.bits())
    }
}

impl From<Option<ConnectivityChange>> for ConnectivityOption {
    fn from(change: Option<ConnectivityChange>) -> ConnectivityOption {
        change.map_or(ConnectivityOption::NONE, ConnectivityOption::from)
    }
}

impl From<ConnectivityOption> for Option<ConnectivityChange> {
    fn from(option: ConnectivityOption) -> Option<ConnectivityChange> {
        option.get()
    }
}

impl fmt::Debug for ConnectivityOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
