//! Segments and ICMP errors that are for nobody here.

use super::listeners::Stray;
use super::{Host, Key, Outlet};
use crate::Application;
use base::{Duration, Time};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use tcp::{Indication, Source, Subject};
use wire::{Flags, Icmp, Ip, Packet, ParseError, Quote, Segment, SeqNumber};

/// Resets for strangers, how many there were lately, and what is to be sent for no connection: resets
/// and SYN cookies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Resets {
    pub(super) waiting: Vec<Packet>,
    /// Since when they are counted, by the host's clock.
    since: Time,
    count: u32,
}

impl Resets {
    /// The period that a limit is for.
    const PERIOD: Duration = Duration::from_secs(1);

    fn is_allowed(&mut self, now: Time, most: u32) -> bool {
        if now.since(self.since) >= Self::PERIOD {
            self.since = now;
            self.count = 0;
        }
        let allowed = self.count < most;
        self.count += u32::from(allowed);
        allowed
    }
}

/// Whether an address can be a single host's.
fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(broadcast || address.is_multicast() || address.is_unspecified())
}

/// RFC 9293 §3.10.7.1: what the sender of `segment` takes for a reset of its connection.
fn reset_for(segment: &Segment, len: u32) -> Segment {
    let mut reset = Segment {
        source_port: segment.destination_port,
        destination_port: segment.source_port,
        ..Segment::default()
    };
    if segment.flags.contains(Flags::ACK) {
        reset.seq = segment.ack;
        reset.flags = Flags::RST;
    } else {
        reset.seq = SeqNumber(0);
        reset.ack = segment.seq + (len + segment.control_len());
        reset.flags = Flags::RST | Flags::ACK;
    }
    reset
}

impl<A: Application> Host<A> {
    /// A segment was not accepted.
    pub(super) fn on_stray(&mut self, now: Time, packet: &Packet, segment: &Segment, why: Stray) {
        match why {
            Stray::Overflow => self.statistics.overflows += 1,
            Stray::Answered => self.statistics.cookies += 1,
            Stray::Senseless | Stray::Unwanted => self.on_unwanted(now, packet, segment, why),
        }
    }

    fn on_unwanted(&mut self, now: Time, packet: &Packet, segment: &Segment, why: Stray) {
        self.statistics.strays += 1;
        if why == Stray::Senseless || segment.flags.contains(Flags::RST) {
            return;
        }
        if self.resets.is_allowed(self.numbering.local(now), self.settings.resets) {
            self.statistics.resets += 1;
            let mut answer = Packet::BLANK;
            answer.ip = Ip::new(packet.ip.destination, packet.ip.source);
            *answer.make_tcp() = reset_for(segment, packet.payload.len);
            self.resets.waiting.push(answer);
        } else {
            self.statistics.withheld += 1;
        }
    }

    /// Sends the resets and cookies that wait.
    #[cold]
    pub(super) fn send_resets(&mut self, outlet: &mut impl Outlet<A>) {
        for reset in self.resets.waiting.drain(..) {
            *outlet.packet() = reset;
            outlet.send(0, &mut None, None);
        }
    }

    /// RFC 9293 §3.9.2 (MUST-63): what no single host can have sent is ignored.
    pub(super) fn is_bogus(&mut self, source: IpAddr) -> bool {
        let bogus = !is_unicast(source);
        self.statistics.strays += u64::from(bogus);
        bogus
    }

    /// What came as bytes was no packet: it is dropped and counted.
    pub fn refuse(&mut self, error: &ParseError) {
        match error {
            ParseError::Fragment { .. } => self.statistics.fragments += 1,
            _ => self.statistics.malformed += 1,
        }
    }

    /// An ICMP message; of interest are errors about packets of this host.
    pub(super) fn on_icmp(&mut self, now: Time, icmp: &Icmp) {
        let Some(quote) = icmp.quote() else {
            self.statistics.strays += 1;
            return;
        };
        // RFC 5461 §2.1 and §2.2: protocol or port unreachable, or (until paths are probed for
        // their MTU) too big; in IPv6 prohibited or port unreachable, or an unknown header.
        let hard = match (icmp, quote.source) {
            (Icmp::Unreachable { code, .. }, IpAddr::V4(_)) => matches!(code, 2 | 3),
            (Icmp::Unreachable { code, .. }, IpAddr::V6(_)) => matches!(code, 1 | 4),
            (Icmp::ParameterProblem { code, .. }, IpAddr::V6(_)) => *code == 1,
            _ => false,
        };
        self.unreachable(now, Source::Router, quote, hard);
    }

    /// Tells the connection that a packet of its could not be delivered; `hard` if none will be.
    /// Whether the quote is to be believed is the connection's business (RFC 5927 §4.1).
    pub fn unreachable(&mut self, now: Time, source: Source, quote: &Quote, hard: bool) {
        const TCP: u8 = 6;
        let own = self.addresses.contains(quote.source) && quote.protocol == TCP;
        let key = Key {
            remote: quote.destination,
            remote_port: quote.destination_port,
            local_port: quote.source_port,
        };
        let known = self.by_key.get(&key).filter(|_| own);
        let Some(&id) = known else {
            self.statistics.unmatched += 1;
            return;
        };
        let subject = Subject::Unreachable { seq: quote.seq, hard };
        self.slots[id as usize].connection.indicate(now, &Indication { source, subject });
        self.after(now, id);
    }
}
