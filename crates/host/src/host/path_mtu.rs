//! Path MTUs: what ICMP reports of them, and for how long new connections start with it.

use super::Host;
use crate::Application;
use base::{Duration, Time};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcp::Indication;
use wire::{Quote, Segment};

/// The least MTU of a link of IPv6 (RFC 8200 §5).
const LEAST_IPV6: u32 = 1280;

/// What a router that names no MTU is taken to mean (RFC 1191 §5).
const UNNAMED: u32 = 576;

/// The path MTUs of destinations, less the fixed headers of IP and TCP, that were reported to
/// connections and believed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct PathMtus(BTreeMap<IpAddr, PathMtu>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PathMtu {
    mss: u16,
    /// By the host's clock.
    until: Time,
}

impl PathMtus {
    /// Destinations at most; beyond, the entry that would end first is dropped.
    const MOST: usize = 1024;

    /// How long an entry is good for: the path may have changed (RFC 1191 §6.3: ten minutes).
    const LIFETIME: Duration = Duration::from_secs(600);

    /// The MSS that a new connection is to start with, if it is limited.
    pub(super) fn mss(&self, now: Time, remote: IpAddr) -> Option<u16> {
        self.0.get(&remote).filter(|known| now < known.until).map(|known| known.mss)
    }

    pub(super) fn learn(&mut self, now: Time, remote: IpAddr, mss: u16) {
        let mss = self.mss(now, remote).map_or(mss, |known| mss.min(known));
        self.0.insert(remote, PathMtu { mss, until: now + Self::LIFETIME });
        if self.0.len() > Self::MOST
            && let Some((&first, _)) = self.0.iter().min_by_key(|(_, known)| known.until)
        {
            self.0.remove(&first);
        }
    }
}

impl<A: Application> Host<A> {
    /// Indicates to the connection that one of its packets was too big for a link with this MTU. The
    /// connection validates the quote (RFC 5927 §4.1, §7.2).
    pub(super) fn too_big(&mut self, now: Time, quote: &Quote, mtu: u32) {
        let Some(id) = self.quoted_connection(quote) else { return };
        let (mtu, header) = match (quote.source, mtu) {
            (IpAddr::V4(_), 0) => (UNNAMED, 20),
            (IpAddr::V4(_), mtu) => {
                (mtu.max(u32::from(self.settings.minimum_path_mtu.max(68))), 20)
            }
            // RFC 8201 §4: a smaller one is discarded.
            (IpAddr::V6(_), ..LEAST_IPV6) => return,
            (IpAddr::V6(_), mtu) => (mtu, 40),
        };
        let mss = mtu - header - Segment::HEADER as u32;
        let mss = u16::try_from(mss).unwrap_or(u16::MAX);
        let connection = &mut self.slots[id as usize].connection;
        let before = connection.reported_mss();
        connection.indicate(now, &Indication::TooBig { seq: quote.seq, mss });
        self.note_path_mtu(now, id, before);
        self.after(now, id);
    }

    /// Remembers the path MTU of a connection, if reports have shown a smaller one than `before`.
    #[inline]
    pub(super) fn note_path_mtu(&mut self, now: Time, id: u32, before: u32) {
        let slot = &self.slots[id as usize];
        let mss = slot.connection.reported_mss();
        if mss < before {
            let (now, remote) = (self.numbering.local(now), slot.ip.destination);
            self.path_mtus.learn(now, remote, mss.min(u32::from(u16::MAX)) as u16);
        }
    }
}
