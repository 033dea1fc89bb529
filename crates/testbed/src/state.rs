//! The state of a run, which all its threads share.

use base::Time;
use lab::{Account, Delivery};
use live::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use scenario::{Scenario, Stack};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::addresses;

/// The state of a run in progress.
pub(crate) struct RunState {
    pub(crate) scenario: Scenario,
    pub(crate) clock: Clock,
    /// The run ends at once.
    pub(crate) stop: AtomicBool,
    entries: Mutex<Vec<Entry>>,
    /// The number of [`Unfinished`].
    unfinished: AtomicUsize,
}

/// An end of the kernel's, or a connection of one, until it is dropped: until then it has something
/// left to do.
pub(crate) struct Unfinished(Arc<RunState>);

impl Unfinished {
    pub(crate) fn new(state: &Arc<RunState>) -> Unfinished {
        state.unfinished.fetch_add(1, Ordering::AcqRel);
        Unfinished(Arc::clone(state))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.unfinished.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a kernel's end of a flow reports when it ends.
pub(crate) enum Entry {
    /// The account of an end of a connection, with the flow's index.
    Account(usize, Account),
    /// The datagrams of a flow, by its index, with their bytes of payload.
    Datagrams(usize, Delivery, u64),
    /// An error outside the flow's connection, which ends the run.
    Error(crate::Error),
}

/// Why a thread stops waiting.
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

/// The longest wait between two checks whether the run is over.
const SLICE: base::Duration = base::Duration::from_millis(20);

impl RunState {
    pub(crate) fn new(scenario: &Scenario, clock: Clock) -> RunState {
        RunState {
            scenario: scenario.clone(),
            clock,
            stop: AtomicBool::new(false),
            entries: Mutex::default(),
            unfinished: AtomicUsize::new(0),
        }
    }

    /// When the run ends.
    pub(crate) fn end(&self) -> Time {
        Time::ZERO + self.scenario.duration
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.end()
    }

    /// Whether no end of the kernel's has anything left to do.
    pub(crate) fn kernels_are_finished(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 0
    }

    /// Adds an entry. An error ends the run.
    pub(crate) fn enter(&self, entry: Entry) {
        if matches!(entry, Entry::Error(_)) {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Takes the entries so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The socket address of the end of a flow at a node.
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

    /// Waits until a socket is ready.
    pub(crate) fn wait(&self, socket: &impl AsFd, events: PollFlags) -> Result<(), Ended> {
        self.wait_until(socket, events, Time::NEVER).map(drop)
    }

    /// Waits until a socket is ready, and for what; or until a time, and then for nothing.
    pub(crate) fn wait_until(
        &self,
        socket: &impl AsFd,
        events: PollFlags,
        time: Time,
    ) -> Result<PollFlags, Ended> {
        loop {
            if self.is_over() {
                return Err(Ended::Over);
            }
            let left = time.since(self.clock.now());
            if left == base::Duration::ZERO {
                return Ok(PollFlags::empty());
            }
            let slice = Timespec { tv_sec: 0, tv_nsec: left.min(SLICE).as_nanos() as _ };
            let mut fds = [PollFd::new(socket, events)];
            match poll(&mut fds, Some(&slice)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(fds[0].revents()),
                Err(error) => return Err(Ended::Failed(error.into())),
            }
        }
    }

    /// Calls `act`, which uses a non-blocking socket, until it does not block.
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

/// The address of the end of a flow at a node; at any other node, the kernel's address there.
pub(crate) fn address(scenario: &Scenario, flow: usize, node: usize) -> std::net::IpAddr {
    let flow = &scenario.flows[flow];
    let stack = match node {
        _ if node == flow.from => flow.stacks.from,
        _ if node == flow.to => flow.stacks.to,
        _ => Stack::Linux,
    };
    addresses::of(node, stack, flow.ip)
}
