//! The sender of TFRC (RFC 5348 §4).

use super::{equation, micros, time_at};
use crate::DatagramFlow;
use base::{Duration, Time};
use wire::{Ip, Payload, Tfrc, TfrcMessage, Udp};

/// The longest time between packets, seconds (RFC 5348 §4.3, `t_mbi`).
const LONGEST_INTERVAL: f64 = 64.0;
/// The nofeedback timer before there is a round-trip time (RFC 5348 §4.2).
const FIRST_TIMER: Duration = Duration::from_secs(2);
/// The most receive rates that are kept: those of two round-trip times.
const MOST_RATES: usize = 8;

/// Sends data packets of one size at the rate that TFRC allows, or at that of the application if it is lower.
#[derive(Clone, Debug)]
pub struct TfrcSender {
    flow: DatagramFlow,
    /// Bytes of each packet, headers included (`s`).
    segment: u32,
    /// The allowed rate, bytes per second (`X`).
    rate: f64,
    /// What the equation gives, bytes per second (`X_Bps`); infinite while there is no loss event.
    computed: f64,
    /// The smoothed round-trip time (`R`).
    round_trip: Option<Duration>,
    /// The last reported loss event rate (`p`).
    loss_event_rate: f64,
    /// Receive rates with their times, bytes per second (`X_recv_set`).
    receive_rates: Vec<(Time, f64)>,
    /// When the rate was last doubled (`tld`).
    doubled: Time,
    /// When the nofeedback timer expires.
    timer: Time,
    /// A packet was sent since the timer was set.
    has_sent: bool,
    /// The rate of the application was above the allowed one: since the last feedback, and between that and
    /// the one before it.
    is_limited: [bool; 2],
    /// When the last packet was due, and the next one is.
    last: Time,
    next: Time,
    sent: u64,
}

impl TfrcSender {
    /// The sender of a flow, whose rate is the application's. Bursts are ignored.
    #[must_use]
    pub fn new(flow: DatagramFlow) -> TfrcSender {
        let headers = Ip::new(flow.remote, flow.remote).len() + Udp::HEADER + Tfrc::DATA;
        let segment = flow.payload + headers as u32;
        TfrcSender {
            flow,
            segment,
            // RFC 5348 §4.2: one packet per second.
            rate: f64::from(segment),
            computed: f64::INFINITY,
            round_trip: None,
            loss_event_rate: 0.0,
            receive_rates: Vec::with_capacity(MOST_RATES + 1),
            doubled: Time::ZERO,
            timer: Time::NEVER,
            has_sent: false,
            is_limited: [true; 2],
            last: flow.start,
            next: if flow.start < flow.stop { flow.start } else { Time::NEVER },
            sent: 0,
        }
    }

    /// Whose it is.
    #[must_use]
    pub fn flow(&self) -> &DatagramFlow {
        &self.flow
    }

