//! Messages between a mobile host and its base stations (MHP, `yavatkar1994` §2.4).

use crate::checksum::Tail;
use crate::ip::{array, u16_at, u32_at};
use crate::{EmitError, Header, Udp};
use core::net::{IpAddr, Ipv6Addr};
use serde::{Deserialize, Serialize};

/// A message between a mobile host and a base station, in UDP from and to [`Mobility::PORT`].
///
/// All are authenticated by a key that the mobile host shares with the base stations, and bear the
/// number of the attachment that they are about: a message with the number of an earlier one has no effect.
///
/// ```text
///  0                   1                   2                   3
/// |    version    |     type      |    detail     |   reserved    |
/// |                 number of the attachment, 64 bits             |
/// |                     fields of the type                        |
/// |                 authentication tag, 128 bits                  |
/// ```
///
/// Addresses have 128 bits, those of IPv4 mapped into IPv6 (RFC 4291 §2.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mobility {
    /// The attachment, by its number: each of a mobile host has a higher one.
    pub attachment: u64,
    /// The message.
    pub message: MobilityMessage,
    /// The authentication tag over [`Mobility::authenticated`].
    pub tag: [u8; Mobility::TAG],
}

/// The kinds of [`Mobility`] messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MobilityMessage {
    /// From the mobile host to its new base station: it is attached there, and its connections are to be
    /// fetched.
    Attach {
        /// The mobile host's address of the other version of IP.
        other: Option<IpAddr>,
        /// The new base station.
        station: IpAddr,
        /// The base station at which the host was before: the last one that has confirmed an
        /// attachment, or that was told of one. None if the host has no connections.
        previous: Option<IpAddr>,
        /// The incarnation of that one when it confirmed the attachment; none, if it has not.
        incarnation: Option<u32>,
    },
    /// The answer of the base station: data transfer is to resume.
    Resume {
        /// How the attachment has ended.
        outcome: Outcome,
        /// The incarnation of the base station: a number that differs after each restart, at which it loses
        /// its state.
        incarnation: u32,
    },
    /// The state of this connection is lost, and its other end is to be reset. The mobile host repeats it
    /// until its base station has answered with the same message.
    Reset {
        /// The mobile host's end, address and port.
        mobile: (IpAddr, u16),
        /// The other end.
        fixed: (IpAddr, u16),
        /// It is the answer: the base station has begun.
        is_done: bool,
    },
    /// From a mobile host to its router, of which it knows an address of the link alone: by which address do others know
    /// it, if it is a base station? The number is that of the attachment to be.
    Solicit {
        /// The mobile host: the packet may be from an address of the link.
        mobile: IpAddr,
    },
    /// The answer.
    Advertise {
        /// The base station, by the address by which mobile hosts and other base stations know it.
        station: IpAddr,
    },
}

/// The outcome of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// The base station has the state of all connections; of none, if the host had none.
    Complete,
    /// The state of earlier connections is lost.
    Lost,
}

/// The version of the format.
const VERSION: u8 = 1;

/// Bytes before the fields of a type.
const COMMON: usize = 12;
const ADDRESS: usize = 16;

/// Types. Those below 128 are of datagrams that protect SRP, which gateways send from and to the same port.
const ATTACH: u8 = 129;
const RESUME: u8 = 130;
const RESET: u8 = 131;
const SOLICIT: u8 = 132;
const ADVERTISE: u8 = 133;

impl Mobility {
    /// The UDP port of both ends, and the TCP port at which base stations hand over state: one of the
    /// dynamic ports (RFC 6335 §6), none is assigned.
    pub const PORT: u16 = 59_434;
    /// Bytes of the authentication tag.
    pub const TAG: usize = 16;
    /// The UDP header of all messages.
    const UDP: Udp = Udp { source_port: Mobility::PORT, destination_port: Mobility::PORT };

    /// A message without a tag.
    #[must_use]
    pub const fn new(attachment: u64, message: MobilityMessage) -> Mobility {
        Mobility { attachment, message, tag: [0; Mobility::TAG] }
    }

    /// What the tag covers: the message without it, and the address of the mobile host.
    #[must_use]
    pub fn authenticated(&self, mobile: IpAddr) -> Vec<u8> {
        let mut bytes = self.untagged();
        put_address(Some(mobile), &mut bytes);
        bytes
    }

    /// Bytes with the UDP header.
    pub(crate) fn len(&self) -> usize {
        let fields = match self.message {
            MobilityMessage::Attach { .. } => 3 * ADDRESS + 4,
            MobilityMessage::Resume { .. } => 4,
            MobilityMessage::Reset { .. } => 2 * (ADDRESS + 2),
            MobilityMessage::Solicit { .. } | MobilityMessage::Advertise { .. } => ADDRESS,
        };
        Udp::HEADER + COMMON + fields + Mobility::TAG
    }

