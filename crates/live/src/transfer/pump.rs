//! The program of a transfer. Its bytes travel in blocks between the stack's thread and one that reads or
//! writes a file: a block is either with the one or with the other, so that neither waits for a lock, and
//! a slow file holds the connection back.

use crate::{Program, Socket};
use base::Time;
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use tcp::Events;

/// The size of a block.
pub(super) const BLOCK: usize = 256 << 10;
/// The blocks of a transfer.
pub(super) const BLOCKS: usize = 4;

/// What moves the bytes of a connection, once it has been given a work.
pub(super) struct Pump {
    work: Work,
    /// All events so far.
    pub(super) events: Events,
    /// When the connection was opened, or its SYN arrived.
    pub(super) began: Time,
    /// When all bytes had been acknowledged after the last was written, or when the last arrived.
    pub(super) ended: Option<Time>,
    /// Bytes given to the connection, or taken from it.
    pub(super) moved: u64,
    /// Bytes of the peer that a sending pump has discarded.
    pub(super) discarded: u64,
}

/// What a pump does.
pub(super) enum Work {
    /// Nothing yet.
    Wait,
    /// It sends the blocks that it is given, and returns them by `empty`.
    Send { full: VecDeque<Vec<u8>>, place: usize, empty: Sender<Vec<u8>>, over: bool },
    /// It fills the empty blocks that it is given, and gives them away by `full`.
    Receive { empty: Vec<Vec<u8>>, full: Sender<Vec<u8>> },
    /// It has closed its direction.
    Done,
}

impl Pump {
    pub(super) fn new(began: Time) -> Pump {
        let (moved, discarded) = (0, 0);
        Pump { work: Work::Wait, events: Events::empty(), began, ended: None, moved, discarded }
    }

    /// Starts.
    pub(super) fn start(&mut self, now: Time, work: Work, socket: &mut Socket<'_>) {
        self.work = work;
        self.go_on(now, socket);
    }

    /// Takes a block back: a full one to send, or an empty one to fill. `None` is the end of what is
    /// to be sent.
    pub(super) fn take(&mut self, now: Time, block: Option<Vec<u8>>, socket: &mut Socket<'_>) {
        match (&mut self.work, block) {
            (Work::Send { full, .. }, Some(block)) => full.push_back(block),
            (Work::Send { over, .. }, None) => *over = true,
            (Work::Receive { empty, .. }, Some(block)) => empty.push(block),
            (Work::Receive { .. } | Work::Done, _) => {}
            (Work::Wait, _) => unreachable!("the file's thread starts after the pump"),
        }
        self.go_on(now, socket);
    }

    fn go_on(&mut self, now: Time, socket: &mut Socket<'_>) {
        match &mut self.work {
            Work::Wait => {}
            Work::Send { .. } => {
                self.discard(socket);
                self.send(socket);
            }
            Work::Receive { .. } => self.receive(now, socket),
            Work::Done => {
                self.discard(socket);
                if self.ended.is_none() && socket.connection().unacknowledged() == 0 {
                    self.ended = Some(now);
                }
            }
        }
    }

    fn send(&mut self, socket: &mut Socket<'_>) {
        let Work::Send { full, place, empty, over } = &mut self.work else { return };
        while let Some(block) = full.front() {
            let len = socket.write(&block[*place..]);
            self.moved += len as u64;
            *place += len;
            if *place < block.len() {
                return;
            }
            *place = 0;
            if let Some(block) = full.pop_front() {
                // The reader has ended after an error.
                let _ = empty.send(block);
            }
        }
        if *over {
            socket.close();
            socket.notify_when_acknowledged();
            self.work = Work::Done;
        }
    }

    fn receive(&mut self, now: Time, socket: &mut Socket<'_>) {
        let Work::Receive { empty, full } = &mut self.work else { return };
        while !socket.chunk().is_empty() {
            let Some(mut block) = empty.pop() else { return };
            block.clear();
            while block.len() < BLOCK {
                let chunk = socket.chunk();
                let len = chunk.len().min(BLOCK - block.len());
                if len == 0 {
                    break;
                }
                block.extend_from_slice(&chunk[..len]);
                socket.consume(len);
            }
            self.moved += block.len() as u64;
            // The writer has ended after an error.
            let _ = full.send(block);
        }
        if self.events.contains(Events::PEER_CLOSED) {
            self.ended = Some(now);
            socket.close();
            // The writer learns of the end.
            self.work = Work::Done;
        }
    }

    fn discard(&mut self, socket: &mut Socket<'_>) {
        loop {
            let len = socket.chunk().len();
            if len == 0 {
                return;
            }
            socket.consume(len);
            self.discarded += len as u64;
        }
    }
}

impl Program for Pump {
    fn handle(&mut self, now: Time, socket: &mut Socket<'_>, events: Events) {
        self.events |= events;
        self.go_on(now, socket);
    }
}
