//! The SRP associations of a box.

mod ended;
mod peers;
#[cfg(test)]
mod tests;

use crate::{Half, Handoff, Side};
use base::{Random, Time};
use core::net::IpAddr;
use ended::Ended;
use host::Outlet;
use peers::{Peer, Peers};
use serde::{Deserialize, Serialize};
use srp::{Association, Config, Ends, Reason, Snapshot, Statistics, Stream, StreamId};
use tcp::Events;
use wire::{Body, Ip, Packet, Payload, Srp};

/// Names a stream of an association of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StreamName {
    /// The association's first token.
    pub(super) token: u32,
    pub(super) id: StreamId,
}

/// An association that moves to another box.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AssociationSnapshot {
    snapshot: Snapshot,
    remote: IpAddr,
}

/// The associations. None begins before [`Associations::enable`].
///
/// A call looks only at those that were used since the last transmission, or have a deadline that has passed.
/// Among these, the order is that of tokens.
#[derive(Default)]
pub(super) struct Associations {
    /// With peers of IPv4 and of IPv6: the headers in front of SRP's differ.
    configs: [Config; 2],
    /// PDUs have the length of those in an encrypted channel.
    in_channel: bool,
    /// For tokens.
    random: Option<Random>,
    peers: Peers,
    /// Those that are over, so that a late OPEN does not open one again.
    ended: Ended,
    /// PDUs that answer those of unknown associations.
    refusals: Vec<(Ip, Srp)>,
}

impl Associations {
    /// The most answers to unknown associations between two transmissions.
    const MOST_REFUSALS: usize = 64;

    /// Lets associations begin, with these settings.
    pub(super) fn enable(&mut self, config: Config, random: Random) {
        (self.configs, self.random) = ([config.clone(), config], Some(random));
    }

    pub(super) fn set_channel(&mut self) {
        self.in_channel = true;
    }

    /// Sets what the settings say of the hop to peers of IPv4 and of IPv6.
    pub(super) fn set_hop(&mut self, configs: [Config; 2]) {
        self.configs = configs;
        let configs = &self.configs;
        self.peers.for_all(|peer| peer.association.set_hop(config(configs, peer.remote)));
    }

    /// Opens an association; `None` if none may begin.
    pub(super) fn connect(&mut self, now: Time, local: IpAddr, remote: IpAddr) -> Option<u32> {
        let random = self.random.as_mut()?;
        let peers = &self.peers;
        let mut tokens = core::iter::repeat_with(|| random.bits() as u32);
        let token = tokens.find(|&token| !peers.contains(token))?;
        let association = Association::connect(now, config(&self.configs, remote), token);
        self.peers.insert(token, Peer::new(association, local, remote));
        Some(token)
    }

    /// The association with the peer at an address that is not over, if there is one.
    pub(super) fn with(&self, remote: IpAddr) -> Option<u32> {
        let mut all = self.peers.with(remote);
        all.find(|&token| self.peers.get(token).is_some_and(|it| !it.association.is_closed()))
    }

    /// Whether an association is over, or not there any more.
    pub(super) fn is_over(&self, token: u32) -> bool {
        self.peers.get(token).is_none_or(|peer| peer.association.is_closed())
    }

    /// All with the peer at an address.
    pub(super) fn all_with(&self, remote: IpAddr) -> Vec<u32> {
        self.peers.with(remote).collect()
    }

    pub(super) fn get_mut(&mut self, token: u32) -> Option<&mut Association> {
        self.peers.get_mut(token).map(|peer| &mut peer.association)
    }

    pub(super) fn for_all(&mut self, mut act: impl FnMut(&mut Association)) {
        self.peers.for_all(|peer| act(&mut peer.association));
    }

    /// From now on, all PDUs are sent to this address.
    pub(super) fn redirect_all(&mut self, remote: IpAddr) {
        self.peers.redirect_all(remote);
    }

