//! Datagrams: their bytes (see the crate's table). Numbers are in network byte order.

use crate::session::TAG;

/// The version of the format, the first byte of each datagram.
pub(crate) const VERSION: u8 = 2;

/// The length of a message authentication code, bytes.
pub(crate) const MAC: usize = 16;
/// The length of the authentication code of a transport header, bytes.
pub(crate) const CODE: usize = 4;
/// The length of what a handshake message carries encrypted: index and instance.
pub(crate) const CONTENTS: usize = 12;
/// The length of a Noise message of the handshake: the ephemeral key, the contents and their tag.
pub(crate) const NOISE: usize = 32 + CONTENTS + TAG;

/// The length of what precedes the payload of a transport packet, bytes: its header.
pub const HEADER: usize = 14;
pub(crate) const INITIATION_HEADER: usize = 10;
const INITIATION: usize = INITIATION_HEADER + NOISE + MAC;
const RESPONSE_HEADER: usize = 6;
const RESPONSE: usize = RESPONSE_HEADER + NOISE + MAC;
const STALE: usize = 2 + MAC + 8 + MAC;
mod kind {
    pub(super) const INITIATION: u8 = 1;
    pub(super) const RESPONSE: u8 = 2;
    pub(super) const STALE: u8 = 3;
    pub(super) const DATA: u8 = 4;
    pub(super) const PROBE: u8 = 5;
    pub(super) const PATH_PROBE: u8 = 6;
    pub(super) const PATH_ANSWER: u8 = 7;
    pub(super) const PART: u8 = 8;
}

/// A datagram, parsed and not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    /// The first message of a handshake.
    Initiation { timestamp: u64, noise: &'a [u8; NOISE] },
    /// The second, to the initiation with this index.
    Response { receiver: u32, noise: &'a [u8; NOISE] },
    /// An initiation, named by its code, was not newer than this.
    Stale { echo: &'a [u8; MAC], newest: u64 },
    /// Encrypted payload.
    Transport(Header),
}

/// The header of a transport packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) purpose: Purpose,
    /// The index that the receiver has chosen for the session.
    pub(crate) receiver: u32,
    /// The packet's number, which is the nonce.
    pub(crate) counter: u32,
    /// The message authentication code of index and number.
    pub(crate) code: [u8; CODE],
}

/// What a transport packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Payload, or without any the answer to a probe.
    Data,
    /// It asks for an answer.
    Probe,
    /// It asks whether a datagram of its length arrives; its payload is padding.
    PathProbe,
    /// Its payload is the length of a path probe that has arrived, in two bytes.
    PathAnswer,
    /// Its payload is a part of one.
    Part,
}

impl Purpose {
    fn of(kind: u8) -> Option<Purpose> {
        use Purpose::{Data, Part, PathAnswer, PathProbe, Probe};
        let all = [Data, Probe, PathProbe, PathAnswer, Part];
        all.into_iter().find(|purpose| purpose.kind() == kind)
    }

    fn kind(self) -> u8 {
        match self {
            Purpose::Data => kind::DATA,
            Purpose::Probe => kind::PROBE,
            Purpose::PathProbe => kind::PATH_PROBE,
            Purpose::PathAnswer => kind::PATH_ANSWER,
            Purpose::Part => kind::PART,
        }
    }
}

/// Why a datagram is not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAPacket {
    Version,
    Kind,
    Length,
}

/// Takes an array from the front.
fn take<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), NotAPacket> {
    bytes.split_first_chunk().ok_or(NotAPacket::Length)
}

/// The packet that these bytes are.
pub(crate) fn parse(bytes: &[u8]) -> Result<Packet<'_>, NotAPacket> {
    let (&[version, kind], rest) = take(bytes)?;
    if version != VERSION {
        return Err(NotAPacket::Version);
    }
    let has = |len| if bytes.len() == len { Ok(()) } else { Err(NotAPacket::Length) };
    match kind {
        kind::INITIATION => {
            has(INITIATION)?;
            let (timestamp, rest) = take(rest)?;
            let (noise, _) = take(rest)?;
            Ok(Packet::Initiation { timestamp: u64::from_be_bytes(*timestamp), noise })
        }
        kind::RESPONSE => {
            has(RESPONSE)?;
            let (receiver, rest) = take(rest)?;
            let (noise, _) = take(rest)?;
            Ok(Packet::Response { receiver: u32::from_be_bytes(*receiver), noise })
        }
        kind::STALE => {
            has(STALE)?;
            let (echo, rest) = take(rest)?;
            let (newest, _) = take(rest)?;
            Ok(Packet::Stale { echo, newest: u64::from_be_bytes(*newest) })
        }
        _ => {
            let purpose = Purpose::of(kind).ok_or(NotAPacket::Kind)?;
            let (receiver, rest) = take(rest)?;
            let (counter, rest) = take(rest)?;
            let (code, rest) = take(rest)?;
            if rest.len() < TAG {
                return Err(NotAPacket::Length);
            }
            Ok(Packet::Transport(Header {
                purpose,
                receiver: u32::from_be_bytes(*receiver),
                counter: u32::from_be_bytes(*counter),
                code: *code,
            }))
        }
    }
}

