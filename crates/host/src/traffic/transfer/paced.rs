//! A sender that has nothing more to say.

use super::left;
use crate::traffic::Reports;
use crate::{Application, Transport};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};
use tcp::Events;

/// Writes a chunk of its stream at regular times, whether or not the last one has left, then
/// closes: a sender that is limited by what it has to send.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PacedSource {
    stream: u32,
    size: Option<u64>,
    chunk: u64,
    interval: Duration,
    written: u64,
    next: Time,
}

impl PacedSource {
    /// A source of `size` bytes of `stream`, without end for `None`: `chunk` bytes (at least 1) at a
    /// time, the first when the connection is established and the others `interval` (at least a
    /// nanosecond) apart.
    #[must_use]
    pub fn new(stream: u32, size: Option<u64>, chunk: u64, interval: Duration) -> PacedSource {
        let (chunk, interval) = (chunk.max(1), interval.max(Duration::from_nanos(1)));
        PacedSource { stream, size, chunk, interval, written: 0, next: Time::NEVER }
    }

    fn write(&mut self, now: Time, connection: &mut impl Transport) {
        let len = self.chunk.min(left(self.size, self.written));
        connection.write(self.stream, self.written, len);
        self.written += len;
        if left(self.size, self.written) > 0 {
            self.next = now + self.interval;
        } else {
            self.next = Time::NEVER;
            connection.close();
        }
    }
}

impl Reports for PacedSource {}

impl<C: Transport> Application<C> for PacedSource {
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        if events.contains(Events::CONNECTED) {
            self.write(now, connection);
        }
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, now: Time, connection: &mut C) {
        self.write(now, connection);
    }
}
