//! The shortest possible times on a path, the reference of slowdown.

use base::{Duration, Rate};
use host::{Ends, Role};
use scenario::{Flow, IpVersion, Scenario};

/// A path without other traffic, as at the start of a run; a recorded rate counts by its mean,
/// which a short transfer may exceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ideal {
    /// The direction of data.
    forward: Way,
    /// The direction of acknowledgments and requests.
    backward: Way,
}

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Propagation.
    delay: Duration,
    /// The rate of the slowest link; `None` if all are infinitely fast.
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
    fn over<'a>(links: impl Iterator<Item = &'a link::Config>) -> Way {
        links.fold(Way { delay: Duration::ZERO, rate: None }, |way, link| Way {
            delay: way.delay + link.initial_delay(),
            rate: link.initial_rate().into_iter().chain(way.rate).min(),
        })
    }

    /// From the first byte's departure to the arrival of the last, in full segments.
    fn carries(self, size: u64, flow: &Flow) -> Duration {
        let segments = size.div_ceil(u64::from(flow.sender.mss));
        let bytes = size.saturating_add(segments.saturating_mul(headers(flow.ip)));
        self.delay + self.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes))
    }
}

/// The ideal paths of the flows.
pub(crate) fn ideals(scenario: &Scenario) -> Vec<Ideal> {
    let routes = scenario.routes();
    let hops = |from, to| routes.hops(&scenario.links, from, to);
    let way = |from, to| Way::over(hops(from, to).map(|hop| scenario.direction(hop)));
    let ideal =
        |flow: &Flow| Ideal { forward: way(flow.from, flow.to), backward: way(flow.to, flow.from) };
    scenario.flows.iter().map(ideal).collect()
}

impl Ideal {
    /// The least time from the opening of a connection to the arrival of `size` bytes.
    pub(crate) fn transfer(&self, size: u64, flow: &Flow) -> Duration {
        self.forward.delay + self.backward.delay + self.forward.carries(size, flow)
    }

    /// The least that a request or a message can take.
    pub(crate) fn least_time(&self, application: &dyn Ends, flow: &Flow) -> Option<Duration> {
        application.least_time(&|from, size| match from {
            Role::Sender => self.forward.carries(size, flow),
            Role::Receiver => self.backward.carries(size, flow),
        })
    }
}
