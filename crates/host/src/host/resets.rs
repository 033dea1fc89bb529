//! Segments of no connection, and the resets that answer them (closed-port handling, RFC 9293
//! §3.10.7.1).

use super::{Host, Outlet};
use crate::Application;
use base::{Duration, Time};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use wire::{Body, Flags, Ip, Packet, ParseError, Segment, SeqNumber};

/// Why a segment without a connection opens none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// The listener's backlog is full, or memory is used up.
    BacklogFull,
    /// The listener's backlog is full, and a SYN cookie is the answer.
    CookieSent,
    /// A listener drops it (RFC 9293 §3.10.7.2).
    Ignored,
    /// There is no listener, or the segment belongs to a connection that does not exist.
    Closed,
}

/// Packets that wait to be sent for no connection (resets, SYN cookies), and the rate limit of resets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Resets {
    pub(super) waiting: Vec<Packet>,
    /// Start of the period of `count`, by the host's clock.
    since: Time,
    count: u32,
}

impl Resets {
    /// The period of the limit.
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

/// Whether an address can be that of a single host.
fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(broadcast || address.is_multicast() || address.is_unspecified())
}

/// The reset that answers `segment` (RFC 9293 §3.10.7.1).
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
    /// Counts or answers a segment that opened no connection.
    pub(super) fn on_rejected(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &Segment,
        why: Rejection,
    ) {
        match why {
            Rejection::BacklogFull => self.statistics.overflows += 1,
            Rejection::CookieSent => self.statistics.cookies += 1,
            Rejection::Ignored => self.statistics.no_connection += 1,
            Rejection::Closed => self.on_closed_port(now, packet, segment),
        }
    }

    /// Answers a segment as one that comes to a closed port (RFC 9293 §3.10.7.1), even if it goes to an address
    /// that the host does not own: a SYN is refused, and a connection that its sender believes to exist is reset.
    /// There is no limit: the caller knows that there was such a connection.
    pub fn reset_sender(&mut self, packet: &Packet) {
        if let Body::Tcp(segment) = &packet.body
            && !self.is_bogus(packet.ip.source)
            && !segment.flags.contains(Flags::RST)
        {
            self.statistics.no_connection += 1;
            self.answer_with_reset(packet, segment);
        }
    }

    fn on_closed_port(&mut self, now: Time, packet: &Packet, segment: &Segment) {
        self.statistics.no_connection += 1;
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if self.resets.is_allowed(self.numbering.local(now), self.settings.resets) {
            self.answer_with_reset(packet, segment);
        } else {
            self.statistics.resets_limited += 1;
        }
    }

    fn answer_with_reset(&mut self, packet: &Packet, segment: &Segment) {
        self.statistics.resets += 1;
        let mut answer = Packet::BLANK;
        answer.ip = Ip::new(packet.ip.destination, packet.ip.source);
        *answer.make_tcp() = reset_for(segment, packet.payload.len);
        self.resets.waiting.push(answer);
    }

    /// Sends the waiting resets and cookies.
    #[cold]
    pub(super) fn send_resets(&mut self, outlet: &mut impl Outlet<A>) {
        for reset in self.resets.waiting.drain(..) {
            *outlet.packet() = reset;
            outlet.send(0, &mut None, None);
        }
    }

    /// Whether a source address cannot be that of a host: the segment is ignored (RFC 9293 §3.9.2,
    /// MUST-63).
    pub(super) fn is_bogus(&mut self, source: IpAddr) -> bool {
        let bogus = !is_unicast(source);
        self.statistics.no_connection += u64::from(bogus);
        bogus
    }

    /// Counts received bytes that are not a packet.
    pub fn refuse(&mut self, error: &ParseError) {
        match error {
            ParseError::Fragment { .. } => self.statistics.fragments += 1,
            _ => self.statistics.malformed += 1,
        }
    }
}
