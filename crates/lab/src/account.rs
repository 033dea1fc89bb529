//! The account of one end of a connection, of our stack or the kernel's.

use base::{Histogram, Time};
use core::ops::AddAssign;
use host::{Progress, Reports as _, Role};
use scenario::{End, TransferSpec};
use tcp::{Connection, RoundTrips, State};

/// One end of a connection, when it closes or at the end of the run.
#[derive(Clone, Debug)]
pub struct Account {
    /// What the end did.
    pub part: Part,
    /// The connection's number in the flow: the same at both ends, and of no other connection of
    /// the flow at the same time.
    pub transfer: u64,
    /// Whether the connection is closed.
    pub over: bool,
    /// Byte ranges that were not the next of the stream, and wrong bytes.
    pub misplaced: u64,
    /// Requests or messages that this end began.
    pub started: u64,
    /// The times of those of which it has seen the end, nanoseconds; `None` if the other end does.
    pub times: Option<Histogram>,
}

/// What an end of a connection did.
#[derive(Clone, Debug)]
pub enum Part {
    /// It sent the flow's data.
    Sender {
        /// Its transfer, if the connection is one.
        spec: Option<TransferSpec>,
        /// When all of it was acknowledged.
        acknowledged_at: Option<Time>,
        /// Its counts.
        counts: Counts,
        /// Its round trips, if they were measured.
        round_trips: Option<Box<RoundTrips>>,
    },
    /// It received the flow's data.
    Receiver {
        /// Bytes, in order.
        received: u64,
        /// When the last byte arrived, once it is known to be the last.
        finished_at: Option<Time>,
    },
}

/// The counts of a sender; `None` where its stack does not report one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Segments sent, retransmissions included.
    pub segments: Option<u64>,
    /// Retransmitted segments.
    pub retransmissions: Option<u64>,
    /// Expiries of the retransmission timer.
    pub timeouts: Option<u64>,
    /// Reductions of the window, those by timeouts not counted.
    pub reductions: Option<u64>,
    /// Notices of corruption that led to a retransmission.
    pub notices: Option<u64>,
    /// Restarts of the window because the path changed.
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

/// A sum with an unknown count is unknown.
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

/// How the two ends of a connection are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// By the stream of the bytes, which simulated packets carry.
    Stream,
    /// By the port of the end that opened the connection.
    ClientPort,
}

impl Account {
    /// The account of an end on our stack.
    pub(crate) fn of(pairing: Pairing, connection: &Connection, end: &End) -> Account {
        let over = connection.state() == State::Closed;
        let stream = || end.traffic.sink().and_then(|sink| sink.stream);
        let stream = || end.spec.map(|spec| spec.stream).or_else(stream).map(u64::from);
        let transfer = match pairing {
            // An end that received no data has no stream.
            Pairing::Stream => stream().unwrap_or(u64::MAX),
            Pairing::ClientPort => u64::from(connection.client_port()),
        };
        let round_trips = connection.round_trips().cloned().map(Box::new);
        Account::new(end, transfer, over, connection.statistics().into(), round_trips)
    }

    /// The account of an end of the connection with the number `transfer`.
    #[must_use]
    pub fn new(
        end: &End,
        transfer: u64,
        over: bool,
        counts: Counts,
        round_trips: Option<Box<RoundTrips>>,
    ) -> Account {
        let Progress { sink, started, times } = end.traffic.progress();
        let part = match end.role {
            Role::Sender => Part::Sender {
                spec: end.spec,
                acknowledged_at: end.acknowledged_at,
                counts,
                round_trips,
            },
            Role::Receiver => Part::Receiver {
                received: sink.map_or(0, |sink| sink.received),
                finished_at: sink.and_then(|sink| sink.finished_at),
            },
        };
        let misplaced = sink.map_or(0, |sink| sink.misplaced) + end.wrong;
        Account { part, transfer, over, misplaced, started, times: times.cloned() }
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
