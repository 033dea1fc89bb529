//! The ends of a transfer that TCP alone limits.

use super::{Progress, Reports, left};
use crate::{Application, Transport};
use base::Time;
use serde::{Deserialize, Serialize};
use tcp::Events;
use wire::Payload;

/// Writes a stream of a given size, then closes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Source {
    stream: u32,
    /// Bytes; `None` never ends.
    size: Option<u64>,
    /// When the connection was over, all data acknowledged.
    pub closed_at: Option<Time>,
}

/// Reads a stream and checks that every byte comes, in order, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sink {
    /// The stream that is expected; `None` until something has come, if it can be any.
    pub stream: Option<u32>,
    /// Bytes received in order.
    pub received: u64,
    /// Runs of bytes that were not the next ones of the stream. Anything but 0 is a bug in TCP.
    pub misplaced: u64,
    /// When the first byte came.
    pub first_at: Option<Time>,
    /// When the last byte came.
    last_at: Option<Time>,
    /// When the last byte of the stream came, once it is known to have been the last.
    pub finished_at: Option<Time>,
}

impl Source {
    /// A source of `size` bytes of `stream`; without end for `None`.
    #[must_use]
    pub fn new(stream: u32, size: Option<u64>) -> Source {
        Source { stream, size, closed_at: None }
    }
}

impl Sink {
    /// A sink for `stream`.
    #[must_use]
    pub fn new(stream: u32) -> Sink {
        Sink {
            stream: Some(stream),
            received: 0,
            misplaced: 0,
            first_at: None,
            last_at: None,
            finished_at: None,
        }
    }

    /// A sink for whatever stream comes first, and for no other.
    #[must_use]
    pub fn of_any() -> Sink {
        Sink { stream: None, ..Sink::new(0) }
    }

    #[inline]
    pub(super) fn check(&mut self, now: Time, payload: Payload) {
        self.first_at.get_or_insert(now);
        self.last_at = Some(now);
        if payload.stream != *self.stream.get_or_insert(payload.stream)
            || payload.offset != self.received
        {
            self.misplaced += 1;
        }
        self.received += u64::from(payload.len);
    }

    /// The sender has said that nothing follows, and all has been read.
    pub(super) fn finish(&mut self, now: Time) {
        self.finished_at = self.last_at.or(Some(now));
    }
}

impl Reports for Source {}

impl Reports for Sink {
    fn progress(&self) -> Progress<'_> {
        Progress { sink: Some(self), ..Progress::default() }
    }
}

impl<C: Transport> Application<C> for Source {
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        if events.contains(Events::CONNECTED) {
            connection.write(self.stream, 0, left(self.size, 0));
            if self.size.is_some() {
                connection.close();
            }
        }
        // The sink closes when it has everything.
        if events.contains(Events::PEER_CLOSED) {
            self.closed_at = Some(now);
        }
    }
}

impl<C: Transport> Application<C> for Sink {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        if events.contains(Events::READABLE) {
            while let Some(payload) = connection.read() {
                self.check(now, payload);
            }
        }
        if events.contains(Events::PEER_CLOSED) {
            self.finish(now);
            connection.close();
        }
    }

    #[inline(always)]
    fn take(&mut self, now: Time, payload: Payload) -> bool {
        self.check(now, payload);
        true
    }
}
