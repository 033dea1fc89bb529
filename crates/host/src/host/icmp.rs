//! ICMP: errors about packets of connections, and notices of corruption and of survival.

use super::{FourTuple, Host, Ordered};
use crate::{Application, HostIndication};
use base::Time;
use core::net::IpAddr;
use tcp::Indication;
use wire::{CorruptionNotice, Icmp, Ip, Quote, SurvivalNotice};

impl<A: Application> Host<A> {
    /// Processes an ICMP message. Errors about packets of this host count.
    pub(super) fn on_icmp(&mut self, now: Time, icmp: &Icmp) {
        let Some(quote) = icmp.quote() else {
            self.statistics.no_connection += 1;
            return;
        };
        if let Icmp::TooBig { mtu, .. } = *icmp {
            return self.too_big(now, quote, mtu);
        }
        // RFC 5461 §2.1 and §2.2: protocol or port unreachable; in IPv6 prohibited or port unreachable, or an unknown header.
        let hard = match (icmp, quote.source) {
            (Icmp::Unreachable { code, .. }, IpAddr::V4(_)) => matches!(code, 2 | 3),
            (Icmp::Unreachable { code, .. }, IpAddr::V6(_)) => matches!(code, 1 | 4),
            (Icmp::ParameterProblem { code, .. }, IpAddr::V6(_)) => *code == 1,
            _ => false,
        };
        self.unreachable(now, quote, hard);
    }

    /// Indicates to the connection that one of its packets could not be delivered; `hard` if none will
    /// be. The connection validates the quote (RFC 5927 §4.1).
    pub fn unreachable(&mut self, now: Time, quote: &Quote, hard: bool) {
        let Some(id) = self.quoted_connection(quote) else { return };
        let indication = Indication::Unreachable { seq: quote.seq, hard };
        self.slots[id as usize].connection.indicate(now, &indication);
        self.after(now, id);
    }

    /// The connection whose segment is quoted. A quote of none is counted.
    pub(super) fn quoted_connection(&mut self, quote: &Quote) -> Option<u32> {
        let known = FourTuple::of_quote(quote).and_then(|tuple| self.by_tuple.get(&tuple));
        self.statistics.unmatched += u64::from(known.is_none());
        known.copied()
    }

    /// Indicates to the connection that a copy of one of its peer's segments was corrupted.
    pub(super) fn notify_of_peer(&mut self, now: Time, notice: &CorruptionNotice) {
        let tuple = FourTuple::of_notice(notice).reversed();
        let CorruptionNotice { seq, len, copy, .. } = *notice;
        let indication = Indication::PeerCorrupted { seq, len, copy };
        let id = self.corrupted_connection(tuple, &indication);
        self.indicate_to(now, id, indication);
    }

    /// Passes on an indication of a box of the host's node.
    pub fn indicate(&mut self, now: Time, indication: &HostIndication) {
        match indication {
            HostIndication::Corruption(notice) => self.notify(now, notice),
            HostIndication::PeerLosses { before: Ordered::Segment { connection, .. }, losses } => {
                let id = self.by_tuple.get(connection).copied();
                self.indicate_to(now, id, Indication::PeerLosses(*losses));
            }
            HostIndication::PeerLosses { before: Ordered::Tfrc { ends, sequence }, losses } => {
                self.datagrams.tfrc.indicate(ends, *sequence, *losses);
            }
            HostIndication::Connectivity { change, peers } => {
                self.on_connectivity(now, *change, peers);
            }
        }
    }

    /// Indicates to the connection that a copy of one of its segments was corrupted.
    pub fn notify(&mut self, now: Time, notice: &CorruptionNotice) {
        let tuple = FourTuple::of_notice(notice);
        let CorruptionNotice { seq, len, copy, timestamp, .. } = *notice;
        let indication = Indication::Corrupted { seq, len, copy, timestamp };
        let id = self.corrupted_connection(tuple, &indication);
        self.indicate_to(now, id, indication);
    }

    /// Processes a survival notice about a link on the path of a connection.
    pub(super) fn on_survival(&mut self, now: Time, ip: &Ip, notice: &SurvivalNotice) {
        let tuple = FourTuple::of_survival(ip.destination, notice);
        let indication =
            Indication::Link { node: ip.source, link: notice.link, survival: notice.survival };
        let id = self.by_tuple.get(&tuple).copied();
        self.indicate_to(now, id, indication);
    }

    /// Passes an indication to a connection, if there is one.
    fn indicate_to(&mut self, now: Time, id: Option<u32>, indication: Indication) {
        let Some(id) = id else {
            self.statistics.no_connection += 1;
            return;
        };
        self.slots[id as usize].connection.indicate(now, &indication);
        self.after(now, id);
    }

    /// The connection that a notice of corruption is about: the one that it names, or the only
    /// one that can be meant if a bit of the ports was damaged (`bbn8333` §2.1, §6). To try
    /// these 32 costs the same however many connections there are, and a forger has to know
    /// the ports all the same.
    fn corrupted_connection(&mut self, tuple: FourTuple, indication: &Indication) -> Option<u32> {
        if let Some(&id) = self.by_tuple.get(&tuple) {
            return Some(id);
        }
        let damaged = (0..u16::BITS).flat_map(|bit| {
            let (remote_port, local_port) =
                (tuple.remote_port ^ 1 << bit, tuple.local_port ^ 1 << bit);
            [FourTuple { remote_port, ..tuple }, FourTuple { local_port, ..tuple }]
        });
        let known = damaged.filter_map(|tuple| self.by_tuple.get(&tuple).copied());
        let mut meant =
            known.filter(|&id| self.slots[id as usize].connection.is_relevant(indication));
        let (Some(id), None) = (meant.next(), meant.next()) else { return None };
        self.statistics.recovered += 1;
        Some(id)
    }
}
