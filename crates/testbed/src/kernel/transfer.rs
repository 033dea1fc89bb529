//! Transfers between sockets.

use super::{CHUNK, FlowEnd, client_port, leave};
use crate::state::{Ended, RunState};
use base::Time;
use lab::{Account, Part};
use rustix::event::PollFlags;
use scenario::{Pace, Sending, Transfer, TransferSpec, bytes_of};
use socket2::Socket;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;

impl FlowEnd<'_> {
    /// Sends a transfer over one connection.
    pub(super) fn send_one(&self, transfer: Transfer) {
        if self.state.sleep_until(self.flow.start).is_ok() {
            let spec = TransferSpec {
                stream: self.index as u32,
                at: self.flow.start,
                size: transfer.size,
            };
            self.send(spec, transfer.sending);
        }
    }

    /// Opens a connection, sends, and waits until the other end has everything.
    pub(super) fn send(&self, spec: TransferSpec, sending: Sending) {
        let socket = match self.connect(0) {
            Ok(socket) => socket,
            Err(ended) => {
                return self.enter_sender(None, Some(spec), &Err(ended), u64::MAX, 0);
            }
        };
        let transfer = client_port(socket.local_addr());
        let result = self.write_all(&socket, spec.size, sending);
        self.enter_sender(Some(&socket), Some(spec), &result, transfer, 0);
        leave(self.state, &socket);
    }

    fn write_all(&self, socket: &Socket, size: Option<u64>, sending: Sending) -> Result<(), Ended> {
        if let Sending::Buffered(buffer) = sending {
            socket.set_send_buffer_size(usize::try_from(buffer).unwrap_or(usize::MAX))?;
        }
        let mut writer = Writer { state: self.state, socket, flow: self.index, asks: false, at: 0 };
        let left = |at: u64| size.map_or(u64::MAX, |size| size - at);
        match sending {
            Sending::Eager | Sending::Buffered(_) => writer.write(left(0))?,
            Sending::Paced(Pace { chunk, interval }) => {
                let mut next = self.state.clock.now();
                while left(writer.at) > 0 {
                    self.state.sleep_until(next)?;
                    writer.write(chunk.min(left(writer.at)))?;
                    next += interval;
                }
            }
        }
        socket.shutdown(Shutdown::Write)?;
        // The other end closes when it has everything.
        while self.state.when(socket, PollFlags::IN, || (&mut &*socket).read(&mut [0; 64]))? > 0 {}
        Ok(())
    }

    /// Reads a connection to its end.
    pub(super) fn receive(&self, socket: &Socket, reading: Option<Pace>) {
        let transfer = client_port(socket.peer_addr());
        let mut reader = Reader::new(self.state, socket, self.index, false);
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
    pub(super) state: &'a RunState,
    pub(super) socket: &'a Socket,
    pub(super) flow: usize,
    pub(super) asks: bool,
    /// Bytes written.
    pub(super) at: u64,
}

impl Writer<'_> {
    /// Writes the next `len` bytes.
    pub(super) fn write(&mut self, mut len: u64) -> Result<(), Ended> {
        let mut bytes = vec![0; CHUNK.min(usize::try_from(len).unwrap_or(CHUNK))];
        while len > 0 {
            let chunk = (bytes.len() as u64).min(len);
            let chunk = &mut bytes[..chunk as usize];
            bytes_of(self.flow, self.asks, self.at, chunk.len() as u32).render(chunk);
            let mut rest = &*chunk;
            while !rest.is_empty() {
                let mut socket = self.socket;
                let written =
                    self.state.when(self.socket, PollFlags::OUT, || socket.write(rest))?;
                rest = &rest[written..];
                self.at += written as u64;
                len -= written as u64;
            }
        }
        Ok(())
    }
}

/// Reads and checks the bytes of one direction of a flow.
pub(super) struct Reader<'a> {
    state: &'a RunState,
    socket: &'a Socket,
    flow: usize,
    asks: bool,
    buffer: Vec<u8>,
    /// Bytes read.
    pub(super) at: u64,
    /// Bytes that differ from those sent at their offset.
    pub(super) wrong: u64,
    /// When the last of them arrived.
    last_at: Option<Time>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        state: &'a RunState,
        socket: &'a Socket,
        flow: usize,
        asks: bool,
    ) -> Reader<'a> {
        Reader { state, socket, flow, asks, buffer: Vec::new(), at: 0, wrong: 0, last_at: None }
    }

    /// Reads up to `most` bytes, at least one; 0 at the end of the data.
    pub(super) fn read(&mut self, most: u64) -> Result<u64, Ended> {
        self.buffer.resize(CHUNK.min(usize::try_from(most).unwrap_or(CHUNK)), 0);
        let (mut socket, buffer) = (self.socket, &mut self.buffer);
        let len = self.state.when(self.socket, PollFlags::IN, || socket.read(buffer))?;
        let expected = bytes_of(self.flow, self.asks, self.at, len as u32);
        self.wrong += expected.count_wrong(&self.buffer[..len]);
        self.at += len as u64;
        if len > 0 {
            self.last_at = Some(self.state.clock.now());
        }
        Ok(len as u64)
    }

    /// Reads to the end of the data, and returns when the last byte arrived.
    fn read_all(&mut self) -> Result<Time, Ended> {
        while self.read(u64::MAX)? > 0 {}
        Ok(self.ended())
    }

    /// When the last byte arrived, or now if there was none.
    fn ended(&self) -> Time {
        self.last_at.unwrap_or_else(|| self.state.clock.now())
    }

    /// Reads a chunk one interval after the first bytes arrive, then one per interval, to the end.
    fn read_slowly(&mut self, Pace { chunk, interval }: Pace) -> Result<Time, Ended> {
        loop {
            self.state.wait(self.socket, PollFlags::IN)?;
            let mut next = self.state.clock.now();
            // As long as there is data.
            loop {
                next += interval;
                self.state.sleep_until(next)?;
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