impl Header {
    pub(crate) fn emit(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = VERSION;
        bytes[1] = self.purpose.kind();
        bytes[2..6].copy_from_slice(&self.receiver.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.counter.to_be_bytes());
        bytes[10..].copy_from_slice(&self.code);
        bytes
    }
}

/// The header of an initiation, which Noise authenticates, too.
pub(crate) fn initiation_header(timestamp: u64) -> [u8; INITIATION_HEADER] {
    let mut bytes = [0; INITIATION_HEADER];
    bytes[..2].copy_from_slice(&[VERSION, kind::INITIATION]);
    bytes[2..].copy_from_slice(&timestamp.to_be_bytes());
    bytes
}

impl Packet<'_> {
    /// Appends a handshake message, all but its authentication code.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Packet::Initiation { timestamp, noise } => {
                out.extend_from_slice(&initiation_header(timestamp));
                out.extend_from_slice(noise);
            }
            Packet::Response { receiver, noise } => {
                out.extend_from_slice(&[VERSION, kind::RESPONSE]);
                out.extend_from_slice(&receiver.to_be_bytes());
                out.extend_from_slice(noise);
            }
            Packet::Stale { echo, newest } => {
                out.extend_from_slice(&[VERSION, kind::STALE]);
                out.extend_from_slice(echo);
                out.extend_from_slice(&newest.to_be_bytes());
            }
            Packet::Transport(header) => out.extend_from_slice(&header.emit()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(packet: &Packet<'_>, rest: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        bytes.resize(bytes.len() + rest, 0);
        bytes
    }

    #[test]
    fn each_kind_is_read_as_it_was_written() {
        let (noise, echo) = ([3; NOISE], [4; MAC]);
        let header = Header { purpose: Purpose::Probe, receiver: 5, counter: 6, code: [7; CODE] };
        for (packet, rest, length) in [
            (Packet::Initiation { timestamp: 1 << 63, noise: &noise }, MAC, 86),
            (Packet::Response { receiver: 7, noise: &noise }, MAC, 82),
            (Packet::Stale { echo: &echo, newest: 9 }, MAC, 42),
            (Packet::Transport(header), TAG, 30),
            (Packet::Transport(Header { purpose: Purpose::Data, ..header }), TAG + 70_000, 70_030),
            (Packet::Transport(Header { purpose: Purpose::PathProbe, ..header }), TAG + 70, 100),
            (Packet::Transport(Header { purpose: Purpose::PathAnswer, ..header }), TAG + 2, 32),
        ] {
            let bytes = bytes(&packet, rest);
            assert_eq!((parse(&bytes), bytes.len()), (Ok(packet), length));
            assert_eq!(parse(&bytes[..length.min(83) - 13 - 1]).ok().filter(|_| length < 83), None);
        }
    }

    proptest! {
        /// Whatever arrives is a packet that is written as it was read, or has a reason not to be.
        #[test]
        fn any_bytes_are_a_packet_or_have_a_reason_not_to_be(
            start in prop_oneof![Just([1u8, 1]), (0u8..3, 0u8..10).prop_map(|(a, b)| [a, b])],
            rest in prop::collection::vec(any::<u8>(), 0..100),
            cut in 0usize..3,
            length in prop_oneof![Just(86), Just(82), Just(42), 0usize..100],
        ) {
            let mut bytes = [&start[..], &rest].concat();
            bytes.resize(length, 0);
            bytes.truncate(length.saturating_sub(cut * usize::from(cut == 2)));
            match parse(&bytes) {
                Ok(packet) => {
                    let mut again = Vec::new();
                    packet.emit(&mut again);
                    prop_assert_eq!(&bytes[..again.len()], &again);
                }
                Err(NotAPacket::Version) => prop_assert_ne!(bytes[0], VERSION),
                Err(NotAPacket::Kind) => prop_assert!(!(1..=8).contains(&bytes[1])),
                Err(NotAPacket::Length) => prop_assert!(![42, 82, 86].contains(&bytes.len())
                    || bytes[1] <= 3),
            }
        }
    }
}
