//! What a path would do at best: the measure of slowdown.

use crate::scenario::{Flow, IpVersion, Scenario};
use base::{Duration, Rate, Time};
use host::Dialogue;

/// A path without anybody else on it, as it is at the start of a run; of a recorded rate its mean
/// counts, which a short transfer in a good stretch may beat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ideal {
    /// Where data goes.
    pub(crate) forward: Way,
    /// Where acknowledgments, and requests, go.
    pub(crate) backward: Way,
}

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Propagation.
    delay: Duration,
    /// That of the slowest link; `None` if all are infinitely fast.
    rate: Option<Rate>,
}

/// TCP and IP headers without options, bytes.
pub(crate) fn headers(ip: IpVersion) -> u64 {
    match ip {
        IpVersion::V4 => 40,
        IpVersion::V6 => 60,
    }
}

impl Way {
    /// The way over links.
    pub(crate) fn over<'a>(links: impl Iterator<Item = &'a link::Config>) -> Way {
        links.fold(Way { delay: Duration::ZERO, rate: None }, |way, link| {
            let now = link.variations.at(Time::ZERO).0.copied().unwrap_or_default();
            let recorded = link.trace.as_ref().map(link::DeliveryTrace::mean_rate);
            let rate = recorded.or(now.rate).or(link.rate);
            Way {
                delay: way.delay + now.delay.unwrap_or(link.delay),
                rate: rate.into_iter().chain(way.rate).min(),
            }
        })
    }

    /// Propagation.
    pub(crate) fn delay(self) -> Duration {
        self.delay
    }

    /// From the first byte's departure to the arrival of the last, in full segments.
    fn carries(self, size: u64, flow: &Flow) -> Duration {
        let segments = size.div_ceil(u64::from(flow.sender.mss));
        let bytes = size.saturating_add(segments.saturating_mul(headers(flow.ip)));
        self.delay + self.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes))
    }
}

/// What the paths of the flows would do, by the links on the way from a node to another.
pub(crate) fn ideals<'a>(
    scenario: &Scenario,
    path: impl Fn(usize, usize) -> Vec<&'a link::Config>,
) -> Vec<Ideal> {
    let way = |from, to| Way::over(path(from, to).into_iter());
    let ideal =
        |flow: &Flow| Ideal { forward: way(flow.from, flow.to), backward: way(flow.to, flow.from) };
    scenario.flows.iter().map(ideal).collect()
}

impl Ideal {
    /// The least time from the opening of a connection until so much has arrived.
    pub(crate) fn transfer(&self, size: u64, flow: &Flow) -> Duration {
        self.forward.delay + self.backward.delay + self.forward.carries(size, flow)
    }

    /// The least time from a request to the whole response.
    pub(crate) fn response(&self, dialogue: &Dialogue, flow: &Flow) -> Duration {
        self.backward.carries(dialogue.request, flow)
            + self.forward.carries(dialogue.response, flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::{Config, DeliveryTrace, Interval, Intervals, Variation};

    #[test]
    fn the_rate_is_that_of_the_start_or_the_mean_of_a_recording() {
        let bps = |config: &Config| Way::over([config].into_iter()).rate.map(Rate::as_bps);
        let plain = Config { rate: Rate::from_bps(1_000_000), ..Config::default() };
        assert_eq!(bps(&plain), Some(1_000_000));
        // 1500 bytes every two milliseconds.
        let trace = Some(DeliveryTrace::parse("2\n").unwrap());
        assert_eq!(bps(&Config { trace, ..plain.clone() }), Some(6_000_000));
        let slow = Variation { rate: Rate::from_bps(5000), delay: None };
        let span = Interval { start: Duration::ZERO, end: Duration::MAX, value: slow };
        let variations = Intervals::new([span], None).unwrap();
        assert_eq!(bps(&Config { variations, ..plain }), Some(5000));
    }
}
