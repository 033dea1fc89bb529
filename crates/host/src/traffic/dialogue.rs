//! Two ends that wait for each other.

use super::Sink;
use crate::Application;
use base::{Duration, Time};
use tcp::{Connection, Events};

/// Requests and responses of fixed sizes over one connection, with time to think between them:
/// on-off traffic, limited by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialogue {
    /// Bytes in a request, at least 1.
    pub request: u64,
    /// Bytes in a response, at least 1.
    pub response: u64,
    /// From the end of a response to the next request.
    pub think: Duration,
    /// How many requests there are.
    pub rounds: u64,
}

/// The end that asks, and closes after the last response.
#[derive(Clone, Debug)]
pub struct Requester {
    dialogue: Dialogue,
    stream: u32,
    asked: u64,
    next: Time,
    /// The responses.
    pub sink: Sink,
    /// How many responses have come whole.
    pub answered: u64,
}

/// The end that answers.
#[derive(Clone, Debug)]
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
        let sink = Sink::new(stream);
        Requester { dialogue, stream, asked: 0, next: Time::NEVER, sink, answered: 0 }
    }

    fn ask(&mut self, connection: &mut Connection) {
        self.next = Time::NEVER;
        if self.asked == self.dialogue.rounds {
            return connection.close();
        }
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
            self.ask(connection);
        }
        while let Some(payload) = connection.read() {
            self.sink.take(payload);
        }
        if self.answered < self.asked && self.sink.received >= self.asked * self.dialogue.response {
            self.answered = self.asked;
            if self.asked == self.dialogue.rounds {
                connection.close();
            } else {
                self.next = now + self.dialogue.think;
            }
        }
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, _: Time, connection: &mut Connection) {
        self.ask(connection);
    }
}

impl Application for Responder {
    fn handle(&mut self, _: Time, connection: &mut Connection, events: Events) {
        while let Some(payload) = connection.read() {
            self.sink.take(payload);
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
}
