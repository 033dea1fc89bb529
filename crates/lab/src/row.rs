//! The results of a flow.

use crate::account::Counts;
use base::{Histogram, Quantiles};
use middlebox::fec;

/// The results of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The flow's name.
    pub flow: String,
    /// The name of the node that sends data.
    pub from: String,
    /// The name of the node that receives it.
    pub to: String,
    /// From the flow's start to its completion, or to the end of the run, seconds.
    pub duration_s: f64,
    /// Bytes that the receiving application got, in order; of a dialogue, the responses.
    pub payload_bytes: u64,
    /// Those per second of `duration_s`, bits.
    pub payload_bps: f64,
    /// The same with the headers of TCP and IP, 40 bytes or in IPv6 60, for every full-sized
    /// segment, as older publications count.
    pub goodput_bps: f64,
    /// From the flow's start until the receiver had everything, seconds; `None` for a flow that
    /// never ends or did not end in time.
    pub completed_s: Option<f64>,
    /// From the start of a single transfer until its sender had the acknowledgment of everything,
    /// seconds; `None` if it had not, or if its stack does not report it.
    pub acknowledged_s: Option<f64>,
    /// Transfers that were started, or requests that were made.
    pub started: u64,
    /// Those that are complete.
    pub finished: u64,
    /// Those that were given up.
    pub failed: u64,
    /// The durations of the finished ones, seconds; `None` without any.
    pub time_s: Option<Spread>,
    /// The same in units of the least possible time: that of the transfer alone on the path, with
    /// its handshake, or that of request and response.
    pub slowdown: Option<Spread>,
    /// The counts of datagrams, if the flow sent datagrams.
    pub datagrams: Delivery,
    /// Packets with the flow's data that a queue dropped, or a link that went down, on the whole path;
    /// those that hide in a tunnel are not counted. `None` on real packets.
    pub data_dropped: Option<u64>,
    /// The senders' round trips, seconds; `None` without any, or if they were not measured.
    pub rtt_s: Option<Tail>,
    /// The senders' smoothed round trips (RFC 6298: SRTT) after each of those.
    pub srtt_s: Option<Tail>,
    /// One-way delays of datagrams that are sent at a constant rate, seconds; `None` without any, or
    /// if they were not measured.
    pub delay_s: Option<Tail>,
    /// The distributions of these, if they were kept.
    pub distributions: Option<Box<Distributions>>,
    /// The sender's counts; of many connections, the sums.
    pub sender: Counts,
    /// The counts of its erasure coding; zeros if it has none.
    pub coding: fec::Statistics,
    /// Runs of bytes that were not the next of the stream; 0, or the run is in error.
    pub misplaced: u64,
}

/// The counts of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Those that were sent.
    pub sent: u64,
    /// Those that arrived by the end of the run, duplicates included.
    pub received: u64,
}

impl Delivery {
    /// The share of those sent that did not arrive; `None` if none was sent.
    #[must_use]
    pub fn loss(self) -> Option<f64> {
        let lost = self.sent.saturating_sub(self.received);
        (self.sent > 0).then(|| lost as f64 / self.sent as f64)
    }
}

/// The mean and quantiles of a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Half of them are no larger, to a thousandth.
    pub median: f64,
    /// 95 % of them are no larger, to a thousandth.
    pub p95: f64,
}

impl Spread {
    /// The spread of numbers that were counted in units of 1 / `per`.
    pub(crate) fn of(histogram: &Histogram, per: f64) -> Option<Spread> {
        let quantile = |q| histogram.quantile(q).map(|value| value as f64 / per);
        let mean = histogram.mean()? / per;
        Some(Spread { mean, median: quantile(0.5)?, p95: quantile(0.95)? })
    }

    /// The spread of the same numbers, each divided by `unit`.
    pub(crate) fn over(self, unit: f64) -> Spread {
        Spread { mean: self.mean / unit, median: self.median / unit, p95: self.p95 / unit }
    }
}

/// The distributions of a flow's round trips and delays, nanoseconds; empty if there were none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributions {
    /// The senders' round trips.
    pub rtt: Quantiles,
    /// The senders' smoothed round trips.
    pub srtt: Quantiles,
    /// One-way delays of datagrams.
    pub delay: Quantiles,
}

/// The mean and quantiles of a set of times, seconds, each to a thousandth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Their mean.
    pub mean: f64,
    /// None of them is smaller.
    pub min: f64,
    /// Half of them are no larger.
    pub median: f64,
    /// 95 % of them are no larger.
    pub p95: f64,
    /// 99 % of them are no larger.
    pub p99: f64,
}

impl Tail {
    /// Those of times that were counted in nanoseconds; `None` without any.
    #[must_use]
    pub fn of(times: &Quantiles) -> Option<Tail> {
        let quantile = |q| times.quantile(q).map(|nanos| nanos as f64 / 1e9);
        Some(Tail {
            mean: times.mean()? / 1e9,
            min: quantile(0.0)?,
            median: quantile(0.5)?,
            p95: quantile(0.95)?,
            p99: quantile(0.99)?,
        })
    }
}
