//! What uses a connection.

use base::Time;
use tcp::{Connection, Events};
use wire::Payload;

/// The program at one end of one connection.
///
/// All times are those of the connection's own clock ([`Connection::clock`]): if both are restored
/// elsewhere ([`Host::adopt`]), what an application remembers and waits for stays right.
///
/// [`Host::adopt`]: crate::Host::adopt
pub trait Application {
    /// Something has happened: read, write or close.
    ///
    /// It is called again for what its own calls have brought about, [`Events::CLOSED`] after
    /// [`Connection::abort`] for instance.
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events);

    /// Takes data in order, as if it had just been read; false if it does not want to, which changes
    /// nothing. It is asked when it would hear of nothing else, and does nothing else: it neither
    /// writes nor closes, and is not to be woken at another time than before. An application that
    /// only ever reads by [`Application::handle`] says false; its connection then leaves the fast
    /// path with every segment of data.
    fn take(&mut self, now: Time, payload: Payload) -> bool;

    /// When [`Application::wake`] is to be called; it may change with any other call. Once woken,
    /// it must be later than the time of that. Nobody is woken after the end of the connection.
    #[inline]
    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// The time has come that [`Application::next_wake`] gave.
    fn wake(&mut self, now: Time, connection: &mut Connection) {
        let _ = (now, connection);
    }
}

/// The bytes behind the payloads of an [`Application`]'s connection, in a world whose packets carry
/// any. Applications of the simulator have none.
pub trait Bytes {
    /// Writes the bytes of `payload`, which the application has given to [`Connection::write`] and
    /// which have not all been acknowledged, into `out`, which is as long.
    fn fetch(&self, payload: Payload, out: &mut [u8]);

    /// The same bytes where they are, in two pieces of which either may be empty. `None` if they are
    /// not kept anywhere, but made by [`Bytes::fetch`].
    fn lend(&self, payload: Payload) -> Option<[&[u8]; 2]> {
        let _ = payload;
        None
    }

    /// Keeps `bytes`, whose first is number `place` of the peer's stream. They lie in the receive
    /// window, counted from the first byte that has not been read, so that a ring as large as that
    /// is enough. A place may come twice; none comes that the connection has refused.
    fn store(&mut self, place: u64, bytes: &[u8]);
}