    /// Processes a PDU; one that opens an association is accepted if `accepts`.
    pub(super) fn handle(&mut self, now: Time, packet: &Packet, accepts: bool) {
        let Body::Srp(srp) = &packet.body else { return };
        let (local, remote) = (packet.ip.destination, packet.ip.source);
        let found = self.peers.find(srp);
        if found.is_none() {
            let accepts = accepts && self.random.is_some() && !self.ended.contains(now, srp.token);
            let accepted =
                Association::accept(now, config(&self.configs, remote), srp).filter(|_| accepts);
            if let Some(association) = accepted {
                self.peers.insert(srp.token, Peer::new(association, local, remote));
            } else if let Some(refusal) = Association::refusal(srp)
                && self.refusals.len() < Associations::MOST_REFUSALS
            {
                self.refusals.push((Ip::new(local, remote), refusal));
            }
        }
        let token = found.unwrap_or(srp.token);
        if self.peers.get(token).is_some_and(|peer| peer.remote == remote)
            && let Some(association) = self.get_mut(token)
        {
            association.handle(now, srp, packet.payload);
        }
    }

    /// Opens a stream for a relay.
    pub(super) fn open(&mut self, now: Time, token: u32, ends: Ends) -> Option<StreamName> {
        let id = self.get_mut(token)?.open(now, ends)?;
        Some(StreamName { token, id })
    }

    /// The next stream that a peer has opened.
    pub(super) fn poll_incoming(&mut self) -> Option<(StreamName, Ends)> {
        self.peers.find_used(|token, peer| {
            let (id, ends) = peer.association.poll_incoming()?;
            Some((StreamName { token, id }, ends))
        })
    }

    /// Says which relay a stream belongs to.
    pub(super) fn assign(&mut self, name: StreamName, relay: u32, side: Side) {
        if let Some(peer) = self.peers.get_mut(name.token) {
            peer.relays.insert(name.id, (relay, side));
        }
    }

    /// Forgets which relay a stream belongs to.
    pub(super) fn forget(&mut self, name: StreamName) {
        if let Some(peer) = self.peers.get_mut(name.token) {
            peer.relays.remove(&name.id);
        }
    }

    pub(super) fn accept_stream(&mut self, name: StreamName) {
        if let Some(association) = self.get_mut(name.token) {
            association.accept_stream(name.id);
        }
    }

    pub(super) fn refuse(&mut self, name: StreamName, reason: Reason) {
        if let Some(association) = self.get_mut(name.token) {
            association.refuse(name.id, reason);
        }
    }

    /// Resets a stream that no relay has.
    pub(super) fn abort_unassigned(&mut self, name: StreamName) {
        if let Some(peer) = self.peers.get_mut(name.token)
            && !peer.relays.contains_key(&name.id)
        {
            peer.association.refuse(name.id, Reason::Aborted);
        }
    }

