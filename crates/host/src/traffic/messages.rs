//! Messages at regular times, which have to arrive soon: of a sensor, a game or a call over TCP.

use super::{Ends, Place, Progress, Reports, Role, Sink, Traffic};
use crate::{Application, Transport};
use base::settings::{Bytes, Kind, Span};
use base::{Duration, Histogram, Time};
use serde::{Deserialize, Serialize};
use tcp::Events;

base::settings! {
    /// A message is due every interval, from the start of the flow on, whether or not earlier ones
    /// have arrived. Its time ends with the arrival of its last byte.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Messages {
        /// Bytes of a message.
        pub size: Bytes,
        /// From one message to the next.
        pub interval: Span,
        /// The number of messages; without end if absent.
        pub count: Option<u64> as Kind::at_least(1),
    }
}

impl Default for Messages {
    /// 20 milliseconds of speech.
    fn default() -> Messages {
        let interval = Span(Duration::from_millis(20));
        Messages { size: Bytes(160), interval, count: None }
    }
}

impl Messages {
    /// When the message of a number is due, counted from 0.
    fn due(&self, start: Time, number: u64) -> Time {
        start + self.interval.0 * number
    }
}

impl Ends for Messages {
    fn ends(&self, place: &Place) -> [Traffic; 2] {
        let &Place { stream, start, .. } = place;
        let messages = *self;
        let sender = MessageSource { messages, stream, start, sent: 0, next: Time::NEVER };
        let sink = place.sink();
        let receiver = MessageSink { messages, start, sink, times: Histogram::default() };
        [sender.into(), receiver.into()]
    }

    fn least_time(&self, carry: &dyn Fn(Role, u64) -> Duration) -> Option<Duration> {
        Some(carry(Role::Sender, self.size.0))
    }
}

/// The end that sends messages, and closes after the last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageSource {
    messages: Messages,
    stream: u32,
    start: Time,
    sent: u64,
    next: Time,
}

/// The end that they arrive at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageSink {
    messages: Messages,
    start: Time,
    sink: Sink,
    times: Histogram,
}

impl MessageSource {
    /// Writes the messages that are due.
    fn write(&mut self, now: Time, connection: &mut impl Transport) {
        let Messages { size: Bytes(size), count, .. } = self.messages;
        self.next = self.messages.due(self.start, self.sent);
        while self.next <= now {
            connection.write(self.stream, self.sent * size, size);
            self.sent += 1;
            self.next = self.messages.due(self.start, self.sent);
            if Some(self.sent) == count {
                self.next = Time::NEVER;
                connection.close();
            }
        }
    }
}

impl Reports for MessageSource {
    fn progress(&self) -> Progress<'_> {
        Progress { started: self.sent, ..Progress::default() }
    }
}

impl Reports for MessageSink {
    fn progress(&self) -> Progress<'_> {
        Progress { sink: Some(&self.sink), started: 0, times: Some(&self.times) }
    }
}

impl<C: Transport> Application<C> for MessageSource {
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

impl<C: Transport> Application<C> for MessageSink {
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        while let Some(payload) = connection.read() {
            self.sink.check(now, payload);
        }
        while (self.times.count() + 1) * self.messages.size.0 <= self.sink.received {
            let due = self.messages.due(self.start, self.times.count());
            self.times.record(now.since(due).as_nanos());
        }
        if events.contains(Events::PEER_CLOSED) {
            self.sink.finish(now);
            connection.close();
        }
    }
}
