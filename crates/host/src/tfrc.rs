//! TCP-Friendly Rate Control (TFRC, RFC 5348): datagrams at the rate that a TCP connection would have on
//! average, without its variation.
//!
//! A [`TfrcSender`] sends data packets at a rate that the equation gives for the round-trip time and the loss
//! event rate, which a [`TfrcReceiver`] measures and reports once per round-trip time. Both are plain state
//! machines: packets and the time go in; packets and the next deadline come out. What RFC 5348 leaves optional
//! is not done: the reduction of oscillations (§4.5) and history discounting (§5.5).
//!
//! The receiver can be told which packets were lost to corruption (`obanaik2003` §4.2): they are no loss events.

mod equation;
mod losses;
mod receiver;
mod sender;

pub use losses::{LossCounts, LossHistory};
pub use receiver::TfrcReceiver;
pub use sender::TfrcSender;

use base::Duration;

/// A span as the fields of packets tell it, microseconds.
fn micros(span: Duration) -> u64 {
    span.as_nanos() / 1000
}

/// The time that `bytes` take at a rate in bytes per second, at least a nanosecond.
fn time_at(rate: f64, bytes: f64) -> Duration {
    // The conversion saturates.
    Duration::from_nanos(((bytes / rate * 1e9) as u64).clamp(1, Duration::MAX.as_nanos()))
}