    pub(super) fn stream(&mut self, name: StreamName) -> Option<Stream<'_>> {
        self.get_mut(name.token)?.stream(name.id)
    }

    /// Whether a stream is there: it is not over, or may still be read.
    pub(super) fn contains(&self, name: StreamName) -> bool {
        let peer = self.peers.get(name.token);
        peer.is_some_and(|peer| peer.association.ends(name.id).is_some())
    }

    /// Two streams of different associations.
    pub(super) fn both_streams(&mut self, names: [StreamName; 2]) -> Option<[Stream<'_>; 2]> {
        let [one, other] = self.peers.both_mut(names.map(|name| name.token))?;
        let one = one.association.stream(names[0].id)?;
        Some([one, other.association.stream(names[1].id)?])
    }

    /// The next stream that has events, and its relay.
    pub(super) fn poll_events(&mut self) -> Option<(StreamName, (u32, Side), Events)> {
        self.peers.find_used(|token, peer| {
            while let Some((id, events)) = peer.association.poll_events() {
                let relay = match events.contains(Events::CLOSED) {
                    true => peer.relays.remove(&id),
                    false => peer.relays.get(&id).copied(),
                };
                if let Some(relay) = relay {
                    return Some((StreamName { token, id }, relay, events));
                }
            }
            None
        })
    }

    /// The payload that streams hold.
    pub(super) fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.peers.iter().flat_map(|peer| peer.association.held_payloads()).for_each(held);
    }

    /// Associations that are not over.
    pub(super) fn open_associations(&self) -> usize {
        self.peers.iter().filter(|peer| !peer.association.is_closed()).count()
    }

    /// The counts of all associations that are there, added up.
    pub(super) fn statistics(&self) -> Statistics {
        let all = self.peers.iter().map(|peer| peer.association.statistics());
        all.fold(Statistics::default(), |sum, one| Statistics {
            segments: sum.segments + one.segments,
            retransmissions: sum.retransmissions + one.retransmissions,
            received: sum.received + one.received,
            duplicates: sum.duplicates + one.duplicates,
            ignored: sum.ignored + one.ignored,
            sacks: sum.sacks + one.sacks,
            sacks_received: sum.sacks_received + one.sacks_received,
            repetitions: sum.repetitions + one.repetitions,
            probes: sum.probes + one.probes,
            timeouts: sum.timeouts + one.timeouts,
        })
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.peers.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.peers.use_due(now);
        self.peers.for_used(|peer| {
            if peer.association.poll_timeout() <= now {
                peer.association.handle_timeout(now);
            }
        });
    }

    /// Sends all that may be sent now, and forgets the associations that are over.
    pub(super) fn transmit(&mut self, now: Time, outlet: &mut impl Outlet<Half>) {
        let port = if self.in_channel { Srp::CHANNEL_PORT } else { Srp::PORT };
        let mut send = |ip: Ip, (srp, payload): (Srp, Payload), from: Option<&Association>| {
            let (source_port, destination_port) = (port, port);
            let body = Body::Srp(Srp { source_port, destination_port, ..srp });
            *outlet.packet() = Packet { ip, body, payload, ..Packet::BLANK };
            if let Some(association) = from.filter(|_| payload.stream == Payload::GATHERED) {
                outlet.gather(&mut association.gathered(&srp, payload));
            }
            outlet.send(0, &mut None, None);
        };
        for (ip, refusal) in self.refusals.drain(..) {
            send(ip, (refusal, Payload::default()), None);
        }
        self.peers.use_due(now);
        let ended = &mut self.ended;
        self.peers.finish(now, |token, peer| {
            while let Some(segment) = peer.association.poll_transmit(now) {
                send(Ip::new(peer.local, peer.remote), segment, Some(&peer.association));
            }
            let is_over = peer.association.is_closed() && peer.relays.is_empty();
            if is_over {
                ended.insert(now, token);
            }
            !is_over
        });
    }

    /// A snapshot of the association with this token.
    pub(super) fn snapshot(&self, now: Time, token: u32) -> Option<AssociationSnapshot> {
        let Peer { association, remote, .. } = self.peers.get(token)?;
        Some(AssociationSnapshot { snapshot: association.snapshot(now), remote: *remote })
    }

    /// Snapshots of all, each with the address that its peer knows.
    pub(super) fn snapshots(
        &self,
        now: Time,
    ) -> impl Iterator<Item = (IpAddr, AssociationSnapshot)> {
        self.peers.iter().map(move |Peer { association, local, remote, .. }| {
            (*local, AssociationSnapshot { snapshot: association.snapshot(now), remote: *remote })
        })
    }

    pub(super) fn remove(&mut self, token: u32) {
        self.peers.remove(token);
    }

    /// Continues an association of another box, from this address, with the settings of this one's hop. False
    /// if there is one with its token, or if it is of another version.
    pub(super) fn adopt(
        &mut self,
        now: Time,
        local: IpAddr,
        (from, handoff): (AssociationSnapshot, Handoff),
    ) -> bool {
        let AssociationSnapshot { snapshot, remote } = from;
        let Ok(mut association) = Association::adopt(snapshot, now) else { return false };
        let token = association.first_token();
        if self.peers.contains(token) {
            return false;
        }
        association.set_hop(config(&self.configs, remote));
        handoff.take_over(now, &mut association);
        self.peers.insert(token, Peer::new(association, local, remote));
        true
    }
}

/// The settings for a peer at an address.
fn config(configs: &[Config; 2], remote: IpAddr) -> &Config {
    &configs[usize::from(remote.is_ipv6())]
}
