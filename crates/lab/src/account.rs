//! What is known of one end of a connection, whoever played it.

use crate::stage::{End, Errand};
use base::{Histogram, Time};
use core::ops::AddAssign;
use tcp::{Connection, State};

/// One end of a connection, at its end or at the end of the run.
#[derive(Clone, Debug)]
pub struct Account {
    /// What the end did.
    pub part: Part,
    /// Which connection of the flow it was: both ends say the same, and no other connection of the
    /// flow does at the same time.
    pub transfer: u64,
    /// The connection is over.
    pub over: bool,
    /// Runs of bytes that were not what was to come next, and bytes that were wrong.
    pub misplaced: u64,
}

/// What an end of a connection did.
#[derive(Clone, Debug)]
pub enum Part {
    /// It sent data.
    Sender {
        /// What it was to send, unless it only answers.
        errand: Option<Errand>,
        /// What it counted.
        counts: Counts,
    },
    /// It received data.
    Receiver {
        /// Bytes, in order.
        received: u64,
        /// When the last byte came, once it is known to have been the last.
        finished_at: Option<Time>,
    },
    /// It asked.
    Requester {
        /// Bytes of responses, in order.
        received: u64,
        /// How many requests it made.
        asked: u64,
        /// How long each response took that came whole, nanoseconds.
        responses: Histogram,
        /// When the last one came.
        finished_at: Option<Time>,
    },
}

/// What a sender counted; `None` is what it does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Segments sent, retransmissions included.
    pub segments: Option<u64>,
    /// Segments sent again.
    pub retransmissions: Option<u64>,
    /// Expiries of the retransmission timer.
    pub timeouts: Option<u64>,
    /// Reductions of the window, those by timeouts not counted.
    pub reductions: Option<u64>,
    /// Notices of corruption that led to a retransmission.
    pub notices: Option<u64>,
    /// How often it began anew because its path had changed.
    pub reprobes: Option<u64>,
}

impl Counts {
    /// Nothing happened.
    pub const ZERO: Counts = Counts {
        segments: Some(0),
        retransmissions: Some(0),
        timeouts: Some(0),
        reductions: Some(0),
        notices: Some(0),
        reprobes: Some(0),
    };
}

impl Default for Counts {
    fn default() -> Counts {
        Counts::ZERO
    }
}

impl From<tcp::Statistics> for Counts {
    fn from(counts: tcp::Statistics) -> Counts {
        Counts {
            segments: Some(counts.segments),
            retransmissions: Some(counts.retransmissions),
            timeouts: Some(counts.timeouts),
            reductions: Some(counts.reductions),
            notices: Some(counts.notices),
            reprobes: Some(counts.reprobes),
        }
    }
}

/// A sum of what is known and what is not is not known.
impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let add = |sum: &mut Option<u64>, one: Option<u64>| {
            *sum = sum.zip(one).map(|(sum, one)| sum + one);
        };
        add(&mut self.segments, other.segments);
        add(&mut self.retransmissions, other.retransmissions);
        add(&mut self.timeouts, other.timeouts);
        add(&mut self.reductions, other.reductions);
        add(&mut self.notices, other.notices);
        add(&mut self.reprobes, other.reprobes);
    }
}

/// By what the two ends of a connection are known to belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// By the stream of the bytes, which simulated packets carry.
    Stream,
    /// By the port of the end that opened the connection.
    ClientPort,
}

impl Account {
    /// What is known of an end that our stack played.
    pub(crate) fn of(pairing: Pairing, connection: &Connection, end: &End) -> Account {
        let over = connection.state() == State::Closed;
        let stream = || end.traffic.sink().and_then(|sink| sink.stream);
        let stream = || end.errand.map(|errand| errand.stream).or_else(stream).map(u64::from);
        let transfer = match pairing {
            // An end that has heard of no stream belongs to none.
            Pairing::Stream => stream().unwrap_or(u64::MAX),
            Pairing::ClientPort => u64::from(connection.client_port()),
        };
        let sink = end.traffic.sink();
        let (part, misplaced) = match (&end.traffic, sink) {
            (host::Traffic::Requester(requester), _) => {
                let part = Part::Requester {
                    received: requester.sink.received,
                    asked: requester.asked,
                    responses: requester.responses.clone(),
                    finished_at: requester.sink.finished_at,
                };
                (part, requester.sink.misplaced)
            }
            (_, Some(sink)) => {
                let (received, finished_at) = (sink.received, sink.finished_at);
                (Part::Receiver { received, finished_at }, sink.misplaced)
            }
            (traffic, None) => {
                let counts = connection.statistics().into();
                let misplaced = match traffic {
                    host::Traffic::Responder(responder) => responder.sink.misplaced,
                    _ => 0,
                };
                (Part::Sender { errand: end.errand, counts }, misplaced)
            }
        };
        Account { part, transfer, over, misplaced: misplaced + end.wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_what_is_not_known_is_not_known() {
        let mut sum = Counts::ZERO;
        sum += Counts { segments: Some(3), timeouts: None, ..Counts::ZERO };
        sum += Counts { segments: Some(4), timeouts: Some(1), ..Counts::ZERO };
        assert_eq!((sum.segments, sum.timeouts, sum.notices), (Some(7), None, Some(0)));
    }
}
