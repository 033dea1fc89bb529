//! Transfers between sockets.

use super::{CHUNK, Stage, client_port, leave};
use crate::play::{Ended, Play};
use base::Time;
use lab::{Account, Errand, Pace, Part, Sending, Transfer, bytes_of};
use rustix::event::PollFlags;
use socket2::Socket;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;

impl Stage<'_> {
    /// Sends what one connection carries.
    pub(super) fn send_one(&self, transfer: Transfer) {
        if self.play.sleep_until(self.flow.start).is_ok() {
            let errand =
                Errand { stream: self.index as u32, at: self.flow.start, size: transfer.size };
            self.send(errand, transfer.sending);
        }
    }

    /// Opens a connection, sends, and waits until the other end has everything.
    pub(super) fn send(&self, errand: Errand, sending: Sending) {
        let socket = match self.connect(0) {
            Ok(socket) => socket,
            Err(ended) => {
                return self.enter_sender(None, Some(errand), &Err(ended), u64::MAX, 0);
            }
        };
        let transfer = client_port(socket.local_addr());
        let result = self.write_all(&socket, errand.size, sending);
        self.enter_sender(Some(&socket), Some(errand), &result, transfer, 0);
        leave(self.play, &socket);
    }

    fn write_all(&self, socket: &Socket, size: Option<u64>, sending: Sending) -> Result<(), Ended> {
        if let Sending::Buffered(buffer) = sending {
            socket.set_send_buffer_size(usize::try_from(buffer).unwrap_or(usize::MAX))?;
        }
        let mut writer = Writer { play: self.play, socket, flow: self.index, asks: false, at: 0 };
        let left = |at: u64| size.map_or(u64::MAX, |size| size - at);
        match sending {
            Sending::Eager | Sending::Buffered(_) => writer.write(left(0))?,
            Sending::Paced(Pace { chunk, interval }) => {
                let mut next = self.play.clock.now();
                while left(writer.at) > 0 {
                    self.play.sleep_until(next)?;
                    writer.write(chunk.min(left(writer.at)))?;
                    next += interval;
                }
            }
        }
        socket.shutdown(Shutdown::Write)?;
        // The other end closes when it has everything.
        while self.play.when(socket, PollFlags::IN, || (&mut &*socket).read(&mut [0; 64]))? > 0 {}
        Ok(())
    }

    /// Reads a connection to its end.
    pub(super) fn receive(&self, socket: &Socket, reading: Option<Pace>) {
        let transfer = client_port(socket.peer_addr());
        let mut reader = Reader::new(self.play, socket, self.index, false);
        let finished_at = match reading {
            None => reader.read_all(),
            Some(pace) => reader.read_slowly(pace),
        };
        let Reader { at: received, wrong: misplaced, .. } = reader;
        let over = !matches!(finished_at, Err(Ended::Over));
        let part = Part::Receiver { received, finished_at: finished_at.ok() };
        self.enter(Account { part, transfer, over, misplaced });
    }
}

/// Writes the bytes of one direction of a flow.
pub(super) struct Writer<'a> {
    pub(super) play: &'a Play,
    pub(super) socket: &'a Socket,
    pub(super) flow: usize,
    pub(super) asks: bool,
    /// How many were written.
    pub(super) at: u64,
}

impl Writer<'_> {
    /// Writes so many more.
    pub(super) fn write(&mut self, mut len: u64) -> Result<(), Ended> {
        let mut bytes = vec![0; CHUNK.min(usize::try_from(len).unwrap_or(CHUNK))];
        while len > 0 {
            let chunk = (bytes.len() as u64).min(len);
            let chunk = &mut bytes[..chunk as usize];
            bytes_of(self.flow, self.asks, self.at, chunk.len() as u32).render(chunk);
            let mut rest = &*chunk;
            while !rest.is_empty() {
                let mut socket = self.socket;
                let written = self.play.when(self.socket, PollFlags::OUT, || socket.write(rest))?;
                rest = &rest[written..];
                self.at += written as u64;
                len -= written as u64;
            }
        }
        Ok(())
    }
}

/// Reads the bytes of one direction of a flow, and looks at them.
pub(super) struct Reader<'a> {
    play: &'a Play,
    socket: &'a Socket,
    flow: usize,
    asks: bool,
    buffer: Vec<u8>,
    /// How many were read.
    pub(super) at: u64,
    /// Those that were not those of their place.
    pub(super) wrong: u64,
    /// When the last of them came.
    last_at: Option<Time>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(play: &'a Play, socket: &'a Socket, flow: usize, asks: bool) -> Reader<'a> {
        Reader { play, socket, flow, asks, buffer: Vec::new(), at: 0, wrong: 0, last_at: None }
    }

    /// Reads up to so many, at least one; 0 at the end of the data.
    pub(super) fn read(&mut self, most: u64) -> Result<u64, Ended> {
        self.buffer.resize(CHUNK.min(usize::try_from(most).unwrap_or(CHUNK)), 0);
        let (mut socket, buffer) = (self.socket, &mut self.buffer);
        let len = self.play.when(self.socket, PollFlags::IN, || socket.read(buffer))?;
        let expected = bytes_of(self.flow, self.asks, self.at, len as u32);
        self.wrong += expected.count_wrong(&self.buffer[..len]);
        self.at += len as u64;
        if len > 0 {
            self.last_at = Some(self.play.clock.now());
        }
        Ok(len as u64)
    }

    /// Reads to the end of the data; when the last of it came.
    fn read_all(&mut self) -> Result<Time, Ended> {
        while self.read(u64::MAX)? > 0 {}
        Ok(self.ended())
    }

    /// When the last byte came, or if there was none, now.
    fn ended(&self) -> Time {
        self.last_at.unwrap_or_else(|| self.play.clock.now())
    }

    /// Reads a chunk an interval after the first bytes have come, then each interval, to the end.
    fn read_slowly(&mut self, Pace { chunk, interval }: Pace) -> Result<Time, Ended> {
        loop {
            self.play.wait(self.socket, PollFlags::IN)?;
            let mut next = self.play.clock.now();
            // As long as there is something.
            loop {
                next += interval;
                self.play.sleep_until(next)?;
                let mut room = chunk;
                while room > 0 && self.is_readable()? {
                    match self.read(room)? {
                        0 => return Ok(self.ended()),
                        read => room -= read,
                    }
                }
                if room > 0 {
                    break;
                }
            }
        }
    }

    fn is_readable(&self) -> Result<bool, Ended> {
        match self.socket.peek(&mut [std::mem::MaybeUninit::uninit()]) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(Ended::Failed(error)),
        }
    }
}
