//! Two ends that wait for each other.

use super::{Ends, Place, Progress, Reports, Role, Sink, Traffic};
use crate::{Application, Transport};
use base::settings::{Bytes, Kind, Span};
use base::{Duration, Histogram, Time};
use serde::{Deserialize, Serialize};
use tcp::Events;

base::settings! {
    /// Requests and responses of fixed sizes over one connection, with time to think between them:
    /// on-off traffic, limited by the application.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Requests {
        /// Bytes of a request.
        pub request: Bytes,
        /// Bytes of a response.
        pub response: Bytes,
        /// From the end of a response to the next request; none if absent.
        pub think: Option<Span>,
        /// The number of requests; without end if absent.
        pub count: Option<u64> as Kind::at_least(1),
    }
}

impl Default for Requests {
    /// Pages of the web.
    fn default() -> Requests {
        Requests { request: Bytes(300), response: Bytes(20_000), think: None, count: None }
    }
}

impl Ends for Requests {
    fn ends(&self, place: &Place) -> [Traffic; 2] {
        let mut requester = Requester::new(place.stream, *self);
        let mut responder = Responder::new(place.stream, *self);
        (requester.sink, responder.sink) = (place.sink(), place.sink());
        [responder.into(), requester.into()]
    }

    fn opener(&self) -> Role {
        Role::Receiver
    }

    fn least_time(&self, carry: &dyn Fn(Role, u64) -> Duration) -> Option<Duration> {
        Some(carry(Role::Receiver, self.request.0) + carry(Role::Sender, self.response.0))
    }
}

/// The end that asks, and closes after the last response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Requester {
    requests: Requests,
    stream: u32,
    /// How many requests it has written.
    pub asked: u64,
    asked_at: Time,
    next: Time,
    /// The responses.
    pub sink: Sink,
    /// How long each response took that has come whole, from its request on, nanoseconds.
    pub responses: Histogram,
}

/// The end that answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Responder {
    requests: Requests,
    stream: u32,
    answered: u64,
    /// The requests.
    pub sink: Sink,
}

impl Requester {
    /// The end of a dialogue that asks. Both directions are called `stream`.
    #[must_use]
    pub fn new(stream: u32, requests: Requests) -> Requester {
        Requester {
            requests,
            stream,
            asked: 0,
            asked_at: Time::ZERO,
            next: Time::NEVER,
            sink: Sink::new(stream),
            responses: Histogram::default(),
        }
    }

    fn is_last(&self) -> bool {
        self.requests.count.is_some_and(|count| self.asked >= count)
    }

    fn ask(&mut self, now: Time, connection: &mut impl Transport) {
        self.next = Time::NEVER;
        if self.is_last() {
            return connection.close();
        }
        self.asked_at = now;
        let request = self.requests.request.0;
        connection.write(self.stream, self.asked * request, request);
        self.asked += 1;
    }
}

impl Responder {
    /// The end of a dialogue that answers.
    #[must_use]
    pub fn new(stream: u32, requests: Requests) -> Responder {
        Responder { requests, stream, answered: 0, sink: Sink::new(stream) }
    }
}

impl Reports for Requester {
    fn progress(&self) -> Progress<'_> {
        let Requester { sink, asked, responses, .. } = self;
        Progress { sink: Some(sink), started: *asked, times: Some(responses) }
    }
}

impl Reports for Responder {
    fn progress(&self) -> Progress<'_> {
        self.sink.progress()
    }
}

impl<C: Transport> Application<C> for Requester {
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        if events.contains(Events::CONNECTED) {
            self.ask(now, connection);
        }
        while let Some(payload) = connection.read() {
            self.sink.check(now, payload);
        }
        let whole = self.sink.received >= self.asked * self.requests.response.0;
        if whole && self.responses.count() < self.asked {
            self.responses.record(now.since(self.asked_at).as_nanos());
            if self.is_last() {
                self.sink.finished_at = Some(now);
                connection.close();
            } else {
                let think = self.requests.think.map_or(Duration::ZERO, |think| think.0);
                self.next = now + think;
            }
        }
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, now: Time, connection: &mut C) {
        self.ask(now, connection);
    }
}

impl<C: Transport> Application<C> for Responder {
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        while let Some(payload) = connection.read() {
            self.sink.check(now, payload);
        }
        let (Bytes(request), Bytes(response)) = (self.requests.request, self.requests.response);
        while self.sink.received >= (self.answered + 1) * request {
            connection.write(self.stream, self.answered * response, response);
            self.answered += 1;
        }
        if events.contains(Events::PEER_CLOSED) {
            connection.close();
        }
    }
}
