//! The events of a connection: one typed stream.
//!
//! Time series, traces, metrics and tests use the same events. Without a reader, an event costs one
//! branch. Sequence numbers are absolute: 0 is the SYN, 1 the first octet of data.

use crate::mechanism::{Signal, Verdict};
use crate::state::{State, Vitals};
use base::Duration;
use serde::Serialize;
use std::collections::VecDeque;
use wire::CopyId;

/// An event in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The state has changed.
    State {
        /// The old state.
        from: State,
        /// The new state.
        to: State,
    },
    /// A range was sent.
    Sent {
        /// Its first octet.
        start: u64,
        /// Octets of sequence space.
        len: u32,
        /// The copy of the range.
        copy: CopyId,
        /// It is a retransmission.
        again: bool,
    },
    /// SND.UNA has advanced.
    Acknowledged {
        /// SND.UNA
        una: u64,
        /// Octets newly known to have arrived, selectively acknowledged ones included.
        delivered: u64,
    },
    /// A duplicate acknowledgment has arrived (RFC 5681 §2, RFC 6675 §2).
    DuplicateAck,
    /// RCV.NXT has advanced.
    Received {
        /// RCV.NXT
        next: u64,
    },
    /// Data has arrived inside the window that does not advance RCV.NXT, which the answer repeats.
    OutOfOrder {
        /// Its first octet.
        start: u64,
        /// Octets.
        len: u32,
    },
    /// A SACK block that the last acknowledgment did not contain (RFC 2018).
    Sacked {
        /// Its first octet.
        start: u64,
        /// The octet after its last.
        end: u64,
    },
    /// A round trip was measured.
    RoundTrip {
        /// The sample.
        sample: Duration,
        /// The smoothed round-trip time.
        smoothed: Duration,
        /// The new retransmission timeout.
        rto: Duration,
    },
    /// A loss was detected.
    Loss {
        /// Its first octet.
        start: u64,
        /// The octet after its last.
        end: u64,
        /// How the loss was detected.
        signal: Signal,
        /// Its verdict.
        verdict: Verdict,
    },
    /// The congestion window was reduced.
    Reduced {
        /// The cause.
        signal: Signal,
        /// The window now, bytes.
        window: u64,
        /// The slow-start threshold now, bytes.
        ssthresh: u64,
    },
    /// A reduction was undone as spurious.
    Undone {
        /// The window now, bytes.
        window: u64,
    },
    /// The state of the old path was discarded, because the path has changed (`koutsianas2007`
    /// §3.3).
    Reprobed {
        /// The window now, bytes.
        window: u64,
        /// Outstanding segments are retransmitted.
        resends: bool,
    },
    /// The congestion episode is over.
    Recovered,
    /// The retransmission timer expired.
    TimedOut {
        /// Consecutive timeouts of the same octet.
        #[serde(rename = "series")]
        consecutive: u32,
        /// The next timeout.
        rto: Duration,
    },
    /// The path takes smaller segments only.
    PathMtu {
        /// Bytes of data in a full-sized segment now.
        mss: u32,
    },
    /// A loss probe was sent (RFC 8985 §7.3).
    ProbedTail,
    /// A closed window was probed.
    Probed,
    /// A keep-alive probe was sent.
    KeptAlive {
        /// Unanswered probes so far.
        probes: u32,
    },
    /// A reset of the peer has ended the connection.
    Reset,
    /// A challenge acknowledgment was sent (RFC 5961).
    Challenged,
    /// A segment that arrived was dropped.
    Refused {
        /// The reason.
        why: DropReason,
    },
    /// The vitals have changed. Follows all other events.
    Vitals(Vitals),
}

/// Why an arriving segment was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// It lies outside the receive window (RFC 9293 §3.10.7.4, first).
    OutsideWindow,
    /// Its timestamp is older than one seen before (PAWS, RFC 7323 §5.3).
    OldTimestamp,
    /// It carries no timestamp although timestamps are negotiated (RFC 7323 §3.2).
    NoTimestamp,
    /// A reset that does not name the very next octet (RFC 5961 §3).
    BlindReset,
    /// A SYN in a connection that is open (RFC 5961 §4).
    BlindSyn,
    /// Its ACK flag is not set.
    NoAck,
    /// Its acknowledgment number was never sent, or is too old (RFC 5961 §5).
    BadAck,
    /// A reset in TIME-WAIT (RFC 1337).
    TimeWaitReset,
    /// The reassembly queue has no entry left for its data, or the host no memory.
    QueueFull,
}

/// The recorded events of a connection, if recording is on.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog(Option<Box<Recorded>>);

#[derive(Clone, Debug, Default)]
struct Recorded {
    events: VecDeque<Event>,
    vitals: Option<Vitals>,
}

impl EventLog {
    /// Turns recording on or off; discards recorded events.
    pub(crate) fn enable(&mut self, keep: bool) {
        *self = EventLog(keep.then(Box::default));
    }

    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Records an event, if recording is on.
    #[inline]
    pub(crate) fn push(&mut self, event: impl FnOnce() -> Event) {
        if let Some(recorded) = &mut self.0 {
            recorded.events.push_back(event());
        }
    }

    /// The next event; the `vitals` once there is no other and they have changed.
    pub(crate) fn pop(&mut self, vitals: Vitals) -> Option<Event> {
        let recorded = self.0.as_mut()?;
        if let Some(event) = recorded.events.pop_front() {
            return Some(event);
        }
        if recorded.vitals == Some(vitals) {
            return None;
        }
        recorded.vitals = Some(vitals);
        Some(Event::Vitals(vitals))
    }
}
