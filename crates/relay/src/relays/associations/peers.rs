//! The associations of a box, those that were used, and their deadlines.

use crate::Side;
use base::{Schedule, Time};
use core::net::IpAddr;
use rustc_hash::FxHashMap;
use srp::{Association, StreamId};
use std::collections::{BTreeMap, BTreeSet};
use wire::Srp;
use wire::srp::Pdu;

/// An association, with what is known of its peer.
pub(super) struct Peer {
    pub(super) association: Association,
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
    /// The relays of its streams.
    pub(super) relays: FxHashMap<StreamId, (u32, Side)>,
    /// It is among those that were used.
    is_used: bool,
}

impl Peer {
    pub(super) fn new(association: Association, local: IpAddr, remote: IpAddr) -> Peer {
        Peer { association, local, remote, relays: FxHashMap::default(), is_used: false }
    }
}

/// Associations by their first tokens.
///
/// Each that is not among those that were used has its deadline in a schedule, so that a box with ten thousand
/// asks only those to which something has happened.
#[derive(Default)]
pub(super) struct Peers {
    /// By their places in the schedules.
    peers: Vec<Option<Peer>>,
    places: BTreeMap<u32, u32>,
    free: Vec<u32>,
    remotes: BTreeSet<(IpAddr, u32)>,
    /// Tokens and places of those that were used since [`Peers::finish`].
    used: Vec<(u32, u32)>,
    /// [`Association::poll_timeout`] of the others.
    deadlines: Schedule,
    /// [`Association::poll_pacing`] of the others.
    paced: Schedule,
}

impl Peers {
    pub(super) fn contains(&self, token: u32) -> bool {
        self.places.contains_key(&token)
    }

    /// The association that a PDU is of, or of which it would renew: by its present token or an earlier one. As
    /// these follow each other, and associations begin with random ones, the next lower first token is its own.
    pub(super) fn find(&self, srp: &Srp) -> Option<u32> {
        if let Pdu::Renew { first, .. } = srp.pdu {
            return Some(first).filter(|&first| self.contains(first));
        }
        if self.contains(srp.token) {
            return Some(srp.token);
        }
        let lower = self.places.range(..srp.token).next_back();
        let (&first, _) = lower.or_else(|| self.places.last_key_value())?;
        self.get(first)?.association.has_had(srp.token).then_some(first)
    }

    pub(super) fn get(&self, token: u32) -> Option<&Peer> {
        self.peers.get(*self.places.get(&token)? as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, token: u32) -> Option<&mut Peer> {
        let place = *self.places.get(&token)?;
        self.mark(place, token);
        self.peers.get_mut(place as usize)?.as_mut()
    }

    /// Two that differ.
    pub(super) fn both_mut(&mut self, tokens: [u32; 2]) -> Option<[&mut Peer; 2]> {
        let places = [*self.places.get(&tokens[0])?, *self.places.get(&tokens[1])?];
        self.mark(places[0], tokens[0]);
        self.mark(places[1], tokens[1]);
        let [one, other] = self.peers.get_disjoint_mut(places.map(|place| place as usize)).ok()?;
        Some([one.as_mut()?, other.as_mut()?])
    }

    /// In the order of tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.places.values().filter_map(|&place| self.peers.get(place as usize)?.as_ref())
    }

    /// The tokens of those with the peer at an address.
    pub(super) fn with(&self, remote: IpAddr) -> impl Iterator<Item = u32> {
        self.remotes.range((remote, 0)..=(remote, u32::MAX)).map(|&(_, token)| token)
    }

    pub(super) fn insert(&mut self, token: u32, peer: Peer) {
        self.remove(token);
        let place = self.free.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.paced.add();
            self.deadlines.add()
        });
        self.remotes.insert((peer.remote, token));
        self.places.insert(token, place);
        self.peers[place as usize] = Some(peer);
        self.mark(place, token);
    }

    pub(super) fn remove(&mut self, token: u32) {
        let Some(place) = self.places.remove(&token) else { return };
        if let Some(peer) = self.peers[place as usize].take() {
            self.remotes.remove(&(peer.remote, token));
        }
        self.used.retain(|&(used, _)| used != token);
        self.deadlines.set(place, Time::NEVER);
        self.paced.set(place, Time::NEVER);
        self.free.push(place);
    }

    pub(super) fn for_all(&mut self, act: impl FnMut(&mut Peer)) {
        for (&token, &place) in &self.places {
            mark(&mut self.peers, (&mut self.used, token), place);
        }
        self.for_used(act);
    }

    pub(super) fn redirect_all(&mut self, remote: IpAddr) {
        self.for_all(|peer| peer.remote = remote);
        self.remotes = self.places.keys().map(|&token| (remote, token)).collect();
    }

    fn mark(&mut self, place: u32, token: u32) {
        mark(&mut self.peers, (&mut self.used, token), place);
    }

    /// Counts those as used whose deadline or pace lets them act now.
    pub(super) fn use_due(&mut self, now: Time) {
        for schedule in [&mut self.deadlines, &mut self.paced] {
            while let (wake, place) = schedule.first()
                && wake <= now
            {
                schedule.set(place, Time::NEVER);
                if let Some(peer) = self.peers.get(place as usize).and_then(Option::as_ref) {
                    let token = peer.association.first_token();
                    mark(&mut self.peers, (&mut self.used, token), place);
                }
            }
        }
    }

    /// The first result for one of those that were used.
    pub(super) fn find_used<R>(
        &mut self,
        mut find: impl FnMut(u32, &mut Peer) -> Option<R>,
    ) -> Option<R> {
        self.used.sort_unstable();
        let peers = &mut self.peers;
        self.used
            .iter()
            .find_map(|&(token, place)| find(token, peers.get_mut(place as usize)?.as_mut()?))
    }

    pub(super) fn for_used(&mut self, mut act: impl FnMut(&mut Peer)) {
        let _ = self.find_used(|_, peer| {
            act(peer);
            None::<()>
        });
    }

    /// Gives each that was used a last turn, and schedules it again, or removes it if it is not to be kept.
    pub(super) fn finish(&mut self, now: Time, mut keeps: impl FnMut(u32, &mut Peer) -> bool) {
        self.used.sort_unstable();
        let mut used = core::mem::take(&mut self.used);
        for (token, place) in used.drain(..) {
            let Some(Some(peer)) = self.peers.get_mut(place as usize) else { continue };
            peer.is_used = false;
            if keeps(token, peer) {
                self.deadlines.set(place, peer.association.poll_timeout());
                let paced = Some(peer.association.poll_pacing()).filter(|&paced| paced > now);
                self.paced.set(place, paced.unwrap_or(Time::NEVER));
            } else {
                self.remove(token);
            }
        }
        self.used = used;
    }

    /// The first deadline of all.
    pub(super) fn poll_timeout(&self) -> Time {
        let used =
            self.used.iter().filter_map(|&(_, place)| self.peers.get(place as usize)?.as_ref());
        let deadlines = used.map(|peer| peer.association.poll_timeout());
        deadlines.fold(self.deadlines.first().0, Time::min)
    }
}

/// Puts one among those that were used.
fn mark(peers: &mut [Option<Peer>], (used, token): (&mut Vec<(u32, u32)>, u32), place: u32) {
    if let Some(Some(peer)) = peers.get_mut(place as usize)
        && !core::mem::replace(&mut peer.is_used, true)
    {
        used.push((token, place));
    }
}
