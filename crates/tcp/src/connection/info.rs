//! What the host can learn of a connection: state, statistics, memory, events.

use super::{Clock, Connection, Negotiated};
use crate::event::Event;
use crate::rtt::RoundTrips;
use crate::sender::Statistics;
use crate::state::{Info, OutstandingSegments, Pressure, State, Vitals};
use base::{Duration, Time};
use wire::{Segment, SeqNumber};

impl Connection {
    /// The connection's own clock, which goes on when it is restored under another.
    #[must_use]
    #[inline]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The sender's counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.sender.statistics
    }

    /// Measures round trips from now on: [`Connection::round_trips`].
    pub fn measure_round_trips(&mut self) {
        self.sender.round_trips = Some(Box::default());
    }

    /// The round-trip samples, if they are measured.
    #[must_use]
    pub fn round_trips(&self) -> Option<&RoundTrips> {
        self.sender.round_trips.as_deref()
    }

    /// The quantities that time series record.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        Vitals {
            window: self.sender.window(),
            dupack_credit: self.sender.dupack_credit(),
            ssthresh: self.sender.ssthresh(),
            flight: self.sender.outstanding(),
            srtt: self.sender.srtt(),
            rto: self.sender.rto(),
        }
    }

    /// When the wait for an acknowledgment of outstanding data began: at the last acknowledgment,
    /// or when the data was sent. `None` if no data is outstanding.
    #[must_use]
    pub fn waiting_since(&self) -> Option<Time> {
        let waits = self.sender.una() > 0 && self.sender.outstanding() > 0;
        waits.then(|| self.clock.world(self.sender.progress_at()))
    }

    /// The state that `TCP_INFO` shows.
    #[must_use]
    pub fn info(&self) -> Info {
        let scaled = self.negotiated.contains(Negotiated::SCALE) && self.receiver.nxt() > 0;
        let marks = self.accurate_ecn.as_ref().map(|accurate| accurate.marks());
        let (received_marks, delivered_marks) = marks.unwrap_or_default();
        Info {
            mss: self.sender.mss(),
            offered_mss: self.mss,
            recovery_state: self.sender.recovery_state(),
            sack: self.negotiated.contains(Negotiated::SACK),
            timestamps: self.negotiated.contains(Negotiated::TIMESTAMPS),
            ecn: self.sends_ect(),
            accurate_ecn: self.accurate_ecn.is_some(),
            delivered_marks,
            received_marks,
            window_shifts: scaled.then_some((self.send_shift, self.receive_shift)),
            peer_window: self.sender.peer_window(),
            own_window: self.receiver.window(),
            written: self.sender.stream.written(),
            sent: self.sender.nxt().saturating_sub(1).min(self.sender.stream.written()),
            received: self.receiver.received(),
            min_rtt: self.sender.min_rtt(),
        }
    }

    /// Bytes of data in a full-sized segment to the peer.
    #[must_use]
    pub fn segment_size(&self) -> u32 {
        self.sender.mss()
    }

    /// When the segment may leave that pacing holds back; [`Time::NEVER`] if there is none.
    #[must_use]
    #[inline(always)]
    pub fn held_until(&self) -> Time {
        self.clock.world(self.sender.held_until())
    }

    /// The segments that are outstanding. It takes time in proportion to them.
    #[must_use]
    pub fn outstanding_segments(&self) -> OutstandingSegments {
        self.sender.outstanding_segments()
    }

    /// Whether segments carry timestamps.
    #[must_use]
    pub fn has_timestamps(&self) -> bool {
        self.negotiated.contains(Negotiated::TIMESTAMPS)
    }

    /// Octets that the peer has received, as far as is known, in order or not: a SYN and a FIN of ours
    /// count as one each.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.sender.delivered()
    }

    /// The round trip of the segment that the peer has acknowledged last, if it was not sent again: not
    /// smoothed.
    #[must_use]
    pub fn latest_rtt(&self) -> Option<Duration> {
        self.sender.latest_rtt()
    }

    /// Memory that the connection takes, bytes: its own, unread and out-of-order data, and the
    /// records of outstanding segments. Data to be sent belongs to the application.
    #[must_use]
    pub fn memory(&self) -> u64 {
        size_of::<Connection>() as u64 + self.receiver.memory() + self.sender.memory()
    }

    /// Sets the host's memory pressure. In-order data inside the announced window is always
    /// accepted.
    pub fn set_pressure(&mut self, pressure: Pressure) {
        self.receiver.set_pressure(pressure);
    }

    /// Turns recording of [`Event`]s for [`Connection::poll_event`] on or off.
    pub fn watch(&mut self, keep: bool) {
        self.sender.log.enable(keep);
        self.update_fast_path();
    }

    /// The next event, if recording is turned on by [`Connection::watch`].
    pub fn poll_event(&mut self) -> Option<Event> {
        if !self.sender.log.is_enabled() {
            return None;
        }
        let vitals = self.vitals();
        self.sender.log.pop(vitals)
    }

    /// Whether a SYN may open a new connection in place of this one in TIME-WAIT: its sequence
    /// number or timestamp is later than any that the peer has sent (RFC 9293 §3.6.1, RFC 6191 §2).
    #[must_use]
    pub fn yields_to(&self, syn: &Segment) -> bool {
        if self.state != State::TimeWait {
            return false;
        }
        let is_beyond = syn.seq.beyond(self.irs + self.receiver.nxt() as u32) >= 0;
        match syn.options.timestamps {
            Some(stamp) if self.negotiated.contains(Negotiated::TIMESTAMPS) => {
                match self.timestamps.age(stamp.value) {
                    0 => is_beyond,
                    age => age > 0,
                }
            }
            _ => is_beyond,
        }
    }

    /// SND.NXT: the next connection between the same ports must start beyond it (RFC 9293 §3.4.3).
    #[must_use]
    pub fn last_sent(&self) -> SeqNumber {
        self.iss + self.sender.nxt() as u32
    }
}
