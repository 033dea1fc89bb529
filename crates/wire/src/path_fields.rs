//! The fields of Cumulative ETEN in IP headers: survival probabilities that nodes on the path
//! update.

mod form;

pub use form::PathForm;

use crate::{Packet, UnparsedOptions, ip::protocol};
use serde::{Deserialize, Serialize};

/// A probability from 0 to 1, both of them exact, in steps of 2.3e-10: a loss of one packet in a
/// million has four exact digits even after ten hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probability(pub u32);

impl Probability {
    /// Surely.
    pub const ONE: Probability = Probability(u32::MAX);

    /// The nearest to `value`, clamped to 0 and 1; 0 if it is no number.
    #[must_use]
    pub fn of(value: f64) -> Probability {
        Probability((value * f64::from(u32::MAX) + 0.5) as u32)
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX)
    }

    /// This and, independently, `other`.
    #[must_use]
    #[inline]
    pub fn and(self, other: f64) -> Probability {
        Probability((f64::from(self.0) * other + 0.5) as u32)
    }
}

/// Something about both ways to lose a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Causes<T> {
    /// About damage on a link.
    pub corruption: T,
    /// About queues without room.
    pub congestion: T,
}

impl<T> Causes<T> {
    /// Something else about both.
    pub fn map<U>(self, mut other: impl FnMut(T) -> U) -> Causes<U> {
        Causes { corruption: other(self.corruption), congestion: other(self.congestion) }
    }
}

impl Causes<Probability> {
    /// Nothing is ever lost.
    pub const SURVIVES: Causes<Probability> =
        Causes { corruption: Probability::ONE, congestion: Probability::ONE };
}

/// Two bits in place of a probability: a level of loss from 0 on, or (modulo 4) a step by which it has
/// changed, as the [`PathForm`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(u8);

impl Code {
    /// A level; above 3 it is 3.
    #[must_use]
    pub fn level(level: u8) -> Code {
        Code(level.min(3))
    }

    /// A step; beyond -1 and 1 it is one of them.
    #[must_use]
    pub fn step(step: i8) -> Code {
        Code(step.clamp(-1, 1) as u8 & 3)
    }

    /// The level.
    #[must_use]
    pub fn as_level(self) -> u8 {
        self.0
    }

    /// The step; 0 if it is none.
    #[must_use]
    pub fn as_step(self) -> i8 {
        match self.0 {
            1 => 1,
            3 => -1,
            _ => 0,
        }
    }
}

/// The fields of Cumulative ETEN (`bbn8333` §2.2, §4.1): the survival probabilities of packets on
/// the path so far, and those on the reverse path, which the packet's source echoes.
///
/// They are an IP option that may change en route, of a type for experiments: in IPv4 94 (RFC 4727
/// §2.2, of the class for measurement, not copied into fragments), in IPv6 0x3e in hop-by-hop
/// options (RFC 4727 §3.4: skipped if unknown). They stand first, so that a node finds them without
/// parsing other options; anywhere else they are not recognised.
///
/// ```text
/// exact, IPv4:   1, 1, 94, 18,          then 16 bytes       20 bytes
/// exact, IPv6:   next, 2, 0x3e, 16,     then 16 bytes, PadN 24 bytes
/// coded, IPv4:   94, 3,                 then 1 byte, end     4 bytes
/// coded, IPv6:   next, 0, 0x3e, 1,      then 1 byte, PadN    8 bytes
/// ```
///
/// The 16 bytes are four [`Probability`]s, the one byte four [`Code`]s, the highest bits first:
/// corruption and congestion of the path so far, then both of the reverse path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathFields {
    /// Probabilities.
    Exact {
        /// Of surviving the path so far.
        forward: Causes<Probability>,
        /// Of surviving the path from this packet's destination to its source.
        echoed: Causes<Probability>,
    },
    /// A few bits for each.
    Coded {
        /// Of the path so far.
        forward: Causes<Code>,
        /// Of the reverse path.
        echoed: Causes<Code>,
    },
}

const KIND_V4: u8 = 94;
const KIND_V6: u8 = 0x3e;

impl PathFields {
    /// The fields of a packet that has any.
    #[must_use]
    #[inline]
    pub fn of(packet: &Packet) -> Option<PathFields> {
        // Nearly every packet ends here.
        if !packet.unparsed.has_ip() {
            return None;
        }
        PathFields::read(packet.ip.source.is_ipv6(), &packet.unparsed)
    }

