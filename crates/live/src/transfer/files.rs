//! The threads that read and write the file of a transfer. A file may be a pipe or a terminal, which
//! blocks for ever: they wait for it and for the end of the transfer at once.

use super::pump::BLOCK;
use crate::Error;
use crate::error::Doing;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Ends the threads that wait for it. Copies are the same.
#[derive(Clone)]
pub(super) struct Stop(Arc<OwnedFd>);

impl Stop {
    pub(super) fn new() -> Result<Stop, Error> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Stop(Arc::new(bell.doing(|| "making an event".to_owned())?)))
    }

    /// Ends them, now and later.
    pub(super) fn stop(&self) {
        // It can only fail if it is set already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Waits until the file is ready. False: the transfer has ended.
    fn wait(&self, file: &OwnedFd, events: PollFlags) -> io::Result<bool> {
        loop {
            let mut both = [PollFd::new(&*self.0, PollFlags::IN), PollFd::new(file, events)];
            match poll(&mut both, None) {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) if !both[0].revents().is_empty() => return Ok(false),
                Ok(_) if !both[1].revents().is_empty() => return Ok(true),
                Ok(_) => {}
            }
        }
    }
}

/// Reads a file to its end, into blocks from `empty`. `take` gets them, and `None` at the end.
pub(super) fn read(
    file: &OwnedFd,
    stop: &Stop,
    empty: &Receiver<Vec<u8>>,
    mut take: impl FnMut(Option<Vec<u8>>),
) -> io::Result<()> {
    while let Ok(mut block) = empty.recv() {
        block.clear();
        loop {
            if !stop.wait(file, PollFlags::IN)? {
                return Ok(());
            }
            match rustix::io::read(file, spare_capacity(&mut block)) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => break,
            }
        }
        if block.is_empty() {
            take(None);
            return Ok(());
        }
        take(Some(block));
    }
    Ok(())
}

/// Writes the blocks from `full` to a file; `take` gets them back.
pub(super) fn write(
    file: &OwnedFd,
    stop: &Stop,
    full: &Receiver<Vec<u8>>,
    mut take: impl FnMut(Vec<u8>),
) -> io::Result<()> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
    // So much a pipe takes without blocking once it is ready.
    let most = if kind == FileType::RegularFile { BLOCK } else { rustix::pipe::PIPE_BUF };
    while let Ok(block) = full.recv() {
        let mut rest = &block[..];
        while !rest.is_empty() {
            if !stop.wait(file, PollFlags::OUT)? {
                return Ok(());
            }
            match rustix::io::write(file, &rest[..rest.len().min(most)]) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
                Ok(len) => rest = &rest[len..],
            }
        }
        take(block);
    }
    Ok(())
}