    /// Packets sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The allowed rate, bytes per second with all headers (`X`).
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The smoothed round-trip time (`R`), if there is one.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// When a packet is due, or [`TfrcSender::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.next.min(self.timer)
    }

    /// When the next packet is due; [`Time::NEVER`] after the last.
    #[must_use]
    pub fn next(&self) -> Time {
        self.next
    }

    /// The data packet that is due at `now`, with its payload.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(TfrcMessage, Payload)> {
        if self.next > now {
            return None;
        }
        let DatagramFlow { stream, payload: len, .. } = self.flow;
        let payload = Payload { stream, offset: self.sent * u64::from(len), len };
        let round_trip = self.round_trip.map_or(0, |round_trip| micros(round_trip).max(1));
        let message = TfrcMessage::Data {
            sequence: self.sent as u32,
            timestamp: timestamp(now),
            round_trip: round_trip.min(Tfrc::LONGEST.into()) as u32,
        };
        if self.timer == Time::NEVER {
            self.timer = now + FIRST_TIMER;
        }
        self.sent += 1;
        self.has_sent = true;
        self.is_limited[0] |= self.rate < self.application_rate();
        // RFC 5348 §4.6: a sender that was woken late catches up, with the packets of a round-trip time at most.
        self.last = self.next.max(now - self.round_trip.unwrap_or_default());
        self.plan();
        Some((message, payload))
    }

    fn application_rate(&self) -> f64 {
        self.flow.rate.as_bps() as f64 / 8.0
    }

    /// Sets the time of the next packet (RFC 5348 §4.6).
    fn plan(&mut self) {
        if self.sent == 0 {
            return;
        }
        let rate = self.rate.min(self.application_rate());
        self.next = self.last + time_at(rate, f64::from(self.segment));
        if self.next >= self.flow.stop {
            self.next = Time::NEVER;
        }
    }

    /// The rate of the first round-trip time after the first feedback (RFC 5348 §4.2).
    fn initial_rate(&self, round_trip: Duration) -> f64 {
        let window = (4 * self.segment).min((2 * self.segment).max(4380));
        f64::from(window) / round_trip.as_secs_f64()
    }

    /// Processes feedback (RFC 5348 §4.3). Data packets, and an echo of a timestamp that was not sent, are ignored.
    pub fn handle_packet(&mut self, now: Time, message: &TfrcMessage) {
        let &TfrcMessage::Feedback { timestamp: echo, delay, receive_rate, loss_event_rate } =
            message
        else {
            return;
        };
        let elapsed = timestamp(now).wrapping_sub(echo);
        if self.sent == 0 || u64::from(elapsed) > micros(now.since(self.flow.start)) {
            return;
        }
        // Step 1.
        let sample = Duration::from_micros(elapsed.saturating_sub(delay).max(1).into());
        // Step 2: q = 0.9.
        let round_trip = self.round_trip.map_or(sample, |old| (old * 9 + sample) / 10);
        let is_first = self.round_trip.replace(round_trip).is_none();
        // Step 3.
        let timeout = self.timeout(round_trip);
        // Step 4.
        let (receive_rate, p) = (f64::from(receive_rate), loss_event_rate.get());
        let is_worse = p > self.loss_event_rate;
        self.loss_event_rate = p;
        if is_first {
            // RFC 5348 §4.2.
            self.receive_rates.push((now, f64::INFINITY));
            self.rate = self.initial_rate(round_trip);
            self.doubled = now;
        }
        let limit = if is_first {
            f64::INFINITY
        } else {
            self.receive_limit(now, receive_rate, is_worse, round_trip)
        };
        self.set_rate(now, limit, round_trip);
        self.is_limited = [false, self.is_limited[0]];
        // Step 6.
        self.set_timer(now + timeout);
        self.plan();
    }

    /// The limit by what the receiver has received, bytes per second (RFC 5348 §4.3, `recv_limit`).
    fn receive_limit(
        &mut self,
        now: Time,
        receive_rate: f64,
        is_worse: bool,
        round_trip: Duration,
    ) -> f64 {
        // RFC 5348 §8.2.1: feedback covers what was sent a round-trip time ago.
        if self.is_limited.contains(&true) {
            self.receive_rates.retain(|&(time, _)| now.since(time) <= round_trip * 2);
            self.receive_rates.push((now, receive_rate));
            if self.receive_rates.len() > MOST_RATES {
                self.receive_rates.remove(0);
            }
            return 2.0 * self.highest_receive_rate();
        }
        let (mut receive_rate, mut factor) = (receive_rate, 2.0);
        if is_worse {
            self.receive_rates.iter_mut().for_each(|(_, rate)| *rate *= 0.5);
            (receive_rate, factor) = (0.85 * receive_rate, 1.0);
        }
        self.receive_rates.retain(|(_, rate)| rate.is_finite());
        let highest = self.highest_receive_rate().max(receive_rate);
        self.receive_rates.clear();
        self.receive_rates.push((now, highest));
        factor * highest
    }

    fn highest_receive_rate(&self) -> f64 {
        self.receive_rates.iter().fold(0.0, |highest, &(_, rate)| highest.max(rate))
    }

    fn least_rate(&self) -> f64 {
        f64::from(self.segment) / LONGEST_INTERVAL
    }

    /// Sets the allowed rate (RFC 5348 §4.3, step 4).
    fn set_rate(&mut self, now: Time, limit: f64, round_trip: Duration) {
        if self.loss_event_rate > 0.0 {
            self.computed = equation::throughput(self.segment, round_trip, self.loss_event_rate);
            self.rate = self.computed.min(limit).max(self.least_rate());
        } else if now.since(self.doubled) >= round_trip {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial_rate(round_trip));
            self.doubled = now;
        }
    }

    /// The nofeedback timer: four round-trip times, or the time of two packets.
    fn timeout(&self, round_trip: Duration) -> Duration {
        (round_trip * 4).max(time_at(self.rate, 2.0 * f64::from(self.segment)))
    }

    fn set_timer(&mut self, at: Time) {
        self.timer = at;
        self.has_sent = false;
    }

    /// Handles the expiry of the nofeedback timer (RFC 5348 §4.4).
    pub fn handle_timeout(&mut self, now: Time) {
        if self.timer > now {
            return;
        }
        if now >= self.flow.stop {
            self.timer = Time::NEVER;
            return;
        }
        let halved = (0.5 * self.rate).max(self.least_rate());
        let Some(round_trip) = self.round_trip else {
            if self.has_sent {
                self.rate = halved;
            }
            self.set_timer(now + self.timeout(Duration::ZERO));
            return self.plan();
        };
        let received = self.highest_receive_rate();
        let recover = self.initial_rate(round_trip);
        let has_loss = self.loss_event_rate > 0.0;
        let is_low = if has_loss { received < recover } else { self.rate < 2.0 * recover };
        if is_low && !self.has_sent {
            // It was idle, and may start with the initial rate.
        } else if !has_loss {
            self.rate = halved;
        } else {
            // Halves what has limited the rate: 2 X_recv, or the equation.
            let limit = if self.computed > 2.0 * received { received } else { 0.5 * self.computed };
            let limit = limit.max(self.least_rate());
            self.receive_rates.clear();
            self.receive_rates.push((now, 0.5 * limit));
            self.set_rate(now, limit, round_trip);
        }
        self.set_timer(now + self.timeout(round_trip));
        self.plan();
    }
}

/// A time as packets tell it, microseconds modulo 2^32.
fn timestamp(time: Time) -> u32 {
    micros(time.since(Time::ZERO)) as u32
}

#[cfg(test)]
mod tests;
