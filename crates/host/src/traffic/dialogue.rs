//! Two ends that wait for each other.

use super::Sink;
use crate::Application;
use base::{Duration, Histogram, Time};
use serde::{Deserialize, Serialize};
use tcp::{Connection, Events};
use wire::Payload;

/// Requests and responses of fixed sizes over one connection, with time to think between them:
/// on-off traffic, limited by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialogue {
    /// Bytes in a request, at least 1.
    pub request: u64,
    /// Bytes in a response, at least 1.
    pub response: u64,
    /// From the end of a response to the next request.
    pub think: Duration,
    /// How many requests there are; without end for `None`.
    pub rounds: Option<u64>,
}

/// The end that asks, and closes after the last response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Requester {
    dialogue: Dialogue,
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
    dialogue: Dialogue,
    stream: u32,
    answered: u64,
    /// The requests.
    pub sink: Sink,
}

impl Requester {
    /// The end of `dialogue` that asks. Both directions are called `stream`.
    #[must_use]
    pub fn new(stream: u32, dialogue: Dialogue) -> Requester {
        Requester {
            dialogue,
            stream,
            asked: 0,
            asked_at: Time::ZERO,
            next: Time::NEVER,
            sink: Sink::new(stream),
            responses: Histogram::default(),
        }
    }

    fn is_last(&self) -> bool {
        self.dialogue.rounds.is_some_and(|rounds| self.asked >= rounds)
    }

    fn ask(&mut self, now: Time, connection: &mut Connection) {
        self.next = Time::NEVER;
        if self.is_last() {
            return connection.close();
        }
        self.asked_at = now;
        let request = self.dialogue.request;
        connection.write(self.stream, self.asked * request, request);
        self.asked += 1;
    }
}

impl Responder {
    /// The end of `dialogue` that answers.
    #[must_use]
    pub fn new(stream: u32, dialogue: Dialogue) -> Responder {
        Responder { dialogue, stream, answered: 0, sink: Sink::new(stream) }
    }
}

impl Application for Requester {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        if events.contains(Events::CONNECTED) {
            self.ask(now, connection);
        }
        while let Some(payload) = connection.read() {
            self.sink.check(now, payload);
        }
        let whole = self.sink.received >= self.asked * self.dialogue.response;
        if whole && self.responses.count() < self.asked {
            self.responses.record(now.since(self.asked_at).as_nanos());
            if self.is_last() {
                self.sink.finished_at = Some(now);
                connection.close();
            } else {
                self.next = now + self.dialogue.think;
            }
        }
    }

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        self.ask(now, connection);
    }
}

impl Application for Responder {
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        while let Some(payload) = connection.read() {
            self.sink.check(now, payload);
        }
        let Dialogue { request, response, .. } = self.dialogue;
        while self.sink.received >= (self.answered + 1) * request {
            connection.write(self.stream, self.answered * response, response);
            self.answered += 1;
        }
        if events.contains(Events::PEER_CLOSED) {
            connection.close();
        }
    }

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }
}
