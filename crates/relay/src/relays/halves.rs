//! The halves of relays: TCP connections, and streams of SRP associations.

use super::associations::{Associations, StreamName};
use crate::{Half, Side};
use base::Time;
use core::net::IpAddr;
use host::{ConnectionId, Host, Transport};
use serde::{Deserialize, Serialize};
use tcp::{Connection, Events};

/// Names a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HalfId {
    /// A TCP connection.
    Tcp(ConnectionId),
    /// A stream of an SRP association.
    Srp(StreamName),
}

/// Whose half has had events.
pub(super) struct HalfEvents {
    pub(super) id: HalfId,
    pub(super) relay: u32,
    pub(super) side: Side,
    pub(super) events: Events,
}

/// What a half holds and has done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Amounts {
    /// Bytes that were received and not read.
    pub(super) readable: u64,
    /// Bytes that were written and not acknowledged.
    pub(super) unacknowledged: u64,
    /// Segments that were sent again; `None` for a stream, whose association sends them.
    pub(super) retransmissions: Option<u64>,
}

/// All halves of a box.
pub(super) struct Halves {
    pub(super) host: Host<Half>,
    pub(super) associations: Associations,
}

impl Halves {
    pub(super) fn new(address: IpAddr, random: base::Random) -> Halves {
        Halves { host: Host::new(address, random), associations: Associations::default() }
    }

    /// The connection of a half, if it is one.
    pub(super) fn connection(&self, id: HalfId) -> Option<&Connection> {
        match id {
            HalfId::Tcp(id) => self.host.connection(id),
            HalfId::Srp(_) => None,
        }
    }

    /// Calls a function with a half, if it still exists.
    pub(super) fn access<R>(
        &mut self,
        now: Time,
        id: HalfId,
        using: impl FnOnce(&mut dyn Transport) -> R,
    ) -> Option<R> {
        match id {
            HalfId::Tcp(id) => self.host.access(now, id, |half, _| using(half)),
            HalfId::Srp(name) => Some(using(&mut self.associations.stream(name)?)),
        }
    }

    /// Calls a function with two halves, if both still exist.
    pub(super) fn access_both<R>(
        &mut self,
        now: Time,
        ids: [HalfId; 2],
        using: impl FnOnce(&mut dyn Transport, &mut dyn Transport) -> R,
    ) -> Option<R> {
        match ids {
            [HalfId::Tcp(one), HalfId::Tcp(other)] => {
                let both = [one, other];
                self.host.access_both(now, both, |[(one, _), (other, _)]| using(one, other))
            }
            [HalfId::Tcp(one), HalfId::Srp(other)] => {
                let mut other = self.associations.stream(other)?;
                self.host.access(now, one, |one, _| using(one, &mut other))
            }
            [HalfId::Srp(one), HalfId::Tcp(other)] => {
                let mut one = self.associations.stream(one)?;
                self.host.access(now, other, |other, _| using(&mut one, other))
            }
            [HalfId::Srp(one), HalfId::Srp(other)] => {
                let [mut one, mut other] = self.associations.both_streams([one, other])?;
                Some(using(&mut one, &mut other))
            }
        }
    }

    /// Whether a half is a stream whose association is over.
    pub(super) fn is_of_ended_association(&self, id: Option<HalfId>) -> bool {
        match id {
            Some(HalfId::Srp(name)) => self.associations.is_over(name.token),
            Some(HalfId::Tcp(_)) | None => false,
        }
    }

    /// Ends a half without telling its peer.
    pub(super) fn fail(&mut self, now: Time, id: HalfId) {
        match id {
            HalfId::Tcp(id) => {
                self.host.access(now, id, |half, _| half.fail());
            }
            HalfId::Srp(name) => self.associations.forget(name),
        }
    }

    /// The next half that has events, with these.
    pub(super) fn poll_events(&mut self, now: Time) -> Option<HalfEvents> {
        while let Some(id) = self.host.poll_request() {
            let taken =
                self.host.access(now, id, |_, half| (half.relay, half.side, half.take_events()));
            if let Some((relay, side, events)) = taken {
                return Some(HalfEvents { id: HalfId::Tcp(id), relay, side, events });
            }
        }
        let (name, (relay, side), events) = self.associations.poll_events()?;
        Some(HalfEvents { id: HalfId::Srp(name), relay, side, events })
    }

    /// Bytes that a half holds.
    pub(super) fn held(&mut self, id: HalfId) -> u64 {
        let Amounts { readable, unacknowledged, .. } = self.amounts(id);
        readable + unacknowledged
    }

    /// What a half holds and has done; nothing if it is gone.
    pub(super) fn amounts(&mut self, id: HalfId) -> Amounts {
        match id {
            HalfId::Tcp(id) => self.host.connection(id).map(|half| Amounts {
                readable: half.readable(),
                unacknowledged: half.unacknowledged(),
                retransmissions: Some(half.statistics().retransmissions),
            }),
            HalfId::Srp(name) => self.associations.stream(name).map(|half| Amounts {
                readable: half.readable(),
                unacknowledged: half.unacknowledged(),
                retransmissions: None,
            }),
        }
        .unwrap_or_default()
    }
}
