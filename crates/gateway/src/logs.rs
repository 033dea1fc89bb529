//! The log: one event a line, on standard error.

use crate::Observation;
use base::{Duration, Time};
use tracing::warn;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Words.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

/// Starts the log of the process.
///
/// # Errors
/// If there is one.
pub fn start(format: Format, levels: Targets) -> Result<(), TryInitError> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_span_events(FmtSpan::NONE);
    let registry = tracing_subscriber::registry().with(levels);
    match format {
        Format::Text => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
            registry.with(lines.with_ansi(ansi)).try_init()
        }
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    }
}

/// Looks for packets that the gateway itself loses, and says so at most once in [`LossWatch::QUIET`].
#[derive(Debug)]
pub struct LossWatch {
    /// As of the last line.
    reported: u64,
    /// When there may be a line again.
    quiet_until: Time,
}

impl Default for LossWatch {
    fn default() -> LossWatch {
        LossWatch { reported: 0, quiet_until: Time::ZERO }
    }
}

impl LossWatch {
    /// Between two lines.
    pub const QUIET: Duration = Duration::from_secs(10);

    /// Looks at the counters of this moment. Returns how many packets a line was written about.
    pub fn look(&mut self, now: Time, observed: &Observation) -> Option<u64> {
        let lost = observed.lost().saturating_sub(self.reported);
        if lost == 0 || now < self.quiet_until {
            return None;
        }
        self.reported = observed.lost();
        self.quiet_until = now + LossWatch::QUIET;
        let counts = &observed.packets;
        let [lan, wan] = counts.devices.map(|device| device.failed);
        warn!(
            lost,
            total_without_memory = counts.without_bytes,
            total_without_route = counts.unroutable,
            total_overload = counts.overload,
            total_refused_lan = lan,
            total_refused_wan = wan,
            "packets were lost"
        );
        Some(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn losses_are_told_at_most_once_in_a_while_and_none_is_left_out() {
        let mut watch = LossWatch::default();
        let mut observed = Observation::default();
        assert_eq!(watch.look(after(0), &observed), None);
        observed.packets.unroutable = 3;
        assert_eq!(watch.look(after(1), &observed), Some(3));
        observed.packets.devices[1].failed = 2;
        observed.packets.without_bytes = 1;
        assert_eq!(watch.look(after(2), &observed), None);
        assert_eq!(watch.look(after(10), &observed), None);
        assert_eq!(watch.look(after(11), &observed), Some(3));
        assert_eq!(watch.look(after(60), &observed), None);
    }
}
