//! Programs that read and write bytes, in the thread of the stack.

use crate::buffers::Incoming;
use crate::chain::Chain;
use base::{LowWater, Time};
use bytes::{Buf, Bytes};
use host::Application;
use std::ops::Range;
use tcp::{Connection, Events, Pressure, State};
use wire::Payload;

/// An application that reads and writes bytes. The stack's thread calls it: it must not block.
pub trait Program {
    /// Handles events: reads, writes or closes. [`Events::READABLE`] is edge-triggered: if bytes
    /// are left unread, it comes again when more arrive. After a write that was not accepted as a
    /// whole, [`Events::WRITABLE`] comes once there is room again.
    fn handle(&mut self, now: Time, socket: &mut Socket<'_>, events: Events);

    /// When [`Program::wake`] is to be called; it may change with any other call. After a wake it
    /// must be later than that wake.
    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// Handles the wake at [`Program::next_wake`].
    fn wake(&mut self, now: Time, socket: &mut Socket<'_>) {
        let _ = (now, socket);
    }
}

/// The bytes of a connection, on either side of it.
#[derive(Debug, Default)]
struct Buffers {
    /// Bytes that may be written and not yet acknowledged.
    limit: u64,
    /// The host has little memory left.
    scarce: bool,
    outgoing: Chain,
    incoming: Incoming,
}

/// Writes of fewer bytes are copied: a buffer of its own costs more.
const LEAST_BUFFER: usize = 4096;

/// What may be written and not yet acknowledged where memory is scarce, bytes.
const SCARCE_LIMIT: u64 = 64 << 10;

impl Buffers {
    fn limit(&self) -> u64 {
        if self.scarce { self.limit.min(SCARCE_LIMIT) } else { self.limit }
    }
}

/// A program's end of its connection.
#[derive(Debug)]
pub struct Socket<'a> {
    connection: &'a mut Connection,
    buffers: &'a mut Buffers,
}

impl Socket<'_> {
    /// Appends as many of `bytes` to the send buffer as it has room for, and returns their number.
    /// If that is not all, [`Events::WRITABLE`] follows when half of the buffer is free again. None
    /// are taken after [`Socket::close`].
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let len = self.send(bytes.len());
        self.buffers.outgoing.append(&bytes[..len]);
        len
    }

    /// Moves as many of `bytes` to the send buffer as it has room for, without a copy, and returns
    /// their number; the rest is left. It is the same as [`Socket::write`] otherwise.
    pub fn write_bytes(&mut self, bytes: &mut Bytes) -> usize {
        let len = self.send(bytes.len());
        if len < LEAST_BUFFER {
            self.buffers.outgoing.append(&bytes[..len]);
            bytes.advance(len);
        } else {
            self.buffers.outgoing.push(bytes.split_to(len), len);
        }
        len
    }

    /// Lets the connection send the next bytes of the send buffer, up to `len` of them; they are to be
    /// put there. Returns their number.
    fn send(&mut self, len: usize) -> usize {
        let fits = self.room().min(len);
        let before = self.connection.unacknowledged();
        self.connection.write(0, self.buffers.outgoing.end(), fits as u64);
        // After a close it takes nothing.
        let taken = (self.connection.unacknowledged() - before) as usize;
        // A closed connection gets no more room, but would count as writable.
        if taken == fits && fits < len && self.connection.state() != State::Closed {
            let low_water = LowWater::Unacknowledged(self.buffers.limit() / 2);
            self.connection.notify_at(low_water);
        }
        taken
    }

    /// Bytes that can be written now; none once the connection is closed.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.connection.state() == State::Closed {
            return 0;
        }
        self.buffers.limit().saturating_sub(self.connection.unacknowledged()) as usize
    }

    /// Requests [`Events::WRITABLE`] for when all written bytes are acknowledged.
    pub fn notify_when_acknowledged(&mut self) {
        self.connection.notify_at(LowWater::Unacknowledged(0));
    }

    /// Reads bytes that have arrived in order into `out`, and returns their number.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let mut done = 0;
        loop {
            let chunk = self.chunk();
            let len = chunk.len().min(out.len() - done);
            if len == 0 {
                return done;
            }
            out[done..done + len].copy_from_slice(&chunk[..len]);
            self.consume(len);
            done += len;
        }
    }

    /// Readable bytes, in place: empty only if there are none. There may be more after
    /// [`Socket::consume`].
    #[must_use]
    pub fn chunk(&self) -> &[u8] {
        self.buffers.incoming.first(self.connection.readable() as usize)
    }

    /// Takes the next `bytes` bytes as read.
    pub fn consume(&mut self, bytes: usize) {
        let mut left = bytes.min(u32::MAX as usize) as u32;
        while let Some(payload) = self.connection.read_up_to(left) {
            self.buffers.incoming.advance(payload.end());
            left -= payload.len;
        }
    }

    /// Reads up to `most` bytes, without a copy if they have arrived in order in a large packet:
    /// they are in the buffer that the packet was read into, which is used again when they are
    /// dropped. Empty only if there are none; there may be more.
    pub fn read_bytes(&mut self, most: usize) -> Bytes {
        let most = most.min(self.connection.readable() as usize).min(u32::MAX as usize);
        let bytes = self.buffers.incoming.take_first(most);
        let mut left = bytes.len() as u32;
        while let Some(payload) = self.connection.read_up_to(left) {
            left -= payload.len;
        }
        bytes
    }

    /// Closes the sending direction: a FIN follows the written data. The peer's data can still be
    /// read.
    pub fn close(&mut self) {
        self.connection.close();
    }

    /// Ends the connection at once, by a reset.
    pub fn abort(&mut self) {
        self.connection.abort();
    }

    /// The connection, for its state. Only the socket reads and writes it.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.connection
    }
}

