//! A receiver that takes its time.

use super::Sink;
use crate::traffic::{Progress, Reports};
use crate::{Application, Transport};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};
use tcp::Events;

/// Reads a chunk of a stream at regular times: a receiver that is limited by what it can take. The
/// sender meets closed windows once the receive buffer is full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SlowSink {
    /// What it has read so far.
    pub sink: Sink,
    chunk: u32,
    interval: Duration,
    next: Time,
    peer_closed: bool,
}

impl SlowSink {
    /// A reader into `sink` that reads up to `chunk` bytes (at least 1), for the first time an
    /// `interval` (at least a nanosecond) after the first have come, then each `interval`.
    #[must_use]
    pub fn new(sink: Sink, chunk: u32, interval: Duration) -> SlowSink {
        SlowSink {
            sink,
            chunk: chunk.max(1),
            interval: interval.max(Duration::from_nanos(1)),
            next: Time::NEVER,
            peer_closed: false,
        }
    }

    fn finish(&mut self, now: Time, connection: &mut impl Transport) {
        self.next = Time::NEVER;
        if self.peer_closed {
            self.sink.finish(now);
            connection.close();
        }
    }
}

impl Reports for SlowSink {
    fn progress(&self) -> Progress<'_> {
        self.sink.progress()
    }
}

impl<C: Transport> Application<C> for SlowSink {
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        self.peer_closed |= events.contains(Events::PEER_CLOSED);
        if self.next != Time::NEVER {
            return;
        }
        if events.contains(Events::READABLE) {
            self.sink.first_at.get_or_insert(now);
            self.next = now + self.interval;
        } else if events.contains(Events::PEER_CLOSED) {
            self.finish(now, connection);
        }
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, now: Time, connection: &mut C) {
        let mut room = self.chunk;
        while let Some(payload) = connection.read_up_to(room) {
            self.sink.check(now, payload);
            room -= payload.len;
        }
        if room > 0 {
            self.finish(now, connection);
        } else {
            self.next = now + self.interval;
        }
    }
}
