//! The ICMP notice of a link's survival probabilities, from a node to a source.

use crate::icmp::emit_address;
use crate::ip::{array, u16_at, u32_at};
use crate::{Causes, EmitError, Probability, ipv4, ipv6};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// The survival probabilities of packets on one link of a flow's path. Nodes send it unsolicited
/// (`bbn8333` §4.1, after ICMP traceback).
///
/// On the wire it is an ICMP message of the type that [`crate::CorruptionNotice`] has, with another
/// code:
///
/// ```text
///  0                   1                   2                   3
/// |  type 253/100 |    code 1     |           checksum            |
/// |                             link                              |
/// |                      destination address                      |
/// |          source port          |       destination port        |
/// |                     survival of corruption                    |
/// |                     survival of congestion                    |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SurvivalNotice {
    /// The destination of the packets that it is about; the notice goes to their source.
    pub destination: IpAddr,
    /// Their source port.
    pub source_port: u16,
    /// Their destination port.
    pub destination_port: u16,
    /// The number of the link at the reporting node.
    pub link: u32,
    /// The probabilities that a packet survives the link; 1 for an unknown cause.
    pub survival: Causes<Probability>,
}

impl SurvivalNotice {
    /// Bytes behind the ICMP header.
    pub(crate) fn bytes(&self) -> usize {
        if self.destination.is_ipv6() { 28 } else { 16 }
    }

    /// Reads what follows type, code and checksum, if it is long enough.
    pub(crate) fn parse(bytes: &[u8], v6: bool) -> Option<SurvivalNotice> {
        let width = if v6 { 16 } else { 4 };
        let address = if v6 { ipv6::address } else { ipv4::address };
        let ports = 4 + width;
        if bytes.len() < ports + 12 {
            return None;
        }
        let probability = |at| Probability(u32_at(bytes, at));
        Some(SurvivalNotice {
            destination: address(bytes, 4),
            source_port: u16_at(bytes, ports),
            destination_port: u16_at(bytes, ports + 2),
            link: u32::from_be_bytes(array(bytes, 0)),
            survival: Causes {
                corruption: probability(ports + 4),
                congestion: probability(ports + 8),
            },
        })
    }

    /// Writes what follows the link.
    pub(crate) fn emit(&self, v6: bool, out: &mut Vec<u8>) -> Result<(), EmitError> {
        emit_address(self.destination, v6, out)?;
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.survival.corruption.0.to_be_bytes());
        out.extend_from_slice(&self.survival.congestion.0.to_be_bytes());
        Ok(())
    }
}
