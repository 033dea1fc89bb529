//! Connections that the host opens, and their ports.

use super::{ConnectionId, FourTuple, Host};
use crate::Application;
use base::Time;
use core::net::IpAddr;
use tcp::{Config, Side};

/// A connection to be opened.
#[derive(Clone, Debug)]
pub struct Opening<A> {
    /// When.
    pub at: Time,
    /// To which address.
    pub remote: IpAddr,
    /// To which port.
    pub remote_port: u16,
    /// From which address; the host's own of that IP version for `None`. It need not own the address, if
    /// the packets that the peer sends there come to this host.
    pub local: Option<IpAddr>,
    /// From which port; `None` takes one that is free.
    pub local_port: Option<u16>,
    /// With which settings.
    pub config: Config,
    /// Its application.
    pub application: A,
}

/// Where the dynamic ports begin (RFC 6335 §6).
pub(super) const FIRST_DYNAMIC_PORT: u16 = 49_152;
/// The number of dynamic ports.
pub(super) const DYNAMIC_PORTS: u16 = u16::MAX - FIRST_DYNAMIC_PORT + 1;

/// Which 4-tuples the host may open connections from.
pub(super) struct Share(Box<dyn Fn(&FourTuple) -> bool + Send>);

impl Default for Share {
    /// All.
    fn default() -> Share {
        Share(Box::new(|_| true))
    }
}

impl<A: Application> Host<A> {
    /// Restricts the connections that the host opens to the 4-tuples that `owns` accepts, for a host
    /// that is one of several with the same address: packets of the other 4-tuples go to another.
    /// A local port is chosen among those; one that the caller chose is refused as one in use is.
    /// Listeners are not restricted. It is not part of a snapshot.
    pub fn share(&mut self, owns: impl Fn(&FourTuple) -> bool + Send + 'static) {
        self.share = Share(Box::new(owns));
    }

    /// The address from which the host opens connections to `remote`; its first, if it has none of
    /// that version of IP.
    #[must_use]
    pub fn address_towards(&self, remote: IpAddr) -> IpAddr {
        self.addresses.towards(remote)
    }

    /// Opens a connection at its time; those of the same time in the order of the calls.
    pub fn open(&mut self, opening: Opening<A>) {
        let index = self.openings.partition_point(|other| other.at <= opening.at);
        self.openings.insert(index, opening);
    }

    #[inline]
    pub(super) fn open_due(&mut self, now: Time) {
        while self.openings.front().is_some_and(|opening| opening.at <= now) {
            if let Some(opening) = self.openings.pop_front() {
                self.open_now(now, opening);
            }
        }
    }

    fn open_now(&mut self, now: Time, opening: Opening<A>) {
        if self.connect(now, opening).is_none() {
            self.statistics.unopened += 1;
        }
    }

    /// Opens a connection now and ignores [`Opening::at`]. `None` if another connection to the same
    /// remote end uses its port, if its 4-tuple is another host's ([`Host::share`]), or if no port is
    /// free.
    pub fn connect(&mut self, now: Time, opening: Opening<A>) -> Option<ConnectionId> {
        let Opening { remote, remote_port, .. } = opening;
        let local = opening.local.unwrap_or_else(|| self.address_towards(remote));
        let local_port = match opening.local_port {
            Some(port) => port,
            None => self.free_port(local, remote, remote_port)?,
        };
        let tuple = FourTuple { local, local_port, remote, remote_port };
        if !self.may_open(&tuple) {
            return None;
        }
        let iss = self.numbering.sequence(now, &tuple);
        let id = self.add(now, tuple, &opening.config, Side::Active, iss, opening.application);
        if opening.config.fast_open {
            self.open_fast(now, id, &opening.config);
        }
        Some(self.slots[id as usize].id)
    }

    /// Whether a 4-tuple is unused (a connection in TIME-WAIT uses its own), and this host's.
    fn may_open(&self, tuple: &FourTuple) -> bool {
        !self.by_tuple.contains_key(tuple) && (self.share.0)(tuple)
    }

    /// The next dynamic port without a listener that makes a 4-tuple that may be opened, if there is one
    /// (RFC 6056 §3.3.3, algorithm 3).
    fn free_port(&mut self, local: IpAddr, remote: IpAddr, remote_port: u16) -> Option<u16> {
        let offset = self.numbering.port_offset(local, remote, remote_port);
        for _ in 0..DYNAMIC_PORTS {
            let place = offset.wrapping_add(self.next_port) % DYNAMIC_PORTS;
            self.next_port = self.next_port.wrapping_add(1);
            let local_port = FIRST_DYNAMIC_PORT + place;
            let tuple = FourTuple { local, local_port, remote, remote_port };
            if self.may_open(&tuple) && !self.listeners.has_port(local, local_port) {
                return Some(local_port);
            }
        }
        None
    }
}
