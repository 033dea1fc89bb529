//! What a connection tells those who watch it: one stream of typed events.
//!
//! Time series, traces, metrics and tests subscribe to the same events. Nobody listening costs one
//! branch per event. Sequence numbers are absolute: 0 is the SYN, 1 the first octet of data.

use crate::mechanism::{Signal, Verdict};
use crate::state::{State, Vitals};
use base::Duration;
use serde::Serialize;
use std::collections::VecDeque;
use wire::CopyId;

/// Something that has happened in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The state has changed.
    State {
        /// What it was.
        from: State,
        /// What it is.
        to: State,
    },
    /// A range was sent.
    Sent {
        /// Its first octet.
        start: u64,
        /// Octets of sequence space.
        len: u32,
        /// Which copy this is.
        copy: CopyId,
        /// Not for the first time.
        again: bool,
    },
    /// The peer has acknowledged everything before an octet.
    Acknowledged {
        /// SND.UNA
        una: u64,
        /// Octets newly known to have arrived, selectively acknowledged ones included.
        delivered: u64,
    },
    /// The peer holds a range beyond what it has acknowledged, and had not said so in its last
    /// acknowledgment (RFC 2018).
    Sacked {
        /// Its first octet.
        start: u64,
        /// The octet after its last.
        end: u64,
    },
    /// A round trip was measured.
    RoundTrip {
        /// It took this long.
        sample: Duration,
        /// The smoothed round trip.
        smoothed: Duration,
        /// The retransmission timeout that follows.
        rto: Duration,
    },
    /// A range is held to be lost.
    Loss {
        /// Its first octet.
        start: u64,
        /// The octet after its last.
        end: u64,
        /// How that was noticed.
        signal: Signal,
        /// What it means.
        verdict: Verdict,
    },
    /// The congestion window was reduced.
    Reduced {
        /// On what signal.
        signal: Signal,
        /// The window now, bytes.
        window: u64,
        /// The slow-start threshold now, bytes.
        ssthresh: u64,
    },
    /// A reduction turned out to be needless and was taken back.
    Undone {
        /// The window now, bytes.
        window: u64,
    },
    /// The path is another one: what was known of the old is forgotten (`koutsianas2007` §3.3).
    Reprobed {
        /// The window now, bytes.
        window: u64,
        /// What is outstanding is sent again.
        resends: bool,
    },
    /// The congestion episode is over.
    Recovered,
    /// The retransmission timer expired.
    TimedOut {
        /// How many in a row, for the same octet.
        series: u32,
        /// The next timeout.
        rto: Duration,
    },
    /// A closed window was probed.
    Probed,
    /// A silent peer was asked whether it is still there.
    KeptAlive {
        /// Unanswered probes so far.
        probes: u32,
    },
    /// A suspicious segment was answered by a challenge (RFC 5961).
    Challenged,
    /// A segment that arrived was dropped.
    Refused {
        /// Why.
        why: Refusal,
    },
    /// The vitals have changed. Made for whoever watches, after everything else.
    Vitals(Vitals),
}

/// Why an arriving segment was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It lies outside the receive window (RFC 9293 §3.10.7.4, first).
    OutsideWindow,
    /// Its timestamp is older than one seen before (PAWS, RFC 7323 §5.3).
    OldTimestamp,
    /// It carries no timestamp although they were agreed on (RFC 7323 §3.2).
    NoTimestamp,
    /// A reset that does not name the very next octet (RFC 5961 §3).
    BlindReset,
    /// A SYN in a connection that is open (RFC 5961 §4).
    BlindSyn,
    /// It acknowledges nothing.
    NoAck,
    /// It acknowledges what was never sent, or what lies too far back (RFC 5961 §5).
    BadAck,
    /// A reset in TIME-WAIT (RFC 1337).
    TimeWaitReset,
    /// Data beyond a gap for which the reassembly queue has no entry left, or the host no memory.
    QueueFull,
}

/// Where a connection writes its events, if anybody wants them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    events: Option<VecDeque<Event>>,
    vitals: Option<Vitals>,
}

impl Log {
    /// Starts or stops keeping events.
    pub(crate) fn keep(&mut self, keep: bool) {
        *self = Log { events: keep.then(VecDeque::new), vitals: None };
    }

    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.events.is_some()
    }

    /// Something has happened.
    #[inline]
    pub(crate) fn push(&mut self, event: impl FnOnce() -> Event) {
        if let Some(events) = &mut self.events {
            events.push_back(event());
        }
    }

    /// The next event; the `vitals` once there is no other and they have changed.
    pub(crate) fn pop(&mut self, vitals: Vitals) -> Option<Event> {
        let events = self.events.as_mut()?;
        if let Some(event) = events.pop_front() {
            return Some(event);
        }
        if self.vitals == Some(vitals) {
            return None;
        }
        self.vitals = Some(vitals);
        Some(Event::Vitals(vitals))
    }
}
