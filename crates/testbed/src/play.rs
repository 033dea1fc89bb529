//! What everybody shares who takes part in a run.

use base::Time;
use lab::{Account, Delivery, Scenario, Stack};
use live::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::addresses;

/// A run under way.
pub(crate) struct Play {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    /// It is to end at once.
    pub(crate) stop: AtomicBool,
    book: Mutex<Vec<Entry>>,
}

/// What an end of a flow that the kernel played says at its end.
pub(crate) enum Entry {
    /// Of an end of a connection of a flow.
    Account(usize, Account),
    /// Of datagrams of a flow, with bytes of payload.
    Datagrams(usize, Delivery, u64),
    /// What went wrong that the flow's connection is not to blame for.
    Trouble(crate::Error),
}

/// Why somebody who waited no longer does.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The run is over.
    Over,
    /// The socket has failed.
    Failed(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Failed(error)
    }
}

/// How long nobody looks whether the run is over.
const SLICE: base::Duration = base::Duration::from_millis(20);

impl Play {
    pub(crate) fn new(scenario: &Scenario, seed: u64, clock: Clock) -> Play {
        let (stop, book) = (AtomicBool::new(false), Mutex::default());
        Play { scenario: scenario.clone(), seed, clock, stop, book }
    }

    /// When the run ends.
    pub(crate) fn end(&self) -> Time {
        Time::ZERO + self.scenario.duration
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.end()
    }

    /// Writes down what somebody has to say. Trouble ends the run.
    pub(crate) fn enter(&self, entry: Entry) {
        if matches!(entry, Entry::Trouble(_)) {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.book.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// What was written down.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.book.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the end of a flow is that lives at a node.
    pub(crate) fn place(&self, flow: usize, node: usize, port: u16) -> SocketAddr {
        SocketAddr::new(address(&self.scenario, flow, node), port)
    }

    /// Waits until a time.
    pub(crate) fn sleep_until(&self, time: Time) -> Result<(), Ended> {
        loop {
            if self.is_over() {
                return Err(Ended::Over);
            }
            let left = time.since(self.clock.now());
            if left == base::Duration::ZERO {
                return Ok(());
            }
            std::thread::sleep(Duration::from_nanos(left.min(SLICE).as_nanos()));
        }
    }

    /// Waits until something can be done with a socket.
    pub(crate) fn wait(&self, socket: &impl AsFd, events: PollFlags) -> Result<(), Ended> {
        let slice = Timespec { tv_sec: 0, tv_nsec: SLICE.as_nanos() as _ };
        loop {
            if self.is_over() {
                return Err(Ended::Over);
            }
            let mut fds = [PollFd::new(socket, events)];
            match poll(&mut fds, Some(&slice)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(Ended::Failed(error.into())),
            }
        }
    }

    /// Does something with a socket that does not block, as soon as it can be done.
    pub(crate) fn when<T>(
        &self,
        socket: &impl AsFd,
        events: PollFlags,
        mut act: impl FnMut() -> io::Result<T>,
    ) -> Result<T, Ended> {
        loop {
            match act() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(socket, events)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Ended::Failed(error)),
                Ok(_) if self.is_over() => return Err(Ended::Over),
                Ok(done) => return Ok(done),
            }
        }
    }
}

/// The address of the end of a flow that lives at a node; of one that is no end of it, that of the
/// kernel there.
pub(crate) fn address(scenario: &Scenario, flow: usize, node: usize) -> std::net::IpAddr {
    let flow = &scenario.flows[flow];
    let stack = match node {
        _ if node == flow.from => flow.stacks.from,
        _ if node == flow.to => flow.stacks.to,
        _ => Stack::Linux,
    };
    addresses::of(node, stack, flow.ip)
}
