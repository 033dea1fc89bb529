//! The connection of a transfer, with the thread of its file.

use super::files::{self, Stop};
use super::pump::{BLOCK, BLOCKS, Pump, Work};
use super::{Direction, Error, Failure, LINGER, OurStack, PAUSE, Progress};
use crate::error::Doing;
use crate::stack::Caller;
use crate::{Clock, Stream};
use base::{Duration, Time};
use host::{ConnectionId, FourTuple};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use tcp::{Connection, Events, State, Statistics};

/// The state of the connection at a time.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) tuple: FourTuple,
    pub(super) state: State,
    pub(super) events: Events,
    pub(super) began: Time,
    pub(super) ended: Option<Time>,
    /// Bytes acknowledged, or received.
    pub(super) moved: u64,
    pub(super) discarded: u64,
    pub(super) statistics: Statistics,
    pub(super) srtt: Option<Duration>,
    pub(super) min_rtt: Option<Duration>,
}

impl Seen {
    fn of(tuple: FourTuple, connection: &Connection, pump: &Pump) -> Seen {
        let Pump { events, began, ended, moved, discarded, .. } = *pump;
        Seen {
            tuple,
            state: connection.state(),
            events,
            began,
            ended,
            moved: moved - connection.unacknowledged().min(moved),
            discarded,
            statistics: connection.statistics(),
            srtt: connection.vitals().srtt,
            min_rtt: connection.info().min_rtt,
        }
    }

    /// What ended the connection too early.
    fn failure(&self) -> Option<Failure> {
        let (peer, bytes) = (self.tuple.remote_end(), self.moved);
        Failure::of(self.events, peer, bytes)
    }

    /// Whether the peer has acknowledged our FIN, as far as that can be seen.
    fn is_fin_acknowledged(&self) -> bool {
        match self.state {
            State::FinWait2 | State::TimeWait => true,
            State::Closed => self.failure().is_none(),
            _ => false,
        }
    }
}

/// A stack with its connection.
pub(super) struct Connected {
    pub(super) stack: OurStack,
    pub(super) id: ConnectionId,
}

/// The thread that reads or writes the file.
pub(super) struct FileThread(Option<JoinHandle<io::Result<()>>>);

impl FileThread {
    /// Whether it has ended; its error, once.
    fn is_over(&mut self) -> io::Result<bool> {
        if self.0.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(thread) = self.0.take()
        {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(self.0.is_none())
    }

    /// Waits for its end.
    pub(super) fn join(self) {
        // Its error is no news.
        let _ = self.0.map(JoinHandle::join);
    }
}

/// Gives a block to the pump of a connection.
fn give(caller: &Caller<Stream<Pump>>, id: ConnectionId, block: Option<Vec<u8>>) {
    caller.call(move |now, host| {
        host.access(now, id, |connection, stream| {
            stream.using(connection, |pump, socket| pump.take(now, block, socket));
        });
    });
}

impl Connected {
    /// Starts the pump, and then the thread of the file.
    pub(super) fn start(
        &self,
        direction: Direction,
        file: OwnedFd,
        stop: Stop,
    ) -> Result<FileThread, Error> {
        let (caller, id) = (self.stack.caller(), self.id);
        let builder = std::thread::Builder::new().name("file".to_owned());
        let blocks = (0..BLOCKS).map(|_| Vec::with_capacity(BLOCK));
        let (sender, receiver) = channel();
        let thread = match direction {
            Direction::Send => {
                for block in blocks {
                    // The receiver is here.
                    let _ = sender.send(block);
                }
                let full = VecDeque::with_capacity(BLOCKS);
                self.set(Work::Send { full, place: 0, empty: sender, over: false })?;
                let take = move |block| give(&caller, id, block);
                builder.spawn(move || files::read(&file, &stop, &receiver, take))
            }
            Direction::Receive => {
                self.set(Work::Receive { empty: blocks.collect(), full: sender })?;
                let take = move |block| give(&caller, id, Some(block));
                builder.spawn(move || files::write(&file, &stop, &receiver, take))
            }
        };
        Ok(FileThread(Some(thread.doing(|| "starting a thread".to_owned())?)))
    }

    /// Gives the pump its work.
    fn set(&self, work: Work) -> Result<(), Error> {
        let id = self.id;
        self.stack.call(move |now, host| {
            host.access(now, id, |connection, stream| {
                stream.using(connection, |pump, socket| pump.start(now, work, socket));
            });
        })?;
        Ok(())
    }

    fn look(&self) -> Result<Seen, Error> {
        let id = self.id;
        let seen = self.stack.call(move |_, host| {
            let (tuple, connection) = (host.four_tuple(id)?, host.connection(id)?);
            Some(Seen::of(tuple, connection, host.application(id)?.program()))
        })?;
        // Closed connections are kept.
        Ok(seen.ok_or(crate::Error::Stopped)?)
    }

    /// Waits for the end of the transfer.
    pub(super) fn wait(
        &self,
        direction: Direction,
        file: &mut FileThread,
        cancelled: &AtomicBool,
        progress: &Progress,
    ) -> Result<Seen, Error> {
        loop {
            // Before the look: what the thread has done by its end is then seen.
            let file_ended = file.is_over()?;
            let seen = self.look()?;
            progress.moved.store(seen.moved, Ordering::Relaxed);
            let over = match direction {
                Direction::Send => seen.is_fin_acknowledged(),
                Direction::Receive => file_ended,
            };
            if over && seen.ended.is_some() {
                return Ok(seen);
            }
            let received = direction == Direction::Receive && seen.ended.is_some();
            if let Some(failure) = seen.failure().filter(|_| !received) {
                return Err(Error::Failed(failure));
            }
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Gives the peer time to close its side.
    pub(super) fn linger(&self, clock: Clock, cancelled: &AtomicBool) -> Result<Seen, Error> {
        let end = clock.now() + LINGER;
        loop {
            let seen = self.look()?;
            let over = matches!(seen.state, State::TimeWait | State::Closed);
            if over || clock.now() >= end || cancelled.load(Ordering::Relaxed) {
                return Ok(seen);
            }
            std::thread::sleep(PAUSE);
        }
    }
}
