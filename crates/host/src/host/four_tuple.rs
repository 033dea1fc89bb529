//! The identity of a connection.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use serde::{Deserialize, Serialize};
use wire::{Body, CorruptionNotice, Icmp, Ip, Packet, Quote, Segment, SurvivalNotice, Tfrc};

/// The two ends of a connection, as the host at its local end names them. It is unique among the
/// host's connections; the local address counts, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FourTuple {
    /// The local address: one of the host's own, or that of another host that it acts for.
    pub local: IpAddr,
    /// The local port.
    pub local_port: u16,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's port.
    pub remote_port: u16,
}

impl FourTuple {
    /// The local end.
    #[must_use]
    pub fn local_end(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.local_port)
    }

    /// The peer's end.
    #[must_use]
    pub fn remote_end(&self) -> SocketAddr {
        SocketAddr::new(self.remote, self.remote_port)
    }

    /// The connection that a packet which has arrived belongs to: as a segment, or as an ICMP message
    /// about one. `None` for packets of no connection.
    #[must_use]
    pub fn of_packet(packet: &Packet) -> Option<FourTuple> {
        match &packet.body {
            Body::Tcp(segment) => Some(FourTuple::of_segment(&packet.ip, segment)),
            Body::Icmp(icmp) => FourTuple::of_icmp(&packet.ip, icmp),
            _ => None,
        }
    }

    /// The same connection as its peer names it.
    #[must_use]
    pub fn reversed(self) -> FourTuple {
        FourTuple {
            local: self.remote,
            local_port: self.remote_port,
            remote: self.local,
            remote_port: self.local_port,
        }
    }

    /// The connection that a segment which has arrived is for.
    #[must_use]
    #[inline]
    pub fn of_segment(ip: &Ip, segment: &Segment) -> FourTuple {
        FourTuple {
            local: ip.destination,
            local_port: segment.destination_port,
            remote: ip.source,
            remote_port: segment.source_port,
        }
    }

    /// The flow of TFRC that a packet which has arrived is for.
    #[must_use]
    #[inline]
    pub fn of_tfrc(ip: &Ip, tfrc: &Tfrc) -> FourTuple {
        FourTuple {
            local: ip.destination,
            local_port: tfrc.destination_port,
            remote: ip.source,
            remote_port: tfrc.source_port,
        }
    }

    /// The connection whose segment an ICMP error quotes.
    pub(super) fn of_quote(quote: &Quote) -> Option<FourTuple> {
        const TCP: u8 = 6;
        (quote.protocol == TCP).then_some(FourTuple {
            local: quote.source,
            local_port: quote.source_port,
            remote: quote.destination,
            remote_port: quote.destination_port,
        })
    }

    /// The connection whose segment was corrupted, as named by the segment's sender.
    pub(super) fn of_notice(notice: &CorruptionNotice) -> FourTuple {
        FourTuple {
            local: notice.source,
            local_port: notice.source_port,
            remote: notice.destination,
            remote_port: notice.destination_port,
        }
    }

    /// The connection of `local` whose path has the link that a survival notice is about.
    pub(super) fn of_survival(local: IpAddr, notice: &SurvivalNotice) -> FourTuple {
        FourTuple {
            local,
            local_port: notice.source_port,
            remote: notice.destination,
            remote_port: notice.destination_port,
        }
    }

    /// The connection that an ICMP message which has arrived is about.
    fn of_icmp(ip: &Ip, icmp: &Icmp) -> Option<FourTuple> {
        match icmp {
            Icmp::Corruption { notice, .. } if notice.destination == ip.destination => {
                Some(FourTuple::of_notice(notice).reversed())
            }
            Icmp::Corruption { notice, .. } => Some(FourTuple::of_notice(notice)),
            Icmp::Survival(notice) => Some(FourTuple::of_survival(ip.destination, notice)),
            icmp => FourTuple::of_quote(icmp.quote()?),
        }
    }
}

impl fmt::Display for FourTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} to {}", self.local_end(), self.remote_end())
    }
}
