//! Requests and answers of a base station, between its thread and those that carry them.

use super::Guests;
use base::{Random, Time};
use middlebox::mhp::{Answer, Exchange, Received, Request, Transferred};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use wire::Payload;

/// Names a request of another base station.
pub(crate) type Requester = u64;

/// What is to be carried to another base station.
pub(crate) enum Letter {
    /// A request.
    Request(Request, IpAddr),
    /// The answer to one, with the payloads that the connections hold.
    Answer(Requester, Box<Answer>, Vec<Payload>),
}

/// What arrives, and what is to be carried.
pub(crate) struct Mailbox {
    outgoing: Vec<Letter>,
    incoming: VecDeque<Transferred<Requester>>,
    received: Received,
    /// Requests that have no answer yet.
    asked: usize,
    /// Tells that there is something to be carried.
    bell: Sender<()>,
    guests: Arc<Guests>,
}

impl Mailbox {
    pub(crate) fn new(bell: Sender<()>, guests: Arc<Guests>) -> Mailbox {
        let (outgoing, incoming) = (Vec::new(), VecDeque::new());
        Mailbox { outgoing, incoming, received: Received::default(), asked: 0, bell, guests }
    }

    fn post(&mut self, letter: Letter) {
        self.outgoing.push(letter);
        // Without one who listens, nothing is carried, and requests remain without an answer.
        let _ = self.bell.send(());
    }

    /// What is to be carried.
    pub(crate) fn take(&mut self) -> Vec<Letter> {
        std::mem::take(&mut self.outgoing)
    }

    /// Something has arrived, in so many bytes. The middlebox is to be woken.
    pub(crate) fn deliver(&mut self, arrived: Transferred<Requester>, bytes: Received) {
        if matches!(arrived, Transferred::Answer(..)) {
            self.asked = self.asked.saturating_sub(1);
        }
        self.received.state += bytes.state;
        self.received.data += bytes.data;
        self.incoming.push_back(arrived);
    }
}

impl Exchange for Mailbox {
    type Requester = Requester;

    fn anew(&self, _: Random) -> Mailbox {
        Mailbox::new(self.bell.clone(), Arc::clone(&self.guests))
    }

    fn ask(&mut self, _: Time, request: &Request, from: IpAddr) -> bool {
        self.asked += 1;
        self.post(Letter::Request(*request, from));
        true
    }

    fn answer(&mut self, _: Time, to: Requester, answer: Answer, data: Vec<Payload>) {
        self.post(Letter::Answer(to, Box::new(answer), data));
    }

    fn poll(&mut self, _: Time) -> Option<Transferred<Requester>> {
        self.incoming.pop_front()
    }

    fn forget(&mut self, mobile: IpAddr) {
        self.guests.leave(mobile);
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        for letter in &self.outgoing {
            if let Letter::Answer(_, _, data) = letter {
                data.iter().for_each(|payload| held(*payload));
            }
        }
    }

    fn received(&self) -> Received {
        self.received
    }

    fn open(&self) -> usize {
        self.asked + self.outgoing.len()
    }
}