    fn read(v6: bool, unparsed: &UnparsedOptions) -> Option<PathFields> {
        let ip = unparsed.ip();
        let place = place(v6, unparsed)?;
        if let &[byte] = ip.get(place.clone())? {
            let code = |shift: u8| Code(byte >> shift & 3);
            return Some(PathFields::Coded {
                forward: Causes { corruption: code(6), congestion: code(4) },
                echoed: Causes { corruption: code(2), congestion: code(0) },
            });
        }
        let (words, _) = ip.get(place)?.as_chunks::<4>();
        let &[a, b, c, d] = words else { return None };
        let [a, b, c, d] = [a, b, c, d].map(|word| Probability(u32::from_be_bytes(word)));
        Some(PathFields::Exact {
            forward: Causes { corruption: a, congestion: b },
            echoed: Causes { corruption: c, congestion: d },
        })
    }

    /// Adds the fields to a packet of IPv6 or IPv4 without IP options; without effect if it has
    /// any.
    pub fn put(&self, v6: bool, unparsed: &mut UnparsedOptions) {
        if unparsed.has_ip() {
            return;
        }
        let kept = match (self, v6) {
            (PathFields::Exact { .. }, false) => {
                let mut options = [0; 20];
                options[..4].copy_from_slice(&[1, 1, KIND_V4, 18]);
                unparsed.set_ipv4_options(&options)
            }
            (PathFields::Coded { .. }, false) => unparsed.set_ipv4_options(&[KIND_V4, 3, 0, 0]),
            (PathFields::Exact { .. }, true) => {
                let mut chain = [0; 24];
                chain[..4].copy_from_slice(&[0, 2, KIND_V6, 16]);
                chain[20..].copy_from_slice(&[1, 2, 0, 0]);
                unparsed.set_ipv6_extensions(protocol::HOP_BY_HOP, &chain)
            }
            (PathFields::Coded { .. }, true) => {
                let chain = [0, 0, KIND_V6, 1, 0, 1, 1, 0];
                unparsed.set_ipv6_extensions(protocol::HOP_BY_HOP, &chain)
            }
        };
        debug_assert!(kept.is_ok(), "the options above are well-formed");
        self.write(v6, unparsed);
    }

    /// Overwrites the fields of a packet that has such.
    #[inline]
    pub fn renew(&self, packet: &mut Packet) {
        self.write(packet.ip.source.is_ipv6(), &mut packet.unparsed);
    }

    fn write(&self, v6: bool, unparsed: &mut UnparsedOptions) {
        let Some(place) = place(v6, unparsed) else { return };
        let Some(bytes) = unparsed.ip_mut().get_mut(place) else { return };
        match (self, bytes) {
            (PathFields::Coded { forward, echoed }, [byte]) => {
                *byte = forward.corruption.0 << 6
                    | forward.congestion.0 << 4
                    | echoed.corruption.0 << 2
                    | echoed.congestion.0;
            }
            (PathFields::Exact { forward, echoed }, bytes) if bytes.len() == 16 => {
                let words =
                    [forward.corruption, forward.congestion, echoed.corruption, echoed.congestion];
                for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                    *bytes = word.0.to_be_bytes();
                }
            }
            // Those of the other kind are left as they are.
            _ => {}
        }
    }

    /// Bytes that they take of every packet.
    #[must_use]
    pub fn size(&self, v6: bool) -> u32 {
        match (self, v6) {
            (PathFields::Exact { .. }, false) => 20,
            (PathFields::Exact { .. }, true) => 24,
            (PathFields::Coded { .. }, false) => 4,
            (PathFields::Coded { .. }, true) => 8,
        }
    }
}

/// Where the values are.
#[inline]
fn place(v6: bool, unparsed: &UnparsedOptions) -> Option<core::ops::Range<usize>> {
    match (v6, unparsed.ip()) {
        (false, [1, 1, KIND_V4, 18, ..]) => Some(4..20),
        (false, [KIND_V4, 3, ..]) => Some(2..3),
        (true, [_, _, KIND_V6, 16, ..]) if unparsed.first == protocol::HOP_BY_HOP => Some(4..20),
        (true, [_, _, KIND_V6, 1, ..]) if unparsed.first == protocol::HOP_BY_HOP => Some(4..5),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
