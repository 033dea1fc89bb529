//! What uses a connection.

use base::Time;
use tcp::{Connection, Events};

/// The program at one end of one connection.
pub trait Application {
    /// Something has happened: read, write or close.
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events);
}
