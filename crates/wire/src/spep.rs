//! The option of SPEP in an IPv6 header: which packets of a flow have arrived at the base station.

use crate::ip::{protocol, u32_at};
use crate::{Packet, UnparsedOptions};
use serde::{Deserialize, Serialize};

/// The option by which a base station reports the packets that it has received of a flow (`obanaik2003`
/// §4.2.1). The source of the flow leaves it empty; the base station writes it.
///
/// It stands in a Destination Options header in front of ESP, after the Hop-by-Hop Options header, if
/// there is one; anywhere else it is not recognised. Its type is 0x3e, which is for experiments (RFC
/// 4727 §3.4: skipped if unknown, may change en route).
///
/// ```text
/// |  next header  |       3       |   type 0x3e   |   length 24   |
/// |                 first of block 1, last of block 1             |
/// |                 first of block 2, last of block 2             |
/// |                 first of block 3, last of block 3             |
/// |                              PadN                             |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spep {
    /// Ranges of ESP sequence numbers, the first and the last of each, the newest block last. Zeros are
    /// no block.
    pub blocks: [(u32, u32); Spep::BLOCKS],
}

const TYPE: u8 = 0x3e;
/// Bytes of the option behind its length.
const DATA: usize = 8 * Spep::BLOCKS;
/// Bytes of the header in front of the option's data.
const START: usize = 4;
/// The Destination Options header with the option empty, padded to a multiple of 8 bytes (RFC 8200
/// §4.2).
const EMPTY: [u8; 32] = {
    let mut header = [0; 32];
    [header[0], header[1], header[2], header[3]] = [protocol::ESP, 3, TYPE, DATA as u8];
    [header[28], header[29]] = [1, 2];
    header
};

impl Spep {
    /// The number of blocks.
    pub const BLOCKS: usize = 3;
    /// Bytes that the option adds to a packet.
    pub const LEN: u32 = EMPTY.len() as u32;

    /// The option of a packet that has it.
    #[must_use]
    #[inline]
    pub fn of(packet: &Packet) -> Option<Spep> {
        let at = place(packet)?;
        let ip = packet.unparsed.ip();
        let word = |index: usize| u32_at(ip, at + 4 * index);
        Some(Spep { blocks: core::array::from_fn(|block| (word(2 * block), word(2 * block + 1))) })
    }

    /// Adds the option, empty, behind a Hop-by-Hop Options header or where there is no extension
    /// header. False, without effect, if there are others, no room, or IPv4.
    #[must_use]
    pub fn put(packet: &mut Packet) -> bool {
        if !packet.ip.source.is_ipv6() {
            return false;
        }
        let unparsed = &mut packet.unparsed;
        let len = unparsed.ip().len();
        let end = len + EMPTY.len();
        let first = match *unparsed.ip() {
            _ if end > UnparsedOptions::MOST_IP => return false,
            [] => protocol::DESTINATION_OPTIONS,
            [..] if unparsed.first == protocol::HOP_BY_HOP && second(unparsed.ip()) == len => {
                protocol::HOP_BY_HOP
            }
            _ => return false,
        };
        let mut chain = [0; UnparsedOptions::MOST_IP];
        chain[..len].copy_from_slice(unparsed.ip());
        if len > 0 {
            chain[0] = protocol::DESTINATION_OPTIONS;
        }
        chain[len..end].copy_from_slice(&EMPTY);
        unparsed.set_ipv6_extensions(first, &chain[..end]).is_ok()
    }

    /// Overwrites the option of a packet that has it.
    #[inline]
    pub fn renew(&self, packet: &mut Packet) {
        let Some(at) = place(packet) else { return };
        let data = &mut packet.unparsed.ip_mut()[at..at + DATA];
        for (bytes, (first, last)) in data.as_chunks_mut::<8>().0.iter_mut().zip(self.blocks) {
            bytes[..4].copy_from_slice(&first.to_be_bytes());
            bytes[4..].copy_from_slice(&last.to_be_bytes());
        }
    }
}

/// Where the second extension header starts.
#[inline]
fn second(chain: &[u8]) -> usize {
    // RFC 8200 §4.3: the second byte counts the words behind the first.
    8 * (1 + usize::from(chain[1]))
}

/// Where the data of the option start.
#[inline]
fn place(packet: &Packet) -> Option<usize> {
    let ip = packet.unparsed.ip();
    // Nearly every packet ends here.
    if ip.is_empty() || !packet.ip.source.is_ipv6() {
        return None;
    }
    let header = match packet.unparsed.first {
        protocol::DESTINATION_OPTIONS => 0,
        protocol::HOP_BY_HOP if ip[0] == protocol::DESTINATION_OPTIONS => second(ip),
        _ => return None,
    };
    match ip.get(header..)? {
        chain @ [_, _, TYPE, len, ..] if usize::from(*len) == DATA => {
            // The option ends within its header.
            (second(chain).min(chain.len()) >= START + DATA).then_some(header + START)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
