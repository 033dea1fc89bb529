//! Auto-tuning of the receive buffer: dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in
//! TCP", 2001), with the sizes of Linux (`tcp_rcv_space_adjust`).
//!
//! Once a round trip, the receiver counts what the application has read in it. A sender in slow start
//! sends twice as much in the next one, and a sender in recovery needs a second window beyond the gap:
//! the buffer is at least twice what was read. It never shrinks. An application that reads slowly
//! keeps it small.

use super::Receiver;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// The measurement of one round trip.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Tuning {
    /// The largest size of the buffer, bytes.
    maximum: u64,
    /// When the measurement began, and the octets read until then; `None` before the first data.
    since: Option<Time>,
    read: u64,
    /// What was read in the round trip that the size of the buffer follows from, bytes.
    copied: u64,
    /// The round trip, as the receiver measures it.
    pub(super) rtt: Option<Duration>,
    /// Without another measurement, a window lasts a round trip: until this octet has arrived.
    edge: u64,
}

impl Tuning {
    pub(super) fn new(maximum: u64) -> Tuning {
        Tuning { maximum, since: None, read: 0, copied: 0, rtt: None, edge: 0 }
    }

    pub(super) fn maximum(&self) -> u64 {
        self.maximum
    }

    /// Takes the age of an echoed timestamp. It includes the time that the peer had nothing to send,
    /// so one sample counts as two round trips at most. There is one a round trip: it has twice the
    /// weight of those of RFC 6298.
    fn sample(&mut self, rtt: Duration, echoed: Duration) {
        self.rtt = Some((rtt * 3 + echoed.min(rtt * 2)) / 4);
    }
}

impl Receiver {
    /// Segments beyond twice what was read (Linux: `tcp_rcv_space_adjust`).
    const SLACK: u64 = 16;
    /// A first round trip with more than this many segments makes the buffer grow (Linux:
    /// `TCP_INIT_CWND`).
    const FIRST: u64 = 10;

    /// Whether [`Receiver::tune`] is to be called as data arrives.
    #[inline(always)]
    pub(crate) fn is_tuning_due(&self, now: Time) -> bool {
        now >= self.tune_at
    }

    /// Ends a measurement, and begins another. `echoed` is the age of the timestamp that the segment
    /// echoes, and `handshake` the shortest round trip that our own segments have had.
    pub(crate) fn tune(
        &mut self,
        now: Time,
        echoed: Option<Duration>,
        handshake: Option<Duration>,
    ) {
        let Some(since) = self.tuning.since else {
            let shortest = |rtt: Duration| rtt.min(echoed.unwrap_or(rtt));
            self.tuning.rtt = handshake.map(shortest).or(echoed);
            self.tuning.copied =
                self.full_buffer_size.min(Self::FIRST * u64::from(self.mss)).max(1);
            return self.begin_measurement(now);
        };
        match (self.tuning.rtt, echoed) {
            (Some(rtt), Some(echoed)) => self.tuning.sample(rtt, echoed),
            (None, None) if self.nxt < self.tuning.edge => return,
            (None, None) => self.tuning.rtt = Some(now.since(since)),
            (None, Some(_)) => self.tuning.rtt = echoed,
            (Some(_), None) => {}
        }
        self.update_below = (self.buffer_size / 2) as u32;
        let copied = self.octets_read() - self.tuning.read;
        let has_pressure = self.drops_out_of_order || self.buffer_size < self.full_buffer_size;
        if copied > self.tuning.copied && !has_pressure {
            // Where it has grown since the last time, it will have grown again by the next.
            let window = 2 * copied + Self::SLACK * u64::from(self.mss);
            let ahead = 2 * window * (copied - self.tuning.copied) / self.tuning.copied;
            self.grow_buffer(window + ahead);
            self.tuning.copied = copied;
        }
        self.begin_measurement(now);
    }

    /// Octets of the peer's sequence space that the application has read.
    fn octets_read(&self) -> u64 {
        self.nxt - self.unread.bytes()
    }

    fn begin_measurement(&mut self, now: Time) {
        self.tuning.since = Some(now);
        self.tuning.read = self.octets_read();
        self.tuning.edge = self.announced_edge;
        self.tune_at = if self.full_buffer_size == self.tuning.maximum {
            Time::NEVER
        } else {
            now + self.tuning.rtt.unwrap_or_default()
        };
    }

    /// Makes the buffer as large as `size` bytes, or the maximum. The next acknowledgment says so: what
    /// the peer has got was enough until now, so none is sent for it.
    fn grow_buffer(&mut self, size: u64) {
        let size = size.min(self.tuning.maximum);
        if size > self.full_buffer_size {
            self.full_buffer_size = size;
            self.buffer_size = size;
            self.reassembly.grow(size);
            self.set_window_steps();
        }
    }
}
