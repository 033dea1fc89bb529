//! Applications: the users of connections.

use base::{LowWater, Time};
use core::ops::Range;
use tcp::{Connection, Events, Pressure};
use wire::Payload;

/// A connection as an application sees it.
pub trait Transport {
    /// Appends `len` bytes of `stream`, from `offset` on, to what is to be sent.
    fn write(&mut self, stream: u32, offset: u64, len: u64);

    /// The next run of bytes that has arrived in order, if there is one now. While there may be
    /// more, [`Events::READABLE`] follows.
    fn read(&mut self) -> Option<Payload> {
        self.read_up_to(u32::MAX)
    }

    /// The same, but at most `bytes`. `None`: until [`Events::READABLE`] there is no more.
    fn read_up_to(&mut self, bytes: u32) -> Option<Payload>;

    /// Nothing more will be written.
    fn close(&mut self);

    /// Bytes written and not yet acknowledged.
    fn unacknowledged(&self) -> u64;

    /// Bytes written and not yet sent.
    fn unsent(&self) -> u64;

    /// Bytes that [`Transport::read`] would return in all.
    fn readable(&self) -> u64;

    /// Bytes of data in a full-sized segment to the peer.
    fn segment_size(&self) -> u32;

    /// Requests [`Events::WRITABLE`], once, for this state.
    fn notify_at(&mut self, low_water: LowWater);

    /// Ends the connection at once, with a reset.
    fn abort(&mut self);

    /// From now on, the peer's end of data is not acknowledged before [`Transport::release_end`].
    fn hold_end(&mut self);

    /// Acknowledges the peer's end of data, if it has arrived or once it does.
    fn release_end(&mut self, now: Time);
}

impl Transport for Connection {
    fn write(&mut self, stream: u32, offset: u64, len: u64) {
        Connection::write(self, stream, offset, len);
    }

    #[inline]
    fn read(&mut self) -> Option<Payload> {
        Connection::read(self)
    }

    #[inline]
    fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        Connection::read_up_to(self, bytes)
    }

    fn close(&mut self) {
        Connection::close(self);
    }

    fn unacknowledged(&self) -> u64 {
        Connection::unacknowledged(self)
    }

    fn unsent(&self) -> u64 {
        Connection::unsent(self)
    }

    fn readable(&self) -> u64 {
        Connection::readable(self)
    }

    fn segment_size(&self) -> u32 {
        Connection::segment_size(self)
    }

    fn notify_at(&mut self, low_water: LowWater) {
        Connection::notify_at(self, low_water);
    }

    fn abort(&mut self) {
        Connection::abort(self);
    }

    fn hold_end(&mut self) {
        self.hold_fin();
    }

    fn release_end(&mut self, now: Time) {
        self.release_fin(now);
    }
}

impl Transport for srp::Stream<'_> {
    fn write(&mut self, stream: u32, offset: u64, len: u64) {
        srp::Stream::write(self, stream, offset, len);
    }

    fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        srp::Stream::read_up_to(self, bytes)
    }

    fn close(&mut self) {
        srp::Stream::close(self);
    }

    fn unacknowledged(&self) -> u64 {
        srp::Stream::unacknowledged(self)
    }

    fn unsent(&self) -> u64 {
        srp::Stream::unsent(self)
    }

    fn readable(&self) -> u64 {
        srp::Stream::readable(self)
    }

    fn segment_size(&self) -> u32 {
        srp::Stream::segment_size(self)
    }

    fn notify_at(&mut self, low_water: LowWater) {
        srp::Stream::notify_at(self, low_water);
    }

    fn abort(&mut self) {
        srp::Stream::abort(self);
    }

    fn hold_end(&mut self) {
        srp::Stream::hold_end(self);
    }

    fn release_end(&mut self, now: Time) {
        srp::Stream::release_end(self, now);
    }
}

/// The program at one end of one connection, of our TCP unless `C` says otherwise.
///
/// All times are those of the connection's own clock ([`Connection::clock`]): if both are restored
/// elsewhere ([`Host::adopt`]), the times that an application has stored stay valid.
///
/// [`Host::adopt`]: crate::Host::adopt
pub trait Application<C = Connection> {
    /// Handles events: reads, writes or closes.
    ///
    /// It is called again for events that its own calls have caused, for instance
    /// [`Events::CLOSED`] after [`Connection::abort`].
    fn handle(&mut self, now: Time, connection: &mut C, events: Events);

    /// Takes data in order, as if it had just been read; or refuses it without effect and returns
    /// false. It is called if data is the only event. It does nothing else: it neither writes nor
    /// closes, and [`Application::next_wake`] stays the same. An application that reads only in
    /// [`Application::handle`] returns false; its connection then leaves the fast path with every
    /// segment of data.
    #[inline(always)]
    fn take(&mut self, now: Time, payload: Payload) -> bool {
        let _ = (now, payload);
        false
    }

    /// Whether the application requests the owner of its host ([`Host::poll_request`]), who can reach
    /// another connection: a relay's two ends do so. Asked after each call other than
    /// [`Application::take`].
    ///
    /// [`Host::poll_request`]: crate::Host::poll_request
    #[inline]
    fn requests(&self) -> bool {
        false
    }

    /// When [`Application::wake`] is to be called; it may change with any other call. After a wake
    /// it must be later than that wake. There are no wakes after the end of the connection.
    #[inline]
    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// Handles the wake at [`Application::next_wake`].
    fn wake(&mut self, now: Time, connection: &mut C) {
        let _ = (now, connection);
    }

    /// Bytes of memory that it keeps for the payload of its connection, both ways. They count as
    /// the connection's ([`Host::memory`]).
    ///
    /// [`Host::memory`]: crate::Host::memory
    #[inline]
    fn memory(&self) -> u64 {
        0
    }

    /// Takes note of the memory pressure of its host, if memory is limited.
    #[inline]
    fn set_pressure(&mut self, pressure: Pressure) {
        let _ = pressure;
    }
}

/// The payload bytes of an [`Application`]'s connection, where packets carry bytes. Applications of
/// the simulator have none.
pub trait Bytes {
    /// Writes the bytes of `payload` into `out`, which is as long. The application has given them
    /// to [`Connection::write`], and not all are acknowledged.
    fn fetch(&self, payload: Payload, out: &mut [u8]);

    /// Calls `piece` with the same bytes in the application's memory, one piece after the other.
    /// Does nothing and returns false if they are not stored but generated by [`Bytes::fetch`].
    fn lend<'a>(&'a self, payload: Payload, piece: &mut dyn FnMut(&'a [u8])) -> bool {
        let _ = (payload, piece);
        false
    }

    /// Stores `bytes`, whose first is number `place` of the peer's stream. They lie in the receive
    /// window, counted from the first unread byte, so that a ring of the window's size is enough. A
    /// place may be stored twice; bytes that the connection has refused are not passed.
    fn store(&mut self, place: u64, bytes: &[u8]);

    /// Stores a range of a buffer like [`Bytes::store`]. It may keep the buffer instead of a copy of
    /// the bytes; otherwise it returns the buffer.
    fn keep(&mut self, place: u64, buffer: Vec<u8>, range: Range<usize>) -> Option<Vec<u8>> {
        self.store(place, &buffer[range]);
        Some(buffer)
    }

    /// The peer has acknowledged bytes: of those written, only the last `unacknowledged` are still
    /// needed.
    fn release(&mut self, unacknowledged: u64) {
        let _ = unacknowledged;
    }
}
