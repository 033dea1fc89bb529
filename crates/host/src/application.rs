//! What uses a connection.

use base::Time;
use tcp::{Connection, Events};

/// The program at one end of one connection.
pub trait Application {
    /// Something has happened: read, write or close.
    ///
    /// It is called again for what its own calls have brought about, [`Events::CLOSED`] after
    /// [`Connection::abort`] for instance.
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events);

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
