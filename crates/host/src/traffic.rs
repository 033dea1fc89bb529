//! Applications: those of a bulk transfer, and those that are limited by themselves. Besides,
//! datagrams, which need no connection.

mod buffered;
mod datagrams;
mod dialogue;
mod paced;
mod slow;

pub use buffered::BufferedSource;
pub use datagrams::{DatagramFlow, DatagramSink, DatagramSource, OnOff};
pub use dialogue::{Dialogue, Requester, Responder};
pub use paced::PacedSource;
pub use slow::SlowSink;

use crate::Application;
use base::Time;
use serde::{Deserialize, Serialize};
use tcp::{Connection, Events};
use wire::Payload;

/// Any of the applications.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Traffic {
    /// Sends as fast as TCP lets it.
    Source(Source),
    /// Sends at its own pace.
    Paced(PacedSource),
    /// Sends out of a small buffer.
    Buffered(BufferedSource),
    /// Receives.
    Sink(Sink),
    /// Receives at its own pace.
    Slow(SlowSink),
    /// Asks.
    Requester(Box<Requester>),
    /// Answers.
    Responder(Responder),
}

impl Traffic {
    /// What has come, at the end that data is for: of a dialogue, that which asks.
    #[must_use]
    pub fn sink(&self) -> Option<&Sink> {
        match self {
            Traffic::Sink(sink) => Some(sink),
            Traffic::Slow(slow) => Some(&slow.sink),
            Traffic::Requester(requester) => Some(&requester.sink),
            Traffic::Source(_) | Traffic::Paced(_) | Traffic::Buffered(_) => None,
            Traffic::Responder(_) => None,
        }
    }

    /// Lets it take whatever stream comes first, where packets do not say of which stream they are.
    pub fn expect_any(&mut self) {
        let sink = match self {
            Traffic::Sink(sink) => sink,
            Traffic::Slow(slow) => &mut slow.sink,
            Traffic::Requester(requester) => &mut requester.sink,
            Traffic::Responder(responder) => &mut responder.sink,
            Traffic::Source(_) | Traffic::Paced(_) | Traffic::Buffered(_) => return,
        };
        sink.stream = None;
    }
}

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
    fn check(&mut self, now: Time, payload: Payload) {
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
    fn finish(&mut self, now: Time) {
        self.finished_at = self.last_at.or(Some(now));
    }
}

/// A stream that no simulation exhausts.
const ENDLESS: u64 = 1 << 62;

/// How much of a stream of `size` bytes is left.
fn left(size: Option<u64>, written: u64) -> u64 {
    size.unwrap_or(ENDLESS) - written
}

impl Application for Traffic {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        match self {
            Traffic::Sink(sink) => sink.handle(now, connection, events),
            Traffic::Source(source) => source.handle(now, connection, events),
            Traffic::Paced(paced) => paced.handle(now, connection, events),
            Traffic::Buffered(buffered) => buffered.handle(now, connection, events),
            Traffic::Slow(slow) => slow.handle(now, connection, events),
            Traffic::Requester(requester) => requester.handle(now, connection, events),
            Traffic::Responder(responder) => responder.handle(now, connection, events),
        }
    }

    #[inline(always)]
    fn take(&mut self, now: Time, payload: Payload) -> bool {
        match self {
            Traffic::Sink(sink) => sink.take(now, payload),
            _ => false,
        }
    }

    #[inline]
    fn next_wake(&self) -> Time {
        match self {
            Traffic::Sink(_) | Traffic::Source(_) => Time::NEVER,
            Traffic::Buffered(_) | Traffic::Responder(_) => Time::NEVER,
            Traffic::Paced(paced) => paced.next_wake(),
            Traffic::Slow(slow) => slow.next_wake(),
            Traffic::Requester(requester) => requester.next_wake(),
        }
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        match self {
            Traffic::Sink(_) | Traffic::Source(_) => {}
            Traffic::Buffered(_) | Traffic::Responder(_) => {}
            Traffic::Paced(paced) => paced.wake(now, connection),
            Traffic::Slow(slow) => slow.wake(now, connection),
            Traffic::Requester(requester) => requester.wake(now, connection),
        }
    }
}

impl Application for Source {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
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

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }
}

impl Application for Sink {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
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
