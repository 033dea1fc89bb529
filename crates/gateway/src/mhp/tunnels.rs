//! The tunnels in which SRP goes over the hop between mobile hosts and base stations.

use super::NetworkKey;
use crate::tunnel::{self, Mtu, Tunnel};
use base::{Duration, Time};
use channel::{PresharedKey, SecretKey};
use live::inline::{Change, Received};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use tracing::warn;
use wire::{Mobility, Srp};

/// The tunnels of a node over one socket. Each has keys of its own, which follow from that of the network and from the
/// addresses of both ends, and which no other one gets: only what it carries goes from one base station to the next.
pub(crate) struct Tunnels {
    end: End,
    key: PresharedKey,
    mtu: Mtu,
    /// By the peer's address. A mobile host has one, with the base station to which it is attached.
    open: BTreeMap<IpAddr, Tunnel>,
    /// Datagrams that those refused which are not there any more.
    refused: u64,
}

/// At which end of the tunnels the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Station,
    Mobile,
}

impl End {
    fn of_peer(self) -> End {
        match self {
            End::Station => End::Mobile,
            End::Mobile => End::Station,
        }
    }

    /// What logs call one.
    fn called(self) -> &'static str {
        match self {
            End::Station => "the base station",
            End::Mobile => "a mobile host",
        }
    }

    /// The static key of the one with this address. Both ends have to compute the same: the words are part of the
    /// protocol.
    fn key(self, address: IpAddr, key: &PresharedKey) -> SecretKey {
        let role = match self {
            End::Station => "station",
            End::Mobile => "mobile",
        };
        SecretKey::of_member(key, format!("{role} {address}").as_bytes())
    }
}

impl Tunnels {
    /// None yet, of a node that is at this end of a hop with this MTU.
    pub(crate) fn new(end: End, key: &NetworkKey, mtu: u32) -> Tunnels {
        let (open, key) = (BTreeMap::new(), key.preshared.clone());
        Tunnels { end, key, mtu: Mtu::Known(mtu), open, refused: 0 }
    }

    /// The one with a peer, from this address; a new one if there is none.
    fn with(&mut self, now: Time, own: IpAddr, peer: IpAddr) -> Option<&mut Tunnel> {
        if !self.open.contains_key(&peer) {
            let of_peer = self.end.of_peer();
            let theirs = of_peer.key(peer, &self.key).public();
            let is_mobile = self.end == End::Mobile;
            let config = channel::Config {
                preshared: Some(self.key.clone()),
                // A base station does not look for mobile hosts that have gone.
                address: is_mobile.then_some(SocketAddr::new(peer, Mobility::PORT)),
                keep_alive: is_mobile.then_some(Duration::from_secs(5)),
                lost_after: Duration::from_secs(15),
                unix_time: tunnel::unix_time(),
                datagrams: self.mtu.datagrams(peer.is_ipv6()),
                ..channel::Config::new(self.end.key(own, &self.key), theirs)
            };
            match Tunnel::new(now, config, (of_peer.called(), [own, peer]), peer.is_ipv6()) {
                Ok(tunnel) => self.open.insert(peer, tunnel),
                Err(error) => {
                    warn!(%peer, %error, "no tunnel");
                    return None;
                }
            };
        }
        self.open.get_mut(&peer)
    }

    /// The mobile host tells a base station that it is attached there: the tunnel with that one alone is needed, and
    /// what of its handshake was lost is sent again.
    pub(crate) fn on_attach(
        &mut self,
        now: Time,
        socket: &UdpSocket,
        own: IpAddr,
        station: IpAddr,
    ) {
        let others: Vec<IpAddr> = self.open.keys().copied().filter(|it| *it != station).collect();
        others.into_iter().for_each(|other| self.close(other));
        if let Some(tunnel) = self.with(now, own, station) {
            tunnel.on_way_changed(now, socket);
        }
    }

    /// The one with a peer is not needed any more, or the peer has lost its end.
    pub(crate) fn close(&mut self, peer: IpAddr) {
        if let Some(tunnel) = self.open.remove(&peer) {
            self.refused += tunnel.refused();
        }
    }

    /// Whether SRP can be sent to a peer.
    pub(crate) fn is_connected(&self, now: Time, peer: IpAddr) -> bool {
        self.open.get(&peer).is_some_and(|tunnel| tunnel.is_connected(now))
    }

    /// Takes a datagram of `len` bytes from a peer. One that `is_expected` may begin a tunnel.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        socket: &UdpSocket,
        (own, peer, is_expected): (IpAddr, IpAddr, bool),
        (len, memory): (usize, &mut [u8]),
    ) -> Received {
        let tunnel = match is_expected {
            true => self.with(now, own, peer),
            false => self.open.get_mut(&peer),
        };
        match tunnel {
            Some(tunnel) => {
                let from = SocketAddr::new(peer, Mobility::PORT);
                tunnel.receive(now, socket, (len, from), memory)
            }
            None => {
                self.refused += 1;
                Received::Other
            }
        }
    }

    /// Sends a packet to a peer. Without a tunnel, it is lost.
    pub(crate) fn send(
        &mut self,
        now: Time,
        socket: &UdpSocket,
        (peer, srp): (IpAddr, &Srp),
        append: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) {
        if let Some(tunnel) = self.open.get_mut(&peer) {
            tunnel.send(now, socket, srp, append);
        }
    }

    /// Datagrams that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.open.values().map(Tunnel::refused).sum::<u64>() + self.refused
    }

    /// The next change that the base station's box is to know. That of a mobile host knows by its attachments.
    pub(crate) fn poll_change(&mut self) -> Option<Change> {
        loop {
            match (self.end, self.open.values_mut().find_map(Tunnel::poll_change)?) {
                // It is out of reach, or attached elsewhere.
                (End::Station, Change::Down(mobile)) => self.close(mobile),
                (End::Station, change) => return Some(change),
                (End::Mobile, _) => {}
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Time {
        self.open.values().map(Tunnel::poll_timeout).min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn handle_timeout(&mut self, now: Time, socket: &UdpSocket) {
        for tunnel in self.open.values_mut().filter(|tunnel| tunnel.poll_timeout() <= now) {
            tunnel.handle_timeout(now, socket);
        }
    }
}