/// A program and the bytes of its connection: the application of a host.
///
/// Memory follows the content: a connection takes it for bytes that are not yet acknowledged or read.
#[derive(Debug)]
pub struct Stream<P> {
    program: P,
    buffers: Buffers,
}

impl<P: Program> Stream<P> {
    /// The default of [`Stream::new`]'s `limit`, bytes.
    pub const LIMIT: u64 = 4 << 20;

    /// A stream for `program`, which may have written `limit` bytes that are not yet acknowledged.
    #[must_use]
    pub fn new(program: P, limit: u64) -> Stream<P> {
        Stream { program, buffers: Buffers { limit, ..Buffers::default() } }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &P {
        &self.program
    }

    /// Gives access to the program and its socket, through [`host::Host::access`].
    pub fn using<R>(
        &mut self,
        connection: &mut Connection,
        using: impl FnOnce(&mut P, &mut Socket<'_>) -> R,
    ) -> R {
        using(&mut self.program, &mut Socket { connection, buffers: &mut self.buffers })
    }
}

impl<P: Program> Application for Stream<P> {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        self.using(connection, |program, socket| program.handle(now, socket, events));
        if events.contains(Events::CLOSED) {
            self.buffers.outgoing.free();
        }
    }

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }

    fn next_wake(&self) -> Time {
        self.program.next_wake()
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        self.using(connection, |program, socket| program.wake(now, socket));
    }

    fn memory(&self) -> u64 {
        (self.buffers.outgoing.memory() + self.buffers.incoming.memory()) as u64
    }

    fn set_pressure(&mut self, pressure: Pressure) {
        self.buffers.scarce = pressure >= Pressure::Window;
    }
}

impl<P> host::Bytes for Stream<P> {
    fn fetch(&self, payload: Payload, out: &mut [u8]) {
        let mut done = 0;
        self.lend(payload, &mut |piece| {
            out[done..done + piece.len()].copy_from_slice(piece);
            done += piece.len();
        });
    }

    fn lend<'a>(&'a self, payload: Payload, piece: &mut dyn FnMut(&'a [u8])) -> bool {
        self.buffers.outgoing.pieces(payload.offset, payload.len as usize, piece);
        true
    }

    fn store(&mut self, place: u64, bytes: &[u8]) {
        self.buffers.incoming.store(place, bytes);
    }

    fn keep(&mut self, place: u64, buffer: Vec<u8>, range: Range<usize>) -> Option<Vec<u8>> {
        self.buffers.incoming.keep(place, buffer, range)
    }

    fn release(&mut self, unacknowledged: u64) {
        let outgoing = &mut self.buffers.outgoing;
        outgoing.advance(outgoing.end() - unacknowledged);
    }
}
