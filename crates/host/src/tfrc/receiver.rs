//! The receiver of TFRC (RFC 5348 §6).

use super::losses::LossHistory;
use super::{equation, micros};
use crate::DatagramSink;
use base::{Duration, Time};
use tcp::PeerLosses;
use wire::{Payload, Probability, Tfrc, TfrcMessage};

/// Receives the data packets of a flow, and sends feedback: once per round-trip time, and at once when a loss
/// event begins.
#[derive(Clone, Debug)]
pub struct TfrcReceiver {
    /// Whether packets that were lost to corruption start no loss event.
    uses_causes: bool,
    /// The causes of the packets that are missing before the one with this sequence number, the next.
    causes: (u32, PeerLosses),
    losses: LossHistory,
    /// The sender's estimate in the latest packet (`R_m`); 0 if it had none.
    round_trip: Duration,
    /// The timestamp of the latest packet, and when it arrived.
    latest: (u32, Time),
    /// What has arrived since the last feedback, and between that and the one before it.
    since: [Received; 2],
    /// The highest receive rate so far, bytes per second.
    highest_rate: f64,
    /// The loss event rate of the last feedback.
    reported: f64,
    /// When the feedback timer expires; [`Time::NEVER`] if the next data packet is to be answered at once.
    timer: Time,
    /// Feedback is to be sent.
    due: bool,
    sink: DatagramSink,
}

/// Bytes that arrived from a time on.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    from: Time,
    bytes: u64,
}

impl TfrcReceiver {
    /// A receiver to which nothing has arrived. With `uses_causes`, what it is told about the causes of losses
    /// ([`TfrcReceiver::indicate`]) counts.
    #[must_use]
    pub fn new(uses_causes: bool) -> TfrcReceiver {
        TfrcReceiver {
            uses_causes,
            causes: (0, PeerLosses::default()),
            losses: LossHistory::default(),
            round_trip: Duration::ZERO,
            latest: (0, Time::ZERO),
            since: [Received::default(); 2],
            highest_rate: 0.0,
            reported: 0.0,
            timer: Time::NEVER,
            due: false,
            sink: DatagramSink::default(),
        }
    }

    /// The causes of the packets that are missing before the one with this sequence number, which arrives next.
    /// If another one does, they are forgotten.
    pub fn indicate(&mut self, before: u32, losses: PeerLosses) {
        if self.uses_causes {
            self.causes = (before, losses);
        }
    }

    /// Processes a data packet of `len` bytes, IP header included, with these fields (RFC 5348 §6.1, §6.3).
    /// Feedback is ignored.
    pub fn handle_packet(&mut self, now: Time, len: u32, message: &TfrcMessage, payload: Payload) {
        let &TfrcMessage::Data { sequence, timestamp, round_trip } = message else { return };
        let is_first = self.losses.highest().is_none();
        let number = self.extended(sequence);
        if self.losses.highest().is_none_or(|highest| number > highest) {
            self.round_trip = Duration::from_micros(round_trip.into());
            self.latest = (timestamp, now);
        }
        if is_first {
            self.since = [Received { from: now, bytes: 0 }; 2];
        } else {
            self.since[0].bytes += u64::from(len);
        }
        let (before, causes) = core::mem::take(&mut self.causes);
        let causes = if before == sequence { causes } else { PeerLosses::default() };
        let target = self.highest_rate.max(self.receive_rate(now));
        let first_interval = || first_interval(len, self.round_trip, target);
        let began = self.losses.arrive(now, number, &causes, self.round_trip, first_interval);
        self.sink.take(payload);
        self.due |=
            self.timer == Time::NEVER || began && self.losses.loss_event_rate() > self.reported;
    }

    /// The number of a packet, of which the wire has the lower half.
    fn extended(&self, sequence: u32) -> u64 {
        // No packet precedes the first one by more.
        let Some(highest) = self.losses.highest() else { return 1 << 32 | u64::from(sequence) };
        let ahead = sequence.wrapping_sub(highest as u32) as i32;
        highest.saturating_add_signed(ahead.into())
    }

    /// The rate at which data arrived during the last round-trip time or since the last feedback, whichever is
    /// longer, bytes per second (RFC 5348 §6.2, `X_recv`).
    fn receive_rate(&self, now: Time) -> f64 {
        let [last, before] = self.since;
        let Received { from, bytes } = if now.since(last.from) >= self.round_trip {
            last
        } else {
            Received { from: before.from, bytes: before.bytes + last.bytes }
        };
        let span = now.since(from).as_secs_f64();
        if span > 0.0 { bytes as f64 / span } else { 0.0 }
    }

    /// When [`TfrcReceiver::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.timer
    }

    /// Handles the expiry of the feedback timer (RFC 5348 §6.2).
    pub fn handle_timeout(&mut self, now: Time) {
        if self.timer > now {
            return;
        }
        if self.since[0].bytes > 0 {
            self.due = true;
        } else {
            // RFC 5348 §6.1: the next data packet is answered at once.
            self.timer = Time::NEVER;
        }
    }

    /// Whether feedback is to be sent.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// The feedback to be sent now, if any is due (RFC 5348 §6.2, steps 1 to 4).
    pub fn poll_transmit(&mut self, now: Time) -> Option<TfrcMessage> {
        if !core::mem::take(&mut self.due) {
            return None;
        }
        let rate = self.receive_rate(now);
        self.highest_rate = self.highest_rate.max(rate);
        self.reported = self.losses.loss_event_rate();
        self.since = [Received { from: now, bytes: 0 }, self.since[0]];
        // RFC 5348 §6.3: without an estimate every data packet is answered.
        let has_estimate = self.round_trip > Duration::ZERO;
        self.timer = if has_estimate { now + self.round_trip } else { Time::NEVER };
        let delay = micros(now.since(self.latest.1)).min(Tfrc::LONGEST.into());
        // No loss is no probability above 0, and the reverse.
        let least = u32::from(self.reported > 0.0);
        let loss_event_rate = Probability(Probability::of(self.reported).0.max(least));
        Some(TfrcMessage::Feedback {
            timestamp: self.latest.0,
            delay: delay as u32,
            receive_rate: rate as u32,
            loss_event_rate,
        })
    }

    /// The loss events so far.
    #[must_use]
    pub fn losses(&self) -> &LossHistory {
        &self.losses
    }

    /// What has arrived.
    #[must_use]
    pub fn sink(&self) -> &DatagramSink {
        &self.sink
    }
}

/// The interval before the first loss event: the one for which the equation gives `target` bytes per second, the
/// highest receive rate so far (RFC 5348 §6.3.1).
fn first_interval(segment: u32, round_trip: Duration, target: f64) -> f64 {
    let rate = if target > 0.0 && round_trip > Duration::ZERO {
        equation::loss_event_rate(f64::from(segment), round_trip, target)
    } else {
        // Half a segment per round-trip time.
        equation::loss_event_rate_of(2.0)
    };
    1.0 / rate
}

#[cfg(test)]
mod tests;
