//! Programs that read and write bytes, in the thread of the stack.

use crate::ring::Ring;
use base::Time;
use host::{Application, Bytes};
use tcp::{Connection, Events};
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
#[derive(Debug)]
struct Buffers {
    /// Bytes that may be written and not yet acknowledged.
    limit: u64,
    written: u64,
    outgoing: Ring,
    /// Bytes that were read.
    read: u64,
    /// The byte after the last that has arrived, gaps or not.
    highest: u64,
    incoming: Ring,
}

/// A program's end of its connection.
#[derive(Debug)]
pub struct Socket<'a> {
    connection: &'a mut Connection,
    buffers: &'a mut Buffers,
}

impl Socket<'_> {
    /// Appends as many of `bytes` to the send buffer as it has room for, and returns their number.
    /// If that is not all, [`Events::WRITABLE`] follows when half of the buffer is free again.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let len = self.room().min(bytes.len());
        let Buffers { limit, written, outgoing, .. } = self.buffers;
        if len > 0 {
            let kept = self.connection.unacknowledged();
            outgoing.reserve(kept as usize + len, *written - kept..*written);
            outgoing.put(*written, &bytes[..len]);
            self.connection.write(0, *written, len as u64);
            *written += len as u64;
        }
        if len < bytes.len() {
            self.connection.notify_below(*limit / 2);
        }
        len
    }

    /// Bytes that can be written now.
    #[must_use]
    pub fn room(&self) -> usize {
        self.buffers.limit.saturating_sub(self.connection.unacknowledged()) as usize
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
        let len = self.connection.readable() as usize;
        if len == 0 {
            return &[];
        }
        self.buffers.incoming.get(self.buffers.read, len)[0]
    }

    /// Takes the next `bytes` bytes as read.
    pub fn consume(&mut self, bytes: usize) {
        let mut left = bytes.min(u32::MAX as usize) as u32;
        while let Some(payload) = self.connection.read_up_to(left) {
            self.buffers.read = payload.end();
            left -= payload.len;
        }
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
/// Memory grows as needed: a connection with little data takes little.
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
        let (outgoing, incoming) = (Ring::default(), Ring::default());
        let buffers = Buffers { limit, written: 0, outgoing, read: 0, highest: 0, incoming };
        Stream { program, buffers }
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
}

impl<P> Bytes for Stream<P> {
    fn fetch(&self, payload: Payload, out: &mut [u8]) {
        let [one, other] = self.buffers.outgoing.get(payload.offset, payload.len as usize);
        out[..one.len()].copy_from_slice(one);
        out[one.len()..].copy_from_slice(other);
    }

    fn lend(&self, payload: Payload) -> Option<[&[u8]; 2]> {
        Some(self.buffers.outgoing.get(payload.offset, payload.len as usize))
    }

    fn store(&mut self, place: u64, bytes: &[u8]) {
        let Buffers { read, highest, incoming, .. } = &mut self.buffers;
        let end = place + bytes.len() as u64;
        incoming.reserve(end.saturating_sub(*read) as usize, *read..*highest);
        incoming.put(place, bytes);
        *highest = end.max(*highest);
    }
}
