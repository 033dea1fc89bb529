//! Connections over SRP: associations with peers, and the streams that peers open.

use super::{AssociationSnapshot, Relays, StreamName};
use crate::Handoff;
use base::{Random, Time};
use core::net::IpAddr;
use host::FourTuple;
use srp::Config;
use wire::{Body, Packet, Payload};

impl Relays {
    /// Lets connections go over SRP. `random` is for tokens. [`Config::gather`] is as [`Relays::gather`] has set it.
    pub fn enable_srp(&mut self, config: Config, random: Random) {
        let gather = self.halves.host.settings().gather;
        self.halves.associations.enable(Config { gather, ..config }, random);
    }

    /// From now on, PDUs are those that stand for PDUs in an encrypted channel ([`wire::Srp::CHANNEL_PORT`]). The
    /// settings count [`wire::Srp::CHANNEL`] bytes among the headers.
    pub fn set_srp_channel(&mut self) {
        self.halves.associations.set_channel();
    }

    /// Sets what the settings say of the hop to peers of IPv4 and of IPv6 ([`srp::Association::set_hop`]), for associations
    /// that are there, too.
    pub fn set_srp_hop(&mut self, configs: [Config; 2]) {
        let gather = self.halves.host.settings().gather;
        self.halves.associations.set_hop(configs.map(|config| Config { gather, ..config }));
    }

    /// Processes a packet if it is of SRP; returns whether it is. An association that the peer opens is
    /// accepted if `accepts`. [`Relays::poll_incoming`] is to be called afterwards.
    pub fn handle_srp(&mut self, now: Time, packet: &Packet, accepts: bool) -> bool {
        if !matches!(packet.body, Body::Srp(_)) {
            return false;
        }
        self.halves.associations.handle(now, packet, accepts);
        self.run(now);
        true
    }

    /// The next stream that a peer has opened, and the connection that it stands for, as its client
    /// names it: to be given to [`Relays::open_incoming`].
    pub fn poll_incoming(&mut self) -> Option<(StreamName, FourTuple)> {
        let (name, ends) = self.halves.associations.poll_incoming()?;
        let client = FourTuple {
            local: ends.client,
            local_port: ends.client_port,
            remote: ends.server,
            remote_port: ends.server_port,
        };
        Some((name, client))
    }

    /// Whether there is an association with the peer at this address.
    #[must_use]
    pub fn has_association(&self, remote: IpAddr) -> bool {
        self.halves.associations.with(remote).is_some()
    }

    /// Associations that are not over.
    #[must_use]
    pub fn open_associations(&self) -> usize {
        self.halves.associations.open_associations()
    }

    /// The counts of the associations that are there: segments sent, and sent again.
    #[must_use]
    pub fn srp_statistics(&self) -> srp::Statistics {
        self.halves.associations.statistics()
    }

    /// The hop to all peers is interrupted: nothing is sent, and no time passes for timeouts.
    pub fn suspend_srp(&mut self, now: Time) {
        self.halves.associations.for_all(|association| association.suspend(now));
    }

    /// The hop is there again; the peer of all associations has this address now.
    pub fn resume_srp(&mut self, now: Time, remote: IpAddr, handoff: Handoff) {
        self.halves.associations.redirect_all(remote);
        self.halves.associations.for_all(|association| handoff.resume(now, association));
        self.run(now);
    }

    /// The hop to the peer at this address alone is there again. Its associations go on.
    pub fn resume_srp_with(&mut self, now: Time, remote: IpAddr) {
        for token in self.halves.associations.all_with(remote) {
            if let Some(association) = self.halves.associations.get_mut(token) {
                association.resume(now);
            }
        }
        self.run(now);
    }

    /// Opens an association with the peer at this address.
    pub fn connect_srp(&mut self, now: Time, local: IpAddr, remote: IpAddr) {
        self.halves.associations.connect(now, local, remote);
    }

    /// Ends all associations; the other ends of their connections are reset.
    pub fn abort_srp(&mut self, now: Time) {
        self.halves.associations.for_all(srp::Association::abort);
        self.run(now);
    }

    /// Removes the associations with the peer at this address, after [`Relays::snapshot`] and
    /// [`Relays::remove`] of their connections; returns snapshots of them, and passes the bytes that they
    /// hold to `held`.
    pub fn take_associations(
        &mut self,
        now: Time,
        remote: IpAddr,
        held: &mut dyn FnMut(Payload),
    ) -> Vec<AssociationSnapshot> {
        let associations = &mut self.halves.associations;
        let tokens = associations.all_with(remote).into_iter();
        tokens
            .filter_map(|token| {
                let snapshot = associations.snapshot(now, token);
                if let Some(association) = associations.get_mut(token) {
                    association.held_payloads().for_each(&mut *held);
                }
                associations.remove(token);
                snapshot
            })
            .collect()
    }

    /// Continues an association of another box from this address, before its connections are adopted.
    /// Returns false, and nothing has changed, if there is such an association, or if it is of another
    /// version.
    pub fn adopt_association(
        &mut self,
        now: Time,
        local: IpAddr,
        (snapshot, handoff): (AssociationSnapshot, Handoff),
    ) -> bool {
        self.halves.associations.adopt(now, local, (snapshot, handoff))
    }
}
