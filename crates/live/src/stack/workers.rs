//! A stack of several threads.

use super::{Ended, Running, Stack, machine_memory};
use crate::steering::{Owners, Steering, bell};
use crate::{Clock, Error, Tun};
use base::{Duration, Time};
use host::{Application, Bytes, ConnectionId, FourTuple, Host, Opening, Settings};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A running stack of several workers: each is a thread with a queue of the device and with a host of
/// its own, which has a part of the connections.
///
/// A keyed hash of a connection's 4-tuple says which worker owns it, for as long as it lives. The
/// kernel puts its packets into the queue of that worker once it has sent a packet, unless it has
/// sent none for three seconds; a worker that reads a packet of another's hands it over
/// ([`super::Counts::handed_over`]). A packet of no connection is the first worker's.
///
/// What hosts learn about a peer (path MTU, Fast Open cookies) each learns for itself.
pub struct Workers<A> {
    hosts: Vec<Running<A>>,
    owners: Owners,
    /// The one that opens the next connection, as a running number.
    next: AtomicUsize,
}

/// The standard library has random numbers for keys of hashes only.
#[expect(clippy::disallowed_types, reason = "it is no map")]
fn random_key() -> [u64; 2] {
    use std::hash::BuildHasher as _;
    [0, 1].map(|n| std::collections::hash_map::RandomState::new().hash_one(n))
}

impl<A: Application + Bytes + Send + 'static> Workers<A> {
    /// Starts a worker for each of the `queues` of a device, which [`super::queues`] has made. Times are those of `clock`.
    ///
    /// `make` makes the host of each worker, by its number. The hosts must have the same addresses,
    /// listeners, settings and (Fast Open cookies are a client's, whichever worker it comes to)
    /// secrets: copies of one [`base::Random`]. What a listener accepts on any worker goes to one
    /// queue of the caller's if its closures share one, as clones of a channel's sender do.
    ///
    /// Limits of [`Settings`] are those of the whole stack, and each host gets an equal part: of the
    /// memory (a sixteenth of the machine's, if it is not limited), of the resets and of the Fast
    /// Open backlog. The backlog of a listener is one worker's.
    ///
    /// # Errors
    /// If there can be no such threads.
    pub fn start(
        queues: Vec<Tun>,
        clock: Clock,
        mut make: impl FnMut(usize) -> Host<A>,
    ) -> Result<Workers<A>, Error> {
        if queues.is_empty() {
            return Err(Error::Stopped);
        }
        let bells = queues.iter().map(|_| bell()).collect::<Result<Vec<_>, Error>>()?;
        let workers = queues.len();
        let owners = Owners::new(workers, random_key());
        let steering = Steering::among(&bells, &owners);
        let start = |(index, ((tun, bell), steering)): (usize, ((Tun, _), Option<_>))| {
            let mut host = make(index);
            host.set(share(host.settings(), workers as u64));
            let owners = owners.clone();
            host.share(move |tuple| owners.of(tuple) == index);
            Stack::new(host, tun, clock).spawn(bell, steering)
        };
        let parts = queues.into_iter().zip(bells).zip(steering).enumerate();
        let hosts = parts.map(start).collect::<Result<_, Error>>()?;
        Ok(Workers { hosts, owners, next: AtomicUsize::new(0) })
    }

    /// Opens a connection and ignores [`Opening::at`]. Workers take turns, unless the caller chose
    /// the local port: then the connection is that of its owner. Returns the number of the worker
    /// and the connection there; `None` as [`Host::connect`].
    ///
    /// # Errors
    /// If the worker has ended.
    pub fn connect(&self, opening: Opening<A>) -> Result<Option<(usize, ConnectionId)>, Error> {
        let worker = match opening.local_port {
            None => self.next.fetch_add(1, Ordering::Relaxed) % self.hosts.len(),
            Some(local_port) => {
                let Opening { remote, remote_port, .. } = opening;
                let local = match opening.local {
                    Some(local) => local,
                    None => self.hosts[0].call(move |_, host| host.address_towards(remote))?,
                };
                self.owners.of(&FourTuple { local, local_port, remote, remote_port })
            }
        };
        let id = self.hosts[worker].call(move |now, host| host.connect(now, opening))?;
        Ok(id.map(|id| (worker, id)))
    }

    /// Lets each worker call `f` with the time and its host, one after the other, and returns the
    /// results.
    ///
    /// # Errors
    /// As [`Running::call`].
    pub fn call_each<R: Send + 'static>(
        &self,
        f: impl FnMut(Time, &mut Host<A>) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, Error> {
        self.hosts.iter().map(|host| host.call(f.clone())).collect()
    }
}

impl<A> Workers<A> {
    /// The hosts of the workers, by number.
    #[must_use]
    pub fn hosts(&self) -> &[Running<A>] {
        &self.hosts
    }

    /// Whether all workers still run.
    ///
    /// # Errors
    /// As [`Running::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.hosts.iter().try_for_each(Running::check)
    }

    /// Ends it, as [`Running::stop`] does. Returns what is left of each worker.
    ///
    /// # Panics
    /// If an application has.
    #[must_use]
    pub fn stop(self, patience: Duration) -> Vec<Ended<A>> {
        // All at once; each is then waited for.
        self.hosts.iter().for_each(|host| host.ask_to_end(patience));
        self.hosts.into_iter().map(Running::join).collect()
    }
}

/// The settings of each of so many hosts that share an address.
fn share(whole: Settings, hosts: u64) -> Settings {
    Settings {
        memory: Some(whole.memory.unwrap_or_else(|| machine_memory() / 16) / hosts),
        resets: whole.resets.div_ceil(hosts as u32),
        fast_open_backlog: whole.fast_open_backlog.div_ceil(hosts as u32),
        ..whole
    }
}
