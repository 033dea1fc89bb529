//! The workers of a gateway: threads, each of which carries the connections that it owns.

use crate::handover;
use crate::plane::Plane;
use base::Time;
use live::inline::{self, Caller, Captures, Counts, Inline, Owners, Running, Side};
use live::{Clock, Error};
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// Those that run.
pub(crate) struct Workers {
    running: Vec<Running<Plane>>,
    owners: Owners,
}

impl Workers {
    /// Those of a gateway whose packets pass none.
    pub(crate) fn none() -> Workers {
        Workers { running: Vec::new(), owners: Owners::new(1, [0, 0]) }
    }

    pub(crate) fn start(parts: Vec<Inline<Plane>>, owners: Owners) -> Result<Workers, Error> {
        Ok(Workers { running: Inline::start_all(parts, &owners)?, owners })
    }

    /// Whether all run. They end by themselves if one of their devices is removed.
    pub(crate) fn are_running(&self) -> bool {
        self.running.iter().all(Running::is_running)
    }

    /// Lets each call `f`, one after the other, and returns the results.
    pub(crate) fn call_each<R: Send + 'static>(
        &self,
        f: impl FnOnce(Time, &mut Plane, &Counts) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, Error> {
        self.running.iter().map(|worker| worker.call(f.clone())).collect()
    }

    /// Lets each call `f` with 0, 1, and so on, until it returns nothing; returns the results. Packets pass between
    /// the calls.
    pub(crate) fn call_in_parts<R: Send + 'static>(
        &self,
        f: impl Fn(usize, Time, &mut Plane) -> Option<R> + Clone + Send + 'static,
    ) -> Result<Vec<R>, Error> {
        let mut all = Vec::new();
        for worker in &self.running {
            for number in 0.. {
                let f = f.clone();
                match worker.call(move |now, plane, _| f(number, now, plane))? {
                    Some(part) => all.push(part),
                    None => break,
                }
            }
        }
        Ok(all)
    }

    /// Each has room for so much data that connections hold.
    pub(crate) fn set_memory(&self, of_each: u64) -> Result<(), Error> {
        self.running.iter().try_for_each(|worker| worker.set_memory(of_each))
    }

    /// What tells all that what lies behind the hop can be reached again, or by another way.
    pub(crate) fn hop_bell(&self) -> impl Fn() + Send + use<> {
        let bells: Vec<_> = self.running.iter().map(|worker| worker.link_bell(Side::Wan)).collect();
        move || bells.iter().for_each(|bell| bell())
    }

    /// What calls functions on the thread of the first one.
    pub(crate) fn first(&self) -> Option<Caller<Plane>> {
        self.running.first().map(Running::caller)
    }

    /// Copies of the packets from and to an address; a capture before this one ends.
    pub(crate) fn capture(&self, address: IpAddr, clock: Clock) -> Result<Captures, Error> {
        inline::capture(&self.running, address, clock)
    }

    /// Executes a program that goes on with all connections. It returns only if that is not possible.
    pub(crate) fn hand_over(&self, program: &Path) -> Result<io::Error, Error> {
        handover::execute(&self.running, self.owners.key(), program)
    }

    /// Ends all.
    pub(crate) fn stop(self) {
        let ended: Vec<_> = self.running.into_iter().map(Running::stop).collect();
        ended.into_iter().for_each(|ended| ended.middlebox.end());
    }
}
