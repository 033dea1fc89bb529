//! The tunnels in which SRP goes over the hop between mobile hosts and base stations.

use super::NetworkKey;
use crate::tunnel::{self, Mtu, Tunnel};
use base::{Duration, Time};
use channel::{PresharedKey, SecretKey};
use live::UdpSender;
use live::inline::{Change, Received};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use tracing::warn;
use wire::{Mobility, Srp};

/// The tunnels of a node over one socket. A call looks only at the tunnel that it is about, and at those that are due. Each
/// has keys of its own, which follow from that of the network and from the
/// addresses of both ends, and which no other one gets: only what it carries goes from one base station to the next.
pub(crate) struct Tunnels {
    end: End,
    key: PresharedKey,
    mtu: Mtu,
    /// By the peer's address. A mobile host has one, with the base station to which it is attached.
    open: BTreeMap<IpAddr, Open>,
    /// When each is due.
    due: BTreeSet<(Time, IpAddr)>,
    /// Changes that were not polled yet.
    changes: VecDeque<Change>,
    /// Datagrams that those refused which are not there any more.
    refused: u64,
}

/// A tunnel, and when it is due, as far as [`Tunnels::due`] knows.
struct Open {
    tunnel: Tunnel,
    due: Time,
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
        Tunnels {
            end,
            key: key.preshared.clone(),
            mtu: Mtu::Known(mtu),
            open: BTreeMap::new(),
            due: BTreeSet::new(),
            changes: VecDeque::new(),
            refused: 0,
        }
    }

    /// Takes note of what has become of a tunnel. To be called after each call of it that may change it.
    fn note(&mut self, peer: IpAddr) {
        let Some(Open { tunnel, due }) = self.open.get_mut(&peer) else { return };
        self.changes.extend(std::iter::from_fn(|| tunnel.poll_change()));
        let before = std::mem::replace(due, tunnel.poll_timeout());
        if before != *due {
            self.due.remove(&(before, peer));
            self.due.insert((*due, peer));
        }
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
                Ok(tunnel) => {
                    let due = tunnel.poll_timeout();
                    self.due.insert((due, peer));
                    self.open.insert(peer, Open { tunnel, due })
                }
                Err(error) => {
                    warn!(%peer, %error, "no tunnel");
                    return None;
                }
            };
        }
        self.open.get_mut(&peer).map(|open| &mut open.tunnel)
    }

    /// The mobile host tells a base station that it is attached there: the tunnel with that one alone is needed, and
    /// what of its handshake was lost is sent again.
    pub(crate) fn on_attach(
        &mut self,
        now: Time,
        sender: &mut UdpSender,
        own: IpAddr,
        station: IpAddr,
    ) {
        let others: Vec<IpAddr> = self.open.keys().copied().filter(|it| *it != station).collect();
        others.into_iter().for_each(|other| self.close(other));
        if let Some(tunnel) = self.with(now, own, station) {
            tunnel.on_way_changed(now, sender);
        }
        self.note(station);
    }

    /// The one with a peer is not needed any more, or the peer has lost its end.
    pub(crate) fn close(&mut self, peer: IpAddr) {
        if let Some(Open { tunnel, due }) = self.open.remove(&peer) {
            self.due.remove(&(due, peer));
            self.refused += tunnel.refused();
        }
    }

    /// Whether SRP can be sent to a peer.
    pub(crate) fn is_connected(&self, now: Time, peer: IpAddr) -> bool {
        self.open.get(&peer).is_some_and(|open| open.tunnel.is_connected(now))
    }

    /// Takes a datagram of `len` bytes from a peer. One that `is_expected` may begin a tunnel.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        sender: &mut UdpSender,
        (own, peer, is_expected): (IpAddr, IpAddr, bool),
        (len, memory): (usize, &mut [u8]),
    ) -> Received {
        let tunnel = match is_expected {
            true => self.with(now, own, peer),
            false => self.open.get_mut(&peer).map(|open| &mut open.tunnel),
        };
        let Some(tunnel) = tunnel else {
            self.refused += 1;
            return Received::Other;
        };
        let from = SocketAddr::new(peer, Mobility::PORT);
        let received = tunnel.receive(now, sender, (len, from), memory);
        self.note(peer);
        received
    }

    /// Sends a packet to a peer. Without a tunnel, it is lost.
    pub(crate) fn send(
        &mut self,
        now: Time,
        sender: &mut UdpSender,
        (peer, srp): (IpAddr, &Srp),
        append: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) {
        if let Some(open) = self.open.get_mut(&peer) {
            open.tunnel.send(now, sender, srp, append);
        }
        self.note(peer);
    }

    /// Datagrams that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.open.values().map(|open| open.tunnel.refused()).sum::<u64>() + self.refused
    }

    /// The next change that the base station's box is to know. That of a mobile host knows by its attachments.
    pub(crate) fn poll_change(&mut self) -> Option<Change> {
        loop {
            match (self.end, self.changes.pop_front()?) {
                // It is out of reach, or attached elsewhere.
                (End::Station, Change::Down(mobile)) => self.close(mobile),
                (End::Station, change) => return Some(change),
                (End::Mobile, _) => {}
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(due, _)| *due)
    }

    pub(crate) fn handle_timeout(&mut self, now: Time, sender: &mut UdpSender) {
        let due: Vec<_> = self.due.iter().take_while(|(due, _)| *due <= now).copied().collect();
        for (_, peer) in due {
            if let Some(open) = self.open.get_mut(&peer) {
                open.tunnel.handle_timeout(now, sender);
            }
            self.note(peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::namespace::Namespace;
    use std::net::{Ipv4Addr, UdpSocket};

    fn key() -> NetworkKey {
        let preshared = PresharedKey::generate(&mut channel::system_entropy).unwrap();
        NetworkKey { preshared, secret: String::new() }
    }

    fn own() -> IpAddr {
        Ipv4Addr::new(198, 18, 0, 1).into()
    }

    /// Tunnels of an end with so many peers.
    fn with_peers(end: End, count: u32) -> Tunnels {
        let mut tunnels = Tunnels::new(end, &key(), 1500);
        for number in 0..count {
            let peer = Ipv4Addr::from_bits(Ipv4Addr::new(198, 19, 0, 0).to_bits() + number);
            assert!(tunnels.with(Time::ZERO, own(), peer.into()).is_some());
        }
        tunnels
    }

    #[test]
    fn every_tunnel_is_handled_when_it_is_due() {
        let Ok(namespace) = Namespace::create("tunnels") else {
            eprintln!("SKIPPED: real packets are not permitted");
            return;
        };
        let check = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            let mut sender = UdpSender::new(socket);
            // Those of a mobile host begin a handshake, which is repeated.
            let mut tunnels = with_peers(End::Mobile, 5);
            let mut handled = 0;
            while handled < 50 {
                let least = tunnels.open.values().map(|open| open.tunnel.poll_timeout()).min();
                let now = tunnels.poll_timeout();
                assert_eq!(Some(now), least);
                tunnels.handle_timeout(now, &mut sender);
                assert!(tunnels.open.values().all(|open| open.tunnel.poll_timeout() > now));
                handled += 1;
                if handled == 25 {
                    let gone = *tunnels.open.keys().next().unwrap();
                    tunnels.close(gone);
                }
            }
            assert_eq!(tunnels.due.len(), 4);
        };
        namespace.run(check).unwrap();
    }

    /// Where thousands of hosts are, a call costs as much as where a few are.
    #[test]
    fn a_call_looks_only_at_the_tunnels_that_are_due() {
        let Ok(namespace) = Namespace::create("tunnels") else {
            eprintln!("SKIPPED: real packets are not permitted");
            return;
        };
        let check = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            let mut sender = UdpSender::new(socket);
            // All of them have something to send. Those that are said to be due later show it if they are looked at.
            let mut tunnels = with_peers(End::Mobile, 4000);
            let [now, later] = [0, 3600].map(|secs| Time::ZERO + Duration::from_secs(secs));
            let due = std::mem::take(&mut tunnels.due);
            for (number, (_, peer)) in due.into_iter().enumerate() {
                let due = if number % 1000 == 0 { now } else { later };
                tunnels.open.get_mut(&peer).unwrap().due = due;
                tunnels.due.insert((due, peer));
            }
            let looked_at = |tunnels: &Tunnels| {
                let all = tunnels.open.values();
                all.filter(|open| open.tunnel.poll_timeout() != now || open.due == now).count()
            };
            assert_eq!((tunnels.poll_timeout(), looked_at(&tunnels)), (now, 4));
            tunnels.handle_timeout(now, &mut sender);
            assert!(tunnels.poll_change().is_none());
            let next = tunnels.poll_timeout();
            assert!(now < next && next < later, "{next:?}");
            assert_eq!(looked_at(&tunnels), 4);
        };
        namespace.run(check).unwrap();
    }
}
