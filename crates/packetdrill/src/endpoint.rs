//! The application of a connection: the part of a socket that its events change.

use base::Time;
use host::Application;
use rustix::io::Errno;
use std::os::fd::RawFd;
use tcp::{Connection, Events};
use wire::Payload;

/// The state of a socket that its connection's events change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endpoint {
    /// The listening socket that it came from.
    pub(crate) listener: Option<RawFd>,
    /// A system call has returned it.
    pub(crate) accepted: bool,
    pub(crate) established: bool,
    /// Data that was accepted with the peer's SYN (Fast Open).
    pub(crate) had_syn_data: bool,
    /// The peer has sent a FIN, and everything before it has arrived.
    pub(crate) peer_closed: bool,
    /// The error with which it ended, until it is read (`SO_ERROR`).
    pub(crate) error: Option<Errno>,
    /// The number of events so far, for epoll's edge triggering.
    pub(crate) changes: u64,
    /// When data has come last, or before any, when it was established.
    pub(crate) data_at: Option<Time>,
    /// The stream of written bytes ([`crate::Stack`]).
    pub(crate) stream: Option<u32>,
}

impl Application for Endpoint {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        self.changes += 1;
        // A client of Fast Open has written what goes with its SYN, and waits for the answer.
        let early = self.listener.is_none() && !connection.is_confirmed();
        let opened = events.intersects(Events::CONNECTED | Events::CONFIRMED);
        self.established |= opened && !early;
        self.had_syn_data |= self.listener.is_some()
            && !connection.is_confirmed()
            && events.contains(Events::CONNECTED | Events::READABLE);
        self.peer_closed |= events.contains(Events::PEER_CLOSED);
        if events.contains(Events::RESET) {
            let refused = if self.established { Errno::CONNRESET } else { Errno::CONNREFUSED };
            self.error = Some(refused);
        } else if events.contains(Events::TIMED_OUT) {
            self.error = Some(Errno::TIMEDOUT);
        } else if events.contains(Events::UNREACHABLE) {
            self.error = Some(Errno::CONNREFUSED);
        }
        if events.intersects(Events::READABLE | Events::CONNECTED) {
            self.data_at = Some(now);
        }
    }

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }
}