    /// The bytes of the message up to the tag.
    fn untagged(&self) -> Vec<u8> {
        let (kind, detail) = match self.message {
            MobilityMessage::Attach { incarnation, .. } => {
                (ATTACH, u8::from(incarnation.is_some()))
            }
            MobilityMessage::Resume { outcome, .. } => (RESUME, outcome as u8),
            MobilityMessage::Reset { is_done, .. } => (RESET, u8::from(is_done)),
            MobilityMessage::Solicit { .. } => (SOLICIT, 0),
            MobilityMessage::Advertise { .. } => (ADVERTISE, 0),
        };
        let mut bytes = vec![VERSION, kind, detail, 0];
        bytes.extend_from_slice(&self.attachment.to_be_bytes());
        match self.message {
            MobilityMessage::Attach { other, station, previous, incarnation } => {
                for address in [other, Some(station), previous] {
                    put_address(address, &mut bytes);
                }
                bytes.extend_from_slice(&incarnation.unwrap_or(0).to_be_bytes());
            }
            MobilityMessage::Resume { incarnation, .. } => {
                bytes.extend_from_slice(&incarnation.to_be_bytes());
            }
            MobilityMessage::Reset { mobile, fixed, .. } => {
                for (address, port) in [mobile, fixed] {
                    put_address(Some(address), &mut bytes);
                    bytes.extend_from_slice(&port.to_be_bytes());
                }
            }
            MobilityMessage::Solicit { mobile: address }
            | MobilityMessage::Advertise { station: address } => {
                put_address(Some(address), &mut bytes);
            }
        }
        bytes
    }

    /// The message as the payload of a UDP datagram from and to [`Mobility::PORT`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.untagged()[..], &self.tag].concat()
    }

    /// Reads the payload of a UDP datagram from and to [`Mobility::PORT`]; `None` if it is no message.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Mobility> {
        Mobility::parse(Mobility::UDP, bytes)
    }

    /// Reads the message in a UDP datagram; `None` if it is another datagram.
    pub(crate) fn parse(udp: Udp, bytes: &[u8]) -> Option<Mobility> {
        if udp != Mobility::UDP || bytes.len() < COMMON || bytes[0] != VERSION || bytes[3] != 0 {
            return None;
        }
        let attachment = u64::from_be_bytes(array(bytes, 4));
        let (fields, tag) = bytes[COMMON..].split_last_chunk::<{ Mobility::TAG }>()?;
        let address = |at: usize| get_address(fields.get(at..at + ADDRESS)?);
        let end = |at: usize| {
            let port = fields.get(at + ADDRESS..at + ADDRESS + 2)?;
            Some((address(at)??, u16_at(port, 0)))
        };
        let word = |at: usize| Some(u32_at(fields.get(at..at + 4)?, 0));
        let message = match (bytes[1], bytes[2]) {
            (ATTACH, confirmed @ (0 | 1)) => MobilityMessage::Attach {
                other: address(0)?,
                station: address(ADDRESS)??,
                previous: address(2 * ADDRESS)?,
                incarnation: match (confirmed, word(3 * ADDRESS)?) {
                    (1, incarnation) => Some(incarnation),
                    (_, 0) => None,
                    _ => return None,
                },
            },
            (RESUME, lost @ (0 | 1)) => MobilityMessage::Resume {
                outcome: if lost == 1 { Outcome::Lost } else { Outcome::Complete },
                incarnation: word(0)?,
            },
            (RESET, done @ (0 | 1)) => MobilityMessage::Reset {
                mobile: end(0)?,
                fixed: end(ADDRESS + 2)?,
                is_done: done == 1,
            },
            (SOLICIT, 0) => MobilityMessage::Solicit { mobile: address(0)?? },
            (ADVERTISE, 0) => MobilityMessage::Advertise { station: address(0)?? },
            _ => return None,
        };
        let read = Mobility { attachment, message, tag: *tag };
        (read.len() == Udp::HEADER + bytes.len()).then_some(read)
    }

    /// Writes the datagram.
    pub(crate) fn emit(
        &self,
        ends: (IpAddr, IpAddr),
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let Tail::Bytes([]) = tail else {
            return Err(EmitError::NoChecksum { header: Header::Mobility });
        };
        let mut bytes = self.untagged();
        bytes.extend_from_slice(&self.tag);
        Mobility::UDP.emit(ends, Tail::Bytes(&bytes), out)
    }
}

/// Writes an address; none is the unspecified one.
fn put_address(address: Option<IpAddr>, out: &mut Vec<u8>) {
    let mapped = match address {
        Some(IpAddr::V4(address)) => address.to_ipv6_mapped(),
        Some(IpAddr::V6(address)) => address,
        None => Ipv6Addr::UNSPECIFIED,
    };
    out.extend_from_slice(&mapped.octets());
}

/// Reads 16 bytes of an address: `None` if they are not that long.
fn get_address(bytes: &[u8]) -> Option<Option<IpAddr>> {
    let address = Ipv6Addr::from(<[u8; ADDRESS]>::try_from(bytes).ok()?);
    Some((!address.is_unspecified()).then(|| address.to_canonical()))
}

#[cfg(test)]
mod tests;
